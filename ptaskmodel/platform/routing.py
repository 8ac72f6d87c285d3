"""Choose how flows are routed: by the platform's routes, or flow by flow (``--routing``).

A new way of routing is a class with the methods of `Routing` and a row in `routing_of`.

Equal-cost multi-path routing (`ecmp`): at each node, the next hop is one of those to neighbours
that are nearer to the receiver, by hops. splitmix64 chooses it, seeded with a hash of a seed, the
task and the flow; it gives the same result on every machine. The name of a connection (queue pair)
stands for those of its tasks, so all of them take one path. Messages of a replay have no tasks:
those from a host to another have one connection. Real
switches hash addresses and ports, by functions that vendors do not publish. So which flows collide
is random here, but the number of collisions is realistic.

Source of the generator: G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014.

Routes from a file, flow by flow (a CSV of ``task,flow,path``): a path is a walk in the graph of the
platform (see `Fabric`) from the sender to the receiver. It lists the nodes, separated by blanks.
Where several cables lead to a node, it names the link instead. A split cable may be named whole.
Acknowledgements take the path backwards.

In this graph of hosts, routers, switches and hops, flows choose their paths. A hop leads from a
node to a neighbour, over one or several links, in one direction: the two halves of a split link are
two hops. The hops of a zone depend on its kind. Full, Floyd and Dijkstra zones have their declared
routes (between zones: from gateway to gateway), families of clusters their edges, and stars their
spokes. Vivaldi and Wifi zones, and zones without routing, have no graph.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import RouteError, SimulationError, shown
from ptaskmodel.files import AnyPath, join_names, read_text, split_names
from ptaskmodel.platform.builder import ROUTED_KINDS, VIVALDI, Facts, Zone
from ptaskmodel.platform.facts import short
from ptaskmodel.platform.topologies import FAMILIES
from ptaskmodel.platform.topologies.topology import DUPLEX, LIMITER, WalkTable
from ptaskmodel.remarks import Account, Remark, reader

IntArray = NDArray[np.int64]

# Distances to so many nodes are kept, as entries of all.
KEPT_DISTANCES = 2**24
FAR = 2**30


class Hop(NamedTuple):
    """A step from a node to a neighbour: the links crossed, by index, in this order."""

    source: int
    target: int
    links: tuple[int, ...]


class Way(NamedTuple):
    """The route of a flow and that of its acknowledgements, as link indices."""

    there: tuple[int, ...]
    back: tuple[int, ...]


class Fabric:
    """Nodes and hops of a platform, made from its facts.

    Points keep their numbers; switches of clusters come after.

    names: of the nodes. node: of each host, by its index. out: of each node, its hops. limiter:
    of a node that has one, that link, which a flow crosses as it passes the node.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.names: list[str] = list(facts.points.names)
        self.out: list[list[Hop]] = [[] for _ in self.names]
        self.limiter: dict[int, int] = {}
        self.node = list(facts.points.host)
        for zone in facts.zones:
            self._add_zone(zone)
        self._distances = functools.lru_cache(max(16, KEPT_DISTANCES // len(self.names)))(
            self._search
        )

    # --- building ---------------------------------------------------------------------------

    def _add_zone(self, zone: Zone) -> None:
        if zone.kind in ROUTED_KINDS:
            for source, target, links in zone.ways():
                self._add(source, target, links)
        elif zone.walk is not None and zone.kind != VIVALDI and not zone.is_internal:
            spokes = FAMILIES[zone.walk.kind].spokes(zone.walk.table)
            if spokes is None:
                self._add_cluster(zone, zone.walk)
            else:
                self._add_star(zone)

    def _add(self, a: int, b: int, links: Sequence[int]) -> None:
        if a != b:
            self.out[a].append(Hop(a, b, tuple(links)))

    def _new_node(self, name: str) -> int:
        self.names.append(name)
        self.out.append([])
        return len(self.names) - 1

    def _add_star(self, zone: Zone) -> None:
        """Every point linked with the middle: its only point without links, else a switch."""
        from ptaskmodel.platform.topologies.star import star_rows

        assert zone.walk is not None
        rows = dict(zip(zone.points, star_rows(zone.walk.table), strict=False))
        bare = [point for point, paths in rows.items() if not any(paths)]
        alone = len(bare) == 1 and bare[0] not in self.facts.points.host
        middle = bare[0] if alone else self._new_node(f"{zone.name} switch")
        for point, (up, down) in rows.items():
            if point != middle:
                self._add(point, middle, up)
                self._add(middle, point, down)

    def _add_cluster(self, zone: Zone, walk: WalkTable) -> None:
        table = walk.table.tolist()
        nodes = dict(enumerate(zone.points))

        def node(number: int) -> int:
            if number not in nodes:
                nodes[number] = self._new_node(f"{zone.name} switch {number - len(zone.points)}")
            return nodes[number]

        for edge in FAMILIES[walk.kind].edges(table):
            a, b = node(edge.node), node(edge.other)
            self._add(a, b, (edge.link,))
            self._add(b, a, (edge.link + table[DUPLEX],))
        if table[LIMITER] >= 0:
            self.limiter |= {each: table[LIMITER] + number for number, each in nodes.items()}

    # --- searching --------------------------------------------------------------------------

    @functools.cached_property
    def _into(self) -> tuple[IntArray, IntArray]:
        """Where the hops into each node begin, and the nodes that these come from."""
        ends = [(hop.target, hop.source) for hops in self.out for hop in hops]
        pairs = np.array(sorted(ends), dtype=np.int64).reshape(-1, 2)
        start = np.searchsorted(pairs[:, 0], np.arange(len(self.names) + 1))
        return start, np.ascontiguousarray(pairs[:, 1])

    def _search(self, target: int) -> list[int]:
        """Hops from each node to one, FAR where there is no way: breadth first, backwards."""
        start, sources = self._into
        distance = np.full(len(self.names), FAR, dtype=np.int64)
        distance[target] = 0
        front = np.array([target])
        hops = 0
        while len(front):
            hops += 1
            counts = start[front + 1] - start[front]
            before = np.cumsum(counts) - counts
            places = np.arange(int(counts.sum())) + np.repeat(start[front] - before, counts)
            found = np.unique(sources[places])
            front = found[distance[found] == FAR]
            distance[front] = hops
        return distance.tolist()

    def nearer(self, node: int, target: int) -> list[Hop]:
        """The hops from a node to neighbours nearer to the target, in order of declaration.

        Raises RouteError if there is none.
        """
        distance = self._distances(target)
        wanted = distance[node] - 1
        found = [hop for hop in self.out[node] if distance[hop.target] == wanted]
        if not found:
            raise self.no_way(node, target)
        return found

    def equal_paths(self, source: int, target: int) -> tuple[int, int]:
        """How many shortest paths lead from source to target, and of how many hops they are.

        Raises RouteError if there is none.
        """
        distance = self._distances(target)
        if source == target or distance[source] >= FAR:
            raise self.no_way(source, target)
        ways = {source: 1}
        for _ in range(distance[source]):
            after: dict[int, int] = {}
            for node, count in ways.items():
                for hop in self.nearer(node, target):
                    after[hop.target] = after.get(hop.target, 0) + count
            ways = after
        return ways[target], distance[source]

    def no_way(self, source: int, target: int) -> RouteError:
        """There is no way through the graph from source to target."""
        names = short(self.names[source]), short(self.names[target])
        return RouteError(
            f"{self.facts.path}: the zones give no graph with a path from {names[0]} to "
            f"{names[1]}; "
            "use --routing platform"
        )

    # --- routes -----------------------------------------------------------------------------

    def way(self, hops: Sequence[Hop]) -> Way:
        """The links of hops that follow each other, and of the same cables taken backwards.

        Raises RouteError where a hop cannot be taken backwards.
        """
        there = self._links(hops)
        return Way(there, self._links([self._backwards(hop) for hop in reversed(hops)]))

    def _links(self, hops: Sequence[Hop]) -> tuple[int, ...]:
        links: list[int] = []
        nodes = [hops[0].source, *(hop.target for hop in hops)]
        for node, hop in zip(nodes, (*hops, None), strict=True):
            if node in self.limiter:
                links.append(self.limiter[node])
            if hop is not None:
                links += self.new_links(tuple(links[-1:]), hop)
        return tuple(links)

    @staticmethod
    def new_links(before: tuple[int, ...], hop: Hop) -> tuple[int, ...]:
        """The links of a hop without the one just crossed: the backbone of a star ends the way in
        and begins the way out.

        before: that link, or nothing.
        """
        return hop.links[1:] if before and before == hop.links[:1] else hop.links

    def _backwards(self, hop: Hop) -> Hop:
        """The hop back over the same cables, or the first one if none is of the same."""
        back = [other for other in self.out[hop.target] if other.target == hop.source]
        if not back:
            names = short(self.names[hop.target]), short(self.names[hop.source])
            raise RouteError(
                f"{self.facts.path}: no link from {names[0]} back to {names[1]}, which "
                "acknowledgements need; declare a route there"
            )
        cables = [self.cable(link) for link in reversed(hop.links)]
        same = (other for other in back if [self.cable(link) for link in other.links] == cables)
        return next(same, back[0])

    def cable(self, link: int) -> str:
        """The name of a link; of the halves of a split link that of the whole."""
        name = self.facts.all_links[link].name
        for half, other, step in (("_UP", "_DOWN", 1), ("_DOWN", "_UP", -1)):
            whole = name.removesuffix(half)
            if whole != name and self.facts.all_links[link + step].name == whole + other:
                return whole
        return name


PLATFORM = "platform"
LARGEST_SEED = 2**63


class Routing(Protocol):
    """Chooses the way of each flow. ``str`` of it gives the option."""

    def name(self, task: str, connection: str) -> str:
        """The name by which `way` finds the flows of a task (its id) that has a connection."""
        ...

    def way(self, fabric: Fabric, task: str, flow: int, source: int, target: int) -> Way:
        """The links of a flow between two nodes of a graph, and those of its acknowledgements.

        fabric: the graph. task: its id, or what `name` says. flow: its number in the task, counted
        through the stages. source, target: nodes. Raises RouteError.
        """
        ...


def routing_of(text: str) -> Routing | None:
    """The routing that an option names; None: the routes of the platform.

    What is told of a file is in its ``remarks``.
    text: ``platform``, ``ecmp``, ``ecmp:SEED`` or ``file:FILE``. Raises SimulationError, and
    RouteError for what is wrong with the file.
    """
    kind, colon, rest = text.partition(":")
    if text == PLATFORM:
        return None
    if kind == "ecmp":
        seed = rest if colon else "0"
        if seed.isascii() and seed.isdigit() and len(seed) < 20 and int(seed) < LARGEST_SEED:
            return Ecmp(int(seed))
        raise SimulationError(f"--routing: the seed {shown(rest)} is not a whole number from 0")
    if kind == "file" and rest:
        return read_routes(rest)
    raise SimulationError(
        f"--routing: {shown(text)} is unknown; give platform, ecmp, ecmp:SEED or file:FILE"
    )


MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def mixed(state: int) -> int:
    """The output of splitmix64 for a state."""
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def flow_hash(seed: int, task: str, flow: int) -> int:
    """A hash of 64 bits of a flow: of its seed and of its names in UTF-8, eight bytes at a time.

    task: its id.
    """
    state = mixed((seed + GAMMA) & MASK)
    for name in (task, str(flow)):
        text = name.encode()
        for k in range(0, len(text), 8):
            word = int.from_bytes(text[k : k + 8], "little")
            state = mixed((state ^ word) + GAMMA & MASK)
        state = mixed((state ^ len(text)) + GAMMA & MASK)
    return state


@dataclass(frozen=True, slots=True)
class Ecmp:
    """Each flow takes one of its shortest paths, chosen by a hash.

    seed: of the hash, a whole number from 0.
    """

    seed: int = 0

    def __str__(self) -> str:
        return f"ecmp:{self.seed}"

    def name(self, task: str, connection: str) -> str:
        """The ``connection``, whatever the ``task``: all tasks that have it take one path."""
        return connection

    def hops(self, fabric: Fabric, task: str, flow: int, source: int, target: int) -> list[Hop]:
        """The hops that a flow takes from node source to node target of a graph.

        fabric: the graph. task: its id. flow: the number of the flow in it. Raises RouteError if
        there is no way.
        """
        state = flow_hash(self.seed, task, flow)
        hops: list[Hop] = []
        node = source
        while node != target:
            choices = fabric.nearer(node, target)
            state = (state + GAMMA) & MASK
            hops.append(choices[mixed(state) % len(choices)])
            node = hops[-1].target
        return hops

    def way(self, fabric: Fabric, task: str, flow: int, source: int, target: int) -> Way:
        """The links that a flow takes from node source to node target, and of its acknowledgements.

        fabric, task: as `hops` takes them. Raises RouteError as `hops`.
        """
        return fabric.way(self.hops(fabric, task, flow, source, target))


COLUMNS = ["task", "flow", "path"]


class GivenPath(NamedTuple):
    """The names in a path, and the line of the file that gives it."""

    names: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class GivenRoutes:
    """Routes read from a file, by task, or connection, and number of the flow in it."""

    file: str
    paths: dict[tuple[str, int], GivenPath] = field(repr=False)
    remarks: tuple[Remark, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return f"file:{self.file}"

    def name(self, task: str, connection: str) -> str:
        """The ``task`` if the file has a path of its first flow, else its ``connection``."""
        return task if (task, 0) in self.paths else connection

    def way(self, fabric: Fabric, task: str, flow: int, source: int, target: int) -> Way:
        """The links that a flow takes from node source to node target, and of its acknowledgements.

        fabric: the graph of the platform. task, flow: as in the file. Raises RouteError, with file
        and line, if the file has no path for the flow, or it is no walk between the two.
        """
        given = self.paths.get((task, flow))
        ends = f"from {fabric.names[source]!r} to {fabric.names[target]!r}"
        if given is None:
            raise RouteError(
                f"{self.file}: no path for flow {flow} of task {shown(task)}, {ends}; add a line"
            )
        where = f"{self.file}:{given.line}: task {shown(task)}, flow {flow}: "
        hops = walked(fabric, given.names, source, where)
        last = hops[-1].target if hops else source
        if last != target:
            raise RouteError(
                f"{where}the path ends at {fabric.names[last]!r}, and the flow goes {ends}; "
                "give the whole path"
            )
        return fabric.way(hops)


def walked(fabric: Fabric, names: Sequence[str], source: int, where: str) -> list[Hop]:
    """The hops of a path that names nodes or links, from the node source on.

    fabric: the graph. where: how messages begin. Raises RouteError at the first name that leads
    nowhere.
    """
    hops: list[Hop] = []
    node, place = source, 0
    may_name_node = True  # the sender, or where a link has led
    while place < len(names):
        name = names[place]
        if may_name_node and name == fabric.names[node]:
            may_name_node = False
            place += 1
            continue
        rest = names[place:]
        last = hops[-1].links[-1:] if hops else ()
        by_link = [hop for hop in fabric.out[node] if names_links(fabric, hop, last, rest)]
        found = by_link or [hop for hop in fabric.out[node] if fabric.names[hop.target] == name]
        if len(found) > 1:
            cables = join_names(sorted({fabric.cable(hop.links[0]) for hop in found}))
            raise RouteError(
                f"{where}several cables lead from {fabric.names[node]!r} to {shown(name)}; name "
                f"one instead: {cables}"
            )
        if not found:
            near = [fabric.names[hop.target] for hop in fabric.out[node]][:5]
            raise RouteError(
                f"{where}{shown(name)} is neither a neighbour of {fabric.names[node]!r} nor a link "
                f"from there; its neighbours are {', '.join(map(repr, near)) or 'none'}"
            )
        hops += found
        node = found[0].target
        place += len(fabric.new_links(last, found[0])) if by_link else 1
        may_name_node = bool(by_link)
    return hops


def names_links(fabric: Fabric, hop: Hop, before: tuple[int, ...], names: Sequence[str]) -> bool:
    """Whether a list of names begins with the links of a hop, or their cables.

    fabric: the graph that the hop is of. before: the last link, if any, of the hop before it.
    """
    links = fabric.new_links(before, hop)
    if not links or len(names) < len(links):
        return False
    return all(
        name in (fabric.facts.all_links[link].name, fabric.cable(link))
        for link, name in zip(links, names, strict=False)
    )


@reader(RouteError)
def read_routes(path: AnyPath, account: Account) -> GivenRoutes:
    """Read the CSV file of routes at a path.

    account: of the file. Raises RouteError naming all lines that cannot be read: each flow needs
    its path, so none is left out.
    """
    header, rows = account.table(read_text(path, error=RouteError))
    if header != COLUMNS:
        account.problem(f"the first line is not {','.join(COLUMNS)}; begin with that line", 1)
        account.check()
    paths: dict[tuple[str, int], GivenPath] = {}
    for line, row in rows:
        with account.row(line):
            key, given = _read_row(row, line)
            if (before := paths.setdefault(key, given)) is not given:
                raise RouteError(
                    f"flow {key[1]} of task {shown(key[0])} already has a path in line "
                    f"{before.line}; keep one"
                )
    account.check_rows(0)
    return GivenRoutes(account.file, paths)


def _read_row(row: list[str], line: int) -> tuple[tuple[str, int], GivenPath]:
    task, flow, path = row
    if not (flow.isascii() and flow.isdigit() and len(flow) < 10):
        raise RouteError(f"flow {shown(flow)} is not a whole number from 0; correct it")
    try:
        names = split_names(path)
    except ValueError as error:
        raise RouteError(f"path: {error}; close the quote") from None
    if not names:
        raise RouteError("the path is empty; name its nodes from sender to receiver")
    return (task, int(flow)), GivenPath(names, line)
