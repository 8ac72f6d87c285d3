"""What a kind of run is: its parameters, which of them are files, and the numbers it gives."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ptaskmodel.errors import CampaignError, shown

Parameters = Mapping[str, Any]
Numbers = dict[str, float | int]

# What is said of a run that is not a result of it.
NOT_METRICS = ("format", "versions", "inputs", "remarks", "files", "series")
# What a run may give beside numbers: kept with it, for pictures.
SERIES = "series"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run.

    run: gives what `numbers_of` takes, and under `SERIES` anything that JSON holds. files:
    parameters that name files; within: those whose texts hold the name of one, if its pattern
    finds it (its group); needed: those that must be given; known: all, or None if any
    may be; made: those given as ``NAME.KEY``. metrics: what tables show if nothing is said.
    version: what identifies the code, beside the
    version of the package.
    """

    name: str
    run: Callable[[Parameters], Mapping[str, Any]]
    files: tuple[str, ...]
    needed: tuple[str, ...] = ()
    known: Callable[[], frozenset[str]] | None = None
    made: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    version: str = ""
    check: Callable[[Iterable[str]], None] | None = None
    within: Mapping[str, re.Pattern[str]] = field(default_factory=dict)

    def file_in(self, name: str, value: object) -> str | None:
        """The name of a file that the value of a parameter is or holds; None: it has none."""
        if name in self.files:
            return str(value)
        found = self.within[name].search(str(value)) if name in self.within else None
        return None if found is None else found[1]

    def with_file(self, name: str, value: object, file: str) -> str:
        """The value of a parameter with another name of its file."""
        found = self.within[name].search(str(value)) if name in self.within else None
        if found is None:
            return file
        return found.string[: found.start(1)] + file + found.string[found.end(1) :]

    def check_names(self, names: Iterable[str]) -> None:
        """Raises CampaignError for a parameter that this kind does not know, or lacks."""
        given = list(names)
        if self.known is not None:
            known = self.known()
            for name in given:
                head, dot, _ = name.partition(".")
                if name not in known and not (dot and head in self.made):
                    near = difflib.get_close_matches(name, known, 1)
                    listed = f": use one of {', '.join(sorted(known))}"
                    hint = f"; did you mean '{near[0]}'?" if near else listed
                    raise CampaignError(f"{self.name} has no parameter '{name}'{hint}")
        if self.check is not None:
            self.check(given)
        for name in self.needed:
            if name not in given:
                raise CampaignError(
                    f"{self.name} needs '{name}'; give it in [parameters] or [factors]"
                )


def numbers_of(found: object) -> Numbers:
    """The finite numbers in what a run gave, ``NAME.KEY`` for those inside others.

    Raises CampaignError if it is no mapping of names, or holds no number.
    """
    numbers: Numbers = {}

    def gather(prefix: str, value: object) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if prefix or key not in NOT_METRICS:
                    gather(f"{prefix}.{key}" if prefix else str(key), inner)
        elif isinstance(value, bool):
            numbers[prefix] = int(value)
        elif isinstance(value, int | float) and math.isfinite(value):
            numbers[prefix] = value
        elif hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
            gather(prefix, value.item())

    if not isinstance(found, Mapping):
        raise CampaignError(f"a run gave {shown(found)}; give a mapping from names to numbers")
    gather("", found)
    if not numbers:
        raise CampaignError("a run gave no finite number; give a mapping from names to numbers")
    return numbers
