"""A small run tried without compiled kernels, which gives the same bits, until they are compiled.

Kernels are plain functions for a Python without numba. That is too slow for much, but a first
example is over long before it is compiled.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import IO

import click

from ptaskmodel.cli.command import TYPED
from ptaskmodel.cli.talking import is_quiet, tell_once
from ptaskmodel.files import STDIN
from ptaskmodel.guarding import end_guarded, start_guarded
from ptaskmodel.kernel_sets import environment_of_own

# Of a run that is worth a try: tasks, jobs or actions at most.
SMALL = 5_000
# It is left alone at first, then given up after so long.
ALONE_S, PATIENCE_S = 2.0, 15.0
# How long it may take to clean up.
LEAVING_S = 2.0


@contextlib.contextmanager
def trial(size: int | None, ahead: str) -> Iterator[Trial]:
    """The whole command tried in another process, with interpreted kernels.

    Where it cannot be tried, goes wrong, or takes too long, nothing is seen of it. size: how many
    tasks, jobs or actions it is about; None: it must not be tried. ahead: what warmup does.
    """
    typed = click.get_current_context().find_root().meta.get(TYPED)
    if typed is None or STDIN in typed or size is None or size > SMALL or not sys.executable:
        yield Trial()
        return
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as told:
        process = start_guarded(
            [sys.executable, "-P", "-m", "ptaskmodel", *typed],
            env=environment_of_own() | {"NUMBA_DISABLE_JIT": "1"},
            stdout=output,
            stderr=told,
        )
        tried = Running(process, output, told, ahead)
        try:
            yield tried
        finally:
            tried.give_up()


class Trial:
    """Nothing is tried."""

    def wait(self, seconds: float) -> None:
        """Do nothing else for a while. Raises Exit if it is over."""

    def look(self) -> None:
        """Give it up if it is time. Raises Exit if it is over: then all is said and written."""


class Running(Trial):
    """A process that tries it, with what it writes."""

    def __init__(
        self, process: subprocess.Popen[bytes], output: IO[bytes], told: IO[bytes], ahead: str
    ) -> None:
        self._process, self._output, self._told = process, output, told
        self._ahead, self._began = ahead, time.monotonic()

    def wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.look()

    def look(self) -> None:
        if self._process.poll() == 0:
            self._say()
            raise click.exceptions.Exit(0)
        if time.monotonic() > self._began + PATIENCE_S:
            self.give_up()

    def give_up(self) -> None:
        """End it; what it has half written goes."""
        if self._process.poll() is not None:
            return
        end_guarded(self._process, LEAVING_S, patient=False)

    def _say(self) -> None:
        for file in (self._told, self._output):
            file.seek(0)
        for line in self._told.read().decode().splitlines():
            tell_once(line)
        if not is_quiet():
            click.echo(f"run without compiled kernels; `ptaskmodel warmup` {self._ahead}", err=True)
        click.echo(self._output.read().decode(), nl=False)
