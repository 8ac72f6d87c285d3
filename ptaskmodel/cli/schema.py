"""``ptaskmodel schema``: JSON Schemas of what is read, written and printed."""

from __future__ import annotations

import json

import click

from ptaskmodel.cli.command import Command


@click.command(cls=Command)
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of NAME; without it, list the names.

    Tables (CSV) are described by their lines: an object with a property for each column, null
    where the field is empty.
    """
    from ptaskmodel.results.schemas import schema_names, schema_of

    if name is None:
        names = schema_names()
        width = max(map(len, names)) + 2
        for known, what in names.items():
            click.echo(f"{known:<{width}}{what}")
        return
    click.echo(json.dumps(schema_of(name), indent=2, ensure_ascii=False))
