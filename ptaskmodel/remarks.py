"""Collect the remarks on a run: every warning and note, and how it affects the results.

Every warning of the package passes `warn`, which keeps it for the run's summary.json. The command
line keeps and shows warnings of other packages (`keep`).
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import NamedTuple

WARNING, NOTE = "warning", "note"
LEVELS = (WARNING, NOTE)

OVERLOAD, STOPPED, KILLED, FAILED = "overload", "stopped", "killed", "failed"
REFUSED, NEVER_STARTED = "refused", "never started"
ESTIMATES_OUTLIVED, NO_ATTRIBUTION = "estimates outlived", "no attribution"
# What a remark says of the numbers beside it.
EFFECTS: Mapping[str, str] = {
    OVERLOAD: "more comes than can be served: waits and slowdowns grow with the length of the run",
    STOPPED: "the run ended early: means are over what had ended by then",
    KILLED: "jobs were cut off: their execution times are shorter than their work",
    FAILED: "work ended by a failure or was never done",
    REFUSED: "jobs were not let in: no number includes them",
    NEVER_STARTED: "jobs still waited at the end: means leave them out",
    ESTIMATES_OUTLIVED: "the scheduler planned with estimates that jobs exceeded",
    NO_ATTRIBUTION: "what limited whom was not recorded",
}


class Remark(NamedTuple):
    """One sentence on a run. effect: a key of `EFFECTS`; None: it changes no reading."""

    text: str
    level: str = NOTE
    effect: str | None = None


_kept: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


def warn(text: str, effect: str | None = None, category: type[Warning] = UserWarning) -> None:
    """Issue a Python warning and keep it for the run that is being made."""
    keep(Remark(text, WARNING, effect))
    warnings.warn(text, category, stacklevel=3)


def keep(remark: Remark) -> None:
    """Keep a remark for the run that is being made, unless its text is kept already."""
    kept = _kept.get()
    if kept is not None and all(remark.text != other.text for other in kept):
        kept.append(remark)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Keep the remarks made inside, apart from those before: of one command, or of one run."""
    token = _kept.set([])
    try:
        yield
    finally:
        _kept.reset(token)


@contextlib.contextmanager
def joining() -> Iterator[None]:
    """Keep the remarks made inside, with those of the command that this run is a part of."""
    with contextlib.nullcontext() if _kept.get() is not None else listening():
        yield


def for_summary(*more: Iterable[Remark | str]) -> list[dict[str, str | None]]:
    """All remarks of a run for its summary.json: those kept, then more; each text once.

    Strings are notes without an effect.
    """
    found: dict[str, Remark] = {}
    for each in (_kept.get() or (), *more):
        for one in each:
            remark = Remark(one) if isinstance(one, str) else one
            found.setdefault(remark.text, remark)
    return [
        {"level": remark.level, "text": remark.text, "effect": remark.effect}
        for remark in found.values()
    ]
