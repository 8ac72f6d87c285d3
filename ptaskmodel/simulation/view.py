"""Reads what became of tasks: states, progress, records, a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.core.driver import Core
from ptaskmodel.core.state import RUNNING as PROGRESSES
from ptaskmodel.core.state import SUSPENDED
from ptaskmodel.simulation.intake import Intake
from ptaskmodel.simulation.refs import TaskRecord, date_or_none
from ptaskmodel.simulation.state import (
    CANCELLED,
    COMPLETED,
    DEPENDENCY_FAILED,
    FAILED,
    READY,
    RUNNING,
    WAITING,
    WALLTIME,
)

if TYPE_CHECKING:
    import pandas

STATE_NAMES = {
    WAITING: "waiting",
    READY: "waiting",
    RUNNING: "running",
    COMPLETED: "completed",
    FAILED: "failed",
    WALLTIME: "walltime",
    CANCELLED: "cancelled",
    DEPENDENCY_FAILED: "dependency_failed",
}


def state_name(core: Core, intake: Intake, task: int, idle: bool) -> str:
    """One of the states of `TaskRecord`; idle: nothing will ever happen any more."""
    record = intake.arrays.tasks[task]
    if record["state"] == RUNNING:
        activity = core.state.activities[record["slot"]]
        if activity["state"] == SUSPENDED:
            return "suspended"
        if activity["state"] == PROGRESSES and idle and activity["rate"] == 0.0:
            return "starved"
    return STATE_NAMES[int(record["state"])]


def progress(core: Core, intake: Intake, task: int) -> float:
    """Part of the current stage that is done, 0 to 1. Rates must be in force."""
    return part_done(core.state.activities, intake.arrays.tasks[task], core.now)


def part_done(activities: np.ndarray, record: np.void, now: float) -> float:
    """Part of the current stage of a task, by its record, that is done, 0 to 1."""
    if record["state"] == COMPLETED:
        return 1.0
    if record["state"] != RUNNING:
        return 0.0
    a = activities[record["slot"]]
    amount = float(a["amount"])
    if a["state"] not in (PROGRESSES, SUSPENDED) or amount <= 0.0:
        return 0.0
    left = float(a["remaining"] - a["rate"] * (now - a["updated"]))
    return min(max(1.0 - left / amount, 0.0), 1.0)


def stages_done(intake: Intake, task: int) -> int:
    """How many stages of a task are over, counted over all rounds."""
    record = intake.arrays.tasks[task]
    program = intake.arrays.programs[record["program"]]
    if record["state"] == COMPLETED:
        return int(program["count"] * program["rounds"])
    return int(record["rounds"] * program["count"] + record["stage"])


def rate(core: Core, intake: Intake, task: int) -> float:
    """Stages per second. Rates must be in force."""
    record = intake.arrays.tasks[task]
    if record["state"] != RUNNING:
        return 0.0
    a = core.state.activities[record["slot"]]
    return float(a["rate"]) / float(a["amount"]) if a["state"] == PROGRESSES else 0.0


def makespan(intake: Intake) -> float:
    """Date of the last end of a task so far, s."""
    finished = intake.arrays.tasks["finished"][: len(intake.facts)]
    finished = finished[~np.isnan(finished)]
    return float(finished.max()) if len(finished) else 0.0


def records(core: Core, intake: Intake, idle: bool) -> list[TaskRecord]:
    """What became of each task, in the order they were added."""
    table = intake.arrays.tasks
    n = len(intake.facts)
    started, finished = table["started"][:n].tolist(), table["finished"][:n].tolist()
    found = []
    for k, task in enumerate(intake.facts):
        start, finish = date_or_none(started[k]), date_or_none(finished[k])
        duration = None if start is None or finish is None else finish - start
        state = state_name(core, intake, k, idle)
        found.append(
            TaskRecord(intake.ids[k], task.profile, start, finish, duration, state, task.hosts)
        )
    return found


def frame(records: list[TaskRecord]) -> pandas.DataFrame:
    """Records as a DataFrame, one row each."""
    import pandas

    names = list(TaskRecord.__slots__)
    rows = [[getattr(record, name) for name in names] for record in records]
    found = pandas.DataFrame(rows, columns=names)
    dates = ["start_time", "finish_time", "execution_time"]
    return found.astype(dict.fromkeys(dates, "float64"))
