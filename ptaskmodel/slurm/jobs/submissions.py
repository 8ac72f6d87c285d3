"""Read the jobs of a simulated Slurm from any file: SWF, Batsim's JSON, sacct, jobs.csv, events.

Jobs of which only the run time is known can become parallel tasks or traces, so that the platform
slows them.

Logs and workloads contain less than the options of sbatch: `read_submissions` reports which
requests are missing that a slurm.conf needs, and what jobs get instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from math import inf

from ptaskmodel.batch.jobs.parallel_tasks import bundled_profiles
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.errors import SlurmError, WorkloadError, shown
from ptaskmodel.files import (
    UTF8_MARK,
    UTF16_MARKS,
    AnyPath,
    read_bytes,
    shown_path,
    taken_for,
)
from ptaskmodel.remarks import KILLED, NOTE, TAKEN, Account, Remark, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, LINEAR, Conf, Gres, Partition
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs import job_table, sacct, sbatch
from ptaskmodel.slurm.jobs.dependencies import parsed
from ptaskmodel.slurm.jobs.needs import (
    ALL,
    ONE_TASK_PER_CORE,
    counts_memory,
    limit_min,
    memory_asked,
)
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest, Submissions
from ptaskmodel.slurm.jobs.sacct_sizes import site
from ptaskmodel.style.text import several
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.jobs import Job, Workload, in_turn, num_linked
from ptaskmodel.workload.ptask_rule import ptask_profiles, trace_profiles
from ptaskmodel.workload.reading import format_of, read_workload
from ptaskmodel.workload.works import Work

NODES, CPUS = "nodes", "cpus"
MIB = 2.0**20
ONE_MINUTE_s = 60
AS_GIVEN, PTASK, SMPI = "as-given", "ptask", "smpi"
KINDS = (AS_GIVEN, PTASK, SMPI)
START = 4096
# Columns that only tables of jobs have.
_TELLING = {
    "jobid",
    "submit",
    "limit",
    "run",
    "timelimit",
    "elapsed",
    "partition",
    "user",
    "account",
}


def submissions_of(
    workload: Workload,
    conf: Conf,
    counts: str = NODES,
    t0: int | None = None,
    dependencies: bool = False,
) -> Submissions:
    """The jobs of a workload as requests to a cluster.

    counts: what ``num_hosts`` counts: NODES, taken whole unless a job asks for cores; or CPUS, as
    tasks that Slurm places, which suits logs that count processors. Walltimes are rounded up to
    minutes. Groups become accounts; partitions and queues count if the configuration has one of
    that name, else jobs go to the default one. t0: Unix time of date 0. dependencies: whether jobs
    wait for those that come before them.
    """
    partitions = {partition.name for partition in conf.partitions}
    jobs = [_request(job, counts, partitions) for job in workload.jobs]
    strange = Counter(
        places[0]
        for places in map(_places, workload.jobs)
        if places and partitions.isdisjoint(places)
    )
    remarks = (*workload.remarks, *_strangers(strange, conf))
    linked = num_linked(workload.jobs)
    if dependencies:
        jobs = _linked(jobs, workload.jobs, workload.origin)
        text = several(linked, "job waits for the end of its", "jobs wait for the end of their")
        text += " preceding jobs, plus the think time"
        remarks = (*remarks, Remark(text))
    elif linked:
        text = several(linked, "job names a preceding job", "jobs name a preceding job")
        text += f"; --dependencies makes {'it' if linked == 1 else 'them'} wait for it"
        remarks = (*remarks, Remark(text))
    return Submissions(tuple(jobs), t0, remarks)


def _linked(requests: Sequence[JobRequest], jobs: Sequence[Job], origin: str) -> list[JobRequest]:
    """The requests of jobs, which wait for the preceding jobs, and are submitted after them.

    Raises SlurmError with the jobs of each circle, which wait for each other.
    """
    position = {job.id: k for k, job in enumerate(jobs)}
    before = [[position[each] for each in job.preceding_jobs if each in position] for job in jobs]
    found = list(requests)
    level = [0] * len(found)
    for k in in_turn(jobs, origin, SlurmError):
        if before[k]:
            names = [found[each].id for each in before[k]]
            strange = next((name for name in names if set(name) & set(":,?+")), None)
            if strange is not None:
                text = f"waits for {shown(strange)}, whose name holds : , ? or +; rename it"
                raise SlurmError(f"{found[k].where} {text}")
            date_s = max(found[each].submit_s for each in (k, *before[k]))
            dependency = ":".join(["afterany", *names])
            think_s = jobs[k].think_time_s
            found[k] = replace(found[k], submit_s=date_s, dependency=dependency, think_s=think_s)
            level[k] = 1 + max(level[each] for each in before[k])
    order = sorted(range(len(found)), key=lambda k: (found[k].submit_s, level[k]))
    return [found[k] for k in order]


def _strangers(strange: Counter[str], conf: Conf) -> Iterable[Remark]:
    """What becomes of the jobs of partitions that the configuration does not have."""
    default, where = conf.home_partition.name, conf.origin or "slurm.conf"
    text = (
        f"{several(strange.total(), 'job names', 'jobs name')} partitions or queues that {where} "
        f"does not define: {names_text(strange, shown)}: they go to the default partition, "
        f"{default}"
    )
    return [Remark(text, kind=TAKEN, field="partition")] if strange else []


def _in_known_partitions(found: Submissions, conf: Conf) -> Submissions:
    """The jobs of a log, in those of their partitions that the configuration has."""
    partitions = {partition.name for partition in conf.partitions}
    strange: Counter[str] = Counter()
    jobs = []
    for job in found.jobs:
        if not partitions.issuperset(job.partitions):
            known = tuple(name for name in job.partitions if name in partitions)
            if not known:
                strange[",".join(job.partitions)] += 1
            job = replace(job, partitions=known)
        jobs.append(job)
    return replace(found, jobs=tuple(jobs), remarks=(*found.remarks, *_strangers(strange, conf)))


def _places(job: Job) -> list[str]:
    """The names that may be those of its partition, best first."""
    return [name for name in (job.partition, job.queue) if name is not None]


def _request(job: Job, counts: str, partitions: Collection[str]) -> JobRequest:
    limit = None if job.walltime_s is None else math.ceil(job.walltime_s / ONE_MINUTE_s)
    place = next((name for name in _places(job) if name in partitions), None)
    nodes = counts == NODES
    whole = nodes and job.cores is None
    return JobRequest(
        job.id,
        job.submit_time_s,
        job.work,
        user=job.user,
        account=job.group,
        name=job.executable,
        partitions=() if place is None else (place,),
        min_nodes=job.num_hosts if nodes else None,
        max_nodes=job.num_hosts if nodes else None,
        tasks=None if whole else job.num_hosts * (job.cores or 1),
        tasks_per_node=job.cores if nodes else None,
        memory_per_node_MiB=None if job.memory_B is None else math.ceil(job.memory_B / MIB),
        gres=tuple(Gres(name, None, count) for name, count in job.resources.items()),
        exclusive=WHOLE_NODES if whole else None,
        limit_min=limit,
        licenses=job.licences,
        fails=bool(job.return_code),
        where=f"job '{job.id}'",
    )


def with_profiles(
    submissions: Submissions,
    kind: str,
    machine: Machine,
    *,
    ratio: float = 0.5,
    pattern: str = "alltoall",
) -> Submissions:
    """Return `submissions` with other kinds of work, as ``ptaskmodel batch --profiles`` does.

    kind: AS_GIVEN; PTASK: delays become parallel tasks (of the speed and the network card of the
    first host of `machine`, by `ratio` of communication and `pattern`), and traces become their
    bundles; SMPI: works become traces. A job has a rank for each of its tasks, which has a core's
    part of the card, or for each of its nodes if it requests only nodes.

    Raises SlurmError for another kind, WorkloadError where works cannot be made.
    """
    if kind == AS_GIVEN:
        return submissions
    if kind not in KINDS:
        raise SlurmError(f"profiles '{kind}' are unknown; use one of {', '.join(KINDS)}")
    host = machine.platform.host(machine.names[0])
    works: dict[str, Work] = {}
    remarks = list(submissions.remarks)
    for of_tasks, part in ((False, 1), (True, host.cores)):
        some = [job for job in submissions.jobs if (job.tasks is not None) == of_tasks]
        if not some:
            continue
        workload = Workload(tuple(_jobs_of(some)), {}, name="slurm")
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
        remarks += workload.remarks
    jobs = tuple(replace(job, work=works[job.id]) for job in submissions.jobs)
    return replace(submissions, jobs=jobs, remarks=tuple(remarks))


def _jobs_of(requests: Iterable[JobRequest]) -> Iterable[Job]:
    for each in requests:
        ranks = each.least_nodes if each.tasks is None else each.tasks
        yield Job(each.id, each.submit_s, ranks, each.id, each.work)


@reader(SlurmError)
def read_submissions(
    path: AnyPath,
    account: Account,
    conf: Conf,
    *,
    phase_s: float = PHASE_S,
    processors_per_node: int | None = None,
    cleaning: Cleaning | None = None,
    t0: int | None = None,
    dependencies: bool = False,
) -> Submissions:
    """The jobs of the file at `path`: ``jobs.csv``, ``sacct``, SWF or Batsim's JSON.

    conf: what they will run under. phase_s: how long after its whole second a job of the first
    two comes. processors_per_node: of an SWF or GWF log: jobs ask for whole nodes of so many
    processors; None: for processors (tasks of one CPU), which Slurm places. cleaning: of logs, see
    `Cleaning`. t0: Unix time of date 0 where the file does not say it. dependencies: whether jobs
    wait for the preceding jobs that a workload names, and their users think.

    account: of the file. Raises SlurmError or WorkloadError with file and place.
    """
    start = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK)[:START]
    if start.startswith(UTF16_MARKS):
        raise SlurmError(f"{account.file}: {taken_for(start)}")
    for read_rows, looks_like in (
        (job_table.read_jobs, job_table.looks_like),
        (sbatch.read_events, sbatch.looks_like),
    ):
        if looks_like(start):
            return _possible(read_rows(path, phase_s), conf, account)
    if sacct.looks_like(start):
        found = _in_known_partitions(sacct.read_sacct(path, phase_s, site(conf)), conf)
    else:
        _nearly(start, path)
        cleaning = cleaning or Cleaning()
        counts = NODES
        if format_of(path) in ("swf", "gwf"):
            counts = CPUS if processors_per_node is None else NODES
            cleaning = cleaning._replace(processors_per_host=processors_per_node or 1)
        found = submissions_of(read_workload(path, cleaning), conf, counts, t0, dependencies)
    return with_remarks_on_silence(_possible(found, conf, account), conf, account)


def _nearly(start: bytes, path: AnyPath) -> None:
    """SlurmError for a table that lacks a column without which nothing can be told."""
    where = f"{shown_path(path)}:1"
    if start.lower().replace(b",", b" ").split()[:1] == [b"jobid"]:
        raise SlurmError(
            f"{where}: is a table of sacct without | between columns, or without "
            "Submit; print it with -P (--parsable2), with JobID and Submit among the fields"
        )
    line = start.split(b"\n")[0].decode("utf-8", "replace").strip()
    needed = (*job_table.NEEDED, job_table.LIMITS[0])
    for mark, kind, columns in (("|", "sacct -P", sacct.NEEDED), (",", "jobs.csv", needed)):
        given = {name.strip() for name in line.split(mark)}
        names = {name.lower() for name in given}
        begins = line.lower().startswith(("jobid|", "id,submit")) and mark in line
        if begins or (len(names) > 2 and len(names & {*columns, *_TELLING}) > 1):
            missing = ", ".join(name for name in columns if name not in names)
            raise SlurmError(
                f"{where}: is a table like {kind} without the column {missing}; add it"
            )
    if line.count("|") > 1:
        raise SlurmError(
            f"{where}: is a table with | between columns whose first line names no columns; "
            "if sacct printed it, leave out -n (--noheader)"
        )
    if line.count(",") > 1 and not line.startswith(("{", "[", "#", ";", "<")):
        raise SlurmError(
            f"{where}: is a table whose first line names no columns; that of a jobs.csv names "
            f"{', '.join(needed)} and more"
        )


def _possible(found: Submissions, conf: Conf, account: Account) -> Submissions:
    """The jobs of a file that make sense under `conf`; the account has the others.

    Raises SlurmError, with file and lines, if those are most.
    """
    partitions = {partition.name for partition in conf.partitions}
    nodes = {name for line in conf.nodes for name in line.names}
    jobs, wrong = [], set[str]()
    for job in found.jobs:
        problem = _problem(job, conf.origin, partitions, nodes) or _problem_of_tasks(job, conf)
        if problem is None:
            jobs.append(job)
        elif job.where not in wrong:  # another task of its array has been told
            wrong.add(job.where)
            line = job.where.removeprefix(f"{account.file}:")
            if line.isdigit():
                account.bad_row(problem, int(line))
            else:
                account.bad_row(f"{job.where}: {problem}")
    if not wrong:
        return found
    account.check_rows(len({job.where for job in found.jobs}))
    return replace(found, jobs=tuple(jobs))


def _problem_of_tasks(job: JobRequest, conf: Conf) -> str | None:
    """What is not simulated of the tasks that a job has on a socket or core; None: nothing."""
    if job.tasks_per_socket is None and job.tasks_per_core is None:
        return None
    socket, core = "--ntasks-per-socket", "--ntasks-per-core"
    given = core if job.tasks_per_socket is None else socket
    if job.gres or job.gpus or job.gpus_per_socket or job.gpus_per_task:
        return f"{given} is not simulated for jobs with GPUs or other --gres; leave it out"
    one_task = ONE_TASK_PER_CORE in conf.select_parameters
    if conf.select_type == LINEAR and (job.tasks_per_core or one_task):
        what = "which counts CPUs that no node has; leave it out"
        return f"{given} is not simulated with {LINEAR} and tasks of a core, {what}"
    each, threads = job.cpus_per_task, {line.threads for line in conf.nodes}
    apart = (job.tasks_per_core or one_task) == 1
    if apart and any(1 < count < each and each % count for count in threads):
        what = f"tasks of {each} CPUs, which fill no whole cores"
        return f"{core}=1 is not simulated for {what}; give --cpus-per-task a multiple of threads"
    limited = conf.max_mem_per_cpu_MiB or any(p.max_mem_per_cpu_MiB for p in conf.partitions)
    if apart and limited and max(threads) > 1:
        what = "MaxMemPerCPU, which may give tasks more CPUs"
        return f"{core}=1 is not simulated with {what}; leave it out"
    return None


def _problem(
    job: JobRequest, origin: str, partitions: Collection[str], nodes: Collection[str]
) -> str | None:
    """What makes no sense of a job; None: nothing. partitions, nodes: those of the file `origin`"""
    for what, names, known in (
        ("partition", job.partitions, partitions),
        ("node", (*job.nodelist, *job.exclude), nodes),
    ):
        strange = next((name for name in names if name not in known), None)
        if strange is not None:
            return f"{what} {shown(strange)} is not defined in {origin}; add it there"
    if max(job.submit_s, job.begin_s or 0.0, job.run_s or 0.0) > values.LONGEST_S:
        return f"{shown(job.id)} is submitted, begins or runs for more than 20 years; correct it"
    if job.dependency is not None:
        try:
            parsed(job.dependency)
        except SlurmError as fault:
            return fault.message.removeprefix(": ")
    return None


# Names in one remark; of more it says the number.
SHOWN = 10


def with_remarks_on_silence(found: Submissions, conf: Conf, account: Account) -> Submissions:
    """The jobs `found` in a log, with remarks on the limits and the memory that it does not say.

    conf: what the jobs will run under. account: of the log.
    """
    partitions = {partition.name: partition for partition in conf.partitions}
    home = conf.home_partition
    placed = [
        (job, partitions[job.partitions[0]] if job.partitions else home) for job in found.jobs
    ]
    _limits(placed, account)
    _memory(placed, conf, account)
    return replace(found, remarks=(*found.remarks, *_over_limits(placed, conf, found)))


_Placed = Sequence[tuple[JobRequest, Partition]]


def names_text(counts: Counter[str], text: Callable[[str], str] = str) -> str:
    """The most frequent names of `counts`, each written by `text`, with its number of jobs."""
    shown = [f"{text(name)} ({several(count, 'job')})" for name, count in counts.most_common(SHOWN)]
    more = [f"{len(counts) - SHOWN} more"] if len(counts) > SHOWN else []
    return ", ".join([*shown, *more])


def _limits(placed: _Placed, account: Account) -> None:
    """Jobs without a limit."""
    silent = [(job, partition) for job, partition in placed if job.limit_min is None]
    if silent:
        limits = {partition.name: limit_min(job, partition) for job, partition in silent}
        some = [
            f"{name}: {'none' if limit == inf else f'{limit:g} min'}"
            for name, limit in list(limits.items())[:SHOWN]
        ]
        account.assumed(
            f"{several(len(silent), 'job has', 'jobs have')} no time limit: that of the partition "
            f"({', '.join(some)}) holds, and backfill plans with it",
            field="limit",
        )


def _memory(placed: _Placed, conf: Conf, account: Account) -> None:
    """Jobs without memory, where it is counted and has no default."""
    if conf.select_type == LINEAR:
        return
    counted: dict[str, bool] = {}
    silent: Counter[str] = Counter()
    for job, partition in placed:
        if job.memory_per_node_MiB is not None or job.memory_per_cpu_MiB is not None:
            continue
        if partition.name not in counted:
            all_of_it = memory_asked(job, partition, conf)[0] == ALL
            shared = partition.over_subscribe != EXCLUSIVE
            counted[partition.name] = all_of_it and shared and counts_memory(conf, partition)
        if counted[partition.name] and job.exclusive != WHOLE_NODES:
            silent[partition.name] += 1
    if silent:
        account.assumed(
            f"{several(silent.total(), 'job requests', 'jobs request')} no memory: each takes all "
            f"memory of its nodes, as {names_text(silent)} have no DefMemPerCPU; with "
            "--ignore-memory, memory is not counted",
            field="memory",
        )


def _over_limits(placed: _Placed, conf: Conf, found: Submissions) -> Iterable[Remark]:
    """Jobs that run for longer than they may here."""
    count = sum(
        job.run_s is not None
        and job.id not in found.open_ended
        and job.run_s > 60 * (limit_min(job, partition) + _more_min(partition, conf))
        for job, partition in placed
    )
    text = (
        several(count, "job runs longer than its limit", "jobs run longer than their limits")
        + " and will be killed (OverTimeLimit allows longer runs)"
    )
    return [Remark(text, NOTE, KILLED)] if count else []


def _more_min(partition: Partition, conf: Conf) -> float:
    own = partition.over_time_limit_min
    return conf.over_time_limit_min if own is None else own
