"""What became of tasks, jobs and ranks in plain words; files keep the words of their format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

ENDED, KILLED, NOT_RUN = "ended", "killed", "not run"
# What may become of a task, job or rank; of one that runs at the end neither is known yet.
OUTCOMES = (ENDED, KILLED, NOT_RUN)
NOT_SUBMITTED = "not yet submitted"

_WORDS: Mapping[str, tuple[str, ...]] = {
    "ended": ("completed", "COMPLETED_SUCCESSFULLY", "COMPLETED"),
    "killed at walltime": ("walltime", "COMPLETED_WALLTIME_REACHED", "TIMEOUT"),
    "killed by failure": ("failed", "NODE_FAIL"),
    "failed": ("COMPLETED_FAILED", "FAILED"),
    "killed": ("COMPLETED_KILLED", "PREEMPTED"),
    "killed at deadline": ("DEADLINE",),
    "cancelled": ("cancelled", "CANCELLED"),
    "rejected": ("REJECTED",),
    "refused": ("REFUSED",),
    "given up, as one before failed": ("dependency_failed",),
    "running at the end": ("running", "RUNNING", "LEAVING", "COMPLETING"),
    "suspended at the end": ("suspended", "SUSPENDED"),
    "stuck at the end": ("starved",),
    "waiting at the end": ("waiting", "WAITING", "PENDING"),
    NOT_SUBMITTED: (),
}
_OF = {state: word for word, states in _WORDS.items() for state in states}
# In the order in which they are told.
WORDS = tuple(_WORDS)
_KILLED = frozenset(
    ("killed at walltime", "killed by failure", "failed", "killed", "killed at deadline")
)


def in_words(state: str) -> str:
    """A state of a file in plain words; one that is not known as it is."""
    return _OF.get(state, state.replace("_", " ").lower())


def outcome_of(state: str) -> str:
    """One of OUTCOMES: what became of something in a state of a file."""
    word = in_words(state)
    return ENDED if word == ENDED else KILLED if word in _KILLED else NOT_RUN


def counted(states: Iterable[str] | Mapping[str, int]) -> dict[str, int]:
    """How many there are of each word, of states or how many of each; in the order of WORDS."""
    found: Counter[str] = Counter()
    for state, number in Counter(states).items():
        found[in_words(state)] += number
    order = [*WORDS, *sorted(word for word in found if word not in WORDS)]
    return {word: found[word] for word in order if found[word]}


def count_text(counts: Mapping[str, int]) -> str:
    """What `counted` found, for a reader."""
    return ", ".join(f"{number:,} {word}" for word, number in counts.items())
