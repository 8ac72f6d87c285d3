"""``ptaskmodel trace``: look at time-independent traces and pack them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ptaskmodel.cli.parameters import COUNT, PATH


@click.group()
def trace() -> None:
    """Look at time-independent traces of MPI applications, pack them."""


@trace.command()
@click.argument("traces", metavar="TRACES", type=PATH)
@click.option("--ranks", type=COUNT, help="[default: as many as TRACES has]")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def info(traces: Path, ranks: int | None, as_json: bool) -> None:
    """Say how many ranks there are, and how many actions of each kind."""
    from ptaskmodel.replay import read_trace

    found = read_trace(traces, ranks)
    if as_json:
        facts = {"ranks": found.ranks, "actions": found.counts(), "notes": list(found.notes)}
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"{'ranks':<14}{found.ranks:,}")
    for name, count in found.counts().items():
        click.echo(f"{name:<14}{count:,}")
    for note in found.notes:
        click.echo(f"{'note':<14}{note}")


@trace.command()
@click.argument("traces", metavar="TRACES", type=PATH)
@click.argument("output", metavar="OUTPUT.npz", type=PATH)
@click.option("--ranks", type=COUNT, help="[default: as many as TRACES has]")
def pack(traces: Path, output: Path, ranks: int | None) -> None:
    """Write TRACES in one compact file, which reads ten times as fast."""
    from ptaskmodel.replay import read_trace, write_trace

    found = read_trace(traces, ranks)
    write_trace(found, output)
    click.echo(f"{output}: {found.ranks} ranks, {len(found):,} actions")
