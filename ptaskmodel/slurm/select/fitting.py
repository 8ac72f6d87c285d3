"""Choose the nodes of a job that shares nodes, and distribute its CPUs and memory over them.

All functions work on `Room`s, the available nodes. Their CPUs are reduced to what the job still
needs, and stay so in the next attempt.
Source: `choose_nodes` and the variants of `_eval_nodes` of select/cons_tres in Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from ptaskmodel.slurm.jobs.gpus import least_cpus
from ptaskmodel.slurm.jobs.needs import ALL, PER_CPU, Need
from ptaskmodel.slurm.select.offers import Room, Taking
from ptaskmodel.slurm.select.switches import Tree


@dataclass(frozen=True, slots=True)
class Style:
    """How nodes are chosen.

    busy: the nodes that jobs have today, where these come first. least_loaded: CR_LLN.
    serial_at_end: pack_serial_at_end. tree: of switches.
    """

    least_loaded: bool = False
    serial_at_end: bool = False
    tree: Tree | None = None


def fit(
    need: Need, rooms: Sequence[Room], style: Style, busy: Sequence[int] | None = None
) -> list[Room] | None:
    """The nodes of a job, in order of index; their CPUs are what it may use of each.

    rooms: those that will do, in order of index. busy: of each node, how many jobs it has today,
    where those come first. If they do not suffice as they are chosen, it is tried again without
    the poorest, then the next poorest ...
    """
    least, most = need.least, need.most
    if need.tasks_asked and most > need.tasks_asked:
        most = max(need.tasks_asked, least)
    if len(rooms) < least or sum(room.cpus for room in rooms) < need.cpus:
        return None

    def attempt(among: Sequence[Room], first: bool = False) -> list[Room] | None:
        taking = Taking(need, least, most, first=first)
        for room in among if need.asks else ():
            room.begin()
        if len(among) < least or not _taken(taking, among, style, busy):
            return None
        return sorted(taking.chosen.values(), key=lambda room: room.node)

    found = attempt(rooms, True)
    if found is not None:
        return found
    if len(rooms) <= least:
        return attempt(rooms)
    left = list(rooms)
    for poorest in range(1, max(room.resources for room in rooms)):
        kept: list[Room] = []
        dropped = 0
        for room in left:
            poor = 0 < room.resources <= poorest and not room.required
            if poor and len(left) - dropped > least:
                dropped += 1
            else:
                kept.append(room)
        if not dropped and poorest != 1:
            continue
        left = kept
        found = attempt(left)
        if found is not None or len(left) <= least:
            return found
    return None


def takes_any(need: Need) -> bool:
    """Whether who finds room beside others would on free nodes: tasks alone, dealt as they come."""
    return (
        need.least <= 1
        and need.wanted <= 1
        and 0 < need.tasks_asked <= need.most
        and not (need.whole or need.gres or need.required or need.contiguous or need.spread)
        and not need.shaped
        and need.partition.max_cpus_per_node is None
    )


def _taken(taking: Taking, rooms: Sequence[Room], style: Style, busy: Sequence[int] | None) -> bool:
    """Take nodes by the rule that applies; whether they suffice."""
    need = taking.need
    if need.spread:
        return _in_order(taking, rooms)
    if busy is not None and not need.contiguous:
        return _busy_first(taking, rooms, busy)
    if style.least_loaded or need.partition.lln:
        return _least_loaded(taking, rooms)
    if style.serial_at_end and need.cpus == 1 and need.wanted == 1:
        return _in_order(taking, rooms[::-1])
    if style.tree is not None and style.tree.serves(need) and not need.contiguous:
        return style.tree.choose_consumable(taking, rooms)
    return by_runs(taking, rooms)


# --- one node after another ---------------------------------------------------------------------


def _required(taking: Taking, rooms: Iterable[Room]) -> bool:
    """Take the nodes that must be; whether that could be done."""
    for room in rooms:
        if room.required:
            if taking.room <= 0 or not taking.offers(room):
                return False
            taking.take(room)
    return True


def _settled(taking: Taking, rooms: Sequence[Room]) -> bool | None:
    """Take the nodes that must be; whether they suffice, None: others are to be looked at."""
    taking.limit()
    if not _required(taking, rooms):
        return False
    if taking.chosen and taking.done:
        return True
    return False if taking.room <= 0 else None


def _in_order(taking: Taking, rooms: Sequence[Room]) -> bool:
    """Of lighter nodes first, as they come."""
    settled = _settled(taking, rooms)
    if settled is not None:
        return settled
    for room in sorted(rooms, key=lambda room: room.weight):
        if room.required or not taking.offers(room):
            continue
        taking.take(room)
        if taking.done:
            return True
        if taking.room == 0:
            break
    return taking.fed and taking.least <= 0


def _busy_first(taking: Taking, rooms: Sequence[Room], busy: Sequence[int]) -> bool:
    """Of lighter nodes first, those that jobs have, then idle ones.

    As in Slurm, idle nodes of a weight are looked at, too, when those that jobs have suffice: one
    that offers something is taken beside them.
    """
    settled = _settled(taking, rooms)
    if settled is not None:
        return settled
    order = sorted((room for room in rooms if not room.required), key=lambda room: room.weight)
    for _, group in groupby(order, key=lambda room: room.weight):
        among = list(group)
        over = False
        for idle in (False, True):
            for room in among:
                if (busy[room.node] == 0) == idle and taking.offers(room):
                    taking.take(room)
                    over = taking.done or taking.room == 0
                    if over:
                        break
        if over:
            break
    return taking.fed and taking.least <= 0


def _least_loaded(taking: Taking, rooms: Sequence[Room]) -> bool:
    """Of lighter nodes first, those with the largest part of their CPUs free."""
    settled = _settled(taking, rooms)
    if settled is not None:
        return settled
    order = sorted((room for room in rooms if not room.required), key=lambda room: room.weight)
    for _, group in groupby(order, key=lambda room: room.weight):
        among = list(group)
        last = -1
        while taking.room > 0:
            best = _loosest(taking, among, last)
            if best is None:
                break
            taking.take(best)
            among.remove(best)
            last = best.free
            if taking.done:
                return True
    return taking.fed and taking.least <= 0


def _loosest(taking: Taking, rooms: Iterable[Room], last: int) -> Room | None:
    """The first with the largest part free; one that has as much as the last is good enough."""
    best: Room | None = None
    for room in rooms:
        if not taking.offers(room) or not taking.cap(room):
            continue
        if best is None or best.free * room.total < room.free * best.total:
            best = room
            if best.free == last:
                break
    return best


# --- runs of consecutive nodes ------------------------------------------------------------------


class _Run:
    """Consecutive nodes of one weight: those from first to last that are not taken yet.

    anchor: the first of those that must be; None: there is none.
    """

    __slots__ = ("anchor", "cpus", "first", "last", "nodes", "units", "weight")

    def __init__(self, weight: int | None) -> None:
        self.units: list[int] = []
        self.anchor: int | None = None
        self.cpus = 0
        self.nodes = 0
        self.first = self.last = 0
        self.weight = weight


def _runs(taking: Taking, rooms: Iterable[Room]) -> tuple[list[_Run], dict[int, Room]]:
    """The runs, and the nodes in them that are not required."""
    found: list[_Run] = []
    run = _Run(None)
    open_rooms: dict[int, Room] = {}
    contiguous = taking.need.contiguous
    before = -1
    for room in rooms:
        if not (room.required or taking.offers(room)):
            continue
        if room.node != before + 1:
            if run.nodes:
                found.append(run)
            run = _Run(None)
        before = room.node
        if not contiguous and run.weight is not None and run.weight != room.weight:
            if run.nodes:
                found.append(run)
                run = _Run(0)
            else:
                run.anchor = None
        if not run.nodes:
            run.first = room.node
        run.last = room.node
        if room.required:
            run.anchor = room.node if run.anchor is None else run.anchor
            continue
        run.cpus += room.cpus
        if room.units:
            run.units = [a + b for a, b in zip_longest(run.units, room.units, fillvalue=0)]
        run.nodes += 1
        run.weight = room.weight
        open_rooms[room.node] = room
    if run.nodes:
        found.append(run)
    return found, open_rooms


def by_runs(taking: Taking, rooms: Sequence[Room]) -> bool:
    """Take `rooms` from the run that fits best, then from the next, until `taking` is done."""
    required = [room for room in rooms if room.required]
    if len(required) > taking.room or not _required(taking, required):
        return False
    if required and taking.done:
        return True
    if required and taking.room <= 0:
        return False
    runs, left = _runs(taking, rooms)
    contiguous = taking.need.contiguous
    while runs and taking.room > 0:
        best = _best(taking, runs, bool(required))
        if best is None or (contiguous and not _suffices(taking, best)):
            break
        if best.anchor is not None:
            order = [
                *range(best.anchor, best.last + 1),
                *range(best.anchor - 1, best.first - 1, -1),
            ]
            _take_along(taking, [left[k] for k in order if k in left])
        else:
            _take_tightest(taking, [left[k] for k in range(best.first, best.last + 1) if k in left])
        if taking.done:
            return True
        runs.remove(best)
    return taking.fed and taking.enough(0)


def _suffices(taking: Taking, run: _Run) -> bool:
    return taking.would_feed(run.cpus, run.units) and taking.enough(run.nodes)


def _best(taking: Taking, runs: Sequence[_Run], required: bool) -> _Run | None:
    """The run to take from; contiguous nodes must all be in one run with those required."""
    contiguous = taking.need.contiguous
    best: _Run | None = None
    fits = False
    for k, run in enumerate(runs):
        if contiguous and required and run.anchor is None:
            continue
        suffices = _suffices(taking, run)
        if best is None or _is_better(run, suffices, best, fits, contiguous):
            best, fits = run, suffices
        if contiguous and required and any(other.anchor is not None for other in runs[k + 1 :]):
            return None
    return best


def _is_better(run: _Run, suffices: bool, best: _Run, fits: bool, contiguous: bool) -> bool:
    """Whether a run is better than the best so far; fits: whether that one suffices."""
    assert run.weight is not None
    assert best.weight is not None
    if (best.anchor is None and run.anchor is not None) or run.weight < best.weight:
        return True
    if run.weight == best.weight:
        if suffices and (not fits or run.cpus < best.cpus):
            return True
        if not suffices and run.cpus > best.cpus:
            return True
    return contiguous and suffices and not fits


def _take_along(taking: Taking, rooms: Iterable[Room]) -> None:
    for room in rooms:
        if taking.room == 0 or taking.done:
            return
        taking.take(room)


def _take_tightest(taking: Taking, rooms: Sequence[Room]) -> None:
    """One node that holds all that is missing, the tightest; else from the first on."""
    if taking.nodes <= 1:
        holding = [room for room in rooms if taking.would_feed(room.cpus, room.units)]
        if holding:
            rooms = [min(holding, key=lambda room: room.cpus)]
    for room in rooms:
        if taking.room == 0 or taking.done:
            return
        if taking.room == 1 and room.cpus < taking.cpus:
            continue
        taking.take(room)


def tasks_to_deal(need: Need, count: int) -> int:
    """How many tasks a job with a `need` has on ``count`` nodes, as its CPUs are distributed."""
    step, per_node = need.cpus_per_task, need.tasks_per_node
    if step > 1 and per_node:
        return per_node * count
    cpus = max(count * (per_node or 1), need.cpus, count * need.cpus_per_node)
    return max(max(cpus, cpus_for_gpus(need, count)) // step, 1)


def dealt(
    need: Need,
    offered: Sequence[int],
    threads: Sequence[int],
    limits: Sequence[int] | None = None,
    held: list[int] | None = None,
) -> list[int]:
    """CPUs on each node, in order of index: a task on each, then round after round.

    offered: the CPUs that a job may use of each node. threads: CPUs of a core of each; a round
    gives the tasks of a core. limits: how many tasks the GPUs of each node allow. held: is made to
    say how many tasks each has. After `dist_tasks_compute_c_b` of Slurm 22.05.
    """
    step, per_node = need.cpus_per_task, need.tasks_per_node
    count = len(offered)
    left = tasks_to_deal(need, count)
    given = [0] * count
    held = [] if held is None else held
    held += [0] * count

    def give(node: int) -> None:
        nonlocal left
        left -= 1
        held[node] += 1
        given[node] = min(given[node] + step, offered[node])

    def has_room(node: int) -> bool:
        if limits is not None and held[node] >= limits[node]:
            return False
        return offered[node] - given[node] >= step and not (per_node and held[node] >= per_node)

    room = False
    for node in range(count):
        if left and offered[node]:
            give(node)
            room |= given[node] < offered[node]
    for node in range(count):
        for _ in range(given[node] % threads[node] // step):
            if left and has_room(node):
                give(node)
    crowded = not room
    turns = [max(each // step, 1) for each in threads]
    while left > 0:
        if not crowded:
            open_to = [node for node in range(count) if has_room(node)]
            if limits is None:
                left -= _whole_rounds(left, open_to, turns, step, per_node, offered, given, held)
        room = False
        for node in range(count):
            for _ in range(turns[node]):
                if not left or not (crowded or has_room(node)):
                    break
                give(node)
                room |= offered[node] - given[node] >= step
        crowded |= not room
    return given


def _whole_rounds(
    left: int,
    open_to: Sequence[int],
    turns: Sequence[int],
    step: int,
    per_node: int | None,
    offered: Sequence[int],
    given: list[int],
    held: list[int],
) -> int:
    """Give, at once, the tasks of rounds that leave room on each node with room; how many.

    open_to: the nodes with room. turns: tasks of a round on each node.
    """
    in_all = sum(turns[node] for node in open_to)
    if not in_all:
        return 0
    rounds = (left - 1) // in_all
    for node in open_to:
        each = turns[node]
        rounds = min(rounds, (offered[node] - given[node]) // (step * each) - 1)
        if per_node:
            rounds = min(rounds, (per_node - held[node]) // each - 1)
        if rounds <= 0:
            return 0
    for node in open_to:
        given[node] += rounds * turns[node] * step
        held[node] += rounds * turns[node]
    return rounds * in_all


def cpus_for_gpus(need: Need, nodes: int) -> int:
    """The CPUs that the GPUs of a `need` want on so many `nodes`."""
    if not need.asks:
        return 0
    sockets = max(need.sockets, 1)
    with_tasks = [ask.tasks_each * ask.in_all(nodes, 0, sockets) for ask in need.asks if ask.is_gpu]
    own = least_cpus(need.asks, nodes, need.tasks_asked, sockets)
    return max(own, *with_tasks) if with_tasks else own


def memory_of(need: Need, real: int, cpus: int) -> int:
    """MiB that a job takes of a node on which it has so many CPUs."""
    assert need.memory is not None
    kind, amount = need.memory
    if kind == ALL:
        return real
    return amount * cpus if kind == PER_CPU else amount
