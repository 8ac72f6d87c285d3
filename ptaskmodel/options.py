"""Options of kinds of runs: one row an option, which stands at the field that keeps its value.

`option` makes such a field of a dataclass (`BatchOptions` and the like), `taken` one of a row that
several kinds share, and `rows_of` gives the rows of a dataclass. The command line
(`cli.parameters.options_of`), campaigns (`campaign.run_types`), summaries and, through the
commands, the reference page use them. Modules of options import nothing heavy, since ``--help``
reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field, fields
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from ptaskmodel.errors import SimulationError
from ptaskmodel.units import UnitError, parse_time, split_float

# Types of options besides names, of which one is chosen.
FLAG, FILE, TEXT, PAIRS = "flag", "file", "text", "pairs"
NUMBER, POSITIVE, NOT_NEGATIVE = "number", "number above 0", "number from 0"
COUNT, SEED = "whole number from 1", "whole number from 0"
# Of those that are numbers: whether they are whole, and which are.
NUMBERS: dict[str, tuple[bool, Callable[[Any], bool]]] = {
    NUMBER: (False, isfinite),
    POSITIVE: (False, lambda value: 0 < value < inf),
    NOT_NEGATIVE: (False, lambda value: 0 <= value < inf),
    COUNT: (True, lambda value: value >= 1),
    SEED: (True, lambda value: value >= 0),
}


class Option(NamedTuple):
    """An option of a kind of run.

    name: of the parameter of a campaign, and of the field that keeps it. type: names to choose
    from, or one of the types above. default: None: no value. unit: of a number, told after the
    help. group: the heading in the help. flag: how the command line writes it, if not ``--name``.
    other: what may be chosen besides the names, and the mark that it is known by. read: how a text
    of PAIRS becomes a value. many: it may be given several times. writes: it only says what to
    write into a directory of results, so campaigns do not have it.
    """

    name: str
    type: str | Collection[str]
    default: Any
    unit: str | None
    help: str
    group: str
    flag: str = ""
    metavar: str | None = None
    other: tuple[str, str] | None = None
    read: Callable[[str], Any] = str
    many: bool = False
    writes: bool = False

    @property
    def written(self) -> str:
        """The option as the command line writes it."""
        return self.flag or "--" + self.name.replace("_", "-")

    def asks_for(self, value: object) -> str:
        """What a value of a file has to be, if it is not; "" if it may be given."""
        other, mark = self.other or ("", "")
        if not isinstance(self.type, str):
            if isinstance(value, str) and (value in self.type or (mark and mark in value)):
                return ""
            return f"one of {', '.join([*self.type, *filter(None, [other])])}"
        if self.type == PAIRS:
            return ""
        if self.type == FLAG:
            return "" if isinstance(value, bool) else "true or false"
        if self.type not in NUMBERS:
            return "" if isinstance(value, str) else f"a {self.type}"
        whole, may_be = NUMBERS[self.type]
        kind = int if whole else (int, float)
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        return "" if is_number and may_be(value) else f"a {self.type}"


# Of the metadata of a field: its row.
ROW = "option"
Value = TypeVar("Value")


def option(
    default: Value,
    type: str | Collection[str],
    help: str,
    group: str,
    *,
    unit: str | None = None,
    **more: Any,
) -> Value:
    """Return the field of a dataclass that keeps the value of an option.

    default: of the field and the option. type, help, group, unit, more: as of `Option`.
    """
    return cast(Value, taken(Option("", type, default, unit, help, group, **more)))


def taken(row: Option) -> Any:
    """Return the field of a dataclass that keeps the value of an option of several kinds of runs.

    row: of the option; the name is that of the field.
    """
    if isinstance(row.default, dict):
        return field(default_factory=row.default.copy, metadata={ROW: row})
    return field(default=row.default, metadata={ROW: row})


def rows_of(kind: type[Any]) -> tuple[Option, ...]:
    """Return the rows of those fields of the dataclass `kind` that are options, in their order."""
    found = [each for each in fields(kind) if ROW in each.metadata]
    return tuple(each.metadata[ROW]._replace(name=each.name) for each in found)


def number_or_text(text: str) -> int | float | str:
    """Return a `text` as an int or float if it looks like one, else unchanged."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def number_time_or_text(text: str) -> int | float | str:
    """Return a `text` as `number_or_text` does; a time with a unit (``1h``) in seconds.

    Raises UnitError.
    """
    value = number_or_text(text)
    if isinstance(value, str):
        try:
            split_float(value)
        except UnitError:
            return value
        return parse_time(value)
    return value


def values(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each of the `options` by name: what is `given`, else its default.

    Texts of PAIRS become what the option reads from them. Raises SimulationError.
    """
    found = {}
    for option in options:
        value = given.get(option.name, option.default)
        if option.type == PAIRS:
            value = {key: _read(option, key, each) for key, each in (value or {}).items()}
        found[option.name] = value
    return found


def parameters_of(options: Iterable[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a summary keeps of `given`, the values of `options`.

    Options that are not set, or only say what to write, are left out. Files become texts.
    """
    names = [option.name for option in options if not option.writes]
    found = {name: given[name] for name in names if given[name] not in (None, {}, ())}
    return {name: _as_texts(one) for name, one in found.items()}


def _as_texts(value: Any) -> Any:
    """A value, files as texts."""
    if isinstance(value, tuple):
        return [_as_texts(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def _read(option: Option, key: str, value: Any) -> Any:
    try:
        return option.read(value) if isinstance(value, str) else value
    except UnitError as error:
        raise SimulationError(f"{option.written}: {key}: {error}") from None


def fields_in(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the `given` values for which the dataclass `kind` has a field."""
    return {each.name: given[each.name] for each in fields(kind) if each.name in given}


# Headings in the help.
POLICY, JOBS, PLATFORM, FAILURES = "Scheduling", "Jobs", "Platform", "Failures and maintenance"
MEASURES, COURSE, RESULTS = "What is measured", "The simulation itself", "Results"
PLACES, SCHEDULER = "Ranks and collectives", "The external scheduler"
