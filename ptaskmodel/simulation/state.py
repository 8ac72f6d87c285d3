"""The state of tasks: what they wait for, which stage they are at, what became of them."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ptaskmodel.core.state import INT, REAL, numbers
from ptaskmodel.core.store import records

# States of a task. Those from ENDED on are final.
WAITING, READY, RUNNING = numbers(3)
COMPLETED, FAILED, WALLTIME, CANCELLED, DEPENDENCY_FAILED = numbers(3, 8)
ENDED = COMPLETED

TASK = np.dtype(
    [
        ("state", INT),
        ("slot", INT),  # of its activity, while it runs
        ("program", INT),
        ("stage", INT),  # position in the program
        ("rounds", INT),  # rounds of the program already begun
        ("wake", INT),  # until it starts, its start date; then its walltime; -1: none
        ("waits_for", INT),  # tasks that must complete first
        ("followers", INT),  # head of the list of those that wait for this one, -1: none
        ("released", INT),  # 1: they have been told
        ("next_ready", INT),  # in the list of stages to begin now
        ("next_killed", INT),  # in the list of those whose walltime has come at this date
        ("next_ended", INT),  # in the list of those whose followers are to be told
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
STAGE = np.dtype([("pattern", INT), ("amount", REAL), ("delay", REAL), ("ranks", INT)], align=True)

PROGRAM = np.dtype([("first", INT), ("count", INT), ("rounds", INT), ("users", INT)], align=True)

FOLLOWER = np.dtype([("task", INT), ("next", INT)], align=True)

COUNTS = np.dtype(
    [
        ("n_tasks", INT),
        ("n_admitted", INT),  # tasks that the loop has seen
        ("n_ended", INT),
        ("n_told", INT),  # ended tasks already reported to the caller
        ("n_followers", INT),
        ("first_ready", INT),  # ends of the list of stages to begin now
        ("last_ready", INT),
        ("first_ended", INT),  # ends of the list of those whose followers are to be told
        ("last_ended", INT),
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
