"""Jobs that replay traces as parallel tasks: the bundle of each, on the hosts of its ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ptaskmodel.replay.algorithms import algorithms_of
from ptaskmodel.replay.bundles import bundle
from ptaskmodel.workload.host_facts import HostFacts
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.trace_work import TraceWork
from ptaskmodel.workload.works import Steps, Work


@dataclass(frozen=True, slots=True)
class OverAgainWork(Work):
    """A work of ``count`` ranks on any number of hosts: rank k on host k, over again beyond them.

    In a sequence it is a step of its own.
    """

    is_plain = False
    splits = True

    work: Work
    count: int

    def divided(self, flops: float, bytes: float) -> OverAgainWork:
        return OverAgainWork(self.work.divided(flops, bytes), self.count)

    def bound(self, hosts: tuple[str, ...], facts: HostFacts) -> Steps:
        return [[(tuple(hosts[k % len(hosts)] for k in range(self.count)), self.work)]]


def bundled_profiles(workload: Workload, config: Mapping[str, str]) -> Workload:
    """The workload with all traces, stages of sequences too, as bundles (see `replay.bundles`).

    config: of the platform, which may name algorithms of collectives. Raises SimulationError if
    these are not simulated.
    """
    made: dict[Work, Work] = {}
    jobs = []
    for job in workload.jobs:
        work = job.work
        if any(isinstance(part, TraceWork) for part in work.parts()):
            if work not in made:
                made[work] = work.mapped(lambda part: _bundled(part, config))
            job = replace(job, profile=f"{job.profile}@bundle", work=made[work])
        jobs.append(job)
    if not made:
        return workload
    return workload.with_jobs(tuple(jobs), "traces became parallel tasks: the bundle of each")


def _bundled(work: Work, config: Mapping[str, str]) -> Work:
    if not isinstance(work, TraceWork):
        return work
    trace = work.trace
    return OverAgainWork(bundle(trace, algorithms_of({}, config, trace)), trace.ranks)
