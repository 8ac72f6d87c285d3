"""Base classes of commands and groups, and the types of options and arguments that they share.

Groups and choices suggest the nearest name for a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from ptaskmodel import options as rows
from ptaskmodel.cli.progress import LEVELS, set_level
from ptaskmodel.errors import SimulationError
from ptaskmodel.memory import keep_freed
from ptaskmodel.remarks import listening
from ptaskmodel.units import UnitError, parse_bandwidth, parse_speed

PATH = click.Path(path_type=Path)


class Choice(click.Choice):
    """One of some names; for a wrong one, the message suggests the nearest.

    others: what else may be given, as named in messages.
    """

    others: tuple[str, ...] = ()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            hint = did_you_mean(str(value), self.choices)
            known = ", ".join([*self.choices, *self.others])
            self.fail(f"{_name(param)} '{value}' is unknown; use one of {known}{hint}", param, ctx)
        return value


def did_you_mean(value: str, choices: Iterable[str]) -> str:
    """The end of a message on a wrong name: the nearest one, whatever the case."""
    import difflib

    known = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(value.lower(), known, 1)
    return f"; did you mean '{known[near[0]]}'?" if near else ""


def _name(param: click.Parameter | None) -> str:
    return (param.name or "name").replace("_", " ") if param is not None else "name"


def talking_options() -> list[click.Option]:
    """How much a command says on standard error; what is given last counts."""
    return [
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=set_level,
            help="Print more messages, and the traceback of a fault; -vv: all.",
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=set_level,
            help="Print only results and errors.",
        ),
        click.Option(
            ["--log-level"],
            type=Choice(LEVELS),
            expose_value=False,
            callback=set_level,
            help="The same by name  [default: warning]",
        ),
    ]


# The heading of options without one.
OTHERS = "Options"


class GroupedOption(click.Option):
    """An option that the help shows under a heading."""

    def __init__(self, *arguments: Any, group: str, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self.group = group


def grouped(parameters: Iterable[click.Parameter]) -> dict[str, list[click.Option]]:
    """Options by their heading, in order; those without one come last."""
    found: dict[str, list[click.Option]] = {}
    others: list[click.Option] = []
    for option in (each for each in parameters if isinstance(each, click.Option)):
        mine = found.setdefault(option.group, []) if isinstance(option, GroupedOption) else others
        mine.append(option)
    return found | {OTHERS: others} if others else found


class Command(click.Command):
    """A command that takes -v, -q and --log-level besides its own options."""

    def __init__(self, *arguments: Any, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self.params += talking_options()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = grouped(self.get_params(ctx))
        for group, options in groups.items():
            records = (option.get_help_record(ctx) for option in options)
            with formatter.section(group):
                formatter.write_dl([record for record in records if record is not None])

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.meta.get(TYPED) is not None:  # else others use this process
            keep_freed()
        with listening():
            return super().invoke(ctx)


class Group(click.Group):
    """A group that answers a name that it does not have with the nearest."""

    command_class = Command
    group_class = type

    def __init__(self, *arguments: Any, **facts: Any) -> None:
        super().__init__(*arguments, **facts)
        self.params += talking_options()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            known = self.list_commands(ctx)
            hint = did_you_mean(name, known)
            ctx.fail(f"command '{name}' is unknown; use one of {', '.join(known)}{hint}")
        return super().resolve_command(ctx, args)


class FileOrChoice(Choice):
    """One of some names, or ``other``, which is known by its ``mark``, such as FILE.py:CLASS."""

    def __init__(self, choices: Iterable[str], other: str, mark: str = ".py:") -> None:
        super().__init__(list(choices))
        self.others = (other,)
        self._mark = mark

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if self._mark in str(value):
            return value
        if self._mark == ".py:" and str(value).endswith(".py"):
            self.fail(f"'{value}' is a file; name its class too: {value}:CLASS", param, ctx)
        return super().convert(value, param, ctx)


class Real(click.FloatRange):
    """A finite number within limits (nan and inf are refused)."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            float(value)
        except ValueError:
            self.fail(f"'{value}' is not a number; give one without a unit.", param, ctx)
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        return super()._describe_range() if (self.min, self.max) != (None, None) else ""


class Quantity(click.ParamType):
    """A quantity above 0 as in platforms, such as 25Gf or 10Gbps; a bare number is in SI."""

    name = "quantity"

    def __init__(self, read: Callable[[str], float]) -> None:
        self._read = read

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = self._read(str(value))
        except UnitError as fault:
            self.fail(f"{fault}.", param, ctx)
        if not number > 0.0:
            self.fail(f"'{value}' is not above 0.", param, ctx)
        return number


class Count(click.IntRange):
    """A whole number from 1 on."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value}: give 1 or more", param, ctx)


FINITE = Real()
POSITIVE = Real(min=0.0, min_open=True)
NOT_NEGATIVE = Real(min=0.0)
COUNT = Count()
SPEED = Quantity(parse_speed)
BANDWIDTH = Quantity(parse_bandwidth)
SEED = click.IntRange(min=0)


def platform_argument(command: Any) -> Any:
    """The argument PLATFORM, passed on as platform_file."""
    return click.argument("platform_file", metavar="PLATFORM", type=PATH)(command)


def workload_argument(command: Any) -> Any:
    """The argument WORKLOAD, passed on as workload_file."""
    return click.argument("workload_file", metavar="WORKLOAD", type=PATH)(command)


def conf_argument(command: Any) -> Any:
    """The argument CONF, a slurm.conf, passed on as conf_file."""
    return click.argument("conf_file", metavar="CONF", type=PATH)(command)


def output_option(what: str, **options: Any) -> Any:
    """``-o`` or ``--output``: the file that a command writes."""
    return click.option(
        "-o", "--output", metavar="FILE", type=PATH, help=what, callback=_named_file, **options
    )


def _named_file(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    if value == Path("-"):
        raise click.BadParameter("'-' can only be read from; name a file.")
    return value


def directory_option(what: str) -> Any:
    """``-o`` or ``--output``: the directory of results that a command writes, looked at early."""
    return click.option(
        *("-o", "--output"),
        metavar="DIR",
        type=PATH,
        help=what,
        callback=_results_directory,
        cls=GroupedOption,
        group=rows.RESULTS,
    )


def json_option(command: Any) -> Any:
    """``--json``, passed on as as_json."""
    return click.option(
        *("--json", "as_json"),
        is_flag=True,
        help="Print the summary as JSON.",
        cls=GroupedOption,
        group=rows.RESULTS,
    )(command)


def _results_directory(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    from ptaskmodel.results.directory import check_output_directory

    if value is not None:
        check_output_directory(value)
    return value


TYPES: dict[str, click.ParamType] = {
    rows.FILE: PATH,
    rows.TEXT: click.STRING,
    rows.PAIRS: click.STRING,
    rows.NUMBER: FINITE,
    rows.POSITIVE: POSITIVE,
    rows.NOT_NEGATIVE: NOT_NEGATIVE,
    rows.COUNT: COUNT,
    rows.SEED: SEED,
}


def options_of(options: Iterable[rows.Option]) -> Callable[[Any], Any]:
    """Add the options of some rows to a command."""

    def add(command: Any) -> Any:
        for row in reversed(tuple(options)):
            command = _option_of(row)(command)
        return command

    return add


def _option_of(row: rows.Option) -> Callable[[Any], Any]:
    """The option of a command that a row describes."""
    facts: dict[str, Any] = {"multiple": row.many or row.type == rows.PAIRS, "metavar": row.metavar}
    if row.type == rows.FLAG:
        facts |= {"is_flag": True, "flag_value": not row.default, "default": row.default}
    elif not isinstance(row.type, str):
        facts["type"] = (
            Choice(row.type) if row.other is None else FileOrChoice(row.type, *row.other)
        )
    else:
        facts["type"] = TYPES[row.type]
    if row.type == rows.FILE:
        facts["metavar"] = row.metavar or "FILE"
    if row.type == rows.PAIRS:
        facts["callback"] = _pairs
    elif row.type != rows.FLAG and row.default not in (None, ()):
        facts |= {"default": row.default, "show_default": True}
    what = row.help if row.unit is None else f"{row.help.removesuffix('.')}, {row.unit}."
    return click.option(
        row.written, row.name, help=what, cls=GroupedOption, group=row.group, **facts
    )


def _pairs(context: click.Context, option: click.Parameter, given: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE arguments of an option as a dictionary; SimulationError for others."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key or not value:
            raise SimulationError(f"{option.opts[0]}: '{text}' is not {option.metavar}")
        if key in found:
            raise SimulationError(f"{option.opts[0]}: '{text}' is the second of '{key}'; give one")
        found[key] = value
    return found


HELP = {"help_option_names": ["-h", "--help"]}
# What was typed, in a context's `meta`; None where there is no command that can be run once more.
TYPED = "ptaskmodel.typed"
