"""Sentences that pages and the terminal share, and remarks that change what numbers mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ptaskmodel.remarks import EFFECTS, WARNING, shortened
from ptaskmodel.results.states import ENDED, NOT_SUBMITTED, count_text
from ptaskmodel.results.tables.mpi import SPANS
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from ptaskmodel.results.loading import Results

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
        most = f"Half wait at most {duration(half)}" if half > 0.0 else "Half start at once"
        lines.append(
            f"{most}; 5 % wait more than {duration(tail)}."
            if tail > 0.0
            else "At least 95 % start at once."
            if waits.get("max")
            else "No job waits."
        )
    jobs = summary.get("jobs")
    if isinstance(jobs, dict) and (again := jobs.get("lost_runs")):
        times = "once" if again == 1 else f"{count(again)} times"
        lost_h = number((summary.get("lost_host_s") or 0.0) / 3600)
        lines.append(f"Jobs were stopped and started again {times}: {lost_h} host hours are lost.")
    return lines


MOST_RUNS = 5  # whose warnings are told one by one
NUMBERS = re.compile(r"\d[\d,.]*")
BARE_REPLAY = "made without --timeline: what ranks did when, and who sent to whom, is not here"
BARE = "made without --attribution: no bottlenecks, slowdowns or utilisation"


def changes_reading(remark: Mapping[str, Any]) -> bool:
    """Whether a remark of a summary stands at the head: every warning, and what has an effect."""
    return remark["level"] == WARNING or remark["effect"] is not None


def warnings_of(results: Results) -> list[str]:
    """Return what a reader should know before believing the results of a run."""
    return _explained(_told(results))


def _told(results: Results) -> list[tuple[str, str | None]]:
    """(text, effect) of what changes how a run is read."""
    remarks = shortened(results.summary.get("remarks") or [])
    found = [(one["text"], one["effect"]) for one in remarks if changes_reading(one)]
    if results.what == "rank" and not (results.directory / SPANS).exists():
        found.append((BARE_REPLAY, None))
    by_packets = results.summary.get("network_level") == "packets"
    if results.what == "task" and not results.limits and not by_packets:
        found.append((BARE, None))
    return found


def _explained(told: Iterable[tuple[str, str | None]]) -> list[str]:
    """Texts as sentences; behind the first that has an effect what it does to numbers."""
    found: list[str] = []
    known: set[str | None] = {None}
    for text, effect in told:
        said = text if text.endswith(".") else f"{text}."
        if effect not in known:
            known.add(effect)
            because = EFFECTS[effect or ""]
            said += f" {because[0].upper()}{because[1:]}."
        found.append(said)
    return found


def other_remarks(results: Results) -> list[Mapping[str, Any]]:
    """The remarks that change no reading."""
    remarks = shortened(results.summary.get("remarks") or [])
    return [remark for remark in remarks if not changes_reading(remark)]


def warnings_of_runs(runs: Mapping[str, Results]) -> list[str]:
    """The warnings of several runs, each with the runs that have it, and those that have it not.

    Warnings that differ by numbers alone are one.
    """
    kinds: dict[tuple[str, str | None], dict[str, str]] = {}
    for name, results in runs.items():
        for text, effect in _told(results):
            kinds.setdefault((NUMBERS.sub("#", text), effect), {})[name] = text
    found: list[tuple[str, str | None]] = []
    for (_, effect), texts in kinds.items():
        without = [name for name in runs if name not in texts]
        if len(set(texts.values())) == 1:
            who = ", ".join(texts) if without else "all runs"
            said = f"{who}: {next(iter(texts.values()))}"
        else:
            told = [f"{name}: {text}" for name, text in texts.items()]
            said = "; ".join(told[:MOST_RUNS])
            if (more := len(told) - MOST_RUNS) > 0:
                said += f"; alike of {count(more, 'run')} more"
        not_there = f"; not in {', '.join(without)}" if without else ""
        found.append((f"{said}{not_there}", effect))
    return _explained(found)


def stopped_text(results: Results) -> str | None:
    """Of a run that was stopped: when, and of what its means are; None if it was not."""
    if results.stopped is None:
        return None
    what, submitted = results.what, results.submitted
    over = sum(task.end_s is not None for task in results.tasks)
    said = f"Stopped at {duration(results.stopped.at_s)}: "
    if results.stopped.not_submitted:
        said += f"{count(len(results.tasks))} of {count(submitted)} {what}s submitted. "
        return said + f"Means below are of the {count(over)} that ended."
    return said + f"means below are of the {count(over)} of {count(submitted)} {what}s that ended."
