"""``ptaskmodel compare``: what changed between two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ptaskmodel.cli.table import text_table

if TYPE_CHECKING:
    from ptaskmodel.results.comparison import Comparison

SHOWN = 10


@click.command()
@click.argument("a", metavar="RESULTS_A", type=click.Path(path_type=Path))
@click.argument("b", metavar="RESULTS_B", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write a line for every task (CSV).",
)
@click.option(
    "--picture",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also draw times against each other (.png, .svg or .pdf).",
)
def compare(a: Path, b: Path, output: Path | None, picture: Path | None) -> None:
    """Say what changed from RESULTS_A to RESULTS_B, directories of runs of the same tasks.

    Tasks are matched by id. What limited a task is known for runs with --attribution.
    """
    from ptaskmodel.files import whole_file
    from ptaskmodel.results.comparison import compare as compare_results
    from ptaskmodel.results.comparison import comparison_figure
    from ptaskmodel.results.loading import load_results
    from ptaskmodel.results.plots import save

    found = compare_results(load_results(a), load_results(b))
    if output is not None:
        with whole_file(output) as stream:
            found.write(stream)
    if picture is not None:
        save(comparison_figure(found), picture)
    click.echo(describe(found))
    for path in (output, picture):
        if path is not None:
            click.echo(f"written   {path}")


def describe(found: Comparison) -> str:
    """The comparison for a reader: what differs, totals, the tasks that changed most."""
    what = found.a.what
    parts = []
    if choices := found.choices():
        parts.append(text_table(("differs", "a", "b"), choices))
    totals = [
        (name, _number(x), _number(y), _number(y - x) if x is not None and y is not None else "")
        for name, x, y in found.totals()
    ]
    parts.append(text_table(("total", "a", "b", "change"), totals, right=(1, 2, 3)))
    counts = ", ".join(f"{n} {name}" for name, n in found.counts().items() if n)
    parts.append(f"{len(found.pairs)} {what}s in both: {counts}")
    for name, ids in (("a", found.only_a), ("b", found.only_b)):
        if ids:
            shown = ", ".join(ids[:5]) + (" ..." if len(ids) > 5 else "")
            parts.append(f"only in {name}: {len(ids)} ({shown})")
    if changed := found.most_changed(SHOWN):
        rows = [
            (
                pair.a.task_id,
                _number(pair.a.duration_s),
                _number(pair.b.duration_s),
                _number(pair.change_s),
                _number(pair.ratio),
                pair.limit_a or "",
                pair.limit_b or "",
            )
            for pair in changed
        ]
        header = (what, "a (s)", "b (s)", "change (s)", "b / a", "limit in a", "limit in b")
        table = text_table(header, rows, right=(1, 2, 3, 4))
        parts.append(f"The {len(rows)} {what}s whose time changed most\n{table}")
    return "\n\n".join(parts)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
