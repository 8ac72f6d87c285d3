"""Slurm into a directory: simulate a configuration, and write what became of the jobs."""

from __future__ import annotations

import csv
import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.batch.measures import distribution
from ptaskmodel.batch.slurm.accounts import Accounts
from ptaskmodel.batch.slurm.facts import Conf
from ptaskmodel.batch.slurm.on_platform import execution_on
from ptaskmodel.batch.slurm.phases import Phases, Recorded
from ptaskmodel.batch.slurm.record import JobRecord
from ptaskmodel.batch.slurm.requests import Submissions
from ptaskmodel.batch.slurm.run import SlurmRun, simulate
from ptaskmodel.batch.slurm.watching import Watch, hostlist
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import write_json
from ptaskmodel.results.output import FORMAT, SUMMARY, whole_directory
from ptaskmodel.results.records import provenance

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform

JOB_COLUMNS = (
    *("job_id", "user", "account", "partition", "qos", "submission_time", "eligible_time"),
    *("starting_time", "finish_time", "execution_time", "waiting_time", "nodes", "cpus"),
    *("final_state", "scheduler", "restarts", "suspended_time", "reason"),
)
SACCT_COLUMNS = (
    *("JobID", "JobName", "Partition", "Account", "User", "QOS", "Submit", "Eligible", "Start"),
    *("End", "Elapsed", "Timelimit", "AllocNodes", "AllocCPUS", "State", "NodeList", "Suspended"),
)
EVENT_COLUMNS = ("time", "who", "what", "id")
REASON_COLUMNS = ("time", "reason", "jobs")
TAU_S = 60.0
# With fewer jobs, loading the kernel of backfill's cycles takes longer than cycles without it.
MANY_JOBS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class SlurmResults:
    """A run, the content of its summary.json, and the stories of the jobs that were asked for.

    directory: where it is written, and files: the names there; None and () if nowhere.
    """

    summary: dict[str, Any]
    run: SlurmRun
    stories: dict[str, list[str]]
    directory: Path | None = None
    files: tuple[str, ...] = field(default=())


def slurm_into(
    directory: str | Path | None,
    conf: Conf,
    submissions: Submissions,
    *,
    accounts: Accounts | None = None,
    phases: Phases | None = None,
    recorded: Recorded | None = None,
    platform: Platform | None = None,
    explained: Collection[str] = (),
    inputs: Iterable[str | Path] = (),
) -> SlurmResults:
    """Simulate a configuration and write what became of the jobs in a directory of results.

    The directory appears once all is written, and replaces earlier results; None: nothing is
    written. platform: whose hosts are the nodes, by name, or in order if no name is a node's; jobs
    that are parallel tasks share it. explained: ids of jobs whose story is told. inputs: the files
    that were read, named in the summary with their digests. The rest is as in `simulate`.

    Raises PTaskModelError if the directory holds anything else, or something cannot be simulated.
    """
    known = {request.id for request in submissions.jobs}
    for job in explained:
        if job not in known:
            raise SlurmError(f"--explain {shown(job)}: the workload has no such job")
    watch = Watch(explained)

    def run() -> tuple[SlurmRun, dict[str, Any]]:
        began = time.perf_counter()
        found = simulate(
            conf,
            submissions.jobs,
            accounts=accounts,
            phases=phases,
            recorded=recorded,
            execution=None if platform is None else execution_on(platform, conf),
            watch=watch,
            compiled=len(submissions.jobs) >= MANY_JOBS,
        )
        took_s = time.perf_counter() - began
        return found, _summary(found, submissions, tuple(inputs), took_s)

    if directory is None:
        found, summary = run()
        return SlurmResults(summary, found, watch.stories)
    with whole_directory(directory) as place:
        found, summary = run()
        files = (*_write(place, found, watch), SUMMARY)
        write_json(place / SUMMARY, {"format": FORMAT, "files": files} | summary)
    return SlurmResults(summary, found, watch.stories, Path(directory), files)


def _write(place: Path, run: SlurmRun, watch: Watch) -> list[str]:
    _table(place / "jobs.csv", JOB_COLUMNS, (_job_row(run, job) for job in run.jobs))
    _table(
        place / "sacct.txt",
        SACCT_COLUMNS,
        (_sacct_row(run, job) for job in run.jobs),
        delimiter="|",
    )
    events = ((f"{e.date_s:.3f}", e.who, e.what, e.job) for e in watch.events)
    _table(place / "events.csv", EVENT_COLUMNS, events)
    reasons = ((f"{date:.3f}", reason, count) for date, reason, count in watch.reasons)
    _table(place / "reasons.csv", REASON_COLUMNS, reasons)
    written = ["jobs.csv", "sacct.txt", "events.csv", "reasons.csv"]
    if watch.stories:
        lines = [line for job, story in watch.stories.items() for line in (f"job {job}", *story)]
        (place / "explanation.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        written.append("explanation.txt")
    return written


def _table(
    path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]], delimiter: str = ","
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n", delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(rows)


def _job_row(run: SlurmRun, job: JobRecord) -> tuple[Any, ...]:
    t0, allocation, request = run.phases.t0, job.allocation, job.request
    asked = (job.id, request.user or "", request.account or "", job.partition.name)
    dates = (job.submit_s - t0, "" if job.eligible_s is None else job.eligible_s - t0)
    head = (*asked, request.qos or "", *dates)
    if allocation is None:
        return (*head, *[""] * 6, job.state, "", job.restarts, 0, job.reason)
    over = job.attempt is not None and job.attempt.end_s is not None
    suspended = _suspended_s(job)
    nodes = hostlist(run.nodes.names_of(allocation.nodes))
    start = job.start_s - t0
    end = int(job.end_s) - t0
    waited = job.start_s - job.submit_s
    ran = (start, *((end, end - start) if over else ("", "")), waited, nodes, _cpus(run, job))
    return (*head, *ran, job.state, job.by, job.restarts, f"{suspended:g}", job.reason)


def _suspended_s(job: JobRecord) -> float:
    """For how long a job was suspended, all told, s."""
    return sum(to - since for since, to in job.suspensions if to < math.inf)


def _cpus(run: SlurmRun, job: JobRecord) -> int:
    allocation = job.allocation
    return 0 if allocation is None else run.loop.controller.rules.cpus_of(allocation)


def _sacct_row(run: SlurmRun, job: JobRecord) -> tuple[Any, ...]:
    request, allocation = job.request, job.allocation
    limit = "" if request.limit_min is None else _span(request.limit_min * 60)
    over = job.attempt is not None and job.attempt.end_s is not None
    names = (
        *(job.id, request.name or "", job.partition.name, request.account or ""),
        *(request.user or "", request.qos or "", _date(job.submit_s)),
        _date(job.eligible_s),
    )
    if allocation is None:
        return (
            *names,
            "Unknown",
            _date(int(job.end_s) or None),
            _span(0),
            limit,
            0,
            0,
            job.state,
            "",
            _span(0),
        )
    return (
        *names,
        _date(job.start_s),
        _date(int(job.end_s)) if over else "Unknown",
        _span(int(job.end_s) - job.start_s) if over else "",
        limit,
        allocation.size,
        _cpus(run, job),
        job.state,
        hostlist(run.nodes.names_of(allocation.nodes)),
        _span(int(_suspended_s(job))),
    )


def _date(seconds: int | None) -> str:
    if seconds is None:
        return "Unknown"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def _summary(
    run: SlurmRun, submissions: Submissions, inputs: tuple[str | Path, ...], took_s: float
) -> dict[str, Any]:
    ran = [job for job in run.jobs if job.attempt is not None and job.attempt.end_s is not None]
    waits = np.array([job.start_s - job.submit_s for job in ran], dtype=np.float64)
    lasted = np.array([job.end_s - job.start_s for job in ran], dtype=np.float64)
    ran_s = lasted - np.array([_suspended_s(job) for job in ran], dtype=np.float64)
    cpus = np.array([_cpus(run, job) for job in ran], dtype=np.float64)
    responses = waits + lasted
    begin = min((job.submit_s for job in run.jobs), default=0)
    end = max((int(job.end_s) for job in ran), default=begin)
    every = sum(run.nodes.cpus)
    statistics = run.loop.statistics
    cycles = statistics.cycles
    return {
        "command": "slurm",
        **dict(zip(("conf", "workload"), map(str, inputs), strict=False)),
        "nodes": len(run.nodes),
        "cpus": every,
        "jobs": {"submitted": len(run.jobs), **Counter(job.state for job in run.jobs)},
        "started_by": Counter(job.by for job in ran),
        "makespan_s": end - begin,
        "utilisation": float((cpus * ran_s).sum() / (every * (end - begin)))
        if end > begin
        else None,
        "tau_s": TAU_S,
        "waiting_s": distribution(waits),
        "turnaround_s": distribution(responses),
        "execution_s": distribution(lasted),
        "bounded_slowdown": distribution(np.maximum(1.0, responses / np.maximum(lasted, TAU_S))),
        "backfill": {
            "cycles": cycles,
            "mean_tested": statistics.tested / cycles if cycles else None,
            "most_tested": statistics.most_tested,
            "mean_queue": statistics.waiting / cycles if cycles else None,
        },
        "notes": [*run.conf.notes, *submissions.notes],
        "simulation_wall_time_s": took_s,
        **provenance(inputs),
    }
