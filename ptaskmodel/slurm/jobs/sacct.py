"""Read a workload from Slurm's accounting: the output of ``sacct -P`` or ``sacct --json``."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_bytes, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.conf.phases import PHASE_S
from ptaskmodel.slurm.jobs import sbatch
from ptaskmodel.slurm.jobs.request import ArrayTask, Command, JobRequest, Submissions
from ptaskmodel.slurm.jobs.sacct_rows import JOB_ID, Row, json_rows, table_rows, tell_unused
from ptaskmodel.style.text import several
from ptaskmodel.workload.formats.json import read_json
from ptaskmodel.workload.works import DelayWork

# What a submit line tells and no other column does.
OF_SUBMIT_LINE = (
    *("constraint", "contiguous", "distribution", "exclude", "exclusive", "least_cpus_per_node"),
    *("nodelist", "one_thread", "oversubscribe", "prefer", "spread", "switches", "switch_wait_s"),
)
# What it tells of a log without columns of TRES.
OF_TRES = ("gpus", "gres")
# What it tells of a job that names no number of nodes.
MEMORY = ("memory_per_cpu_MiB", "memory_per_node_MiB")
# What tells how large a job is; what it got beside what it asked for.
GOT = ("nnodes", "allocnodes", "alloctres")
SIZES = ("reqtres", "reqnodes", *GOT, "reqcpus", "ncpus", "alloccpus")
_OF_SIZE = (*SIZES, "reqmem")
ALIGNED_s = 60
# Sizes, states, dates and lengths of time that are read once, as many jobs have the same.
KEPT = 10_000
# Jobs this far from most others are not of the same log.
FAR_s = values.LONGEST_S / 2 - 86_400.0
# How long jobs would have run that were killed at their limits, beyond these.
BEYOND_s = 86_400.0
NEVER = ("", "Unknown", "None", "N/A", "NONE")
NEEDED = ("jobid", "submit")
# The columns that are read; others are told.
COLUMNS = frozenset(
    {"eligible", "start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw", "reqmem"}
    | {"user", "account", "qos", "partition", "state", "exitcode", "constraints", "jobname"}
    | {"submitline", "", *NEEDED, *SIZES}
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
_MEMORY = re.compile(r"(.*?)([nc]?)")
_JSON_JOB = re.compile(rb'"job_id"\s*:')
_Placed = tuple[int | None, str, Row | str]  # line, file and place, what is there


def looks_like(start: bytes) -> bool:
    """Whether a file that begins with `start` may be one."""
    if start.lstrip().startswith(b"{"):
        return _JSON_JOB.search(start) is not None and b'"subtime"' not in start
    names = start.split(b"\n")[0].decode("utf-8-sig", "replace").lower().rstrip("|\r").split("|")
    return set(NEEDED) <= set(names)


@reader(SlurmError)
def read_sacct(path: AnyPath, account: Account, phase_s: float = PHASE_S) -> Submissions:
    """The jobs at `path`: a table of ``sacct -P``, with its header, or ``sacct --json``.

    Columns: JobID and Submit; Elapsed, ElapsedRaw, or Start and End; of the others those that are
    there, best Eligible, Timelimit, ReqNodes (or NNodes), ReqCPUS (or NCPUS), ReqTRES (or ReqMem),
    User, Account, QOS, Partition, State, ExitCode, Constraints, JobName, SubmitLine (what options
    of sbatch tell and no other column does). Dates may be local (they are taken for UTC) or Unix
    seconds; -X (no steps) makes the table shorter.

    A job runs as long as it did; one that was killed at its limit would have run for a day more;
    one that was cancelled before it started is cancelled then, each task of an array by itself.
    What kept a job from being eligible (begin, dependencies, holds) does so until the same date.
    Jobs that were not over are left out, and so are rows that cannot be read.
    Date 0 is the minute of the first submission, and jobs come ``phase_s`` after their second.

    account: of the file. Raises SlurmError with file and line, if most rows cannot be read.
    """
    if read_bytes(path, error=SlurmError).lstrip().startswith(b"{"):
        rows = json_rows(read_json(Path(path)), account)
        found = _found(((None, f"{account.file}: {at}", row) for at, row in rows), account)
    else:
        text = read_text(path, error=SlurmError, told=account.taken).replace("\r\n", "\n")
        found = _found(_of_table(text, account), account)
    if not found.jobs:
        raise SlurmError(
            f"{account.file}: contains no ended job; choose another period with sacct -S and -E"
        )
    t0 = int(min(job.submit_s for job in found.jobs)) // ALIGNED_s * ALIGNED_s
    jobs = sorted(found.jobs, key=lambda job: job.submit_s)
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


def _found(rows: Iterable[_Placed], account: Account) -> _Found:
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
            jobs, is_open_ended = _jobs(row, place, notes)
        except SlurmError as fault:
            at = "" if line is not None else place.removeprefix(account.file).lstrip(": ") + ": "
            account.bad_row(at + fault.message, line)
            continue
        stateless += bool(jobs) and not isinstance(row, str) and not row.get("state")
        silent += bool(jobs) and not isinstance(row, str) and not any(map(row.get, SIZES))
        pinned += bool(jobs) and not isinstance(row, str) and _is_pinned(row, jobs[0].fields)
        for job in jobs:
            before = found.get(job.id)
            if before is not None:  # -D: it was requeued
                notes[REQUEUED] += 1
                earlier_s = max(job.submit_s - before.submit_s, 0.0)
                waited = None if job.logged_wait_s is None else job.logged_wait_s + earlier_s
                job = job._replace(submit_s=job.submit_s - earlier_s, logged_wait_s=waited)
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
        account.left_out(several(count, *what))
    if stateless:
        text = several(stateless, "job tells", "jobs tell")
        account.assumed(f"{text} no state: taken as completed; print State", None, "State")
    return _Found(list(found.values()), frozenset(open_ended))


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


def _jobs(row: Row | str, where: str, notes: _Notes) -> tuple[list[_Job], bool]:
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
    submit = _value(row, "submit", _date)
    if submit is None:
        raise SlurmError(f"Submit is {shown(row['submit'])}; give a date")
    limit = _limit(row)
    elapsed, start = _elapsed(row), _value(row, "start", _date)
    cancelled = state == "CANCELLED" and (start is None or not elapsed)
    fields: dict[str, Any] = {
        "limit_min": limit,
        "partitions": _names(row.get("partition", "")),
        "constraint": row.get("constraints") or None,
        "name": row.get("jobname") or None,
        "fails": state in FAILS or not row.get("exitcode", "0:0").startswith("0:"),
        "where": where,
        "user": row.get("user") or None,
        "account": row.get("account") or None,
        "qos": row.get("qos") or None,
    }
    line = _of_submit_line(row.get("submitline", ""), notes)
    is_open = "tasks" in line and "min_nodes" not in line
    fields |= _size(is_open, *map(row.get, _OF_SIZE))
    if is_open and any(name in line for name in MEMORY):
        fields = {name: value for name, value in fields.items() if name not in MEMORY}
    wanted = OF_SUBMIT_LINE if _has_tres(row) else OF_SUBMIT_LINE + OF_TRES
    for name in wanted + MEMORY * is_open:
        if name in line and not fields.get(name):
            fields[name] = line[name]
    cpus_per_task = line.get("cpus_per_task", 1)
    if line.get("tasks", 0) * cpus_per_task == fields["tasks"]:
        fields |= {"tasks": line["tasks"], "cpus_per_task": cpus_per_task}
    if line.get("min_nodes") == (fields["min_nodes"] or 1):
        fields |= {name: line[name] for name in ("min_nodes", "max_nodes")}
    eligible = _value(row, "eligible", _date)
    begin = eligible if eligible is not None and eligible > submit else None
    commands: tuple[Command, ...] = ()
    if state == "TIMEOUT":
        elapsed = max(elapsed, 60.0 * (limit or 0)) + BEYOND_s
    elif cancelled:
        end = _value(row, "end", _date)
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
            fields["array"] = ArrayTask(job, int(index))
        return [_Job(row["jobid"], *dates, fields)], is_open_ended
    try:
        indices, at_most = sbatch.array(tasks)["array"]
    except ValueError as fault:
        raise SlurmError(f"JobID is {shown(row['jobid'])}: {fault}") from None
    return [
        _Job(f"{job}_{k}", *dates, {**fields, "array": ArrayTask(job, k, at_most)}) for k in indices
    ], is_open_ended


def _is_pinned(row: Row, fields: Mapping[str, Any]) -> bool:
    """Whether a job with some CPUs a node may have had more nodes than the fewest it asked for."""
    told = row.get("submitline") or any(map(row.get, GOT))
    asked = any(map(row.get, ("reqtres", "reqnodes")))
    return asked and not told and bool(fields["max_nodes"] < fields["tasks"])


def _has_tres(row: Row) -> bool:
    """Whether columns of a row say which GPUs its job asked for."""
    return any(row.get(name) for name in ("reqtres", "alloctres"))


def _of_submit_line(line: str, notes: _Notes) -> dict[str, Any]:
    """What the options of a command line of sbatch tell; {}: of none."""
    command, _, rest = line.partition(" ")
    if command.rpartition("/")[2] != "sbatch":
        return {}
    try:
        found = sbatch.options(rest, before_script=True, unknown=lambda name: None)
    except ValueError:
        notes[SUBMIT_LINES] += 1
        return {}
    if "gpus_per_task" in found and "tasks" in found:
        each = found["gpus_per_task"]
        found["gpus"] = tuple(replace(one, count=one.count * found["tasks"]) for one in each)
    return found


@lru_cache(KEPT)
def _size(is_open: bool, *texts: str | None) -> Mapping[str, Any]:
    """What the columns _OF_SIZE of a row say of nodes, CPUs, memory and other resources.

    Slurm logs the fewest nodes that a job asked for, and its memory and GPUs on these. A job that
    got more named no number of nodes; of memory and GPUs it then had as much as it had asked for
    if it asked by CPU or for all of it, else more. is_open: whether its command line names none.
    """
    row = {name: text for name, text in zip(_OF_SIZE, texts, strict=True) if text is not None}
    had = _value(row, "alloctres", values.tres) or {}
    asked = _value(row, "reqtres", values.tres) or had
    nodes = _count(row, "reqnodes") or asked.get("node") or _count(row, "nnodes", "allocnodes") or 1
    cpus = _count(row, "reqcpus", "ncpus", "alloccpus") or asked.get("cpu") or nodes
    cpus = max(cpus, nodes)
    found: dict[str, Any] = {"min_nodes": nodes, "max_nodes": nodes, "tasks": cpus}
    of_all = ["mem"] if is_open else []
    got = _count(row, "nnodes", "allocnodes") or had.get("node") or nodes
    if got > nodes:
        of_all = [name for name in asked if had.get(name) in (None, asked[name])]
    if nodes == 1 and (is_open or got > 1):
        found |= {"min_nodes": None, "max_nodes": None}
    elif got > nodes:
        found["max_nodes"] = got
    memory = asked.get("mem")
    if memory and "mem" in of_all:
        found["memory_per_cpu_MiB"] = math.ceil(memory / cpus)
    elif memory:
        found["memory_per_node_MiB"] = math.ceil(memory / nodes)
    elif row.get("reqmem", "") not in (*NEVER, "?"):
        amount, per = _value(row, "reqmem", _memory)
        name = "memory_per_cpu_MiB" if per == "c" else "memory_per_node_MiB"
        found[name] = amount if per else math.ceil(amount / nodes)
    gpus = {name: asked[name] for name in of_all if name.startswith("gres/gpu")}
    found["gpus"] = tuple(_gres(gpus, 1))
    found["gres"] = tuple(_gres({name: asked[name] for name in asked if name not in gpus}, nodes))
    found["licenses"] = {
        name.removeprefix("license/"): count
        for name, count in asked.items()
        if name.startswith("license/") and count
    }
    return found


def _gres(asked: Mapping[str, int | None], nodes: int) -> Iterator[Gres]:
    """Generic resources on each of `nodes`; those of a type stand for those of any."""
    typed = {name.split(":")[0] for name in asked if ":" in name}
    for name, count in asked.items():
        if name.startswith("gres/") and count and name not in typed:
            kind, _, of_type = name.removeprefix("gres/").partition(":")
            yield Gres(kind, of_type or None, math.ceil(count / nodes))


def _limit(row: Row) -> int | None:
    """The time limit, minutes; None: it gave none."""
    raw = row.get("timelimitraw", "")
    if raw not in NEVER and raw.isdigit():
        return _value(row, "timelimitraw", values.whole)
    text = row.get("timelimit", "")
    if text in NEVER or text.upper() in ("PARTITION_LIMIT", *values.UNLIMITED):
        return None
    return math.ceil(_value(row, "timelimit", _seconds) / 60)


def _elapsed(row: Row) -> float:
    """How long the job ran, s."""
    if row.get("elapsedraw", "") not in NEVER:
        return float(_value(row, "elapsedraw", values.whole))
    if row.get("elapsed", "") not in NEVER:
        return float(_value(row, "elapsed", _seconds))
    start, end = _value(row, "start", _date), _value(row, "end", _date)
    if start is None or end is None:
        return 0.0
    if end < start:
        raise SlurmError("End is before Start; correct them")
    return end - start


def _count(row: Row, *names: str) -> int | None:
    for name in names:
        if row.get(name, "") not in NEVER:
            count: int = _value(row, name, values.counted)
            if count:
                return count
    return None


def _memory(text: str) -> tuple[int, str]:
    """MiB, and whether of each CPU (c), each node (n) or all of the job."""
    found = _MEMORY.fullmatch(text)
    amount, per = (found[1], found[2]) if found is not None else (text, "")
    return values.mebibytes(amount.rstrip("?")), per


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


def _value(row: Row, name: str, read: Callable[[str], Any]) -> Any:
    text = row.get(name, "")
    if not text and read is not _date:
        return None
    try:
        return read(text)
    except ValueError as fault:
        raise SlurmError(f"{name} is {shown(text)}: {fault}") from None
