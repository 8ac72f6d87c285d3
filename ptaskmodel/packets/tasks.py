"""Run the tasks of a simulation as packets: the same flows, routes and parameters, other times.

`runs.simulate` calls it for ``--network-level packets``. A task is flows, which go on independently
of each other, or a delay; it ends with the last of its flows.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from ptaskmodel import interrupts
from ptaskmodel.engine.usage.network_models import ACKNOWLEDGEMENT, CONNECT, Wire
from ptaskmodel.engine.usage.paths import each_pair
from ptaskmodel.errors import SimulationError
from ptaskmodel.packets.network import PacketNetwork, Pause, Protocol
from ptaskmodel.packets.state import ENDED, OVERFULL, PAUSED
from ptaskmodel.platform.facts import SHARED, Link
from ptaskmodel.simulation.records import TaskRecord, TaskRef, task_record
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import HomogeneousWork, ParallelWork

INFINITY = float("inf")
# Processor time of a packet on a link, s: to say beforehand how long a run takes.
HOP_S = 7e-8
LEVEL = "the packet level"


def protocol_of(wire: Wire) -> Protocol:
    """How senders send by a wire model. Raises SimulationError for what packets do not know."""
    by_windows = wire.pfc_packets is None
    if by_windows and not (wire.mark_packets or wire.mark_s):
        raise SimulationError(
            f"network model {wire.name}: its queues neither mark packets nor pause links, and "
            f"{LEVEL} knows no losses; give DCTCP or ROCE, or --network-level fluid"
        )
    resume, pause = wire.pfc_packets or (INFINITY, INFINITY)
    return Protocol(
        wire.mss_B,
        wire.header_B,
        wire.ack_B,
        by_windows,
        opens=by_windows and wire.measured_from == CONNECT,
        initial_packets=wire.initial_window or 10.0,
        pause_B=pause * wire.packet_B,
        resume_B=resume * wire.packet_B,
        until_acknowledged=wire.measured_to == ACKNOWLEDGEMENT,
    )


class PausedLink(NamedTuple):
    """A pause of a link (see `network.Pause`), with names and dates."""

    link: str
    toward: str
    since_s: float
    until_s: float | None


class LinkInterval(NamedTuple):
    """The queue of a link in an interval: the largest, and the bytes that joined it."""

    link: str
    begin_s: float
    end_s: float
    largest_B: float
    joined_B: float


class _Flows(NamedTuple):
    """The flows of all tasks: task, bytes, links there and back."""

    task: list[int]
    size_B: list[float]
    there: list[tuple[int, ...]]
    back: list[tuple[int, ...]]


class PacketSimulation:
    """The tasks of a simulation that has not begun, as packets.

    simulation: has the platform, the tasks, the network model and the routing; it stays as it is.
    recorded: keep queues over time. It says of itself what summaries ask of a `Simulation`.

    Raises SimulationError for what packets do not know, RouteError for a flow without a route.
    """

    level: Literal["packets"] = "packets"

    def __init__(self, simulation: Simulation, *, recorded: bool = False) -> None:
        wire = simulation.network_model.wire
        if wire is None:
            raise SimulationError(
                f"network model {simulation.network_model.name}: {LEVEL} needs a wire model; give "
                "--network-model DCTCP or ROCE"
            )
        protocol = protocol_of(wire)
        self.simulation = simulation
        self.network_model, self.routing = simulation.network_model, simulation.routing
        self.now = 0.0
        self._refs = list(simulation.tasks())
        self._tasks = [ref.task for ref in self._refs]
        for ref in self._refs:
            _check_task(ref)
        flows = self._flows()
        self._links, places = self._used_links(flows)
        capacity = np.array([link.bandwidth_Bps for link in self._links])
        mark_B = np.maximum(wire.mark_packets * wire.packet_B, wire.mark_s * capacity)
        self.network = PacketNetwork(
            protocol,
            capacity,
            np.array([link.latency_s if wire.latency else 0.0 for link in self._links]),
            mark_B if protocol.by_windows else np.inf,
            wire.queue_packets * wire.packet_B,
            recorded=recorded,
        )
        there = [[places[link] for link in route] for route in flows.there]
        back = [[places[link] for link in route] for route in flows.back]
        packets = protocol.packets(flows.size_B)
        crossed = [len(a) + len(b) * protocol.by_windows for a, b in zip(there, back, strict=True)]
        self.expected_hops = float(packets @ np.array(crossed, dtype=np.float64))
        self._begin(flows, there, back)

    @property
    def expected_s(self) -> float:
        """Processor time that the run will take, s, about: packets times links."""
        return self.expected_hops * HOP_S

    # --- building ---------------------------------------------------------------------------

    def _flows(self) -> _Flows:
        routes = self.simulation.core.router.flow_routes
        found = _Flows([], [], [], [])
        for ref, task in zip(self._refs, self._tasks, strict=True):
            if task.work.duration_s is not None:
                continue
            asked = task.work.demand(len(task.hosts))
            if asked.pair_bytes > 0.0:
                asked = each_pair(asked.pair_bytes, len(task.hosts))
            name = routes.name(ref.id, task.connection)
            for (number, source, target), size in zip(
                self.simulation.flows_of(ref), asked.flow_bytes.tolist(), strict=True
            ):
                if source == target:
                    raise _refused(ref, f"a flow from {task.hosts[0]!r} to itself")
                way = routes.way(name, number, source, target)
                if routes.routing is None and routes.paths.one(source, target)[1] != 0.0:
                    raise _refused(ref, "a route of a Vivaldi zone")
                found.task.append(ref.index)
                found.size_B.append(size)
                found.there.append(way.there)
                found.back.append(way.back)
        return found

    def _used_links(self, flows: _Flows) -> tuple[list[Link], dict[int, int]]:
        """The links that flows take, in the order of the platform, and the place of each."""
        used = sorted({link for way in (*flows.there, *flows.back) for link in way})
        links = [self.simulation.platform.all_links[k] for k in used]
        for link in links:
            if link.policy != SHARED:
                raise SimulationError(
                    f"link {link.name!r} is {link.policy}: {LEVEL} knows no queue of it; make it "
                    "SHARED or SPLITDUPLEX"
                )
            if link.bandwidth_trace or link.latency_trace or link.state_trace:
                raise SimulationError(
                    f"link {link.name!r} changes by a trace: {LEVEL} knows none; remove the trace"
                )
            if not link.bandwidth_Bps > 0.0:
                raise SimulationError(f"link {link.name!r} carries nothing; give it a bandwidth")
        return links, {link: place for place, link in enumerate(used)}

    def _begin(self, flows: _Flows, there: list[list[int]], back: list[list[int]]) -> None:
        """Foresee what begins at a known date; note who waits for whom."""
        n = len(self._tasks)
        index = {ref.id: ref.index for ref in self._refs}
        self._waits_for = [len(task.after) for task in self._tasks]
        self._followers: list[list[int]] = [[] for _ in range(n)]
        self._start: list[float] = [
            INFINITY if task.after else task.start_s for task in self._tasks
        ]
        self._end: list[float] = [INFINITY] * n
        # Ends of tasks without flows: (date, order, task).
        self._dates: list[tuple[float, int, int]] = []
        self._order = itertools.count()
        starts = [self._start[task] for task in flows.task]
        self.network.add(starts, flows.size_B, there, back)
        self._task_of = np.array(flows.task, dtype=np.int64)
        self._unfinished = np.bincount(self._task_of, minlength=n).tolist()
        self._first_flow = np.searchsorted(self._task_of, np.arange(n + 1)).tolist()
        for k, task in enumerate(self._tasks):
            for name in task.after:
                self._followers[index[name]].append(k)
            if not task.after and self._unfinished[k] == 0:
                self._push(task.start_s + (task.work.duration_s or 0.0), k)
        followed = [k for k in range(n) if self._followers[k]]
        self.network.watch([flow for k in followed for flow in self._flows_of(k)])

    def _flows_of(self, task: int) -> range:
        return range(self._first_flow[task], self._first_flow[task + 1])

    def _push(self, date: float, task: int) -> None:
        """Foresee the end of a task without flows."""
        heapq.heappush(self._dates, (date, next(self._order), task))

    # --- running ----------------------------------------------------------------------------

    def run(
        self,
        until_s: float | None = None,
        progress: Callable[[float, int, int], None] | None = None,
    ) -> bool:
        """Run to the end, or to ``until_s``; False if a signal stopped it between two packets.

        progress(now_s, ended flows, flows) is called a few times per second.
        Raises SimulationError where packets would be lost.
        """
        last = INFINITY if until_s is None else until_s
        with interrupts.held():
            return self._run(last, progress)

    def _run(self, last: float, progress: Callable[[float, int, int], None] | None) -> bool:
        n_flows = len(self._task_of)
        while True:
            date = self._dates[0][0] if self._dates else INFINITY
            status = self.network.run(min(date, last))
            if status == ENDED:
                self._flow_ended(self.network.subject)
            elif status == OVERFULL:
                raise self._lost()
            elif status == PAUSED:
                if progress is not None:
                    progress(self.network.now, self.network.n_ended, n_flows)
                if interrupts.arrived():
                    self._stop(self.network.now)
                    return False
            elif self._dates and date <= last:
                self._due(date)
            else:
                break
        self._stop(last)
        return True

    def _flow_ended(self, flow: int) -> None:
        task = int(self._task_of[flow])
        self._unfinished[task] -= 1
        if self._unfinished[task] == 0:
            self._release(task, self.network.now)

    def _due(self, date: float) -> None:
        """A task without flows ends."""
        _, _, task = heapq.heappop(self._dates)
        self._end[task] = date
        self._release(task, date)

    def _release(self, task: int, date: float) -> None:
        """Let those go on that waited for a task."""
        for follower in self._followers[task]:
            self._waits_for[follower] -= 1
            if self._waits_for[follower] == 0:
                self._start_task(follower, max(date, self._tasks[follower].start_s))

    def _start_task(self, task: int, date: float) -> None:
        flows = self._flows_of(task)
        self._start[task] = date
        if flows:
            self.network.start(flows, date)
        else:
            self._push(date + (self._tasks[task].work.duration_s or 0.0), task)

    def _stop(self, date: float) -> None:
        """Note what has ended by a date (inf: all that ever will)."""
        ends = self.network.end_s
        for task in np.flatnonzero(np.diff(self._first_flow)).tolist():
            last = ends[self._first_flow[task] : self._first_flow[task + 1]].max()
            self._end[task] = INFINITY if np.isnan(last) else float(last)
        over = [end for end in self._end if end < INFINITY]
        self.now = date if date < INFINITY else max(over, default=0.0)
        self._is_idle = date == INFINITY

    def _lost(self) -> SimulationError:
        link = self._links[self.network.subject]
        room_B = float(self.network.state.links["room_B"][self.network.subject])
        return SimulationError(
            f"link {link.name!r}: at {self.network.now:g} s its queue has more than its "
            f"{room_B:,.0f} B, and {LEVEL} knows no losses; raise queue_packets, or give "
            "--network-level fluid"
        )

    # --- reading ----------------------------------------------------------------------------

    @property
    def events(self) -> int:
        """How many packets have crossed how many links."""
        return self.network.hops

    @property
    def makespan_s(self) -> float:
        """Date of the last end of a task so far, s."""
        return max((end for end in self._end if end < INFINITY), default=0.0)

    def records(self) -> list[TaskRecord]:
        """What became of each task, in the order they were added."""
        return [self._record(ref, task) for ref, task in zip(self._refs, self._tasks, strict=True)]

    def _record(self, ref: TaskRef, task: Task) -> TaskRecord:
        began, ended = self._start[ref.index], self._end[ref.index]
        start = began if began <= self.now else None
        end = ended if ended < INFINITY else None
        state = "completed"
        if end is None:
            state = "waiting" if start is None else "starved" if self._is_idle else "running"
        return task_record(ref.id, task.profile, task.hosts, start, end, state)

    def pauses(self) -> Iterator[PausedLink]:
        """The pauses of links, in the order in which they began."""
        for pause in self.network.pauses():
            yield self._named(pause)

    def _named(self, pause: Pause) -> PausedLink:
        until = None if np.isnan(pause.until_s) else pause.until_s
        names = self._links[pause.link].name, self._links[pause.toward].name
        return PausedLink(*names, pause.since_s, until)

    def queues(self) -> Iterator[LinkInterval]:
        """The queues of links over time, link by link; intervals in which nothing joined left out.

        It needs ``recorded``.
        """
        found = self.network.queues()
        for place, link in enumerate(self._links):
            for k in np.flatnonzero(found.joined_B[place]).tolist():
                begin_s = found.begin_s + k * found.length_s
                largest, joined = found.largest_B[place, k], found.joined_B[place, k]
                yield LinkInterval(
                    link.name, begin_s, begin_s + found.length_s, float(largest), float(joined)
                )


def _refused(ref: TaskRef, what: str) -> SimulationError:
    return SimulationError(
        f"task {ref.id!r}: {what}: {LEVEL} knows none; leave it out, or give --network-level fluid"
    )


def _check_task(ref: TaskRef) -> None:
    """Raises SimulationError for a task that is neither flows nor a delay, or has a limit."""
    task = ref.task
    if task.work.duration_s is None:
        if not isinstance(task.work, ParallelWork | HomogeneousWork):
            raise _refused(ref, f"a {type(task.work).__name__}")
        if np.any(task.work.demand(len(task.hosts)).flops):
            raise _refused(ref, "computation")
    for name in ("walltime_s", "rate_bound", "competitors"):
        if getattr(task, name) is not None:
            raise _refused(ref, f"a {name}")
    if task.weight != 1.0:
        raise _refused(ref, "a weight")
