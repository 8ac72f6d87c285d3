"""Errors that a user can correct, derived from one class; internal errors are not among them."""

from __future__ import annotations

import re

# A value in a message, a word of one (a path), a whole message: of what is longer the middle or the
# end is left out.
SHOWN = 60
LONGEST_WORD = 200
LONGEST = 1000
# What one message names of the problems of a file; of more it says the number.
MOST_PROBLEMS = 20
BETWEEN_PROBLEMS = "\n  "
_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


class PTaskModelError(Exception):
    """A mistake in what the user gave: a file, an option, an argument.

    The message is one line that says where (file and line, or JSON pointer), what, and the remedy.
    Of a file with several problems it is a line that says so, and one for each. The command line
    prints it and exits with code 2.
    """

    @property
    def message(self) -> str:
        """The message as it was given, however long."""
        return super().__str__()

    def __str__(self) -> str:
        lines = self.message.split("\n", MOST_PROBLEMS + 2)[: MOST_PROBLEMS + 2]
        return "\n".join(map(cut, lines))


def cut(text: str, longest: int = LONGEST) -> str:
    """Shorten a text to `longest` characters: omit its middle, keep the place and the remedy.

    The middle of overlong words is omitted first.
    """
    text = _LONG_WORD.sub(lambda word: _without_middle(word[0], LONGEST_WORD), text)
    return _without_middle(text, longest)


def _without_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    kept = (longest - 5) // 2
    return f"{text[:kept]} ... {text[-kept:]}"


def shown(value: object) -> str:
    """A value for a message: quoted, on one line and short."""
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 4]}...{text[-1]}"


class PlatformError(PTaskModelError):
    """A platform file or a platform fact is wrong."""


class RouteError(PlatformError):
    """Two points of the platform have no usable route."""


class WorkloadError(PTaskModelError):
    """A task, a profile or a workload file is wrong."""


class SlurmError(PTaskModelError):
    """A slurm.conf, or what Slurm's tools printed of accounts, is wrong."""


class CampaignError(PTaskModelError):
    """A campaign file is wrong, or a directory is not that of this campaign."""


class SharingError(PTaskModelError):
    """A sharing problem is malformed."""


class SimulationError(PTaskModelError):
    """A simulation was asked for something that it cannot do."""
