"""What exists: hosts, links, zones and routes, read from SimGrid platform files."""

from ptaskmodel.platform.model import (
    Disk,
    Host,
    Link,
    PlatformWarning,
    Profile,
    Route,
    RouteParts,
)
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.simgrid_xml import load_platform

__all__ = [
    "Disk",
    "Host",
    "Link",
    "Platform",
    "PlatformWarning",
    "Profile",
    "Route",
    "RouteParts",
    "load_platform",
]
