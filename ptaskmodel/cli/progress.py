"""Bars of progress on standard error, where that is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click


@contextlib.contextmanager
def bar_of_simulation(
    total: int, hidden: bool, third: str | None = None
) -> Iterator[Callable[..., None] | None]:
    """A function to call with the date (s) and the number of tasks that ended; None if hidden.

    third: what to call the third number that it is given (None: it is not shown).
    """
    if hidden or not sys.stderr.isatty():
        yield None
        return
    bar: Any
    with click.progressbar(
        length=total, label="simulating", file=sys.stderr, show_eta=False, show_percent=True
    ) as bar:

        def progress(now_s: float, ended: int, more: int, *_: Any) -> None:
            bar.label = f"{now_s:.6g} s" + (f", {more} {third}" if third else "")
            bar.update(ended - bar.pos)

        yield progress
        bar.update(total - bar.pos)
