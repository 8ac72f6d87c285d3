"""The state of tasks: what they wait for, which stage they are at, what became of them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ptaskmodel.core.state import INT, REAL, below, count_in, number_in, numbers
from ptaskmodel.core.store import records

# States of a task. Those from ENDED on are final.
WAITING, READY, RUNNING = numbers(3)
COMPLETED, FAILED, WALLTIME, CANCELLED, DEPENDENCY_FAILED = numbers(3, 8)
ENDED = COMPLETED

TASK = np.dtype(
    [
        ("state", below(8)),
        ("slot", number_in("activities")),  # of its activity, while it runs
        ("program", number_in("programs", INT, 0)),
        ("stage", number_in("stages", INT, 0)),  # position in the program
        ("rounds", INT),  # rounds of the program already begun
        (
            "wake",
            number_in("wakes"),
        ),  # until it starts, its start date; then its walltime; -1: none
        ("waits_for", INT),  # tasks that must complete first
        (
            "followers",
            number_in("followers"),
        ),  # head of the list of those that wait for this one, -1: none
        ("released", below(2)),  # 1: they have been told
        ("next_ready", number_in("tasks")),  # in the list of stages to begin now
        (
            "next_killed",
            number_in("tasks"),
        ),  # in the list of those whose walltime has come at this date
        ("next_ended", number_in("tasks")),  # in the list of those whose followers are to be told
        ("start", REAL),  # earliest date, s
        ("walltime", REAL),  # inf: none
        ("weight", REAL),
        ("rate_bound", REAL),  # 1/s, inf: none
        ("started", REAL),
        ("finished", REAL),
    ],
    align=True,
)

# pattern: -1 until it is routed. delay: s, nan: none. ranks: 1: those of a trace do it.
STAGE = np.dtype(
    [("pattern", number_in("patterns")), ("amount", REAL), ("delay", REAL), ("ranks", below(2))],
    align=True,
)

PROGRAM = np.dtype(
    [
        ("first", number_in("stages", INT, 0)),
        ("count", count_in("stages")),
        ("rounds", INT),
        ("users", INT),
    ],
    align=True,
)

FOLLOWER = np.dtype(
    [("task", number_in("tasks", INT, 0)), ("next", number_in("followers"))], align=True
)

COUNTS = np.dtype(
    [
        ("n_tasks", count_in("tasks")),
        ("n_admitted", count_in("tasks")),  # tasks that the loop has seen
        ("n_ended", count_in("tasks")),
        ("n_told", count_in("tasks")),  # ended tasks already reported to the caller
        ("n_followers", count_in("followers")),
        ("first_ready", number_in("tasks")),  # ends of the list of stages to begin now
        ("last_ready", number_in("tasks")),
        (
            "first_ended",
            number_in("tasks"),
        ),  # ends of the list of those whose followers are to be told
        ("last_ended", number_in("tasks")),
    ],
    align=True,
)


class Tasks(NamedTuple):
    """Every array of tasks that the loop reads and writes (see the record types above)."""

    counts: np.ndarray  # one record
    tasks: np.ndarray
    programs: np.ndarray
    stages: np.ndarray
    followers: np.ndarray


def new_tasks() -> Tasks:
    """No tasks."""
    counts = records(1, COUNTS)
    for name in ("first_ready", "last_ready", "first_ended", "last_ended"):
        counts[name] = -1
    return Tasks(
        counts, records(1, TASK), records(1, PROGRAM), records(1, STAGE), records(1, FOLLOWER)
    )


@functools.cache
def task_template() -> np.ndarray:
    """One task record with the values that a new task has, not to be written to."""
    template = records(1, TASK)
    for name in ("walltime", "rate_bound"):
        template[name] = np.inf
    for name in ("started", "finished"):
        template[name] = np.nan
    for name in ("followers", "wake", "slot", "next_ready", "next_ended"):
        template[name] = -1
    template["weight"] = 1.0
    return template
