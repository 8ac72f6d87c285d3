# Written by `python tests/stubs.py`, of the table in __init__.py.
from ptaskmodel.platform.facts import AvailabilityTrace as AvailabilityTrace
from ptaskmodel.platform.facts import Disk as Disk
from ptaskmodel.platform.facts import Host as Host
from ptaskmodel.platform.facts import Link as Link
from ptaskmodel.platform.facts import PlatformWarning as PlatformWarning
from ptaskmodel.platform.facts import Route as Route
from ptaskmodel.platform.facts import RouteParts as RouteParts
from ptaskmodel.platform.platform import Platform as Platform
from ptaskmodel.platform.reader.xml import load_platform as load_platform
from ptaskmodel.platform.topologies.dragonfly import Dragonfly as Dragonfly
from ptaskmodel.platform.topologies.fat_tree import FatTree as FatTree
from ptaskmodel.platform.topologies.torus import Torus as Torus
