"""What exists: hosts, links, zones and routes, read from SimGrid platform files."""

from ptaskmodel.platform.model import (
    AvailabilityTrace,
    Disk,
    Host,
    Link,
    PlatformWarning,
    Route,
    RouteParts,
)
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.simgrid_xml import load_platform

__all__ = [
    "AvailabilityTrace",
    "Disk",
    "Host",
    "Link",
    "Platform",
    "PlatformWarning",
    "Route",
    "RouteParts",
    "load_platform",
]
