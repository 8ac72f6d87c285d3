"""``ptaskmodel init``: a directory to begin a project in."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import PATH
from ptaskmodel.errors import PTaskModelError


@click.command(cls=Command)
@click.argument("name", metavar="NAME", type=PATH)
def init(name: Path) -> None:
    """Make the directory NAME with a platform, tasks, a notebook and what to do with them.

    Nothing that is there is replaced: NAME must not exist, or be empty.
    """
    from ptaskmodel.cli.starting import PROJECT, starting_files
    from ptaskmodel.files import whole_directory

    if name.is_dir() and any(name.iterdir()):
        raise PTaskModelError(f"{name}: is there and not empty; give another name")
    files = starting_files(PROJECT)
    with whole_directory(name, lambda _: ()) as place:
        for file, text in files.items():
            (place / file).write_text(text, encoding="utf-8")
    click.echo(f"written   {len(files)} files in {name}: {', '.join(files)}")
    click.echo(f"next      cd {name}")
    click.echo("          ptaskmodel simulate platform.xml tasks.json --attribution -o results")
    click.echo("          ptaskmodel report results -o report.html")
    click.echo("what if   copy platform.xml to faster.xml, change the copy, then")
    click.echo("          ptaskmodel simulate faster.xml tasks.json --attribution -o results-2")
    click.echo("          ptaskmodel compare results results-2")
