"""``ptaskmodel campaign``: make and save many runs; show their tables, pictures and page."""

from __future__ import annotations

import functools
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.command import Choice, Group, tell
from ptaskmodel.cli.parameters import COUNT, PATH
from ptaskmodel.cli.progress import LOGGER, manner, write_over
from ptaskmodel.errors import CampaignError
from ptaskmodel.style.text import count, duration

if TYPE_CHECKING:
    from ptaskmodel.campaign import Campaign, Cluster, Run, Status


class Part(click.ParamType):
    """K/N."""

    name = "K/N"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value[0], value[1]
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            self.fail(f"{value} is no part; give K/N, such as 1/2, K from 1 to N")
        return int(found[1]), int(found[2])


def directory_of(file: Path, directory: Path | None) -> Path:
    """Where the runs of a file are kept if nothing is said: beside it, called after it."""
    return directory or file.parent / f"{file.stem}-runs"


output_option = click.option(
    "-o", "--output", metavar="DIR", type=PATH, help="Directory of the runs  [default: FILE-runs]"
)
processes_option = click.option(
    "--processes", type=COUNT, help="Number of parallel runs  [default: number of processors]"
)


def cluster_options(command: Any) -> Any:
    """Where runs are made, if not here: ``cluster``, a Cluster or None."""

    @click.option("--on", metavar="ADDRESS", help="A Dask scheduler: tcp://.. or tls://HOST:PORT.")
    @click.option(
        "--tls-ca", metavar="FILE", type=PATH, help="With tls://: certificate of the CA, PEM."
    )
    @click.option(
        "--tls-cert", metavar="FILE", type=PATH, help="With tls://: own certificate, PEM."
    )
    @click.option("--tls-key", metavar="FILE", type=PATH, help="With tls://: own key, PEM.")
    @functools.wraps(command)
    def made(
        *arguments: Any,
        on: str | None,
        tls_ca: Path | None,
        tls_cert: Path | None,
        tls_key: Path | None,
        **options: Any,
    ) -> Any:
        from ptaskmodel.campaign import Cluster

        if on is None and (tls_ca or tls_cert or tls_key):
            raise CampaignError("--tls-ca, --tls-cert and --tls-key belong to --on tls://HOST:PORT")
        cluster = None if on is None else Cluster(on, tls_ca, tls_cert, tls_key)
        if cluster is not None and options.get("processes") is not None:
            raise CampaignError(
                "--processes starts processes here; with --on, the Dask workers make the runs"
            )
        if cluster is not None and cluster.is_open():
            LOGGER.warning(
                "%s: nothing is encrypted, and whoever reaches a Dask scheduler runs "
                "programs as its owner; use tls:// beyond one machine",
                on,
            )
        return command(*arguments, cluster=cluster, **options)

    return made


@click.group(cls=Group)
def campaign() -> None:
    """Make many runs of one plan: over platforms, workloads, policies, seeds.

    A plan is a TOML file, see the guide on campaigns. Each run is saved when it is done, so an
    interrupted campaign continues where it stopped.
    """


@campaign.command()
@click.argument("file", type=PATH)
@output_option
@processes_option
@click.option(
    "--try", "tried", type=COUNT, default=3, show_default=True, help="Runs made for the estimate."
)
def check(file: Path, output: Path | None, processes: int | None, tried: int) -> None:
    """Check FILE, count its runs, make a few and estimate the time of all."""
    from ptaskmodel.campaign import Campaign
    from ptaskmodel.campaign.pool import processors

    found = Campaign.in_file(file, directory_of(file, output), (1, 1))
    click.echo(f"{len(found.runs):,} runs: {_shape(found)}")
    estimate = found.estimate(tried)

    workers = processes or processors()
    takes_s = estimate.start_s + estimate.seconds / workers
    click.echo(
        f"estimate of {estimate.tried} runs: {duration(takes_s)} on {workers} processes, "
        f"{estimate.bytes / 1e6:.1f} MB"
    )
    if estimate.unseen:
        LOGGER.warning("metrics: %s", estimate.unseen)
    if estimate.failed:
        tried = estimate.tried + len(estimate.failed)
        raise CampaignError(
            f"{file}: {len(estimate.failed)} of {tried} runs that were tried failed: "
            f"{estimate.failed[0]}"
        )


def _shape(found: Campaign) -> str:
    from ptaskmodel.campaign.factors import Interval

    plan = found.plan
    parts = [
        f"{name} ({'drawn' if isinstance(levels, Interval) else len(levels)})"
        for name, levels in plan.factors.items()
    ]
    if plan.repetitions > 1:
        parts.append(f"{plan.repetitions} repetitions")
    return " x ".join(parts) or "no factor"


@campaign.command()
@click.argument("file", type=PATH)
@output_option
@processes_option
@cluster_options
@click.option(
    "--part", type=Part(), default=(1, 1), help="Only this part of the runs, such as 1/2."
)
@click.option("--retry-failed", is_flag=True, help="Repeat the runs that failed.")
def run(
    file: Path,
    output: Path | None,
    processes: int | None,
    part: tuple[int, int],
    retry_failed: bool,
    cluster: Cluster | None,
) -> None:
    """Make the missing runs of FILE."""
    from ptaskmodel.campaign import Campaign

    _make(
        Campaign.in_file(file, directory_of(file, output), part), processes, cluster, retry_failed
    )


@campaign.command()
@click.argument("directory", type=PATH)
@processes_option
@cluster_options
@click.option("--retry-failed", is_flag=True, help="Repeat the runs that failed.")
def resume(
    directory: Path, processes: int | None, retry_failed: bool, cluster: Cluster | None
) -> None:
    """Continue the campaign in DIRECTORY."""
    from ptaskmodel.campaign import Campaign

    _make(Campaign.in_directory(directory), processes, cluster, retry_failed)


def _make(found: Campaign, processes: int | None, cluster: Cluster | None, again: bool) -> None:

    total = len(found.runs)
    every_s, say = manner()
    began = told = time.monotonic()
    said = 0

    def progress(
        done: int, failed: int, _: int, one: Run, seconds: float, error: str | None
    ) -> None:
        nonlocal said, told
        now = time.monotonic()
        if error is not None and said < 3:
            said += 1
            tell(f"failed: {_point(one)}: {error}")
        if now - told >= every_s:
            told = now
            over = done + failed
            left_s = (now - began) * (total - over) / max(over, 1)
            say(
                f"{count(over)} of {count(total, 'run')}, {count(failed)} failed, "
                f"about {duration(round(left_s))} left"
            )

    status = found.make(processes, on=cluster, again=again, progress=progress)
    if say is write_over:
        say("")
    click.echo(_text(status))
    if status.failed:
        raise CampaignError(
            f"{status.failed} of {total} runs failed: ptaskmodel campaign status "
            f"{found.store.directory} says why; run again with --retry-failed once corrected"
        )


def _point(one: Run) -> str:
    return ", ".join(f"{name} = {value}" for name, value in one.point.items()) or "the run"


def _text(status: Status) -> str:
    made = f"{status.done} of {status.total} runs made"
    return f"{made}, {status.failed} failed, {status.missing} missing"


@campaign.command()
@click.argument("directory", type=PATH)
def status(directory: Path) -> None:
    """Show how many runs of the campaign in DIRECTORY are done, and why others failed."""
    from ptaskmodel.campaign import Campaign

    found = Campaign.in_directory(directory)
    click.echo(_text(found.status()))
    left_s = found.left_s(time.time())
    if left_s is not None:
        click.echo(f"under way: about {duration(left_s)} left")
    for one, error in found.failures():
        click.echo(f"failed: {_point(one)} (repetition {one.repetition}): {error}")


@campaign.command()
@click.argument("directory", type=PATH)
@click.option("-o", "--output", metavar="FILE", type=PATH, help="A .parquet or .csv file.")
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Show all numbers of the runs, not only the metrics of the plan.",
)
@click.option(
    "--kind",
    type=Choice(["runs", "means", "differences", "effects"]),
    default="runs",
    show_default=True,
    help="What the table shows.",
)
def table(directory: Path, output: Path | None, every: bool, kind: str) -> None:
    """Print a table of the campaign in DIRECTORY: its runs, or statistics."""
    from ptaskmodel.campaign import Campaign, effects, means, paired, write_table
    from ptaskmodel.campaign.differences import conditions_of
    from ptaskmodel.campaign.pictures import metrics_of
    from ptaskmodel.campaign.report import done, printed

    found = Campaign.in_directory(directory)
    frame = found.frame(every)
    if kind != "runs":
        made, factors, metrics = (
            done(found, frame),
            list(found.plan.factors),
            metrics_of(found, frame),
        )
        if kind == "differences" and not found.plan.baseline:
            raise CampaignError("differences need a baseline; give compare_with in the plan")
        frame = {
            "means": lambda: means(made, factors, metrics),
            "differences": lambda: paired(
                made, factors, metrics, found.plan.baseline, conditions_of(found.plan, made)
            ),
            "effects": lambda: effects(made, factors, metrics),
        }[kind]()
    if output is None:
        shown = frame.drop(columns="run", errors="ignore")
        click.echo(printed(shown))
    else:
        write_table(frame, output)
        click.echo(f"{len(frame):,} rows written to {output}")


@campaign.command()
@click.argument("directory", type=PATH)
@click.option("-o", "--output", metavar="DIR", type=PATH, help="[default: DIRECTORY/pictures]")
def plot(directory: Path, output: Path | None) -> None:
    """Draw effects, interactions, differences and the Pareto front of the campaign in DIRECTORY."""
    from ptaskmodel.campaign import Campaign
    from ptaskmodel.campaign.pictures import figures
    from ptaskmodel.campaign.report import done
    from ptaskmodel.style.figures import save

    found = Campaign.in_directory(directory)
    made = figures(found, done(found))
    if not made:
        raise CampaignError(f"{directory}: nothing varies among the runs that are made")
    place = output or directory / "pictures"
    place.mkdir(parents=True, exist_ok=True)
    for name, figure in made.items():
        save(figure, place / f"{name}.png")
    click.echo(f"{', '.join(made)} drawn in {place}")


@campaign.command()
@click.argument("directory", type=PATH)
@click.option("-o", "--output", metavar="FILE", type=PATH, help="[default: DIRECTORY/report.html]")
def report(directory: Path, output: Path | None) -> None:
    """Write a self-contained HTML page about the campaign in DIRECTORY."""
    from ptaskmodel.campaign import Campaign, write_campaign_report

    path = output or directory / "report.html"
    for line in write_campaign_report(Campaign.in_directory(directory), path):
        click.echo(line)
    click.echo(f"written {path}")


@campaign.command()
@click.argument("directories", nargs=-1, required=True, type=PATH)
@click.option("-o", "--output", metavar="DIR", type=PATH, required=True)
def merge(directories: tuple[Path, ...], output: Path) -> None:
    """Merge the runs of DIRECTORIES, parts of one campaign, into another directory."""
    from ptaskmodel.campaign.store import Store

    store = Store(output)
    if not (output / "campaign.toml").exists():
        store.begin(Store(directories[0]).plan())
    click.echo(f"{store.take_in(directories)} runs taken in")
