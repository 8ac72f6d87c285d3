"""Jobs of which only the run time is known as parallel tasks or traces, for a platform to slow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ptaskmodel.batch.bundled import bundled_profiles
from ptaskmodel.batch.machine import Machine
from ptaskmodel.batch.slurm.requests.request import JobRequest, Submissions
from ptaskmodel.errors import SlurmError
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.transforms.ptask_rule import ptask_profiles
from ptaskmodel.workload.transforms.trace_rule import trace_profiles
from ptaskmodel.workload.works import Work

AS_GIVEN, PTASK, SMPI = "as-given", "ptask", "smpi"
KINDS = (AS_GIVEN, PTASK, SMPI)


def with_profiles(
    submissions: Submissions,
    kind: str,
    machine: Machine,
    *,
    ratio: float = 0.5,
    pattern: str = "alltoall",
) -> Submissions:
    """The jobs with the kind of work that is asked for, by the rules of `ptaskmodel batch`.

    kind: AS_GIVEN; PTASK: delays become parallel tasks, for the speed and the network card of the
    first host, and traces their bundles; SMPI: works become traces. A job has a rank for
    each of its tasks, whose part of the card is that of a core, or for each of its nodes if it asks
    for nodes alone.

    Raises SlurmError for another kind, WorkloadError where works cannot be made.
    """
    if kind == AS_GIVEN:
        return submissions
    if kind not in KINDS:
        raise SlurmError(f"profiles '{kind}': use one of {', '.join(KINDS)}")
    host = machine.platform.host(machine.names[0])
    works: dict[str, Work] = {}
    notes = list(submissions.notes)
    for of_tasks, part in ((False, 1), (True, host.cores)):
        some = [job for job in submissions.jobs if (job.tasks is not None) == of_tasks]
        if not some:
            continue
        workload = Workload(tuple(_jobs(some)), {}, name="slurm")
        if kind == PTASK:
            workload = ptask_profiles(
                bundled_profiles(workload, machine.platform.config),
                speed_flops=host.speed_flops,
                bandwidth_Bps=machine.card_Bps() / part,
                ratio=ratio,
                pattern=pattern,
            )
        else:
            workload = trace_profiles(workload)
        works |= {job.id: job.work for job in workload.jobs}
        notes += workload.notes
    jobs = tuple(replace(job, work=works[job.id]) for job in submissions.jobs)
    return Submissions(jobs, submissions.t0, tuple(notes))


def _jobs(requests: Iterable[JobRequest]) -> Iterable[Job]:
    for each in requests:
        ranks = each.least_nodes if each.tasks is None else each.tasks
        yield Job(each.id, each.submit_s, ranks, each.id, each.work)
