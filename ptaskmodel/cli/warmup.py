"""``ptaskmodel warmup``: compile the simulation kernels ahead."""

from __future__ import annotations

import time

import click


@click.command()
def warmup() -> None:
    """Compile the simulation kernels, so that the first simulation need not."""
    from ptaskmodel import kernel_cache, simulation
    from ptaskmodel.batch.compiled_loop import load_kernel

    began = time.perf_counter()
    simulation.warmup()
    load_kernel()
    where = kernel_cache.cache_directory()
    took = f"ready in {time.perf_counter() - began:.1f} s"
    if where is None:
        click.echo(
            f"{took}; no directory to keep them in can be written, every run compiles: "
            + kernel_cache.REMEDY
        )
    else:
        click.echo(f"{took}, kept in {where}")
