"""Remarks on what became of tasks and jobs: those that did not end by themselves."""

from __future__ import annotations

from collections.abc import Mapping

from ptaskmodel import remarks
from ptaskmodel.batch import attempt
from ptaskmodel.batch.slurm import record
from ptaskmodel.remarks import Remark

# Of each final state that is not an end by itself: its effect, and what is said of such jobs.
OUTCOMES: Mapping[str, tuple[str, str]] = {
    "failed": (remarks.FAILED, "failed"),
    "dependency_failed": (remarks.FAILED, "never started, as one before them failed"),
    "starved": (remarks.FAILED, "could not go on"),
    "walltime": (remarks.KILLED, "were killed at their walltime"),
    "cancelled": (remarks.KILLED, "were cancelled"),
    attempt.FAILED: (remarks.FAILED, "failed"),
    attempt.WALLTIME: (remarks.KILLED, "were killed at their walltime"),
    attempt.KILLED: (remarks.KILLED, "were killed"),
    attempt.REJECTED: (remarks.REFUSED, "were rejected"),
    record.FAILED: (remarks.FAILED, "failed"),
    record.NODE_FAIL: (remarks.FAILED, "failed with a node"),
    record.TIMEOUT: (remarks.KILLED, "were killed at their time limit"),
    record.DEADLINE: (remarks.KILLED, "were killed at their deadline"),
    record.PREEMPTED: (remarks.KILLED, "were preempted"),
    record.CANCELLED: (remarks.KILLED, "were cancelled"),
    record.REFUSED: (remarks.REFUSED, "were refused"),
    record.PENDING: (remarks.NEVER_STARTED, "never started"),
}


def outcome_remarks(
    counts: Mapping[str, int], what: str, by_neighbours: int | None = None
) -> list[Remark]:
    """A remark for each state in which tasks or jobs did not end by themselves.

    counts: how many there are in each state. what: "task" or "job". by_neighbours: how many were
    killed at a walltime that would have been enough for them alone; None: unknown.
    """
    total = sum(counts.values())
    found = []
    for state, (effect, said) in OUTCOMES.items():
        if count := counts.get(state, 0):
            text = f"{count:,} of {total:,} {what}{'s' * (total != 1)} {said}"
            if state == attempt.WALLTIME and by_neighbours is not None:
                text += f", {by_neighbours:,} of them only because of neighbours"
            found.append(Remark(text, effect=effect))
    return found


def stopped_remark(counts: Mapping[str, int], now_s: float) -> list[Remark]:
    """A remark if a simulation of tasks ended before they did."""
    left = {name: counts[name] for name in ("running", "suspended", "waiting") if name in counts}
    if not left:
        return []
    listed = ", ".join(f"{count:,} {name}" for name, count in left.items())
    text = f"stopped at {now_s:g} s: of {sum(counts.values()):,} tasks {listed}"
    return [Remark(text, effect=remarks.STOPPED)]
