"""Platforms: hosts, links, zones and routes, read from SimGrid platform files."""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.platform.facts": (
        "AvailabilityTrace",
        "Disk",
        "Host",
        "Link",
        "PlatformWarning",
        "Route",
        "RouteParts",
    ),
    "ptaskmodel.platform.platform": ("Platform",),
    "ptaskmodel.platform.reader.xml": ("load_platform",),
    "ptaskmodel.platform.topologies.dragonfly": ("Dragonfly",),
    "ptaskmodel.platform.topologies.fat_tree": ("FatTree",),
    "ptaskmodel.platform.topologies.torus": ("Torus",),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
