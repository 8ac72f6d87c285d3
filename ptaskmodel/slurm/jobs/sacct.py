"""Read a workload from Slurm's accounting: the output of ``sacct -P`` or ``sacct --json``."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_bytes, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs import sbatch
from ptaskmodel.slurm.jobs.dependencies import parsed
from ptaskmodel.slurm.jobs.request import (
    WHOLE_NODES,
    ArrayTask,
    Command,
    JobRequest,
    Submissions,
)
from ptaskmodel.slurm.jobs.sacct_rows import (
    JOB_ID,
    NEVER,
    Row,
    json_rows,
    table_rows,
    tell_unused,
    value,
)
from ptaskmodel.slurm.jobs.sacct_sizes import SIZES, UNKNOWN, Site, is_pinned, size
from ptaskmodel.style.text import several
from ptaskmodel.workload.formats.json import read_json
from ptaskmodel.workload.works import DelayWork

# What a submit line tells and no other column does.
OF_SUBMIT_LINE = (
    *("contiguous", "cores_per_socket", "distribution", "enforce_binding", "exclude", "exclusive"),
    *("least_cpus_per_node", "nice", "nodelist", "one_thread", "oversubscribe", "prefer"),
    *("priority", "requeue", "sockets_per_node", "spread", "switches", "switch_wait_s"),
    "dependency",
)
ALIGNED_s = 60
# States, dates and lengths of time that are read once, as many jobs have the same.
KEPT = 10_000
# Jobs this far from most others are not of the same log.
FAR_s = values.LONGEST_S / 2 - 86_400.0
# How long jobs would have run that were killed at their limits, beyond these.
BEYOND_s = 86_400.0
NEEDED = ("jobid", "submit")
# The columns that are read; others are told.
COLUMNS = frozenset(
    {"eligible", "start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw", "reqmem"}
    | {"user", "account", "qos", "partition", "state", "exitcode", "constraints", "jobname"}
    | {"submitline", "nodelist", "", *NEEDED, *SIZES}
)
LEFT = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REVOKED")
FAILS = ("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "CANCELLED", "DEADLINE", "PREEMPTED")

# What is told of some rows: of one, and of several.
REQUEUED = (
    "row of a requeued job: the last run counts",
    "rows of requeued jobs: the last run counts",
)
COMPONENTS = (
    "component of a heterogeneous job became a job of its own",
    "components of heterogeneous jobs became jobs of their own",
)
WHOLE = (
    "job got all CPUs of its nodes, more than it asked for: it asks for whole nodes",
    "jobs got all CPUs of their nodes, more than they asked for: they ask for whole nodes",
)
NOT_ENDED = ("job that had not ended was left out", "jobs that had not ended were left out")
NEVER_STARTED = ("job that never started was left out", "jobs that never started were left out")
STATES = frozenset((*LEFT, *FAILS, "COMPLETED", "TIMEOUT", *NEVER))
BEHIND_STATES = (
    "job with words behind its state, which are not used",
    "jobs with words behind their states, which are not used",
)
SUBMIT_LINES = ("submit line that could not be read", "submit lines that could not be read")
_Notes = Counter[tuple[str, str]]

_ELAPSED = re.compile(
    r"(?:(?:(?P<d>\d{1,6})-)?(?P<h>\d{1,6}):)?(?P<m>\d{1,9}):(?P<s>\d{1,9})(?:\.\d+)?", re.ASCII
)
_JSON_JOB = re.compile(rb'"job_id"\s*:')
_Placed = tuple[int | None, str, Row | str]  # line, file and place, what is there


def looks_like(start: bytes) -> bool:
    """Whether a file that begins with `start` may be one."""
    if start.lstrip().startswith(b"{"):
        return _JSON_JOB.search(start) is not None and b'"subtime"' not in start
    names = start.split(b"\n")[0].decode("utf-8-sig", "replace").lower().rstrip("|\r").split("|")
    return set(NEEDED) <= set(names)


@reader(SlurmError)
def read_sacct(
    path: AnyPath, account: Account, phase_s: float = PHASE_S, site: Site = UNKNOWN
) -> Submissions:
    """The jobs at `path`: a table of ``sacct -P``, with its header, or ``sacct --json``.

    Columns: JobID and Submit; Elapsed, ElapsedRaw, or Start and End; of the others those that are
    there, best Eligible, Timelimit, ReqNodes (or NNodes), ReqCPUS (or NCPUS), ReqTRES (or ReqMem),
    User, Account, QOS, Partition, State, ExitCode, Constraints, JobName, NodeList, NNodes and
    AllocTRES (what they got), SubmitLine (what options of sbatch tell and no other column does).
    Dates may be local (they are taken for UTC) or Unix seconds; -X (no steps) makes the table
    shorter.

    A job runs as long as it did; one that was killed at its limit would have run for a day more;
    one that was cancelled before it started is cancelled then, each task of an array by itself.
    What kept a job from being eligible (begin, dependencies, holds) does so until the same date.
    Jobs that were not over are left out, and so are rows that cannot be read.
    Date 0 is the minute of the first submission, and jobs come ``phase_s`` after their second.

    account: of the file. site: the cluster that it is from, which tells more of what jobs asked
    for. Raises SlurmError with file and line, if most rows cannot be read.
    """
    if read_bytes(path, error=SlurmError).lstrip().startswith(b"{"):
        rows = json_rows(read_json(Path(path)), account)
        found = _found(((None, f"{account.file}: {at}", row) for at, row in rows), account, site)
    else:
        text = read_text(path, error=SlurmError, told=account.taken).replace("\r\n", "\n")
        found = _found(_of_table(text, account), account, site)
    if not found.jobs:
        raise SlurmError(
            f"{account.file}: contains no ended job; choose another period with sacct -S and -E"
        )
    t0 = int(min(job.submit_s for job in found.jobs)) // ALIGNED_s * ALIGNED_s
    jobs = sorted(_linked(found.jobs), key=lambda job: job.submit_s)
    requests = tuple(_request(job, t0, phase_s) for job in jobs)
    return Submissions(requests, t0, open_ended=found.open_ended)


def _header(text: str, where: str) -> list[str]:
    """The names of a table's columns, in lower case. Raises SlurmError for a table of others."""
    first = text.split("\n", 1)[0]
    if not looks_like(first.encode()):
        raise SlurmError(
            f"{where}:1: is not a table of sacct; print it with sacct -P, with JobID and "
            "Submit among the fields"
        )
    header = [name.strip().lower() for name in first.split("|")]
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise SlurmError(f"{where}:1: the column {shown(twice)} occurs twice; remove one")
    if not {"elapsed", "elapsedraw", "end"} & set(header):
        raise SlurmError(f"{where}:1: no column gives run times; print Elapsed too")
    return header


class _Job(NamedTuple):
    """A job with dates in Unix seconds. fields: those of its `JobRequest` that are no dates."""

    id: str
    submit_s: float
    run_s: float
    begin_s: float | None
    commands: tuple[Command, ...]
    logged_wait_s: float | None
    fields: Mapping[str, Any]


class _Found(NamedTuple):
    """The jobs of a file; open_ended: see `Submissions`."""

    jobs: list[_Job]
    open_ended: frozenset[str]


def _of_table(text: str, account: Account) -> Iterator[_Placed]:
    """The rows of a table, each with its line and place."""
    header = _header(text, account.file)
    tell_unused([name for name in header if name not in COLUMNS], "columns", account)
    for line, row in table_rows(text, header, account):
        yield line, f"{account.file}:{line}", row


def _found(rows: Iterable[_Placed], account: Account, site: Site) -> _Found:
    """The jobs of rows. Raises SlurmError if most rows cannot be read."""
    found: dict[str, _Job] = {}
    open_ended: set[str] = set()
    lines: dict[str, int | None] = {}
    notes: _Notes = _Notes()
    number = silent = stateless = pinned = 0
    for line, place, row in rows:
        if not isinstance(row, str) and _is_step(row["jobid"]):
            continue
        number += 1
        try:
            jobs, is_open_ended = _jobs(row, place, notes, site)
        except SlurmError as fault:
            at = "" if line is not None else place.removeprefix(account.file).lstrip(": ") + ": "
            account.bad_row(at + fault.message, line)
            continue
        if jobs and not isinstance(row, str):
            stateless += not row.get("state")
            silent += not any(map(row.get, SIZES))
            pinned += is_pinned(row, jobs[0].fields)
        for job in jobs:
            before = found.get(job.id)
            if before is not None:  # -D: it was requeued
                notes[REQUEUED] += 1
                # What it has waited for since it came first is simulated.
                job = job._replace(
                    submit_s=min(job.submit_s, before.submit_s), begin_s=before.begin_s
                )
            elif "+" in job.id:
                notes[COMPONENTS] += 1
            found[job.id], lines[job.id] = job, line
            (open_ended.add if is_open_ended else open_ended.discard)(job.id)
    for name in _far(found.values()):
        account.bad_row(
            f"job {name}: its dates are 10 years away from those of other jobs", lines[name]
        )
        del found[name]
    account.check_rows(number)
    if silent:
        text = several(silent, "job tells", "jobs tell")
        account.assumed(f"{text} no nodes and CPUs: 1 each; print ReqNodes and ReqCPUS")
    if pinned:
        text = several(pinned, "job does not tell", "jobs do not tell")
        account.assumed(
            f"{text} how many nodes it got: as many as ReqNodes; print NNodes and AllocTRES"
        )
    for what, count in sorted(notes.items()):
        (account.taken if what is WHOLE else account.left_out)(several(count, *what))
    if stateless:
        text = several(stateless, "job tells", "jobs tell")
        account.assumed(f"{text} no state: taken as completed; print State", None, "State")
    return _Found(list(found.values()), frozenset(open_ended))


def _linked(jobs: Sequence[_Job]) -> Iterator[_Job]:
    """The jobs, of which those that depend on others of the log wait for these, not for a date."""
    known = {name for job in jobs for name in (job.id, job.id.partition("_")[0])}
    for job in jobs:
        text = job.fields.get("dependency")
        if text is not None:
            try:
                names = {term.job for term in parsed(text).terms}
            except SlurmError:  # of a kind that is not simulated
                names = set()
            if names & known:
                job = job._replace(begin_s=None)
            else:
                job = job._replace(fields={**job.fields, "dependency": None})
        yield job


def _is_step(name: str) -> bool:
    """Whether a JobID is that of a step, such as 12.batch."""
    job, point, _ = name.partition(".")
    return bool(point) and JOB_ID.fullmatch(job) is not None


def _far(jobs: Collection[_Job]) -> list[str]:
    """The ids of jobs whose dates cannot be those of one log."""
    if not jobs:
        return []
    middle = median_low(job.submit_s for job in jobs)
    return [
        job.id
        for job in jobs
        if job.run_s > values.LONGEST_S
        or any(
            abs(date - middle) > FAR_s
            for date in (job.submit_s, job.begin_s or middle, *(one.date_s for one in job.commands))
        )
    ]


def _request(job: _Job, t0: int, phase_s: float) -> JobRequest:
    """The request of a job, with dates from date 0 on."""
    return JobRequest(
        job.id,
        job.submit_s - t0 + phase_s,
        DelayWork(job.run_s),
        begin_s=None if job.begin_s is None else job.begin_s - t0,
        commands=tuple(Command(one.date_s - t0 + phase_s, one.action) for one in job.commands),
        logged_wait_s=job.logged_wait_s,
        **job.fields,
    )


@lru_cache(KEPT)
def _state(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The state that a text tells, and what is told of jobs with this text."""
    state, _, behind = text.partition(" ")
    state = state.rstrip("+")
    told = []
    if state not in STATES:
        taken = f"in state {shown(state)}, which is taken for COMPLETED"
        told.append((f"job {taken}", f"jobs {taken}"))
    if behind and (state != "CANCELLED" or not behind.startswith("by ")):
        told.append(BEHIND_STATES)
    return state, tuple(told)


def _jobs(row: Row | str, where: str, notes: _Notes, site: Site) -> tuple[list[_Job], bool]:
    """The job of a row, or the tasks of an array; none if it is left out.

    Also whether the log does not say how long they would run.
    """
    if isinstance(row, str):
        raise SlurmError(row)
    state, told = _state(row.get("state", ""))
    for what in told:
        notes[what] += 1
    found = JOB_ID.fullmatch(row["jobid"])
    if found is None:
        raise SlurmError(f"JobID is {shown(row['jobid'])}; give an id such as 12, 12_3 or 12+1")
    job, index, tasks = found.groups()
    if state in LEFT or (tasks is not None and state not in FAILS):
        notes[NOT_ENDED] += 1
        return [], False
    submit = value(row, "submit", _date)
    if submit is None:
        raise SlurmError(f"Submit is {shown(row['submit'])}; give a date")
    limit = _limit(row)
    elapsed, start = _elapsed(row), value(row, "start", _date)
    cancelled = state == "CANCELLED" and (start is None or not elapsed)
    line = _of_submit_line(row.get("submitline", ""), notes)
    ran_in = _names(row.get("partition", ""))
    fields: dict[str, Any] = {
        **{name: line[name] for name in OF_SUBMIT_LINE if name in line},
        **size(row, line, site),
        "limit_min": limit,
        "partitions": line["partitions"] if {*ran_in} < {*line.get("partitions", ())} else ran_in,
        "constraint": row.get("constraints") or line.get("constraint"),
        "name": row.get("jobname") or None,
        "fails": state in FAILS or not row.get("exitcode", "0:0").startswith("0:"),
        "where": where,
        "user": row.get("user") or None,
        "account": row.get("account") or None,
        "qos": row.get("qos") or None,
    }
    if "time_min_min" in line and "limit_min" in line:  # what is logged may have been shortened
        fields |= {name: line[name] for name in ("time_min_min", "limit_min")}
    if not fields["licenses"]:
        fields["licenses"] = line.get("licenses", {})
    if not fields.get("exclusive") and site.is_whole(row):
        notes[WHOLE] += 1
        fields["exclusive"] = WHOLE_NODES
    eligible = value(row, "eligible", _date)
    _, at_most = line.get("array", ((), None))
    waits = eligible is not None and eligible > submit + 1  # tasks are made within a second
    begin = eligible if waits and at_most is None else None  # else others of its array end first
    commands: tuple[Command, ...] = ()
    if state == "TIMEOUT":
        elapsed = max(elapsed, 60.0 * (limit or 0)) + BEYOND_s
    elif cancelled:
        end = value(row, "end", _date)
        commands = (Command(submit if end is None else end, "cancel"),)
        elapsed = BEYOND_s
    elif start is None and not elapsed:
        notes[NEVER_STARTED] += 1
        return [], False
    is_open_ended = cancelled or state == "TIMEOUT"
    waited = None if start is None or cancelled else start - submit
    dates = submit, elapsed, begin, commands, waited
    if tasks is None:
        if index:
            fields["array"] = ArrayTask(job, int(index), at_most)
        return [_Job(row["jobid"], *dates, fields)], is_open_ended
    try:
        indices, at_most = sbatch.array(tasks)["array"]
    except ValueError as fault:
        raise SlurmError(f"JobID is {shown(row['jobid'])}: {fault}") from None
    return [
        _Job(f"{job}_{k}", *dates, {**fields, "array": ArrayTask(job, k, at_most)}) for k in indices
    ], is_open_ended


def _of_submit_line(line: str, notes: _Notes) -> dict[str, Any]:
    """What the options of a command line of sbatch tell; {}: of none."""
    command, _, rest = line.partition(" ")
    if command.rpartition("/")[2] != "sbatch":
        return {}
    others: set[str] = set()
    try:
        found = sbatch.options(rest, before_script=True, unknown=others.add)
    except ValueError:
        notes[SUBMIT_LINES] += 1
        return {}
    if "--begin" in others:  # Eligible tells when both this and what it depends on let it start
        found.pop("dependency", None)
    return found


def _limit(row: Row) -> int | None:
    """The time limit, minutes; None: it gave none."""
    raw = row.get("timelimitraw", "")
    if raw not in NEVER and raw.isdigit():
        return value(row, "timelimitraw", values.whole)
    text = row.get("timelimit", "")
    if text in NEVER or text.upper() in ("PARTITION_LIMIT", *values.UNLIMITED):
        return None
    return math.ceil(value(row, "timelimit", _seconds) / 60)


def _elapsed(row: Row) -> float:
    """How long the job ran, s."""
    if row.get("elapsedraw", "") not in NEVER:
        return float(value(row, "elapsedraw", values.whole))
    if row.get("elapsed", "") not in NEVER:
        return float(value(row, "elapsed", _seconds))
    start, end = value(row, "start", _date), value(row, "end", _date)
    if start is None or end is None:
        return 0.0
    if end < start:
        raise SlurmError("End is before Start; correct them")
    return end - start


@lru_cache(KEPT)
def _date(text: str) -> float | None:
    """Unix seconds; None: never."""
    if text in NEVER:
        return None
    return float(values.unix(values.whole(text)) if text.isdigit() else values.date(text))


_names = lru_cache(KEPT)(values.names)


@lru_cache(KEPT)
def _seconds(text: str) -> int:
    found = _ELAPSED.fullmatch(text)
    if found is None:
        raise ValueError("give [[days-]hours:]minutes:seconds")
    days, hours, minutes, seconds = (int(found[part] or 0) for part in "dhms")
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
