"""What the command line says of compilation, which the very first simulation waits for."""

from __future__ import annotations

import click

TYPICAL_S = 20


def tell_of_compilation() -> None:
    """A line on stderr if the kernels must be compiled first."""
    from ptaskmodel.jit import cached

    if not cached():
        click.echo(
            f"compiling the simulation kernels (once, about {TYPICAL_S} s; "
            "`ptaskmodel warmup` does it ahead)",
            err=True,
        )
