"""Base classes of commands and groups, and a line on standard error.

Groups and choices suggest the nearest name for a wrong one. ``--help`` imports this alone: what
commands take is in `parameters`, what they say while they run in `progress`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from ptaskmodel.errors import BETWEEN_PROBLEMS, cut
from ptaskmodel.memory import keep_freed
from ptaskmodel.remarks import listening

LEVELS = ("debug", "info", "warning", "error")
CLEAR_LINE = "\r\033[K"
PREFIX = "ptaskmodel: "
HELP = {"help_option_names": ["-h", "--help"]}
# What was typed, in a context's `meta`; None where there is no command that can be run once more.
TYPED = "ptaskmodel.typed"


def tell(message: str) -> None:
    """One line on standard error, none too long, whatever the message holds.

    The problems of a file (see `remarks.Account`) are a line each.
    """
    head, *problems = message.split(BETWEEN_PROBLEMS)
    clear = CLEAR_LINE if on_terminal() else ""
    for begin, part in ((clear + PREFIX, head), *(("  ", each) for each in problems)):
        line = cut(" ".join(part.splitlines()))
        click.echo(f"{begin}{line.encode('utf-8', 'backslashreplace').decode()}", err=True)


def on_terminal() -> bool:
    """Return whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


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


def _set_level(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Take -v, -q or --log-level."""
    if not value:
        return
    import logging

    if parameter.name == "verbose":
        level = logging.INFO if value == 1 else logging.DEBUG
    else:
        level = logging.ERROR if parameter.name == "quiet" else value.upper()
    logging.getLogger("ptaskmodel").setLevel(level)


def talking_options() -> list[click.Option]:
    """How much a command says on standard error; what is given last counts."""
    return [
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_set_level,
            help="Print more messages, and the traceback of a fault; -vv: all.",
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_set_level,
            help="Print only results and errors.",
        ),
        click.Option(
            ["--log-level"],
            type=Choice(LEVELS),
            expose_value=False,
            callback=_set_level,
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
    """A group that answers a name that it does not have with the nearest.

    arguments, facts: as of `click.Group`."""

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
