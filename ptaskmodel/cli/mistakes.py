"""What is said of a wrong command line: one line, with what to give instead."""

from __future__ import annotations

import re

import click

_OF_BATSIM = ("-p", "-w", "-e", "-s", "--platform", "--workload", "--export")
_WITHOUT_SCHEDULER = ("--no-sched", "--batexec")
_NOT_WHOLE = re.compile(r"is not a valid integer( range)?$")


def mistake_text(error: click.UsageError) -> str:
    """One line on a mistake in a command line: the command, what is wrong, what it takes."""
    context = error.ctx
    message = " ".join(error.format_message().split()).rstrip(".")
    if context is None:
        return message
    command = context.command_path.partition(" ")[2]
    if isinstance(error, click.MissingParameter) and error.param is not None:
        message = f"{_missing(error.param)}; give {_usage(context)}"
    elif isinstance(error, click.BadParameter):
        return _NOT_WHOLE.sub("is not a whole number; give one", message)
    elif command == "batch" and getattr(error, "option_name", None) in _OF_BATSIM:
        message += "; give PLATFORM WORKLOAD -o DIR, or take Batsim's options with `batsim`"
    elif command == "report" and message.startswith("Got unexpected extra argument"):
        message = "a page is of one run; for several `ptaskmodel compare A B --page FILE`"
    elif getattr(error, "option_name", None) in _WITHOUT_SCHEDULER:
        message = f"No such option '{error.option_name}'; use ptaskmodel batch --policy fcfs"  # type: ignore[attr-defined]
    what = f"{command}: {message}" if command else message
    return f"{what} (`{context.command_path} --help` says more)"


def _missing(parameter: click.Parameter) -> str:
    """What is missing, and what it may be."""
    name = parameter.human_readable_name
    if isinstance(parameter, click.Option):
        name = max(parameter.opts, key=len)
    if isinstance(parameter.type, click.Choice):
        return f"{name} is missing, one of {', '.join(parameter.type.choices)}"
    return f"{name} is missing"


def _usage(context: click.Context) -> str:
    """The command with what it cannot do without."""
    parts = [context.command_path]
    for parameter in context.command.params:
        if isinstance(parameter, click.Argument):
            parts.append(parameter.human_readable_name)
        elif parameter.required:
            parts.append(f"{parameter.opts[0]} {parameter.metavar or str(parameter.name).upper()}")
    return " ".join(parts)
