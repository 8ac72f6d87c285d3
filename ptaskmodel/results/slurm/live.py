"""A real Slurm into a directory: run it, write what became of the jobs, compare."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.batch.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.batch.slurm.conf.reading import read_conf
from ptaskmodel.batch.slurm.loop import Progress
from ptaskmodel.batch.slurm.on_platform import execution_on
from ptaskmodel.batch.slurm.phases import BACKFILL, VIRTUAL
from ptaskmodel.batch.slurm.record import JobRecord
from ptaskmodel.batch.slurm.requests.profiles import AS_GIVEN, with_profiles
from ptaskmodel.batch.slurm.requests.request import Submissions
from ptaskmodel.bridges.slurm_live.reading import LOADED, START, SUBMIT, Event
from ptaskmodel.bridges.slurm_live.run import LiveOptions, LiveRun, run_live
from ptaskmodel.files import write_json
from ptaskmodel.platform.reader.loading import remarks_on
from ptaskmodel.remarks import STOPPED, WARNING, Remark, for_summary, joining
from ptaskmodel.results.output import FORMAT, SUMMARY, check_output_directory, whole_directory
from ptaskmodel.results.records import provenance
from ptaskmodel.results.slurm.live_comparison import LiveComparison, compared, draw
from ptaskmodel.results.slurm.runs import SlurmOptions, times_alone
from ptaskmodel.results.slurm.settings import settings_of
from ptaskmodel.results.slurm.summary import outcome_of, state_counts
from ptaskmodel.results.slurm.tables import (
    CYCLE_COLUMNS,
    EVENT_COLUMNS,
    JOB_COLUMNS,
    job_row,
    sacct_row,
    write_sacct,
    write_table,
)
from ptaskmodel.results.states import outcome_remarks

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform

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
    compare: bool = False,
    inputs: Iterable[str | Path] = (),
    progress: Progress | None = None,
) -> LiveResults:
    """Run a real Slurm and write what became of the jobs in a directory of results.

    The directory appears once all is written, and replaces earlier results; None: nothing is
    written. While Slurm runs, jobs that are over are kept in a file beside it, ``NAME.over.csv``.
    works: what jobs run (of it profiles, ratio and pattern count). compare: also simulate Slurm on
    the same input. progress: as of `run_live`. What stopped Slurm before its time, if anything, is
    in ``run.stopped``.

    Raises PTaskModelError if Slurm cannot run here, or the directory holds anything else.
    """
    options, works, inputs = options or LiveOptions(), works or SlurmOptions(), tuple(inputs)
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
    with _journal(journal, options.t0) as on_end:
        run = run_live(
            conf_file,
            submissions.jobs,
            accounts=accounts,
            execution=execution,
            options=options,
            on_end=on_end,
            kept=None if journal is None else f"jobs that were over are in {journal}",
            progress=progress,
        )
    alone = {} if execution is None else times_alone(run.jobs, execution)
    found = None
    if compare:
        found = compared(
            run, submissions, None if accounts is None else read_accounts(accounts), platform
        )
    summary = {
        "command": "slurm-live",
        **dict(zip(("conf", "workload"), map(str, inputs), strict=False)),
        **outcome_of([run], alone),
        **_schedulers(run),
        "slurm": run.version,
        "stopped": None if run.stopped is None else str(run.stopped),
        "remarks": for_summary(
            () if platform is None else remarks_on(platform),
            [] if run.stopped is None else [Remark(str(run.stopped), WARNING, STOPPED)],
            conf.notes,
            submissions.notes,
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
        draw(found, place / "comparison.png")
        written += ["comparison.csv", "comparison.png"]
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
        if event.who != BACKFILL:
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
            "started": sum(job.by == BACKFILL for job in run.jobs),
            "mean_tested": sum(tested) / len(tested) if tested else None,
            "most_tested": max(tested, default=0),
            "longest_cycle_s": 0.0,
        },
    }
