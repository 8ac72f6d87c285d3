"""``ptaskmodel warmup``: compile the simulation kernels ahead."""

from __future__ import annotations

import time

import click

from ptaskmodel.cli.command import Command


@click.command(cls=Command)
def warmup() -> None:
    """Compile the simulation kernels, so that the first simulation need not."""
    from ptaskmodel import kernel_cache
    from ptaskmodel.cli.kernels import ready_kernels
    from ptaskmodel.kernel_sets import SETS, missing

    began = time.perf_counter()
    ready_kernels(tuple(SETS), said=False)
    where = kernel_cache.cache_directory()
    if where is None:
        return
    if failed := missing():
        raise click.ClickException(f"these kernels cannot be compiled: {', '.join(failed)}")
    click.echo(f"ready in {time.perf_counter() - began:.1f} s, kept in {where}")
