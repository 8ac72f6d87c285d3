"""Run batches of parallel tasks in the compiled loop; the engine computes when jobs end.

It supports jobs of one stage on whole hosts of one cluster, a built-in policy, first fit, and a
machine that does not change. A few kernels then do all work between events (see `loop`). The
schedule is bit-identical to that of the open loop. The profiles of started jobs are routed from
arrays, without objects: they are usage vectors 0, 1, ... of an engine that only this loop uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.allocations.rules import FirstFit
from ptaskmodel.batch.compiled.delays import PAUSE, CompiledBatch, compiled_batch
from ptaskmodel.batch.compiled.state import CIRCLES, FULL, PAUSED, with_more_pieces
from ptaskmodel.batch.compiled.task_loop import enter_ptask, next_killed, one_date
from ptaskmodel.batch.jobs.execution import walltime_or_inf
from ptaskmodel.batch.loop.schedule import CUT, FAILS, SUCCEEDED, Schedule
from ptaskmodel.batch.machine.machine import Machine, machine_of
from ptaskmodel.batch.policies.backfilling import Fcfs
from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import EVENTS_FULL, IDLE, SOME_ENDED, UNTIL
from ptaskmodel.engine.store import room_for_elements
from ptaskmodel.engine.usage.assembly import assemble_stages
from ptaskmodel.engine.usage.placement import Demands, Placement
from ptaskmodel.engine.usage.vectors import NEW
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.kernels.records import enlarged, records
from ptaskmodel.platform import Platform
from ptaskmodel.platform.topologies.topology import LONGEST
from ptaskmodel.simulation.life import (
    CANCELLED,
    PROGRAM,
    STAGE,
    TASK,
    Tasks,
    finish,
    new_tasks,
    run,
)
from ptaskmodel.simulation.records import part_done
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import HomogeneousWork, ParallelWork

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Progress = Callable[[float, int, int], None]
# More flows than these together are for the open loop, which has no arrays of its own for them.
MOST_FLOWS = 1 << 24


class RoutingSizes(NamedTuple):
    """How much may have to be assembled together: works, hosts and flows of all, hosts of one."""

    works: int
    hosts: int
    flows: int
    ranks: int


class SingleClusterRouter:
    """Assembles what its ``placement`` and ``demands`` say, on hosts of a cluster zone.

    The works are on hosts of their own, whose ``Placement.nodes`` are in increasing order.
    """

    def __init__(self, core: Core, zone: int, room: RoutingSizes) -> None:
        self.core = core
        router = core.router
        cluster = router.clusters[zone]
        assert cluster is not None
        works, hosts, flows, ranks = room
        self.placement = Placement(
            np.zeros(works + 1, dtype=np.int64),
            np.empty(hosts, dtype=np.int64),
            np.empty(hosts, dtype=np.int64),
            np.full(works, zone, dtype=np.int64),
        )
        self.demands = Demands(
            np.empty(hosts),
            np.zeros(works),
            np.zeros(works + 1, dtype=np.int64),
            np.empty(flows, dtype=np.int64),
            np.empty(flows, dtype=np.int64),
            np.empty(flows),
            np.zeros(works),
        )
        core.state = core.state._replace(patterns=enlarged(core.state.patterns, works))
        core.state.patterns[:] = NEW
        self._numbers = np.arange(works)
        self._cluster = cluster
        self._tally, self._ways = router.whole_tally()
        self._by_flow, self._by_pair = router.count == "flow", router.count == "pair"
        longest = int(cluster.table[LONGEST])
        self._scratch = (
            np.empty(longest, dtype=np.int64),
            np.empty((4, ranks), dtype=np.int64),
            np.zeros((2, cluster.ways), dtype=np.int64),
        )

    def assemble(self, count: int) -> bool:
        """Assemble the first ``count`` works; False if one has no way to go."""
        core, first = self.core, 0
        most = int(self.placement.start[count]) + count * len(core.platform.all_links)
        while True:
            state = core.state
            last = assemble_stages(
                state.patterns, self._numbers[:count], state.elements, first, self._tally,
                self._ways, self._cluster, core.platform.local_numbers, self.placement,
                self.demands, self._by_flow, self._by_pair, *self._scratch,
            )  # fmt: skip
            if last >= 0:
                return True
            if len(state.elements) >= most:
                return False
            core.state = room_for_elements(state, len(state.elements) + 1024)


class Works(NamedTuple):
    """What works ask, one after the other: flops of ranks (one for all, or each), and flows.

    of_job: the work of each job. pair_bytes: what every rank sends to every other. competitors: of
    each work, 0 where they are counted.
    """

    of_job: IntArray
    first_rank: IntArray
    flops: FloatArray
    pair_bytes: FloatArray
    first_flow: IntArray
    flow_from: IntArray
    flow_to: IntArray
    flow_bytes: FloatArray
    competitors: FloatArray


class Hosts(NamedTuple):
    """The hosts of a machine: their numbers in the platform, and in their zone."""

    hosts: IntArray
    nodes: IntArray


@dataclass(slots=True, eq=False)
class CompiledPtasks:
    """A batch of parallel tasks ready to run, at date 0.

    alone_s: of each job that has started, its time with the platform to itself on the same hosts;
    nan where a formula does not say.
    """

    batch: CompiledBatch
    limited: bool
    simulation: Simulation
    works: Works
    hosts: Hosts
    router: SingleClusterRouter
    alone_s: FloatArray

    def run(self, until_s: float = inf, progress: Progress | None = None) -> Schedule | None:
        """Simulate up to a date, to the end by default.

        None if it does not come to an end as it should: the open loop says why.
        """
        core, state = self.simulation.core, self.batch.state
        t = _tasks(len(self.batch.jobs))
        options = core.options._replace(stop_on_end=True)
        gamma, clock, told = float(options.gamma), state.clock, 0
        placement, demands = self.router.placement, self.router.demands
        with as_compiled():
            while True:
                until = min(clock["due"].item(), until_s)
                if until == inf and clock["over"].item() == clock["position"].item():
                    break
                status = run(core.state, t, options._replace(until=until))
                now = core.now
                if status == EVENTS_FULL:
                    more = int(core.state.clock[0]["argument"]) + len(core.state.events)
                    core.state = core.state._replace(events=enlarged(core.state.events, more))
                    continue
                if status == IDLE:
                    return None
                if status not in (SOME_ENDED, UNTIL):
                    core.serve(int(status))
                    continue
                self._kill(core, t, now)
                first = clock["started"].item()
                while True:
                    done = one_date(
                        state, core.state, t, self.works, self.hosts, placement, demands
                    )
                    if done != FULL:
                        break
                    self.batch.state = state = with_more_pieces(state)
                if done == CIRCLES:
                    return None
                started = clock["started"].item() - first
                if started and not self.router.assemble(started):
                    return None
                if done == PAUSED:
                    enter_ptask(state, core.state, t, first, gamma, self.alone_s)
                    told += 1
                    if progress is not None and told % PAUSE == 0:
                        progress(*(clock[name].item() for name in ("now", "over", "waiting")))
                if status == UNTIL and now >= until_s:
                    break
        if until_s == inf and clock["waiting"].item():
            return None
        self._note_codes()
        return self.batch.schedule(until_s)

    def _kill(self, core: Core, t: Tasks, now: float) -> None:
        """End the tasks whose walltime has come."""
        if not self.limited:
            return
        while (task := next_killed(self.batch.state, t, now)) >= 0:
            job = self.batch.state.order[task]
            self.batch.done[job] = part_done(core.state, t.tasks[task], now)
            core.make_room_for_events(4)
            finish(core.state, t, task, CANCELLED)

    def _note_codes(self) -> None:
        """What became of the jobs that are over."""
        jobs, arrays = self.batch.state.jobs, self.batch.arrays
        cut = jobs["end"] >= jobs["start"] + jobs["duration"]
        done = self.batch.done
        done[cut & np.isnan(done)] = 1.0  # they ended by themselves, at that very date
        self.batch.codes[:] = np.where(cut, CUT, np.where(arrays.fails, FAILS, SUCCEEDED))


def prepare_kernels() -> None:
    """Have kernels built for what they are used with here (see `kernels.building`)."""
    build = Platform.build("world")
    build.cluster("c", 1, prefix="c", speed=1e9, bandwidth=1e9, latency=0.0)
    work = HomogeneousWork(1.0, 0.0)
    batch = compiled_batch(
        [Job("0", 0.0, 1, "p", work)], 1, Fcfs(), FirstFit(),
        estimate=walltime_or_inf, limited=False, most_decisions=1, simulated=True,
    )  # fmt: skip
    platform = build.finish()
    assert batch is not None
    made = compiled_ptasks(batch, machine_of(platform), False, lambda: Simulation(platform))
    assert made is not None
    core, t, router = made.simulation.core.state, _tasks(1), made.router
    one_date.prepare(batch.state, core, t, made.works, made.hosts, router.placement, router.demands)
    enter_ptask.prepare(batch.state, core, t, 0, 0.0, made.alone_s)
    next_killed.prepare(batch.state, t, 0.0)


def _tasks(count: int) -> Tasks:
    """Room for the tasks of so many jobs."""
    return new_tasks()._replace(
        tasks=records(count, TASK), programs=records(count, PROGRAM), stages=records(count, STAGE)
    )


def compiled_ptasks(
    batch: CompiledBatch, machine: Machine, limited: bool, make: Callable[[], Simulation]
) -> CompiledPtasks | None:
    """What the compiled loop needs; None if something about works or platform is not for it.

    make: makes the simulation, at date 0.
    """
    if machine.has_traces or not all(map(_is_for_it, batch.jobs)):
        return None
    simulation = make()
    core = simulation.core
    if not core.model.parallel:
        return None
    places = np.array([machine.platform.host(name).index for name in machine.names])
    zones = core.router.clusters.cluster_zone[places]
    nodes = machine.platform.local_numbers[places].astype(np.int64)
    if zones[0] < 0 or (zones != zones[0]).any() or (np.diff(nodes) <= 0).any():
        return None
    table = _works(batch.jobs, batch.arrays.num_hosts)
    sizes = batch.arrays.num_hosts
    flows = np.diff(table.first_flow)[table.of_job]
    # Those that start together have hosts of their own.
    together = int(min(flows.sum(), np.ceil((flows / sizes).max(initial=0.0) * len(places))))
    if together > MOST_FLOWS:
        return None
    room = RoutingSizes(len(places), len(places), together, int(sizes.max(initial=1)))
    router = SingleClusterRouter(core, int(zones[0]), room)
    batch.state.clock["due"] = batch.arrays.submit_s[0] if len(batch.jobs) else inf
    alone_s = np.full(len(batch.jobs), np.nan)
    hosts = Hosts(places.astype(np.int64), nodes)
    return CompiledPtasks(batch, limited, simulation, table, hosts, router, alone_s)


def _is_for_it(job: Job) -> bool:
    """Whether a job's work is one stage that computes and sends, on all its hosts."""
    return isinstance(job.work, HomogeneousWork) or (
        isinstance(job.work, ParallelWork) and job.work.ranks == job.num_hosts
    )


def _works(jobs: Sequence[Job], sizes: IntArray) -> Works:
    known: dict[tuple[int, int, float], int] = {}
    keys = zip(
        (id(job.work) for job in jobs),
        sizes.tolist(),
        (job.competitors or 0.0 for job in jobs),
        strict=True,
    )
    of_job = [known.setdefault(key, len(known)) for key in keys]
    by_id = {id(job.work): job.work for job in jobs}
    demands = [by_id[number].demand(ranks) for number, ranks, _ in known]
    flops, pair_bytes, flow_from, flow_to, flow_bytes = (
        zip(*demands, strict=True) if demands else ((), (), (), (), ())
    )
    each = [amount if isinstance(amount, np.ndarray) else (amount,) for amount in flops]
    return Works(
        np.array(of_job, dtype=np.int64),
        _firsts(each),
        np.fromiter(chain.from_iterable(each), np.float64),
        np.array(pair_bytes, dtype=np.float64),
        _firsts(flow_bytes),
        np.concatenate([np.zeros(0, dtype=np.int64), *flow_from]),
        np.concatenate([np.zeros(0, dtype=np.int64), *flow_to]),
        np.concatenate([np.zeros(0), *flow_bytes]),
        np.array([competitors for _, _, competitors in known], dtype=np.float64),
    )


def _firsts(lists: Sequence[Sequence[float] | FloatArray]) -> IntArray:
    """Where each of the lists begins, written one after the other; then the end of the last."""
    firsts = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(list(map(len, lists)), out=firsts[1:])
    return firsts
