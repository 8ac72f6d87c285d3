"""Sentences that pages and the terminal share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ptaskmodel.results.states import ENDED, NOT_SUBMITTED, count_text
from ptaskmodel.style.text import count, duration

MINUTE_s = 60.0


def log_answer(summary: Mapping[str, Any]) -> str:
    """Return how far the waits of a `summary` are from those in its log; "": it has none."""
    found = summary.get("against_log")
    if not found:
        return ""
    here, log, apart = (found[name] for name in ("waiting_s", "logged_waiting_s", "difference_s"))
    means = f"Simulated mean wait {duration(here['mean'])}, in the log {duration(log['mean'])}"
    jobs = count(found["jobs"], "wait")
    if apart["max"] <= MINUTE_s:
        return f"{means}; none of {jobs} differs by over {duration(apart['max'])}."
    half, most = duration(apart["p50"]), duration(apart["p95"])
    return f"{means}; half of {jobs} differ by at most {half}, 5 % by over {most}."


def jobs_answer(counts: Mapping[str, int], summary: Mapping[str, Any]) -> list[str]:
    """Return what became of the jobs of a batch, and how long they waited, a line each.

    counts: how many there are of each of `states.WORDS`. summary: of the batch.
    """
    left = {word: number for word, number in counts.items() if number}
    total, ended = sum(left.values()), left.pop(ENDED, 0)
    if total == 0:
        return ["There is no job."]
    of = count(total, "job")
    first = f"{count(ended)} of {of} end" if total > 1 else "The job does not end"
    if ended == total:
        first = f"All {of} end" if total > 1 else "The job ends"
    coming = left.pop(NOT_SUBMITTED, 0)
    if left:
        first += f"; {count_text(left)}"
        if neighbours := summary.get("killed_only_by_neighbours"):
            first += f", {count(neighbours)} of them only because of neighbours"
    if coming:
        first += f"; {count(coming, 'job')} were still to come"
    lines = [f"{first}."]
    waits = summary.get("waiting_s") or {}
    half, tail = waits.get("p50"), waits.get("p95")
    if tail is not None and half is not None:
        most = f"at most {duration(half)}" if half > 0.0 else "not at all"
        lines.append(
            f"Half wait {most}, 5 % more than {duration(tail)}."
            if tail > 0.0
            else "At least 95 % start at once."
            if waits.get("max")
            else "No job waits."
        )
    return lines
