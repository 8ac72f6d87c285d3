"""Choose how flows are routed: by the platform's routes, or flow by flow.

This module reads the option ``--routing`` and the argument of `Simulation`. A new way of routing is
a class with the two methods of `Routing` and a row in `routing_of`.

Equal-cost multi-path routing (`ecmp`): at each node, the next hop is one of those to neighbours
that are nearer to the receiver, by hops. splitmix64 chooses it, seeded with a hash of a seed, the
task, the flow and, if there is one, the queue pair; it gives the same result on every machine. Real
switches hash addresses and ports, by functions that vendors do not publish. So which flows collide
is random here, but the number of collisions is realistic.

Source of the generator: G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014.

Routes from a file, flow by flow (a CSV of ``task,flow,path``): a path is a walk in the graph of the
platform (see `fabric`) from the sender to the receiver. It lists the nodes, separated by blanks.
Where several cables lead to a node, it names the link instead. A split cable may be named whole.
Acknowledgements take the path backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ptaskmodel.errors import RouteError, SimulationError, shown
from ptaskmodel.files import AnyPath, join_names, read_text, split_names
from ptaskmodel.platform.routing.fabric import Fabric, Hop, Way
from ptaskmodel.remarks import Account, reader

PLATFORM = "platform"
LARGEST_SEED = 2**63


class Routing(Protocol):
    """Chooses the way of each flow. ``str`` of it gives the option."""

    def way(self, fabric: Fabric, task: str, flow: int, source: int, target: int) -> Way:
        """The links of a flow between two nodes of a graph, and those of its acknowledgements.

        fabric: the graph. task: its id. flow: its number in the task, counted through the stages.
        source, target: nodes. Raises RouteError.
        """
        ...


def routing_of(text: str) -> Routing | None:
    """The routing that an option names; None: the routes of the platform.

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


def flow_hash(seed: int, task: str, flow: int, queue_pair: str | None = None) -> int:
    """A hash of 64 bits of a flow: of its seed and of its names in UTF-8, eight bytes at a time.

    task: its id. queue_pair: the name of its connection; None: it needs none.
    """
    state = mixed((seed + GAMMA) & MASK)
    for name in (task, str(flow), *(() if queue_pair is None else (queue_pair,))):
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

    def hops(
        self,
        fabric: Fabric,
        task: str,
        flow: int,
        source: int,
        target: int,
        queue_pair: str | None = None,
    ) -> list[Hop]:
        """The hops that a flow takes from node source to node target of a graph.

        fabric: the graph. task: its id. flow: the number of the flow in it. queue_pair: the name of
        the connection, where a flow has several. Raises RouteError if there is no way.
        """
        state = flow_hash(self.seed, task, flow, queue_pair)
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
    """Routes read from a file. paths: by task and number of the flow in it."""

    file: str
    paths: dict[tuple[str, int], GivenPath] = field(repr=False)

    def __str__(self) -> str:
        return f"file:{self.file}"

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
    """Read the CSV file of routes at a path; lines that cannot be read are left out, and told.

    account: of the file. Raises RouteError if most lines are such.
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
    account.check_rows()
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
