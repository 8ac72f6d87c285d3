"""``ptaskmodel warmup``: there is nothing to do any more. Until 0.3."""

from __future__ import annotations

import click

from ptaskmodel.cli.command import Command


@click.command(cls=Command, deprecated="kernels come with the package; it goes with 0.3")
def warmup() -> None:
    """Do nothing: kernels are compiled when the package is built."""
    click.echo("nothing to do: kernels are compiled when the package is built")
