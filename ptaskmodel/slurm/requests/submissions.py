"""Read the jobs of a simulated Slurm from any file: SWF, Batsim's JSON, models, sacct, jobs.csv.

Jobs of which only the run time is known can become parallel tasks or traces, so that the platform
slows them. ``jobs.csv`` of a recorded run has the submissions to a real Slurm, and the run times.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ptaskmodel.batch.jobs.parallel_tasks import bundled_profiles
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.errors import SlurmError, WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, AnyPath, read_bytes, read_text, shown_path
from ptaskmodel.remarks import Remark
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import Conf, Gres
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs.dependencies import parsed
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, ArrayTask, JobRequest, Submissions
from ptaskmodel.slurm.requests import sacct, sbatch
from ptaskmodel.workload.formats.table import Cleaning
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.reading import format_of, read_workload
from ptaskmodel.workload.transforms.ptask_rule import ptask_profiles
from ptaskmodel.workload.transforms.trace_rule import trace_profiles
from ptaskmodel.workload.works import DelayWork, Work

NODES, CPUS = "nodes", "cpus"
MIB = 2.0**20
ONE_MINUTE_s = 60
AS_GIVEN, PTASK, SMPI = "as-given", "ptask", "smpi"
KINDS = (AS_GIVEN, PTASK, SMPI)
MOST_JOBS = 1_000_000
NEEDED = ("id", "submit", "limit", "run")
Row = Mapping[str, str]
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
    workload: Workload, conf: Conf, counts: str = NODES, t0: int | None = None
) -> Submissions:
    """The jobs of a workload as requests to a cluster.

    counts: what ``num_hosts`` counts: NODES, taken whole unless a job asks for cores; or CPUS, as
    tasks that Slurm places, which suits logs that count processors. Walltimes are rounded up to
    minutes. Groups become accounts; partitions and queues count if the configuration has one of
    that name, else jobs go to the default one. t0: Unix time of date 0.
    """
    partitions = {partition.name for partition in conf.partitions}
    jobs = [_request(job, counts, partitions) for job in workload.jobs]
    strange = {name for job in workload.jobs for name in _places(job) if name not in partitions}
    remarks = list(workload.remarks)
    if strange:
        some = ", ".join(sorted(strange)[:3])
        what = f"{len(strange)} queues or partitions are not in the configuration: {some}"
        remarks.append(Remark(what))
    return Submissions(tuple(jobs), t0, tuple(remarks))


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
    return Submissions(jobs, submissions.t0, tuple(remarks))


def _jobs_of(requests: Iterable[JobRequest]) -> Iterable[Job]:
    for each in requests:
        ranks = each.least_nodes if each.tasks is None else each.tasks
        yield Job(each.id, each.submit_s, ranks, each.id, each.work)


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so may be one."""
    names = start.split(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r").split(",")
    return set(NEEDED) <= set(names)


def read_jobs(path: AnyPath, phase_s: float = PHASE_S) -> Submissions:
    """The jobs of a ``jobs.csv``, each submitted ``phase_s`` after its date there.

    Columns: id, submit (s), nodes (least or least-most), cores (tasks; without them whole nodes,
    exclusively unless ``exclusive`` is 0), limit, run (s), and if need be user, account, qos,
    priority, nice, partition, exclusive, mem, depend, begin (s), deadline (s), extra (more options
    of sbatch).

    Raises SlurmError with file and line.
    """
    where = shown_path(path)
    text = read_text(path, error=SlurmError)
    if not looks_like(text[:4096].encode()):
        raise SlurmError(f"{where}:1: give the columns {', '.join(NEEDED)}, separated by commas")
    rows = csv.DictReader(io.StringIO(text), strict=True)
    found: list[JobRequest] = []
    seen: dict[str, str] = {}
    try:
        for row in rows:
            place = f"{where}:{rows.line_num}"
            if None in row:
                raise SlurmError(f"{place}: has more fields than the first line; take some out")
            fields = {name: (value or "").strip() for name, value in row.items()}
            if (before := seen.setdefault(fields["id"], place)) is not place:
                raise SlurmError(f"{place}: job {shown(fields['id'])} is there twice ({before})")
            found += _requests_of_row(fields, place, phase_s)
            if len(found) > MOST_JOBS:
                raise SlurmError(f"{place}: there are more than {MOST_JOBS:,} jobs; give fewer")
    except csv.Error as fault:
        raise SlurmError(f"{where}:{rows.reader.line_num}: {fault}; write plain CSV") from None
    return Submissions(tuple(sorted(found, key=lambda job: job.submit_s)))


def _requests_of_row(row: Row, where: str, phase_s: float) -> Iterator[JobRequest]:
    """The job of a row, or the tasks of its array."""
    if not row["id"] or not row["id"].isprintable():
        raise SlurmError(f"{where}: id is {shown(row['id'])}: give the job a name")
    fields: dict[str, Any] = {
        "submit_s": _value(row, "submit", where, _seconds) + phase_s,
        "limit_min": math.ceil(_value(row, "limit", where, _seconds) / 60),
        "work": DelayWork(_value(row, "run", where, _seconds)),
        "name": row["id"],
        "where": where,
    }
    for column, (field, read) in _COLUMNS.items():
        if row.get(column):
            fields[field] = _value(row, column, where, read)
    if row.get("nodes"):
        fields |= _value(row, "nodes", where, sbatch.node_range)
    whole = not row.get("cores") and row.get("exclusive") != "0"
    if whole or (row.get("cores") and row.get("exclusive") == "1"):
        fields["exclusive"] = WHOLE_NODES
    fields |= _value(row, "extra", where, sbatch.options) if row.get("extra") else {}
    indices, at_most = fields.pop("array", (None, None))
    if indices is None:
        yield JobRequest(row["id"], **fields)
        return
    for index in indices:
        task = ArrayTask(row["id"], index, at_most)
        yield JobRequest(f"{row['id']}_{index}", array=task, **fields)


def _value(row: Row, column: str, where: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(row[column])
    except ValueError as fault:
        raise SlurmError(f"{where}: {column} is {shown(row[column])}: {fault}") from None


def _seconds(text: str) -> float:
    value = values.number(text)
    if value > values.LONGEST_S:
        raise ValueError("give seconds, less than 20 years")
    return value


_COLUMNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "cores": ("tasks", lambda text: values.whole(text, 1)),
    "user": ("user", str),
    "account": ("account", str),
    "qos": ("qos", str),
    "priority": ("priority", lambda text: values.whole(text, 0, 2**32 - 1)),
    "nice": ("nice", lambda text: values.whole(text, -(2**31), 2**31)),
    "partition": ("partitions", values.names),
    "mem": ("memory_per_node_MiB", values.mebibytes),
    "depend": ("dependency", str),
    "begin": ("begin_s", _seconds),
    "deadline": ("deadline_s", _seconds),
}


def read_submissions(
    path: AnyPath,
    conf: Conf,
    *,
    phase_s: float = PHASE_S,
    processors_per_node: int | None = None,
    cleaning: Cleaning | None = None,
    t0: int | None = None,
) -> Submissions:
    """The jobs of a file: ``jobs.csv`` of a recorded run, ``sacct -P``, SWF or Batsim's JSON.

    phase_s: how long after its whole second a job of the first two comes. processors_per_node: of
    an SWF log: jobs ask for whole nodes of so many processors; None: for processors (tasks of one
    CPU), which Slurm places. cleaning: of logs, see `Cleaning`. t0: Unix time of date 0 where the
    file does not say it.

    Raises SlurmError or WorkloadError with file and place.
    """
    found = _read(path, conf, phase_s, processors_per_node, cleaning, t0)
    _check(found, conf)
    return found


def _read(
    path: AnyPath,
    conf: Conf,
    phase_s: float,
    processors_per_node: int | None,
    cleaning: Cleaning | None,
    t0: int | None,
) -> Submissions:
    start = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK)[:START]
    if looks_like(start):
        return read_jobs(path, phase_s)
    if sacct.looks_like(start):
        return sacct.read_sacct(path, phase_s)
    if start.lower().replace(b",", b" ").split()[:1] == [b"jobid"]:
        raise SlurmError(
            f"{shown_path(path)}:1: a table of sacct whose columns are not parted by |, or without "
            "Submit: print it with -P (or --parsable2), and JobID and Submit among others"
        )
    _nearly(start, path)
    if start.split(b"\n")[0].count(b"|") > 1:
        raise SlurmError(
            f"{shown_path(path)}:1: a table parted by | whose first line names no columns: "
            "if it is of sacct, print it without -n (--noheader)"
        )
    if format_of(path) != "swf":
        return submissions_of(read_workload(path, cleaning), conf, NODES, t0)
    counts = CPUS if processors_per_node is None else NODES
    given = cleaning or Cleaning()
    per_host = Cleaning(
        processors_per_node or 1, given.zero_run_time_s, given.max_hosts, given.walltimes
    )
    return submissions_of(read_workload(path, per_host), conf, counts, t0)


def _nearly(start: bytes, path: AnyPath) -> None:
    """SlurmError for a table that lacks a column without which nothing can be told."""
    line = start.split(b"\n")[0].decode("utf-8", "replace").strip()
    for mark, kind, needed in (("|", "sacct -P", sacct.NEEDED), (",", "jobs.csv", NEEDED)):
        given = {name.strip() for name in line.split(mark)}
        names = {name.lower() for name in given}
        if len(names) > 2 and len(names & {*needed, *_TELLING}) > 1:
            has = names if mark == "|" else given
            missing = ", ".join(name for name in needed if name not in has)
            raise SlurmError(
                f"{shown_path(path)}:1: a table like {kind} without the column {missing}: add it"
            )


def _check(submissions: Submissions, conf: Conf) -> None:
    """SlurmError, with file and line, for a job that makes no sense in a configuration."""
    partitions = {partition.name for partition in conf.partitions}
    nodes = {name for line in conf.nodes for name in line.names}
    for job in submissions.jobs:
        for what, names, known in (
            ("partition", job.partitions, partitions),
            ("node", (*job.nodelist, *job.exclude), nodes),
        ):
            strange = next((name for name in names if name not in known), None)
            if strange is not None:
                raise SlurmError(
                    f"{job.where}: {what} {shown(strange)} is not in {shown_path(conf.origin)}: "
                    f"add it there, or leave the job out"
                )
        dates = (job.submit_s, job.begin_s or 0.0, job.run_s or 0.0)
        if max(dates) > values.LONGEST_S:
            raise SlurmError(
                f"{job.where}: {shown(job.id)} comes or runs for more than 20 years: correct its "
                "dates"
            )
        if job.dependency is not None:
            parsed(job.dependency, job.where)
