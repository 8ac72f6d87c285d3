"""Families of topologies, one a file: a new family is a new file and an entry in the table here."""

from __future__ import annotations

from ptaskmodel.platform.topologies.dragonfly import Dragonfly
from ptaskmodel.platform.topologies.fat_tree import FatTree
from ptaskmodel.platform.topologies.star import Star
from ptaskmodel.platform.topologies.topology import Topology
from ptaskmodel.platform.topologies.torus import Torus

# The number of a family (`WalkTable.kind`) is its place here.
FAMILIES: tuple[type[Topology], ...] = (Star, Torus, FatTree, Dragonfly)
BY_NAME = {family.name: family for family in FAMILIES}


def kind_of(family: type[Topology]) -> int:
    """The number of a family."""
    return FAMILIES.index(family)
