"""Run a real Slurm and write its directory; compare it with the simulated one on the same input."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.files import write_json
from ptaskmodel.options import fields_in, values
from ptaskmodel.platform import load_platform
from ptaskmodel.remarks import STOPPED, WARNING, Remark, for_summary, joining, warn
from ptaskmodel.results.directory import (
    FORMAT,
    SUMMARY,
    check_output_directory,
    provenance,
    whole_directory,
)
from ptaskmodel.results.pictures.charts import Dot, DotPanel, dots
from ptaskmodel.results.states import outcome_remarks
from ptaskmodel.results.tables.slurm import (
    EVENT_COLUMNS,
    JOB_COLUMNS,
    job_row,
    sacct_row,
    write_sacct,
    write_table,
)
from ptaskmodel.results.tables.slurm_reading import CYCLE_COLUMNS
from ptaskmodel.results.tables.slurm_summary import outcome_of, settings_of, state_counts
from ptaskmodel.runs.scheduling_options import SLURM_LIVE, LiveWriting, SlurmOptions
from ptaskmodel.runs.slurm import times_alone
from ptaskmodel.slurm.accounts.facts import AUTO, Accounts, accounts_of_jobs, commands_of
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.phases import BACKFILL_CYCLE, VIRTUAL
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.event_log import hostlist
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import Submissions
from ptaskmodel.slurm.jobs.submissions import AS_GIVEN, read_submissions, with_profiles
from ptaskmodel.slurm.live import T0, LiveOptions
from ptaskmodel.slurm.live.cluster import read_failures
from ptaskmodel.slurm.live.reading import LOADED, START, SUBMIT, Event
from ptaskmodel.slurm.live.run import LiveRun, run_live
from ptaskmodel.slurm.loop import Progress
from ptaskmodel.slurm.run import SlurmRun, execution_on, simulate_slurm
from ptaskmodel.style.figures import SIGNS, NoMatplotlib, finished, picture, save
from ptaskmodel.style.text import count, duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ptaskmodel.platform import Platform


COLUMNS = (
    *("job_id", "start_real", "start_simulated", "gap", "nodes_real", "nodes_simulated"),
    *("scheduler_real", "scheduler_simulated", "state_real", "state_simulated"),
)
MOST_DRAWN = 60  # jobs
# Starts this far apart, s, are a turn of the main loop and the ties within it; not a decision.
NEAR_S = 5


class Pair(NamedTuple):
    """A job in both. Dates: s from date 0, None: it did not start; nodes as Slurm writes them."""

    job: str
    submit_s: int
    starts_s: tuple[int | None, int | None]
    nodes: tuple[str, str]
    schedulers: tuple[str, str]
    states: tuple[str, str]

    @property
    def gap_s(self) -> int | None:
        """How much later it starts in the simulation; None: it does not start in both."""
        real, simulated = self.starts_s
        return None if real is None or simulated is None else simulated - real

    @property
    def differs(self) -> bool:
        """Whether something else was decided."""
        started = [start is not None for start in self.starts_s]
        far = self.gap_s is not None and abs(self.gap_s) > NEAR_S
        return started[0] != started[1] or far or self.nodes[0] != self.nodes[1]


@dataclass(frozen=True, slots=True, eq=False)
class LiveComparison:
    """Every job, in order of submission: first what the real Slurm did, then the simulated."""

    pairs: tuple[Pair, ...]

    @property
    def first(self) -> Pair | None:
        """The job of which something else was decided first; what follows may follow from it."""
        different = [pair for pair in self.pairs if pair.differs]
        return min(different, key=_begin_s, default=None)

    def summary(self) -> dict[str, Any]:
        """How many jobs start at the same date and on the same nodes, and the largest gap."""
        gaps = [abs(pair.gap_s) for pair in self.pairs if pair.gap_s is not None]
        return {
            "jobs": len(self.pairs),
            "same_start": sum(gap == 0 for gap in gaps),
            "near_start": sum(gap <= NEAR_S for gap in gaps),
            "same_nodes": sum(pair.nodes[0] == pair.nodes[1] for pair in self.pairs),
            "same_scheduler": sum(p.schedulers[0] == p.schedulers[1] for p in self.pairs),
            "largest_gap_s": max(gaps, default=None),
            "first_different": None if self.first is None else self.first.job,
        }

    def table(self) -> str:
        """COLUMNS of every job as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for pair in self.pairs:
            cells = (*pair.starts_s, pair.gap_s, *pair.nodes, *pair.schedulers, *pair.states)
            writer.writerow((pair.job, *("" if cell is None else cell for cell in cells)))
        return text.getvalue()


def _begin_s(pair: Pair) -> float:
    """When a job first started anywhere."""
    return min((start for start in pair.starts_s if start is not None), default=float("inf"))


def compared(
    run: LiveRun, submissions: Submissions, accounts: Accounts | None, platform: Platform | None
) -> LiveComparison:
    """Simulate Slurm with the phases of a real run, and set both side by side.

    submissions, accounts, platform: what the real one had (None: none).
    """
    simulated = simulate_slurm(
        run.conf,
        submissions.jobs,
        accounts=accounts,
        phases=run.phases,
        execution=None if platform is None else execution_on(platform, run.conf),
    )
    others = {job.id: job for job in simulated.jobs}
    return LiveComparison(
        tuple(_pair(run, job, simulated, others[job.id]) for job in run.jobs if job.id in others)
    )


def _pair(run: LiveRun, real: JobRecord, simulated: SlurmRun, other: JobRecord) -> Pair:
    t0 = run.phases.t0
    both = (run, real), (simulated, other)
    return Pair(
        real.id,
        real.submit_s - t0,
        _of([None if job.allocation is None else job.start_s - t0 for _, job in both]),
        _of(
            [
                "" if job.allocation is None else hostlist(one.nodes.names_of(job.allocation.nodes))
                for one, job in both
            ]
        ),
        (real.by, other.by),
        (real.state, other.state),
    )


def _of(pair: list[Any]) -> tuple[Any, Any]:
    return pair[0], pair[1]


@picture
def comparison_figure(found: LiveComparison) -> Figure:
    """When jobs start in both of what was `found`, and by how much starts differ.

    Of many jobs those whose starts are farthest apart.
    """
    started = [pair for pair in found.pairs if pair.gap_s is not None]
    apart = sorted(started, key=lambda pair: -abs(pair.gap_s or 0))[:MOST_DRAWN]
    shown = [pair for pair in started if pair in apart]
    starts = [[Dot(float(start or 0), role="lost" if pair.differs else "ink", sign=sign)
               for start, sign in zip(pair.starts_s, SIGNS, strict=False)]
              for pair in shown]  # fmt: skip
    gaps = [[Dot(float(pair.gap_s or 0), role=its[0].role)]
            for pair, its in zip(shown, starts, strict=True)]  # fmt: skip
    panels = [DotPanel("start", "time", starts), DotPanel("simulated − real", "time", gaps, True)]
    real, simulated = SIGNS[:2]
    key = f"{real} real, {simulated} simulated; red: different decision"
    if len(shown) < len(started):
        key += f"; the {len(shown)} farthest apart of {count(len(started), 'job')}"
    facts = found.summary()
    title = (
        f"{facts['near_start']} of {count(facts['jobs'], 'job')} start within {NEAR_S} s of each"
    )
    title += f" other, {facts['same_nodes']} on the same nodes"
    largest = facts["largest_gap_s"]
    said = "none starts in both" if largest is None else f"at most {duration(largest)} apart"
    figure = dots([pair.job for pair in shown], panels, key)
    return finished(figure, title, "", f"{title}; {said}.")


JOURNAL_COLUMNS = (
    *("job_id", "final_state"),
    *("submission_time", "starting_time", "finish_time"),
)
_TESTED = re.compile(r"testing (\d+)\((\d+)\) jobs")


@dataclass(frozen=True, slots=True, eq=False)
class LiveResults:
    """A run, the content of summary.json, and how the simulated Slurm differs, if that was asked.

    directory: where it is written, and files: the names there; None and () if nowhere.
    """

    summary: dict[str, Any]
    run: LiveRun
    comparison: LiveComparison | None = None
    directory: Path | None = None
    files: tuple[str, ...] = field(default=())

    @property
    def stories(self) -> dict[str, list[str]]:
        """None: only the simulated Slurm tells them."""
        return {}


class LiveInputs(NamedTuple):
    """What `live_into` takes, from parameters; inputs: the files that were read."""

    conf_file: Path
    submissions: Submissions
    options: LiveOptions
    accounts: Path | None
    platform: Platform | None
    works: SlurmOptions
    writing: LiveWriting
    inputs: tuple[Path, ...]


def live_inputs(parameters: Mapping[str, Any]) -> LiveInputs:
    """Read what a run of a real Slurm with these parameters needs. Raises PTaskModelError.

    parameters: the files conf and workload; of the options in `SLURM_LIVE` any.
    """
    given = values(SLURM_LIVE, parameters)
    files = parameters["conf"], parameters["workload"]
    conf = read_conf(files[0])
    submissions = read_submissions(files[1], conf, processors_per_node=given["processors_per_node"])
    failures, platform = given["failures"], given["platform"]
    options = LiveOptions(
        t0=T0 if submissions.t0 is None else submissions.t0,
        slack_us=given["slack_us"],
        failures=() if failures is None else read_failures(failures, conf),
    )
    more = (given[name] for name in ("platform", "accounts", "failures"))
    more = (path for path in more if path is not None and str(path) != AUTO)
    return LiveInputs(
        files[0],
        submissions,
        options,
        given["accounts"],
        None if platform is None else load_platform(platform),
        SlurmOptions(**fields_in(SlurmOptions, given)),
        LiveWriting(**fields_in(LiveWriting, given)),
        tuple(map(Path, (*files, *more))),
    )


@joining()
def live_into(
    directory: str | Path | None,
    conf_file: str | Path,
    submissions: Submissions,
    options: LiveOptions | None = None,
    *,
    accounts: str | Path | None = None,
    platform: Platform | None = None,
    works: SlurmOptions | None = None,
    writing: LiveWriting | None = None,
    inputs: Iterable[str | Path] = (),
    progress: Progress | None = None,
) -> LiveResults:
    """Run a real Slurm and write what became of the jobs in a directory of results.

    The directory appears once all is written, and replaces earlier results; None: nothing is
    written. accounts: a file of commands of sacctmgr, or a dump; AUTO: the jobs' accounts, users
    and QOSs. While Slurm runs, jobs that are over are kept in a file beside it, ``NAME.over.csv``.
    works: what jobs run (of it profiles, ratio and pattern count). writing: whether to simulate
    Slurm on the same input too (None: no). progress: as of `run_live`. What stopped Slurm before
    its time, if anything, is in ``run.stopped``.

    Raises PTaskModelError if Slurm cannot run here, or the directory holds anything else.
    """
    options, works, inputs = options or LiveOptions(), works or SlurmOptions(), tuple(inputs)
    writing = writing or LiveWriting()
    conf = read_conf(conf_file)
    execution = None if platform is None else execution_on(platform, conf)
    if execution is not None and works.profiles != AS_GIVEN:
        submissions = with_profiles(
            submissions, works.profiles, execution.machine, ratio=works.ratio, pattern=works.pattern
        )
    if directory is not None:
        check_output_directory(directory)
    journal = None if directory is None else Path(f"{directory}.over.csv")
    if journal is not None:
        journal.parent.mkdir(parents=True, exist_ok=True)
    with (
        _accounts_file(accounts, submissions) as accounts,
        _journal(journal, options.t0) as on_end,
    ):
        run = run_live(
            conf_file,
            submissions.jobs,
            accounts=accounts,
            execution=execution,
            options=options,
            on_end=on_end,
            kept=None if journal is None else f"ended jobs are in {journal}",
            progress=progress,
        )
        read = None if accounts is None or not writing.compare else read_accounts(accounts)
    alone = {} if execution is None else times_alone(run.jobs, execution)
    found = compared(run, submissions, read, platform) if writing.compare else None
    summary = {
        "command": "slurm-live",
        **dict(zip(("conf", "workload"), map(str, inputs), strict=False)),
        **outcome_of([run], alone),
        **_schedulers(run),
        "slurm": run.version,
        "stopped": None if run.stopped is None else str(run.stopped),
        "remarks": for_summary(
            () if platform is None else platform.remarks,
            [] if run.stopped is None else [Remark(str(run.stopped), WARNING, STOPPED)],
            conf.remarks,
            submissions.remarks,
            run.notes,
            outcome_remarks(state_counts([run]), "job"),
        ),
        "settings": settings_of(conf),
        "clock": run.statistics,
        "simulated_s": run.simulated_s,
        "simulation_wall_time_s": run.wall_s,
        **({} if found is None else {"comparison": found.summary()}),
        **provenance(inputs),
    }
    if directory is None:
        return LiveResults(summary, run, found)
    with whole_directory(directory) as place:
        files = (*_write(place, run, alone, found), SUMMARY)
        write_json(place / SUMMARY, {"format": FORMAT, "files": files} | summary)
    if journal is not None:
        journal.unlink(missing_ok=True)
    return LiveResults(summary, run, found, Path(directory), files)


@contextlib.contextmanager
def _accounts_file(
    accounts: str | Path | None, submissions: Submissions
) -> Iterator[str | Path | None]:
    """The file of accounts; of AUTO, one that says which the jobs have."""
    if accounts is None or str(accounts) != AUTO:
        yield accounts
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "accounts.txt")
        path.write_text(commands_of(accounts_of_jobs(submissions.jobs)), encoding="utf-8")
        yield path


@contextlib.contextmanager
def _journal(path: Path | None, t0: int) -> Iterator[Callable[[JobRecord], None]]:
    """What writes a line for each job that is over, as soon as it is."""
    if path is None:
        yield lambda record: None
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")

        def write(record: JobRecord) -> None:
            dates = record.submit_s, record.start_s, int(record.end_s)
            line = (record.id, record.state, *(date - t0 if date else "" for date in dates))
            writer.writerow(line)
            file.flush()

        writer.writerow(JOURNAL_COLUMNS)
        file.flush()
        yield write


def _write(
    place: Path, run: LiveRun, alone: dict[str, float], found: LiveComparison | None
) -> list[str]:
    write_table(place / "jobs.csv", JOB_COLUMNS, (job_row(run, job, 1, alone) for job in run.jobs))
    write_sacct(place / "sacct.txt", (sacct_row(run, job) for job in run.jobs))
    write_table(place / "events.csv", EVENT_COLUMNS, _event_rows(run))
    write_table(place / "cycles.csv", CYCLE_COLUMNS, _cycle_rows(run))
    write_json(place / "meta.json", _meta(run))
    written = ["jobs.csv", "sacct.txt", "events.csv", "cycles.csv", "meta.json"]
    if found is not None:
        (place / "comparison.csv").write_text(found.table(), encoding="utf-8")
        written.append("comparison.csv")
        try:
            save(comparison_figure(found), place / "comparison.png")
            written.append("comparison.png")
        except NoMatplotlib as missing:
            warn(f"comparison.png is not drawn: {missing}")
    return written


def _meta(run: LiveRun) -> dict[str, Any]:
    """What `--meta` of the simulated Slurm reads: the same phases."""
    return {
        "slurm": run.version,
        "clock": VIRTUAL,
        "t0": run.phases.t0,
        "loaded": run.phases.boot_s,
        "phase": 0.5,
        "jobs": len(run.jobs),
        "nodes": len(run.nodes),
    }


def _event_rows(run: LiveRun) -> Iterator[tuple[Any, ...]]:
    """As in the events.csv of a recorded run, which `--cycles` reads."""
    names = {job.number: job.id for job in run.jobs if job.number}
    submitted = {job.number: job.request.array_id for job in run.jobs if job.number}
    for event in run.events:
        if event.who != LOADED:
            what = f"start on {event.nodes}" if event.what == START else event.what
            those = submitted if event.what == SUBMIT else names
            job = those.get(event.number, "") if event.number else ""
            yield f"{event.date_s - run.phases.t0:.3f}", event.who, what, job


def _cycles(run: LiveRun) -> Iterator[tuple[Event, int, int, int]]:
    """(begin, queue, tested, started) of each backfill cycle."""
    begun, started = None, 0
    for event in run.events:
        if event.who != BACKFILL_CYCLE:
            continue
        tested = _TESTED.match(event.what)
        if event.what == "begin":
            begun, started = event, 0
        elif event.what == START:
            started += 1
        elif begun is not None and tested is not None:
            yield begun, int(tested[1]), int(tested[2]), started


def _cycle_rows(run: LiveRun) -> Iterator[tuple[Any, ...]]:
    for event, queue, tested, started in _cycles(run):
        yield f"{event.date_s - run.phases.t0:.3f}", 1, queue, tested, started, "0", "end"


def _schedulers(run: LiveRun) -> dict[str, Any]:
    """What the schedulers did, as far as the log says."""
    passes = sum(event.who == "main" and event.what != START for event in run.events)
    cycles = list(_cycles(run))
    tested = [entry[2] for entry in cycles]
    return {
        "main": {"passes": passes},
        "backfill": {
            "cycles": len(cycles),
            "started": sum(job.by == BACKFILL_CYCLE for job in run.jobs),
            "mean_tested": sum(tested) / len(tested) if tested else None,
            "most_tested": max(tested, default=0),
            "longest_cycle_s": 0.0,
        },
    }
