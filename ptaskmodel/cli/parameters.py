"""Types of options and arguments, and options and arguments that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel import options as rows
from ptaskmodel.cli.command import Choice, GroupedOption, tell
from ptaskmodel.errors import SimulationError, WorkloadError
from ptaskmodel.units import UnitError, parse_bandwidth, parse_speed

if TYPE_CHECKING:
    from ptaskmodel.workload.formats import Cleaning
    from ptaskmodel.workload.jobs import Workload

PATH = click.Path(path_type=Path)


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
        facts |= {"default": row.default, "show_default": row.default != ""}
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


# Workloads that commands read and write


def cleaning_options(command: Any) -> Any:
    """The options that say how a log becomes a workload."""
    for option in (
        click.option(
            "--processors-per-host",
            type=COUNT,
            default=1,
            show_default=True,
            help="Processors of a host, for an SWF log.",
        ),
        click.option("--max-hosts", type=COUNT, help="Leave out larger jobs of an SWF log."),
        click.option(
            "--zero-run-time",
            default="1",
            show_default=True,
            metavar="SECONDS",
            help="Run time given to jobs of 0 s, or 'drop'.",
        ),
        click.option("--no-walltimes", is_flag=True, help="Ignore the requested times of a log."),
    ):
        command = option(command)
    return command


def cleaning_of(
    processors_per_host: int, max_hosts: int | None, zero_run_time: str, no_walltimes: bool
) -> Cleaning:
    """What the options of `cleaning_options` mean."""
    from ptaskmodel.workload.formats import Cleaning

    return Cleaning(processors_per_host, _zero(zero_run_time), max_hosts, not no_walltimes)


def read_clean(file: Path, **cleaning: Any) -> Workload:
    from ptaskmodel.workload.reading import read_workload

    return read_workload(file, cleaning_of(**cleaning))


def _zero(text: str) -> float | None:
    if text == "drop":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise WorkloadError(f"--zero-run-time: '{text}' is neither a number of seconds nor 'drop'")
    return seconds


def write_made(made: Workload, output: Path, kind: str | None, version: int) -> None:
    from ptaskmodel.workload.formats import Writing
    from ptaskmodel.workload.reading import write_workload

    write_workload(made, output, kind, Writing(version))
    for note in made.notes:
        tell(f"note: {note}")
    click.echo(f"{output}: {len(made.jobs)} jobs, {len(made.profiles)} profiles")


def output_options(command: Any) -> Any:
    """The format of the workload that a command writes."""
    from ptaskmodel.workload.formats import JOBS, formats_of

    names = Choice(formats_of(JOBS))
    for option in (
        click.option("--format", "kind", type=names, help="[default: by the name]"),
        click.option(
            "--batsim-version",
            "version",
            type=click.IntRange(2, 5),
            default=5,
            show_default=True,
        ),
    ):
        command = option(command)
    return command


made_option = output_option(
    "The workload to write; the end of its name chooses the format.", required=True
)
