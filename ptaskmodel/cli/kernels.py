"""Compilation of the kernels, which the very first simulation waits for, unless it is small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ptaskmodel.cli.talking import CLEAR_LINE, is_quiet, on_terminal

if TYPE_CHECKING:
    from ptaskmodel.kernel_sets import Stand

TYPICAL = "about 15 to 40 s"
# More sets than those take longer.
FEW, TYPICAL_OF_MANY = 4, "a minute or two"


def ready_kernels(
    sets: Sequence[str] | None = None, *, said: bool = True, size: int | None = None
) -> None:
    """Compile what is missing of sets of kernels (see `kernel_sets`; None: those of a simulation).

    What is done is said on stderr: in a line before, and on a terminal as it goes. said: also that
    it can be done ahead.

    size: how many tasks, jobs or actions the command is about, given where it has said and written
    nothing yet. If they are few, the whole command is tried without compiled kernels, too (see
    `trial`). Raises Exit if that is over first.
    """
    from ptaskmodel import kernel_cache, kernel_sets

    wanted = kernel_sets.missing(kernel_sets.SIMULATION if sets is None else sets)
    if not wanted:
        return
    from ptaskmodel.cli.trial import ALONE_S, PATIENCE_S, trial

    takes = TYPICAL if len(wanted) <= FEW else TYPICAL_OF_MANY
    can_keep = kernel_cache.cache_directory() is not None
    with trial(size, f"compiles them, once ({takes})") as tried:
        tried.wait(ALONE_S if can_keep else PATIENCE_S)
        if not can_keep:
            click.echo(
                "compiling kernels, at every run: no cache directory can be written; "
                + kernel_cache.REMEDY,
                err=True,
            )
            return
        if not is_quiet():
            ahead = "; `ptaskmodel warmup` does it ahead" if said else ""
            click.echo(f"compiling kernels (once, {takes}{ahead})", err=True)
        is_shown = on_terminal() and not is_quiet()

        def told(stand: Stand) -> None:
            if is_shown:
                _show(stand)
            tried.look()

        try:
            kernel_sets.compile_sets(wanted, told)
        finally:
            if is_shown:
                click.echo(CLEAR_LINE, err=True, nl=False)


def _show(stand: Stand) -> None:
    """One line, written over itself."""
    what = f": {', '.join(stand.running)}" if stand.running else ""
    sets = f"{len(stand.done)} of {stand.total} sets"
    text = f"{stand.kernels} kernels compiled, {sets}, {stand.elapsed_s:.0f} s{what}"
    click.echo(f"{CLEAR_LINE}{text}", err=True, nl=False)
