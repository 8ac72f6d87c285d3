"""``ptaskmodel demo``, ``init`` and ``warmup``: first steps with an installed package.

``demo`` runs the first example. ``init`` makes the directory of a new project. Their files are
package data. ``warmup`` does nothing any more; it stays until 0.3.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import PATH
from ptaskmodel.errors import PTaskModelError

WHAT = """\
Two hosts of 100 flop/s, a link of 100 B/s between them, three tasks:

  T1  from 0 s: 1000 flop on each host, and 600 bytes from a to b, all in step
  T2  from 1 s: 1000 bytes from a to b
  T3  from 6 s: 300 flop on a and 1000 flop on b, in step
"""
SEEN = """
T1 alone is limited by its computation. T2 comes: the link gives each of them half of its 100 B/s.
T3 comes: host b gives T1 and T3 half of its speed each; T1 now sends 30 B/s, which leaves 70 to T2.
"""
DEMO, PROJECT = "demo", "project"


@click.command(cls=Command)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=PATH,
    default=Path("ptaskmodel-demo"),
    show_default=True,
    help="Directory for its files and results.",
)
def demo(output: Path) -> None:
    """Run the first example and explain its result.

    DIR gets its platform, its tasks and the results; an earlier demo there is replaced.
    """
    from ptaskmodel.cli.show import run_text
    from ptaskmodel.files import whole_file
    from ptaskmodel.platform import load_platform
    from ptaskmodel.runs.options import SimulationOptions
    from ptaskmodel.runs.simulate import simulate_into
    from ptaskmodel.workload.formats.tasks_json import load_tasks

    files = starting_files(DEMO)
    known = {*files, "results"}
    if output.exists() and (not output.is_dir() or {p.name for p in output.iterdir()} - known):
        raise PTaskModelError(f"{output}: holds other things than a demo; give --output DIR")
    output.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        with whole_file(output / file) as stream:
            stream.write(text)
    click.echo(WHAT)
    inputs = [output / "platform.xml", output / "tasks.json"]
    run = simulate_into(
        output / "results",
        load_platform(inputs[0]),
        load_tasks(inputs[1]),
        SimulationOptions(attribution=True),
        inputs=inputs,
    )
    click.echo(run_text(run))
    click.echo(SEEN)
    click.echo(f"This was  ptaskmodel simulate {inputs[0]} {inputs[1]}", nl=False)
    click.echo(f" --attribution -o {output / 'results'}")
    click.echo(f"See it    ptaskmodel report {output / 'results'}")
    click.echo("Your own  ptaskmodel init my-study")


@click.command(cls=Command)
@click.argument("name", metavar="NAME", type=PATH)
def init(name: Path) -> None:
    """Create the directory NAME with a platform, tasks, a notebook and instructions.

    Nothing is overwritten: NAME must not exist, or be empty.
    """
    from ptaskmodel.directories import whole_directory

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


def starting_files(kind: str) -> dict[str, str]:
    """Names and texts of the files of DEMO or PROJECT, sorted by name."""
    places = resources.files("ptaskmodel.cli").joinpath("starting", kind).iterdir()
    return {
        place.name: place.read_text(encoding="utf-8")
        for place in sorted(places, key=lambda place: place.name)
        if place.is_file()
    }


@click.command(cls=Command, deprecated="kernels come with the package; it goes with 0.3")
def warmup() -> None:
    """Do nothing: kernels are compiled when the package is built."""
    click.echo("nothing to do: kernels are compiled when the package is built")
