"""Final states of tasks, jobs and ranks in plain words; files keep the words of their format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ptaskmodel import remarks
from ptaskmodel.remarks import Remark
from ptaskmodel.style.text import count, duration

ENDED, KILLED, NOT_RUN = "ended", "killed", "not run"
# What may become of a task, job or rank; of one that runs at the end neither is known yet.
OUTCOMES = (ENDED, KILLED, NOT_RUN)
NOT_SUBMITTED = "not yet submitted"
AT_WALLTIME = "killed at walltime"
# Slowdowns up to this one are called none.
NOT_SLOWED = 1.001


class State(NamedTuple):
    """What became of something.

    states: as files spell it. outcome: one of OUTCOMES. effect: how tasks and jobs that did not end
    by themselves change the reading of the numbers; None: no remark. verb: stands before the word.
    """

    states: tuple[str, ...]
    outcome: str = NOT_RUN
    effect: str | None = None
    verb: str = "were "


# By plain words, in the order in which they are told.
WORDS: Mapping[str, State] = {
    "ended": State(("completed", "COMPLETED_SUCCESSFULLY", "COMPLETED"), ENDED),
    AT_WALLTIME: State(
        ("walltime", "COMPLETED_WALLTIME_REACHED", "TIMEOUT"), KILLED, remarks.KILLED
    ),
    "killed by failure": State(("failed", "NODE_FAIL"), KILLED, remarks.FAILED),
    "failed": State(("COMPLETED_FAILED", "FAILED"), KILLED, remarks.FAILED, ""),
    "killed": State(("COMPLETED_KILLED",), KILLED, remarks.KILLED),
    "killed by preemption": State(("PREEMPTED",), KILLED, remarks.KILLED),
    "killed at deadline": State(("DEADLINE",), KILLED, remarks.KILLED),
    "cancelled": State(("cancelled", "CANCELLED"), effect=remarks.KILLED),
    "rejected": State(("REJECTED",), effect=remarks.REFUSED),
    "refused": State(("REFUSED",), effect=remarks.REFUSED),
    "given up, as one before failed": State(("dependency_failed",), effect=remarks.FAILED),
    "running at the end": State(("running", "RUNNING", "LEAVING", "COMPLETING")),
    "suspended at the end": State(("suspended", "SUSPENDED")),
    "stuck at the end": State(("starved",), effect=remarks.FAILED),
    "waiting at the end": State(("waiting", "WAITING")),
    "never started": State(("PENDING",), effect=remarks.NEVER_STARTED, verb=""),
    NOT_SUBMITTED: State(()),
}
_OF = {state: word for word, facts in WORDS.items() for state in facts.states}


def in_words(state: str) -> str:
    """A state of a file in plain words; one that is not known as it is."""
    return _OF.get(state, state.replace("_", " ").lower())


def outcome_of(state: str) -> str:
    """One of OUTCOMES: what became of something in a state of a file."""
    known = WORDS.get(in_words(state))
    return NOT_RUN if known is None else known.outcome


def is_cut_off(state: str) -> bool:
    """Whether a state of a file is over, but not by an end of its own."""
    known = WORDS.get(in_words(state))
    return known is not None and known.effect is not None


def counted(states: Iterable[str] | Mapping[str, int]) -> dict[str, int]:
    """How many there are of each word, of states or how many of each; in the order of WORDS."""
    found: Counter[str] = Counter()
    for state, number in Counter(states).items():
        found[in_words(state)] += number
    order = [*WORDS, *sorted(word for word in found if word not in WORDS)]
    return {word: found[word] for word in order if found[word]}


def count_text(counts: Mapping[str, int]) -> str:
    """What `counted` found, for a reader."""
    return ", ".join(f"{count(number)} {word}" for word, number in counts.items())


def outcome_remarks(
    counts: Mapping[str, int], what: str, by_neighbours: int | None = None
) -> list[Remark]:
    """A remark for each state in which tasks or jobs did not end by themselves.

    counts: how many there are in each state. what: "task" or "job". by_neighbours: how many were
    killed at a walltime that would have been enough for them alone; None: unknown.
    """
    total = sum(counts.values())
    found = []
    for word, number in counted(counts).items():
        known = WORDS.get(word)
        if known is None or known.effect is None:
            continue
        verb = "was " if number == 1 and known.verb else known.verb
        text = f"{count(number)} of {count(total)} {what}{'s' * (total != 1)} {verb}{word}"
        if word == AT_WALLTIME and by_neighbours:
            text += f", {count(by_neighbours)} of them only because of neighbours"
        found.append(Remark(text, effect=known.effect))
    return found


def stopped_remark(counts: Mapping[str, int], now_s: float) -> list[Remark]:
    """A remark if a simulation of tasks ended before they did."""
    left = {name: counts[name] for name in ("running", "suspended", "waiting") if name in counts}
    if not left:
        return []
    listed = ", ".join(f"{count(number)} {name}" for name, number in left.items())
    text = f"stopped at {duration(now_s)}: of {count(sum(counts.values()))} tasks {listed}"
    return [Remark(text, effect=remarks.STOPPED)]
