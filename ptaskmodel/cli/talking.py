"""What is said on standard error while a command runs: by `logging`, below the level chosen."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from ptaskmodel.errors import cut

LOGGER = logging.getLogger("ptaskmodel")
LEVELS = ("debug", "info", "warning", "error")
CLEAR_LINE = "\r\033[K"
PREFIX = "ptaskmodel: "

_told: set[str] = set()  # by this process


class Teller(logging.Handler):
    """Writes each record as one line on standard error, over a line of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        tell(f"{level}{record.getMessage()}")


def tell(message: str) -> None:
    """One line on standard error, none too long, whatever the message holds."""
    line = cut(" ".join(message.splitlines()))
    _told.add(line)
    clear = CLEAR_LINE if on_terminal() else ""
    text = f"{clear}{PREFIX}{line.encode('utf-8', 'backslashreplace').decode()}"
    click.echo(text, err=True)


def tell_once(line: str) -> None:
    """A line that another process of the same command told, unless this one told it, too."""
    message = line.removeprefix(PREFIX)
    if message not in _told:
        tell(message)


def on_terminal() -> bool:
    """Whether somebody looks at standard error as it is written."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_verbose() -> bool:
    """Whether more than warnings is asked for."""
    return LOGGER.isEnabledFor(logging.INFO)


def is_quiet() -> bool:
    """Whether nothing but errors is asked for."""
    return not LOGGER.isEnabledFor(logging.WARNING)


def set_level(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Take -v, -q or --log-level."""
    if not value:
        return
    if parameter.name == "verbose":
        LOGGER.setLevel(logging.INFO if value == 1 else logging.DEBUG)
    elif parameter.name == "quiet":
        LOGGER.setLevel(logging.ERROR)
    else:
        LOGGER.setLevel(value.upper())
