"""Compilation of the kernels, which the very first simulation waits for."""

from __future__ import annotations

import click

from ptaskmodel.memory import collector_at_rest

TYPICAL_S = 20


def ready_kernels() -> None:
    """Compile the kernels if that has not been done, and say so on stderr."""
    with collector_at_rest():
        import ptaskmodel.simulation.simulation  # noqa: F401  (the slow import)
        from ptaskmodel import jit, simulation

    if jit.cached():
        return
    if jit.cache_directory() is None:
        click.echo("compiling the simulation kernels (no cache directory can be written)", err=True)
        return
    click.echo(
        f"compiling the simulation kernels (once, about {TYPICAL_S} s; "
        "`ptaskmodel warmup` does it ahead)",
        err=True,
    )
    simulation.warmup(everything=False)
