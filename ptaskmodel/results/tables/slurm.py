"""Write the tables of a Slurm run: jobs.csv, sacct.txt, events, reasons, cycles and priorities."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.batch.machine.failures import DOWN, UP
from ptaskmodel.results.tables.slurm_reading import CYCLE_COLUMNS, REASON_COLUMNS
from ptaskmodel.slurm.controller.controller import ANSWERS, DIES
from ptaskmodel.slurm.controller.priority import FACTORS
from ptaskmodel.slurm.event_log import Watch, hostlist
from ptaskmodel.slurm.jobs.record import COMPLETED, FAILED, PENDING, JobRecord
from ptaskmodel.slurm.live.run import LiveRun
from ptaskmodel.slurm.run import SlurmRun

JOB_COLUMNS = (
    *("job_id", "user", "account", "partition", "qos", "submission_time", "eligible_time"),
    *("starting_time", "finish_time", "execution_time", "waiting_time", "requested_time"),
    *("nodes", "num_nodes", "cpus", "final_state", "scheduler", "restarts", "suspended_time"),
    *("reason", "controller", "time_alone", "contention_slowdown", "logged_waiting_time"),
)
# Of these those that hold text; the others are numbers, or empty.
JOB_TEXTS = (
    *("job_id", "user", "account", "partition", "qos", "nodes", "final_state", "scheduler"),
    "reason",
)
SACCT_COLUMNS = (
    *("JobID", "JobName", "Partition", "Account", "User", "QOS", "Submit", "Eligible", "Start"),
    *("End", "Elapsed", "Timelimit", "AllocNodes", "AllocCPUS", "State", "NodeList", "Suspended"),
    *("Planned", "Priority", "Reason"),
)
EVENT_COLUMNS = ("time", "who", "what", "id")
FAILURE_COLUMNS = ("date", "resource", "event")
FAILURES = {DIES: DOWN, ANSWERS: UP}
PRIORITY_COLUMNS = ("time", "id", "partition_name", "priority", *FACTORS, "nice")

# Who has decided: a simulated Slurm or a real one.
Run = SlurmRun | LiveRun
# Times alone of jobs, by id; empty without a platform.
Alone = Mapping[str, float]


class Simulated(NamedTuple):
    """What one controller did, and what was noted of it."""

    run: SlurmRun
    watch: Watch


def jobs_of(runs: Sequence[SlurmRun]) -> list[tuple[SlurmRun, JobRecord, int]]:
    """The jobs of all controllers, with their run and its number, in order of submission."""
    jobs = [(run, job, k) for k, run in enumerate(runs, 1) for job in run.jobs]
    if len(runs) > 1:
        jobs.sort(key=lambda entry: (entry[1].submit_s, entry[2], entry[1].number))
    return jobs


def write_tables(place: Path, found: Sequence[Simulated], alone_s: Alone) -> list[str]:
    """Write the tables in an existing directory; the names of the files."""
    jobs = jobs_of([each.run for each in found])
    write_table(place / "jobs.csv", JOB_COLUMNS, (job_row(*each, alone_s) for each in jobs))
    write_sacct(place / "sacct.txt", (sacct_row(run, job) for run, job, _ in jobs))
    events = sorted((e for each in found for e in each.watch.events), key=lambda e: e.date_s)
    lines = ((f"{e.date_s:.3f}", e.who, e.what, e.job) for e in events)
    write_table(place / "events.csv", EVENT_COLUMNS, lines)
    write_table(place / "reasons.csv", REASON_COLUMNS, _reasons(found))
    write_table(place / "cycles.csv", CYCLE_COLUMNS, _cycles(found))
    written = ["jobs.csv", "sacct.txt", "events.csv", "reasons.csv", "cycles.csv"]
    failures = [(f"{e.date_s:.3f}", e.job, FAILURES[e.what]) for e in events if e.what in FAILURES]
    if failures:
        write_table(place / "failures.csv", FAILURE_COLUMNS, failures)
        written.append("failures.csv")
    if any(each.watch.priorities for each in found):
        write_table(place / "priorities.csv", PRIORITY_COLUMNS, _priorities(found))
        written.append("priorities.csv")
    return written


def write_sacct(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    """Write jobs as ``sacct -P`` prints them: nothing is quoted, not even a | in a name."""
    with path.open("w", newline="", encoding="utf-8") as file:
        for row in chain((SACCT_COLUMNS,), rows):
            line = "|".join(map(str, row))
            file.write(line.replace("\r", " ").replace("\n", " ") + "\n")


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table in an existing directory."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _reasons(found: Sequence[Simulated]) -> Iterator[tuple[Any, ...]]:
    rows = sorted(row for each in found for row in each.watch.reasons)
    yield from ((f"{date:.3f}", reason, count) for date, reason, count in rows)


def _cycles(found: Sequence[Simulated]) -> Iterator[tuple[Any, ...]]:
    rows = [(line, k) for k, each in enumerate(found, 1) for line in each.watch.cycles]
    for line, k in sorted(rows, key=lambda row: (row[0].date_s, row[1])):
        told = line.queue, line.tested, line.started, f"{line.lasted_s:g}", line.end
        yield (f"{line.date_s:.3f}", k, *told)


def _priorities(found: Sequence[Simulated]) -> Iterator[tuple[Any, ...]]:
    rows = [line for each in found for line in each.watch.priorities]
    for line in sorted(rows, key=lambda line: line.date_s):
        yield (f"{line.date_s:.3f}", line.job, line.partition, line.priority, *line.factors)


def job_row(run: Run, job: JobRecord, controller: int, alone_s: Alone) -> tuple[Any, ...]:
    """What JOB_COLUMNS say of a job."""
    t0, request = run.phases.t0, job.request
    allocation = None if waits_again(job) else job.allocation
    account, qos = _whose(run, job)
    asked = (job.id, request.user or "", account, job.partition.name)
    dates = (job.submit_s - t0, "" if job.eligible_s is None else job.eligible_s - t0)
    head = (*asked, qos, *dates)
    limit = "" if request.limit_min is None else request.limit_min * 60
    logged = "" if request.logged_wait_s is None else f"{request.logged_wait_s:.0f}"
    if allocation is None:
        return (
            *(*head, "", "", "", "", limit, "", "", "", job.state, "", job.restarts, 0),
            *(job.reason, controller, "", "", logged),
        )
    over = is_over(job)
    start, end = job.start_s - t0, int(job.end_s) - t0
    if over and job.limit_s < math.inf:
        limit = int(job.limit_s)
    ran = (end, end - start) if over else ("", "")
    nodes = hostlist(run.nodes.names_of(allocation.nodes))
    alone = alone_s.get(job.id)
    slowdown: float | str = "" if alone is None else slowdown_of(job, alone)
    if slowdown != slowdown:
        slowdown = ""
    return (
        *(*head, start, *ran, job.start_s - job.submit_s, limit, nodes, allocation.size),
        *(run.cpus_of(job), job.state, job.by, job.restarts, f"{suspended_s(job):g}", job.reason),
        *(controller, "" if alone is None else f"{alone:.6f}", slowdown, logged),
    )


def _whose(run: Run, job: JobRecord) -> tuple[str, str]:
    """The account and QOS of a job: those that it gave, or its user's."""
    request, member = job.request, job.account
    account, qos = request.account, request.qos
    if member is not None and isinstance(run, SlurmRun):
        accounts = run.loop.controller.rules.accounts
        if account is None and member.association is not None:
            account = accounts.associations[member.association].account
        qos = qos or member.qos
    return account or "", qos or ""


def is_over(job: JobRecord) -> bool:
    """Whether a job ran and has ended, and was not requeued then."""
    return job.attempt is not None and job.attempt.end_s is not None and not waits_again(job)


def waits_again(job: JobRecord) -> bool:
    """Whether a job has not started since it was requeued; it may be cancelled while it waits."""
    return job.restarts > 0 and job.start_s <= job.submit_s


def slowdown_of(job: JobRecord, alone_s: float) -> float:
    """How much longer a job ran than what it did takes alone; nan: unknown.

    alone_s: the time alone of all its work.
    """
    attempt = job.attempt
    assert attempt is not None
    assert attempt.start_s is not None
    assert attempt.end_s is not None
    done = attempt.done
    if done is None:
        done = 1.0 if job.state in (COMPLETED, FAILED) else math.nan
    needed_s = done * alone_s
    ran_s = attempt.end_s - attempt.start_s - suspended_s(job)
    return ran_s / needed_s if needed_s > 0 else math.nan


def suspended_s(job: JobRecord) -> float:
    """For how long a job was suspended, all told, s."""
    return sum(to - since for since, to in job.suspensions if to < math.inf)


def sacct_row(run: Run, job: JobRecord) -> tuple[Any, ...]:
    """What SACCT_COLUMNS say of a job."""
    request = job.request
    allocation = None if waits_again(job) else job.allocation
    limit = "" if request.limit_min is None else _span(request.limit_min * 60)
    over = is_over(job)
    account, qos = _whose(run, job)
    names = (
        *(job.id, request.name or "", job.partition.name, account),
        *(request.user or "", qos, _date(job.submit_s)),
        _date(job.eligible_s),
    )
    priority = max(map(int, job.priorities))
    if allocation is None:
        end = _date(None if job.state == PENDING else int(job.end_s) or None)
        rest = ("Unknown", end, _span(0), limit, 0, 0, job.state, "None assigned", _span(0))
        return (*names, *rest, "", priority, job.reason)
    return (
        *names,
        _date(job.start_s),
        _date(int(job.end_s)) if over else "Unknown",
        _span(int(job.end_s) - job.start_s) if over else "",
        limit,
        allocation.size,
        run.cpus_of(job),
        job.state,
        hostlist(run.nodes.names_of(allocation.nodes)),
        _span(int(suspended_s(job))),
        _span(job.start_s - (job.submit_s if job.eligible_s is None else job.eligible_s)),
        priority,
        job.reason,
    )


def _date(seconds: int | None) -> str:
    if seconds is None:
        return "Unknown"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text
