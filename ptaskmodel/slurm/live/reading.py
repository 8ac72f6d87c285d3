"""Read what Slurm writes during a run: slurmctld's log, and a line for each job that has ended."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

# What jobs do, by the events of a log; who says when the scheduler came up.
START, SUSPEND, RESUME, REQUEUE, KILL = "start", "suspend", "resume", "requeue", "kill"
SUBMIT = "submit"
LOADED = "loaded"
_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (?:debug:\s+)?(.*)")
_JOB = r"JobId=(?P<array>\d+)(?:_(?P<index>\d+)\((?P<number>\d+)\))?"


class Over(NamedTuple):
    """A line on a job, or an array's task, that is over. Dates: whole Unix seconds or None."""

    number: int
    task: tuple[int, int] | None
    state: str
    partition: str
    submit_s: int | None
    eligible_s: int | None
    start_s: int | None
    end_s: int | None
    nodes: str
    cpus: int
    limit_min: int | None


class Event(NamedTuple):
    """As in the events.csv of a recorded run, at a date in Unix seconds.

    number: of the job, task: of an array (its number, index). nodes: where a job starts, as Slurm
    writes them.
    """

    date_s: float
    who: str
    what: str
    number: int = 0
    task: tuple[int, int] | None = None
    nodes: str = ""


class Tail:
    """Whole lines that a file has got since it was last looked at."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self.path = path
        self.size = 0

    def lines(self) -> list[str]:
        with self.path.open("rb") as file:
            file.seek(self.size)
            data = file.read()
        data = data[: data.rfind(b"\n") + 1]
        self.size += len(data)
        return data.decode("utf-8", "replace").splitlines()


def over_of(line: str) -> Over | None:
    """What a line of jobcomp/filetxt says; None if it is not one."""
    found = dict(part.split("=", 1) for part in line.split() if "=" in part)
    try:
        array, index = found.get("ArrayJobId"), found.get("ArrayTaskId")
        limit = found.get("TimeLimit", "")
        return Over(
            int(found["JobId"]),
            (int(array), int(index)) if array and index and index.isdigit() else None,
            found["JobState"],
            found.get("Partition", ""),
            _second(found.get("SubmitTime", "")),
            _second(found.get("EligibleTime", "")),
            _second(found.get("StartTime", "")),
            _second(found.get("EndTime", "")),
            found.get("NodeList", ""),
            int(found.get("ProcCnt", 0)),
            int(limit) if limit.isdigit() else None,
        )
    except (KeyError, ValueError):
        return None


def _second(text: str) -> int | None:
    try:
        return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


# What a line says, who does it and what; what is None: as the line has it.
_PATTERNS: tuple[tuple[re.Pattern[str], str, str | None], ...] = tuple(
    (re.compile(pattern.replace("JOB", _JOB)), who, what)
    for pattern, who, what in (
        (r"sched: (?:Allocate|_start_job: Started)? ?JOB NodeList=(?P<nodes>\S+)", "main", START),
        (
            r"(?:sched/)?backfill: (?:_start_job: )?Started JOB in \S+ on (?P<nodes>\S+)",
            "backfill",
            START,
        ),
        (r"_slurm_rpc_submit_batch_job: JOB", "job", SUBMIT),
        (r"_job_complete: JOB done", "job", "end"),
        (r"gang: suspending JOB", "gang", SUSPEND),
        (r"gang: resuming JOB", "gang", RESUME),
        (r"Requeuing JOB", "job", REQUEUE),
        (r"(?:Time limit exhausted for|preempted) JOB", "limit", KILL),
        (r"sched: Running job scheduler for (?P<what>.*?)\.?$", "main", None),
        (r".*_attempt_backfill: beginning", "backfill", "begin"),
        (r".*no jobs to backfill", "backfill", "nothing to do"),
        (r".*_attempt_backfill: completed (?P<what>testing.*)", "backfill", None),
        (r"sched: \S+ scheduler plugin loaded", LOADED, ""),
    )
)


def event_of(line: str) -> Event | None:
    """What a line of slurmctld's log tells of schedulers and jobs; None: nothing of the kind."""
    dated = _LINE.match(line)
    if dated is None:
        return None
    for pattern, who, what in _PATTERNS:
        found = pattern.match(dated[2])
        if found is not None:
            date = datetime.fromisoformat(dated[1]).replace(tzinfo=UTC).timestamp()
            said = found.groupdict()
            text = said["what"] if what is None else what
            array, index = said.get("array"), said.get("index")
            task = None if index is None else (int(array or 0), int(index))
            number = int(said.get("number") or array or 0)
            return Event(date, who, text, number, task, said.get("nodes", ""))
    return None


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events as they were told, but the ends that follow each other at one date by task.

    Threads of slurmctld hear of them; who is first is up to the machine.
    """
    groups = groupby(events, key=lambda event: (event.date_s, event.who, event.what))
    told: list[Event] = []
    for (_, _, what), group in groups:
        same = list(group)
        told += sorted(same, key=lambda e: e.task or (e.number, 0)) if what == "end" else same
    return tuple(told)


def last_error(path: Path) -> str:
    """The last thing that a log calls an error, without its date; empty if there is none."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    marks = ("fatal:", "error:")
    for mark in marks:
        found = [line.split(mark, 1)[1].strip() for line in lines if mark in line]
        if found:
            return found[-1][:300]
    return ""
