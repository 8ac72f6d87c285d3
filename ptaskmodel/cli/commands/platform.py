"""``ptaskmodel platform``: show a platform file, list its routes, check it, draw it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import click

from ptaskmodel.cli.command import Group
from ptaskmodel.cli.parameters import output_option, platform_argument
from ptaskmodel.errors import PlatformError

MAX_PAIRS = 4_000_000
FORMATS = frozenset({".png", ".svg", ".pdf"})


@click.group(cls=Group)
def platform() -> None:
    """Inspect, check or draw a platform file."""


@platform.command()
@platform_argument
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def info(platform_file: Path, as_json: bool) -> None:
    """Show the hosts, links and zones of PLATFORM (SimGrid XML)."""
    from ptaskmodel.platform import load_platform
    from ptaskmodel.platform.inspection import summarise, summary_text

    summary = summarise(load_platform(platform_file))
    click.echo(json.dumps(summary, indent=2) if as_json else summary_text(summary))


@platform.command()
@platform_argument
@output_option("File to write.")
@click.option(
    "--sample", metavar="N", type=click.IntRange(1), help="Only N pairs, drawn at random."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the drawn pairs.")
@click.option("--all", "everything", is_flag=True, help=f"Even if more than {MAX_PAIRS:,} pairs.")
def routes(
    platform_file: Path, output: Path | None, sample: int | None, seed: int, everything: bool
) -> None:
    """Write the route between every two hosts, as CSV: src,dst,latency_s,links.

    Links are separated by one space; a name with blanks is quoted as in a shell. Pairs without a
    route have an empty latency.
    """
    from ptaskmodel.platform import load_platform
    from ptaskmodel.platform.inspection import sample_pairs, write_routes

    loaded = load_platform(platform_file)
    total = len(loaded.hosts) ** 2
    if sample is None and total > MAX_PAIRS and not everything:
        raise PlatformError(
            f"{platform_file}: {total:,} pairs of hosts; give --sample 10000 (or --all)"
        )
    limit = total if sample is None else min(sample, total)
    pairs = sample_pairs(loaded, limit, seed)
    if output is None:
        missing = write_routes(loaded, pairs, sys.stdout or io.StringIO())
    else:
        with _progress(pairs, limit) as shown:
            missing = write_routes(loaded, shown, output)
    if missing:
        click.echo(f"{missing} of {limit} pairs have no route", err=True)


def _progress(
    pairs: Iterator[tuple[int, int]], length: int
) -> AbstractContextManager[Iterable[tuple[int, int]]]:
    """A progress bar on standard error, hidden where that is no terminal."""
    hidden = not sys.stderr.isatty()
    return click.progressbar(pairs, length, "routes", file=sys.stderr, hidden=hidden)


@platform.command("paths")
@platform_argument
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def _paths(platform_file: Path, source: str, target: str, as_json: bool) -> None:
    """How many equal paths lead from host SOURCE to host TARGET: those that --routing ecmp draws.

    Equal are the paths of the fewest hops between hosts, switches and routers.
    """
    from ptaskmodel.platform import load_platform

    loaded = load_platform(platform_file)
    fabric = loaded.fabric
    if source == target:
        raise PlatformError(f"{source} is both ends; name two hosts")
    ends = (fabric.node[loaded.host(name).index] for name in (source, target))
    count, hops = fabric.equal_paths(*ends)
    if as_json:
        click.echo(json.dumps({"source": source, "target": target, "paths": count, "hops": hops}))
    else:
        plural = "s" * (count != 1), "s" * (hops != 1)
        click.echo(f"{source} to {target}: {count:,} path{plural[0]} of {hops} hop{plural[1]}")


@platform.command()
@platform_argument
def validate(platform_file: Path) -> None:
    """Read PLATFORM and list what is legal but surely wrong."""
    from ptaskmodel.errors import PlatformError
    from ptaskmodel.files import read_bytes, shown_path
    from ptaskmodel.platform.inspection import check_platform
    from ptaskmodel.platform.reader.xml import parse_platform

    loaded = parse_platform(read_bytes(platform_file, error=PlatformError), platform_file)
    findings = check_platform(loaded)
    name = shown_path(platform_file)
    for note in findings:
        click.echo(f"{name}:{note.line}: {note.kind}: {note.text}")
    warnings = f"{len(findings)} warning{'s' * (len(findings) != 1)}"
    size = f"{len(loaded.hosts):,} hosts, {len(loaded.links):,} links"
    click.echo(f"{name}: valid ({size}), {warnings if findings else 'no warnings'}")


@platform.command("upgrade")
@platform_argument
@output_option("Write there  [default: standard output]")
def _upgrade(platform_file: Path, output: Path | None) -> None:
    """Write PLATFORM, of DTD version 3 or 4, with the names and units of 4.1.

    Comments and the layout stay.
    """
    from ptaskmodel.files import write_bytes
    from ptaskmodel.platform.reader.xml import upgrade_platform

    text = upgrade_platform(platform_file)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_bytes(output, text.encode(), error=PlatformError)
        click.echo(f"{output}: written")


@platform.command()
@platform_argument
@output_option("A .png, .svg or .pdf file  [default: beside PLATFORM's name, .png, here]")
def plot(platform_file: Path, output: Path | None) -> None:
    """Draw PLATFORM; a large one is drawn with its hosts grouped."""
    from ptaskmodel.platform import load_platform
    from ptaskmodel.platform.drawing import draw_platform

    output = output or Path(f"{platform_file.stem}.png")
    if output.suffix.lower() not in FORMATS:
        raise PlatformError(f"{output}: unknown format; name a .png, .svg or .pdf file")
    draw_platform(load_platform(platform_file), output)
    click.echo(f"{output}: written")
