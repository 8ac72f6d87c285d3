"""The interface of a family of clusters, and the common part of their route tables.

Each cluster zone has one flat int64 table, from which compiled code walks its routes. All tables
begin with

    LONGEST  an upper bound of the number of links of a route
    NODES    the number of nodes n

Tables written by ``block_table`` (all but the stars) continue with

    DUPLEX   1 if links have two halves (UP at index i, DOWN at i + 1), else 0
    FIRST    index of the first link of the topology
    LIMITER  index of the first limiter (nodes, then switches), or -1
    LOOPBACK index of the first loopback (one per node), or -1
    PARAMS   parameters of the topology
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import units
from ptaskmodel.errors import PlatformError
from ptaskmodel.platform.facts import short

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

LONGEST, NODES, DUPLEX, FIRST, LIMITER, LOOPBACK, PARAMS = 0, 1, 2, 3, 4, 5, 6
MAX_PARAMETER = 10**9
NO_ENDS: IntArray = np.empty((0, 0), np.int64)


class ParameterError(PlatformError):
    """The parameters of a topology are wrong; the text says which and what would be right."""


class WalkTable(NamedTuple):
    """One zone for ``routing.walks.walk``: the number of its family and its flat table."""

    kind: int
    table: IntArray


class LinkBlock(NamedTuple):
    """Where the links of a topology start: ``-1`` for limiters or loopbacks that do not exist."""

    duplex: bool
    first: int
    limiter: int
    loopback: int


class Edge(NamedTuple):
    """A link between two nodes of the graph, hosts first; ``level`` of the lower one, if any."""

    node: int
    other: int
    link: int
    level: int | None = None


class Survey(NamedTuple):
    """What simulations know about a zone in advance.

    plain: whether ``Topology.all_to_all`` serves this zone. ways: how many counters that needs.
    ends: what ``Topology.flows`` reads, a row for each node; none if it does not serve the zone.
    """

    plain: bool = False
    ways: int = 0
    ends: IntArray = NO_ENDS


class Site(Protocol):
    """The cluster being declared, as ``Topology.declare`` sees it: names, and how to add links.

    numbers: of its hosts, in their names. counts: of things that are numbered through all clusters
    of a platform.
    """

    id: str
    numbers: Sequence[int]
    duplex: bool
    counts: dict[str, int]

    def add_loopbacks(self) -> int:
        """Add one loopback for each host if requested; return the index of the first, or -1."""
        ...

    def add_limiters(self, numbers: Sequence[int]) -> int:
        """Add one limiter for each of the nodes `numbers` if requested; return the index of the
        first, or -1.
        """
        ...

    def add_cables(self, ids: Sequence[str], factor: float = 1.0) -> int:
        """Add cables `ids` with ``factor`` times the bandwidth; return the index of the first."""
        ...

    def add_backbone(self) -> int:
        """Add one link that all nodes share if requested; return its index, or -1."""
        ...

    def keep_properties(self) -> None:
        """Give the cluster's properties to its zone, too."""
        ...

    def add_router(self) -> None:
        """Add the node by which routes enter and leave the cluster, after all hosts."""
        ...


class Topology(abc.ABC):
    """A family of clusters; an instance is one cluster with its parameters.

    Instances serve to declare a cluster. Class methods work on the table of any zone of the family.
    """

    name: ClassVar[str]
    """The attribute ``topology`` of a cluster."""

    walk: ClassVar[Any]
    """Kernel (table, a, b, out): writes the links of the route from node a to b in ``out`` (of
    ``table[LONGEST]`` values) and returns their number, -1 if the route is undefined."""

    all_to_all: ClassVar[Any] = None
    """Kernel (tally, ways, table, nodes, amount, scratch, counts): adds a flow of ``amount`` bytes
    between each two of distinct nodes (in increasing order) to a ``link_loads.Tally``, in a time
    that does not grow with their pairs. False, with the tally spoilt, where it cannot; None: routes
    are walked. scratch: four values for each node; counts: twice ``Survey.ways`` zeros, to be left
    so."""

    flows: ClassVar[Any] = None
    """Kernel (tally, ways, table, ends, nodes, sources, targets, amount, largest): adds flows to a
    tally, flow f being of ``amount[f]`` bytes from ``nodes[sources[f]]`` to ``nodes[targets[f]]``,
    the same to the last bit as walking, but by tables (``Survey.ends``) that are looked up. None:
    routes are walked."""

    @classmethod
    @abc.abstractmethod
    def parse(cls, text: str, hosts: int) -> Self:
        """Return a topology from ``topo_parameters`` (`text`) and the number of `hosts`.

        Raises ParameterError.
        """

    @property
    @abc.abstractmethod
    def parameters(self) -> str:
        """The parameters as written in ``topo_parameters``."""

    @property
    @abc.abstractmethod
    def hosts(self) -> int:
        """Number of hosts."""

    @property
    @abc.abstractmethod
    def links(self) -> int:
        """Approximate number of links; it is checked against a limit before anything is built."""

    @abc.abstractmethod
    def declare(self, site: Site) -> IntArray:
        """Add the links of the cluster at `site`, whose hosts exist; return its table."""

    @classmethod
    def edges(cls, table: Sequence[int]) -> Iterator[Edge]:
        """Yield the graph of the zone of a `table`: hosts first, then switches; nothing if it has
        spokes.
        """
        yield from ()

    @classmethod
    def coordinates(cls, table: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield (number in `edges`, coordinates) of the nodes that pictures place by coordinates.

        table: of the zone.
        """
        yield from ()

    @classmethod
    def spokes(cls, table: IntArray) -> list[tuple[int, ...]] | None:
        """Return the links from each node to the centre, if all nodes hang on one centre; else
        None.

        table: of the zone.
        """
        return None

    @classmethod
    @abc.abstractmethod
    def survey(
        cls, table: IntArray, nodes: IntArray, hosts: IntArray, owner: IntArray, common: BoolArray
    ) -> Survey:
        """Survey a zone with this `table` that has ``hosts`` at ``nodes``.

        Writes into ``owner``, for each link that only one host uses, this host; and into
        ``common``, which links every node crosses both ways.
        """


def own_loops(table: IntArray, nodes: IntArray, hosts: IntArray, owner: IntArray) -> None:
    """Make each of the `hosts`, at `nodes`, the owner of its loopback in `owner`.

    table: of the zone.
    """
    if table[LOOPBACK] >= 0:
        owner[int(table[LOOPBACK]) + nodes] = hosts


def own_ports(
    table: IntArray, nodes: IntArray, hosts: IntArray, owner: IntArray, ports: int
) -> None:
    """Make `hosts` at `nodes`, if no route passes through them, owners of their limiters and
    cables.

    table: of the zone. owner: written, by link. ports: how many first cables of a host it owns.
    """
    if table[LIMITER] >= 0:
        owner[int(table[LIMITER]) + nodes] = hosts
    width = ports * (1 + int(table[DUPLEX]))
    for k in range(width):
        owner[int(table[FIRST]) + nodes * width + k] = hosts


def block_table(hops: int, nodes: int, links: LinkBlock, parameters: Sequence[int]) -> IntArray:
    """Return a table with the common head, then `parameters`.

    hops: the largest number of cables of a route. nodes: how many. links: where its links are.
    """
    longest = max(1, hops if links.limiter < 0 else 2 * hops + 2)
    head = [longest, nodes, int(links.duplex), links.first, links.limiter, links.loopback]
    return np.array([*head, *parameters], np.int64)


def integers(text: str) -> tuple[int, ...]:
    """Return the integers of a `text` that are separated by commas. Raises ParameterError."""
    try:
        return tuple(units.parse_integer(item) for item in text.split(","))
    except units.UnitError as error:
        raise ParameterError(f"topo_parameters: {error}") from None


def check_positive(*numbers: int) -> None:
    """Raise ParameterError unless all `numbers` are counts."""
    if not all(isinstance(number, int) and 0 < number <= MAX_PARAMETER for number in numbers):
        text = short(",".join(map(str, numbers)))
        what = f"topo_parameters: {text}; every number must be in 1 ... {MAX_PARAMETER}"
        raise ParameterError(what)


def joined(numbers: Sequence[int]) -> str:
    """Return `numbers` as text, as ``integers`` reads it."""
    return ",".join(map(str, numbers))
