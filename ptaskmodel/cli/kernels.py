"""Compilation of the kernels, which the very first simulation waits for."""

from __future__ import annotations

import click

from ptaskmodel.memory import collector_at_rest

TYPICAL_S = "20 to 60"


def announce_kernels() -> bool:
    """Say on stderr that kernels will be compiled, if they will; whether they can be kept then."""
    with collector_at_rest():
        import ptaskmodel.simulation.simulation  # noqa: F401  (the slow import)
        from ptaskmodel import kernel_cache

    if kernel_cache.cached():
        return False
    if kernel_cache.cache_directory() is None:
        click.echo(
            "compiling the simulation kernels, at every run: no cache directory can be written; "
            + kernel_cache.REMEDY,
            err=True,
        )
        return False
    click.echo(
        f"compiling the simulation kernels (once, about {TYPICAL_S} s; "
        "`ptaskmodel warmup` does it ahead)",
        err=True,
    )
    return True


def ready_kernels() -> None:
    """Compile the kernels if that has not been done, and say so on stderr."""
    if announce_kernels():
        from ptaskmodel import simulation

        simulation.warmup(everything=False)
