"""Rows of options: the classes and functions by which tables of options are written and read.

The command line (`cli.parameters.options_of`), campaigns (`campaign.run_types`) and, through the
commands, the reference page use these tables. They import nothing heavy, since ``--help`` reads
them. A field of the same name in `BatchOptions` and the like has the same default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.engine.usage.network_models import COUNTS, NETWORK_MODELS
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.results import TRACE_FORMATS
from ptaskmodel.sharing.rules import SOLVERS
from ptaskmodel.units import UnitError, parse_time, split_float
from ptaskmodel.workload.transforms import PATTERNS

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
    return {name: str(one) if isinstance(one, Path) else one for name, one in found.items()}


def _read(option: Option, key: str, value: Any) -> Any:
    try:
        return option.read(value) if isinstance(value, str) else value
    except UnitError as error:
        raise SimulationError(f"{option.written}: {key}: {error}") from None


def fields_in(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the `given` values for which the dataclass `kind` has a field."""
    return {each.name: given[each.name] for each in fields(kind) if each.name in given}


def check_group(given: Mapping[str, Any]) -> None:
    """Raise PTaskModelError if a group but no calibration is `given`."""
    if given["calibration"] is None and given["group"] is not None:
        raise PTaskModelError("--group selects a group of a calibration; give --calibration FILE")


def check_nothing_to_write(**wanted: object) -> None:
    """Without a directory nothing is wanted in it. Raises PTaskModelError otherwise."""
    for name in (name for name, value in wanted.items() if value):
        option = {"traces": "trace", "timelines": "timeline-as"}.get(name, name)
        raise PTaskModelError(f"--{option} writes files; give --output DIR")


def fresh(reader: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``reader(*arguments)``.

    Commands read inputs anew; campaigns reuse what they have read.
    """
    return reader(*arguments)


POLICY, JOBS, PLATFORM, FAILURES = "Scheduling", "Jobs", "Platform", "Failures and maintenance"
MEASURES, COURSE, RESULTS = "What is measured", "The simulation itself", "Results"
PLACES = "Ranks and collectives"


def model_rows(models: Collection[str]) -> tuple[Option, ...]:
    """How a platform is shared, by one of some network models."""
    default = "that of the model: bmf" if "DCTCP" in models else "bmf"
    return (
        Option(
            "solver", SOLVERS, None, None,
            f"Rule by which tasks share resources  [default: {default}]", PLATFORM,
        ),
        Option(
            "network_model", models, None, None,
            "L07: parallel tasks; the others: flows  [default: as the platform says, else L07]",
            PLATFORM,
        ),
        Option(
            "count", COUNTS, "task", None,
            "Unit that counts as one competitor on a shared link.", PLATFORM,
        ),
    )  # fmt: skip


MODEL = model_rows(NETWORK_MODELS)
ROUTING = Option(
    "routing", TEXT, "platform", None,
    "Routes of flows: platform, ecmp[:SEED] (each flow takes one of its shortest "
    "paths, by a hash) or file:FILE (CSV: task,flow,path).",
    PLATFORM, metavar="platform|ecmp[:SEED]|file:FILE",
)  # fmt: skip


def calibration_rows(what: str, group: str) -> tuple[Option, ...]:
    """``--calibration`` and ``--group``: parameters laid on ``what``."""
    return (
        Option(
            "calibration", FILE, None, None,
            f"Calibrated parameters (of `calibrate --model ptask`) for {what}.", group,
        ),
        Option(
            "group", TEXT, None, None, "Group of the calibration, if it has several.", group,
            metavar="LABEL=VALUE,...",
        ),
    )  # fmt: skip


TRACES = Option(
    "traces", TRACE_FORMATS, (), None,
    "Also write the use of each resource over time (needs --output). Repeatable.",
    RESULTS, flag="--trace", many=True, writes=True,
)  # fmt: skip
TRACE_LIMIT = Option(
    "trace_limit_GB", POSITIVE, None, None, "Stop when the traces are larger than about this.",
    RESULTS, flag="--trace-limit", metavar="GB", writes=True,
)  # fmt: skip


def recording_rows(what: str) -> tuple[Option, ...]:
    """Return the options that say what to record of a run of `what` ("task" or "job")."""
    return (
        Option(
            "energy", FLAG, False, None,
            f"Also compute the energy of hosts, links and {what}s, and the power over time.",
            MEASURES,
        ),
        TRACES,
        TRACE_LIMIT,
        Option(
            "attribution", FLAG, False, None,
            f"Also write what limited each {what}, its slowdown, and the utilisation (needs "
            "--output).",
            RESULTS, writes=True,
        ),
    )  # fmt: skip


PROFILE_KINDS = {
    "delay": "delay: each job lasts its time alone",
    "ptask": "ptask: delays become parallel tasks by a rule, and traces become bundles",
    "smpi": "smpi: delays and parallel tasks become traces, which are replayed",
}


def profile_rows(*kinds: str) -> tuple[Option, ...]:
    """``--profiles``, one of the kinds, the first by default, and the rule of ``ptask``."""
    told = "; ".join(PROFILE_KINDS[kind] for kind in kinds if kind in PROFILE_KINDS) + "."
    return (
        Option("profiles", kinds, kinds[0], None, told, JOBS),
        Option(
            "ratio", NOT_NEGATIVE, 0.5, None,
            "Ratio of communication to computation, for --profiles ptask.", JOBS,
        ),
        Option(
            "pattern", PATTERNS, "alltoall", None,
            "Pattern of communication, for --profiles ptask.", JOBS
        ),
    )  # fmt: skip
