"""``ptaskmodel demo``: the first example, which an installed package brings along."""

from __future__ import annotations

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


@click.command(cls=Command)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=PATH,
    default=Path("ptaskmodel-demo"),
    show_default=True,
    help="Where its files and results go.",
)
def demo(output: Path) -> None:
    """Run the first example and say what there is to see.

    DIR gets its platform, its tasks and the results; an earlier demo there is replaced.
    """
    from ptaskmodel.cli.show import run_text
    from ptaskmodel.cli.starting import DEMO, starting_files
    from ptaskmodel.files import whole_file
    from ptaskmodel.platform import load_platform
    from ptaskmodel.results.runs import SimulationOptions, simulate_into
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
