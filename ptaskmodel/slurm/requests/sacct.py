"""Read a workload from Slurm's accounting: the output of ``sacct -P``."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path
from ptaskmodel.remarks import Remark
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs.request import ArrayTask, Command, JobRequest, Submissions
from ptaskmodel.workload.works import DelayWork

ALIGNED_s = 60
# How long jobs would have run that were killed at their limits, beyond these.
BEYOND_s = 86_400.0
NEVER = ("", "Unknown", "None", "N/A", "NONE")
NEEDED = ("jobid", "submit")
# Columns in which people write what they like.
FREE = ("jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir")
LEFT = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REVOKED")
FAILS = ("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "CANCELLED", "DEADLINE", "PREEMPTED")

_ELAPSED = re.compile(
    r"(?:(?:(?P<d>\d{1,6})-)?(?P<h>\d{1,6}):)?(?P<m>\d{1,9}):(?P<s>\d{1,9})(?:\.\d+)?", re.ASCII
)
_JOB = re.compile(r"(\d{1,10})(?:\+\d{1,10})?(?:_(\d{1,10}))?", re.ASCII)
_MEMORY = re.compile(r"(.*?)([nc]?)")

Row = Mapping[str, str]


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so may be one."""
    names = start.split(b"\n")[0].decode("utf-8-sig", "replace").lower().rstrip("|\r").split("|")
    return set(NEEDED) <= set(names)


def read_sacct(path: AnyPath, phase_s: float = PHASE_S) -> Submissions:
    """The jobs of a table of ``sacct -P``, with its header; -X (no steps) makes it shorter.

    Columns: JobID and Submit; Elapsed, ElapsedRaw, or Start and End; of the others those that are
    there, best Eligible, Timelimit, ReqNodes (or NNodes), ReqCPUS (or NCPUS), ReqTRES (or ReqMem),
    User, Account, QOS, Partition, State, ExitCode, Constraints, JobName. Dates may be local (they
    are taken for UTC) or Unix seconds.

    A job runs as long as it did; one that was killed at its limit would have run for a day more;
    one that was cancelled before it started is cancelled then. What kept a job from being eligible
    (begin, dependencies, holds) does so until the same date. Jobs that were not over are left out.
    Date 0 is the minute of the first submission, and jobs come ``phase_s`` after their second.

    Raises SlurmError with file and line.
    """
    where = shown_path(path)
    lines = read_text(path, error=SlurmError).split("\n")
    if not looks_like(lines[0].encode()):
        raise SlurmError(
            f"{where}:1: print a table with sacct -P and JobID and Submit among others"
        )
    header = [name.strip().lower() for name in lines[0].rstrip("\r").removesuffix("|").split("|")]
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise SlurmError(f"{where}:1: the column {shown(twice)} is there twice; take one out")
    if not {"elapsed", "elapsedraw", "end"} & set(header):
        raise SlurmError(f"{where}:1: print Elapsed too")
    notes: Counter[str] = Counter()
    found: dict[str, JobRequest] = {}
    for number, raw in enumerate(lines[1:], start=2):
        line = raw.rstrip("\r")
        if not line:
            continue
        place = f"{where}:{number}"
        row = dict(zip(header, _cells(line, header, place), strict=True))
        if "." in row["jobid"]:
            continue
        job = _job(row, place, notes)
        if job is not None:
            before = found.get(job.id)
            if before is not None:  # -D: it was requeued
                notes["rows of jobs that ran again: the last counts"] += 1
                job = replace(job, submit_s=min(job.submit_s, before.submit_s))
            elif "+" in job.id:
                notes["components of heterogeneous jobs stand as jobs of their own"] += 1
            found[job.id] = job
    if not found:
        raise SlurmError(f"{where}: has no job that is over; give another period to sacct")
    t0 = int(min(job.submit_s for job in found.values())) // ALIGNED_s * ALIGNED_s
    jobs = [_from(job, t0, phase_s) for job in found.values()]
    told = tuple(Remark(f"{count} {what}") for what, count in sorted(notes.items()))
    return Submissions(tuple(sorted(jobs, key=lambda job: job.submit_s)), t0, told)


def _cells(line: str, header: Sequence[str], where: str) -> list[str]:
    """The fields of a line: what is too much belongs to the one column that may have | in it."""
    cells = line.removesuffix("|").split("|") if len(header) > 1 else [line]
    more = len(cells) - len(header)
    free = [k for k, name in enumerate(header) if name in FREE]
    if more > 0 and len(free) == 1:
        k = free[0]
        cells[k : k + more + 1] = ["|".join(cells[k : k + more + 1])]
    elif more > 0:
        raise SlurmError(
            f"{where}: {len(cells)} fields instead of {len(header)}: of the columns that may have "
            "| in them, such as JobName and Comment, print one at most"
        )
    return cells + [""] * -more


def _from(job: JobRequest, t0: int, phase_s: float) -> JobRequest:
    """A job with dates from date 0 on."""
    begin = None if job.begin_s is None else job.begin_s - t0
    commands = tuple(Command(one.date_s - t0 + phase_s, one.action) for one in job.commands)
    return replace(job, submit_s=job.submit_s - t0 + phase_s, begin_s=begin, commands=commands)


def _job(row: Row, where: str, notes: Counter[str]) -> JobRequest | None:
    """The job of a row, dates in Unix seconds; None if it is left out."""
    state = row.get("state", "").split(" ")[0].rstrip("+")
    if state in LEFT or "[" in row["jobid"]:
        notes["jobs that were not over are left out"] += 1
        return None
    found = _JOB.fullmatch(row["jobid"])
    if found is None:
        raise SlurmError(f"{where}: JobID is {shown(row['jobid'])}: give Slurm's")
    submit = _value(row, "submit", where, _date)
    if submit is None:
        raise SlurmError(f"{where}: Submit is {shown(row['submit'])}: give the date")
    limit = _limit(row, where)
    elapsed, start = _elapsed(row, where), _value(row, "start", where, _date)
    fields: dict[str, Any] = {
        "limit_min": limit,
        "array": ArrayTask(found[1], int(found[2])) if found[2] else None,
        "partitions": values.names(row.get("partition", "")),
        "constraint": row.get("constraints") or None,
        "name": row.get("jobname") or None,
        "fails": state in FAILS or not row.get("exitcode", "0:0").startswith("0:"),
        "where": where,
        **{name: row.get(name) or None for name in ("user", "account", "qos")},
        **_size(row, where),
    }
    eligible = _value(row, "eligible", where, _date)
    if eligible is not None and eligible > submit:
        fields["begin_s"] = eligible
    if state == "TIMEOUT":
        elapsed = max(elapsed, 60.0 * (limit or 0)) + BEYOND_s
    elif state == "CANCELLED" and (start is None or not elapsed):
        end = _value(row, "end", where, _date)
        fields["commands"] = (Command(submit if end is None else end, "cancel"),)
        elapsed = BEYOND_s
    elif start is None and not elapsed:
        notes["jobs that never started are left out"] += 1
        return None
    return JobRequest(row["jobid"], submit, DelayWork(elapsed), **fields)


def _size(row: Row, where: str) -> dict[str, Any]:
    """What a row says of nodes, CPUs, memory and other resources."""
    asked = (
        _value(row, "reqtres", where, values.tres)
        or _value(row, "alloctres", where, values.tres)
        or {}
    )
    nodes = _count(row, where, "reqnodes", "nnodes", "allocnodes") or asked.get("node") or 1
    cpus = _count(row, where, "reqcpus", "ncpus", "alloccpus") or asked.get("cpu") or nodes
    found: dict[str, Any] = {"min_nodes": nodes, "max_nodes": nodes, "tasks": max(cpus, nodes)}
    memory = asked.get("mem")
    if memory:
        found["memory_per_node_MiB"] = math.ceil(memory / nodes)
    elif row.get("reqmem", "") not in (*NEVER, "?"):
        amount, per = _value(row, "reqmem", where, _memory)
        name = "memory_per_cpu_MiB" if per == "c" else "memory_per_node_MiB"
        found[name] = amount if per else math.ceil(amount / nodes)
    found["gres"] = tuple(_gres(asked, nodes))
    found["licenses"] = {
        name.removeprefix("license/"): count
        for name, count in asked.items()
        if name.startswith("license/") and count
    }
    return found


def _gres(asked: Mapping[str, int | None], nodes: int) -> Iterator[Gres]:
    """Generic resources of each node; those of a type stand for those of any."""
    typed = {name.split(":")[0] for name in asked if ":" in name}
    for name, count in asked.items():
        if name.startswith("gres/") and count and name not in typed:
            kind, _, of_type = name.removeprefix("gres/").partition(":")
            yield Gres(kind, of_type or None, math.ceil(count / nodes))


def _limit(row: Row, where: str) -> int | None:
    """The time limit, minutes; None: it gave none."""
    raw = row.get("timelimitraw", "")
    if raw not in NEVER and raw.isdigit():
        return _value(row, "timelimitraw", where, values.whole)
    text = row.get("timelimit", "")
    if text in NEVER or text.upper() in ("PARTITION_LIMIT", *values.UNLIMITED):
        return None
    return math.ceil(_value(row, "timelimit", where, _seconds) / 60)


def _elapsed(row: Row, where: str) -> float:
    """How long the job ran, s."""
    if row.get("elapsedraw", "") not in NEVER:
        return float(_value(row, "elapsedraw", where, values.whole))
    if row.get("elapsed", "") not in NEVER:
        return float(_value(row, "elapsed", where, _seconds))
    start, end = _value(row, "start", where, _date), _value(row, "end", where, _date)
    if start is None or end is None:
        return 0.0
    if end < start:
        raise SlurmError(f"{where}: End is before Start: correct them")
    return end - start


def _count(row: Row, where: str, *names: str) -> int | None:
    for name in names:
        if row.get(name, "") not in NEVER:
            count: int = _value(row, name, where, values.counted)
            if count:
                return count
    return None


def _memory(text: str) -> tuple[int, str]:
    """MiB, and whether of each CPU (c), each node (n) or all of the job."""
    found = _MEMORY.fullmatch(text)
    amount, per = (found[1], found[2]) if found is not None else (text, "")
    return values.mebibytes(amount.rstrip("?")), per


def _date(text: str) -> float | None:
    """Unix seconds; None: never."""
    if text in NEVER:
        return None
    return float(values.unix(values.whole(text)) if text.isdigit() else values.date(text))


def _seconds(text: str) -> int:
    found = _ELAPSED.fullmatch(text)
    if found is None:
        raise ValueError("give [[days-]hours:]minutes:seconds")
    days, hours, minutes, seconds = (int(found[part] or 0) for part in "dhms")
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _value(row: Row, name: str, where: str, read: Callable[[str], Any]) -> Any:
    text = row.get(name, "")
    if not text and read is not _date:
        return None
    try:
        return read(text)
    except ValueError as fault:
        raise SlurmError(f"{where}: {name} is {shown(text)}: {fault}") from None
