"""Kinds of options and arguments that the commands share: names, finite numbers, files.

KEY=VALUE arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Choice as Choice
from ptaskmodel.engine.usage.network_models import COUNTS, NETWORK_MODELS
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.results import TRACE_FORMATS
from ptaskmodel.sharing.rules import SOLVERS
from ptaskmodel.units import UnitError, parse_bandwidth, parse_speed, parse_time, split_float
from ptaskmodel.workload.transforms import PATTERNS

PATH = click.Path(path_type=Path)

PROFILES = {
    "delay": "delay: each job lasts its time alone",
    "ptask": "ptask: delays become parallel tasks by a rule, traces the bundle of what they do",
    "smpi": "smpi: delays and parallel tasks become traces, replayed",
}


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


def output_option(what: str, **options: Any) -> Any:
    """``-o`` or ``--output``: the file that a command writes."""
    return click.option(
        "-o", "--output", metavar="FILE", type=PATH, help=what, callback=_named_file, **options
    )


def _named_file(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    if value == Path("-"):
        raise click.BadParameter("'-' is read from, not written to; name a file.")
    return value


def directory_option(what: str) -> Any:
    """``-o`` or ``--output``: the directory of results that a command writes, looked at early."""
    return click.option(
        "-o", "--output", metavar="DIR", type=PATH, help=what, callback=_results_directory
    )


def _results_directory(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    from ptaskmodel.results.directory import check_output_directory

    if value is not None:
        check_output_directory(value)
    return value


def model_options(command: Any) -> Any:
    """The options that say how the platform is shared."""
    for option in (
        click.option(
            "--count",
            type=Choice(COUNTS),
            default="task",
            show_default=True,
            help="Who counts as one competitor on a shared link.",
        ),
        click.option(
            "--network-model",
            type=Choice(NETWORK_MODELS),
            help="L07: parallel tasks; the others: flows  [default: as the platform says, else "
            "L07]",
        ),
        click.option("--solver", type=Choice(SOLVERS), help="Who gets how much  [default: bmf]"),
    ):
        command = option(command)
    return command


def calibration_options(what: str) -> Any:
    """``--calibration`` and ``--group``: parameters laid on ``what``."""

    def add(command: Any) -> Any:
        for option in (
            click.option(
                "--group",
                metavar="LABEL=VALUE,...",
                help="The group of the calibration, if it has several.",
            ),
            click.option(
                "--calibration",
                metavar="FILE",
                type=PATH,
                help=f"Calibrated parameters (of `calibrate --model ptask`) for {what}.",
            ),
        ):
            command = option(command)
        return command

    return add


def check_group(calibration: Path | None, group: str | None) -> None:
    """Raises PTaskModelError for a group of no calibration."""
    if calibration is None and group is not None:
        raise PTaskModelError("--group chooses a group of a calibration; give --calibration FILE")


def profile_options(*kinds: str) -> Any:
    """``--profiles``, one of the kinds, the first by default, and the rule of ``ptask``."""

    def add(command: Any) -> Any:
        for option in (
            click.option(
                "--pattern",
                type=Choice(PATTERNS),
                default="alltoall",
                show_default=True,
                help="Who sends to whom, for --profiles ptask.",
            ),
            click.option(
                "--ratio",
                type=NOT_NEGATIVE,
                default=0.5,
                show_default=True,
                help="Communication over computation, for --profiles ptask.",
            ),
            click.option(
                "--profiles",
                type=Choice(kinds),
                default=kinds[0],
                show_default=True,
                help="; ".join(PROFILES[kind] for kind in kinds if kind in PROFILES) + ".",
            ),
        ):
            command = option(command)
        return command

    return add


def job_options(command: Any) -> Any:
    """Options of all commands that run the jobs of a workload: what they read."""
    for option in (
        click.option(
            "--processors-per-host", type=COUNT, default=1, show_default=True, help="Of an SWF log."
        ),
        click.option(
            "--storage", "storages", multiple=True, metavar="NAME=HOST", help="Repeatable."
        ),
    ):
        command = option(command)
    return command


def job_results_options(command: Any) -> Any:
    """Options of all commands that run the jobs of a workload: what they measure, show, write."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
        click.option("--plots", is_flag=True, help="Write gantt.png and load.png there too."),
        recording_options("job"),
        directory_option(
            "Write jobs.csv, schedule.json, ... there (earlier results are replaced)."
        ),
        click.option("--no-contention", is_flag=True, help="Do not compute times alone."),
    ):
        command = option(command)
    return command


def slurm_options(command: Any) -> Any:
    """What a Slurm, simulated or real, is given: its configuration, workload, machine, accounts."""
    for option in (
        click.option(
            "--processors-per-node",
            type=COUNT,
            help="Of an SWF log: jobs ask for whole nodes of so many  [default: for processors]",
        ),
        click.option(
            "--accounts",
            metavar="FILE",
            type=PATH,
            help="Accounts, users and QOSs: what sacctmgr is told, a line each, or a dump of it.",
        ),
        profile_options("as-given", "ptask", "smpi"),
        click.option(
            "--platform",
            "platform_file",
            metavar="FILE",
            type=PATH,
            help="SimGrid XML: hosts are the nodes, and jobs that are parallel tasks share it.",
        ),
        click.argument("workload_file", metavar="WORKLOAD", type=PATH),
        click.argument("conf_file", metavar="CONF", type=PATH),
    ):
        command = option(command)
    return command


def recording_options(what: str) -> Any:
    """The options that say what to record of a run of tasks or jobs."""

    def add(command: Any) -> Any:
        for option in (
            click.option(
                "--energy",
                is_flag=True,
                help=f"Also count the joules of hosts, links and {what}s, and the power over time.",
            ),
            click.option(
                "--attribution",
                is_flag=True,
                help=f"Also write what limited each {what}, its slowdown, and the utilisation "
                "(needs --output).",
            ),
            click.option(
                "--trace-limit",
                metavar="GB",
                type=POSITIVE,
                help="Stop when the traces are larger than that, about.",
            ),
            click.option(
                "--trace",
                "traces",
                multiple=True,
                type=Choice(TRACE_FORMATS),
                help="Also write who used what and when (may be given several times; needs "
                "--output).",
            ),
        ):
            command = option(command)
        return command

    return add


def pairs(given: tuple[str, ...], option: str, convert: Callable[[str], Any]) -> dict[str, Any]:
    """KEY=VALUE arguments of an option as a dictionary; SimulationError for others."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key or not value:
            raise SimulationError(f"{option}: '{text}' is not KEY=VALUE")
        try:
            found[key] = convert(value)
        except UnitError as error:
            raise SimulationError(f"{option}: {key}: {error}") from None
    return found


def number_or_text(text: str) -> int | float | str:
    """A value as what it looks like."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def number_time_or_text(text: str) -> int | float | str:
    """The same; a number with a unit of time (``1h``) is that in seconds. Raises UnitError."""
    value = number_or_text(text)
    if isinstance(value, str):
        try:
            split_float(value)
        except UnitError:
            return value
        return parse_time(value)
    return value
