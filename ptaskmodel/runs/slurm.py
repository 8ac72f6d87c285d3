"""Simulate a Slurm configuration and write its directory: what happened to the jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel import interrupts
from ptaskmodel.batch.machine.failures import FailureLaw
from ptaskmodel.batch.schedule_metrics import lost_seconds
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import write_json
from ptaskmodel.kernels.decorators import INTERPRETED
from ptaskmodel.options import fields_in, parameters_of, values
from ptaskmodel.platform import load_platform
from ptaskmodel.remarks import STOPPED, Reader, Remark, for_summary, joining
from ptaskmodel.results.directory import FORMAT, SUMMARY, provenance, whole_directory
from ptaskmodel.results.states import outcome_remarks
from ptaskmodel.results.tables.batch import write_neighbours
from ptaskmodel.results.tables.slurm import (
    JOB_COLUMNS,
    JOB_TEXTS,
    Simulated,
    is_over,
    job_row,
    jobs_of,
    write_tables,
)
from ptaskmodel.results.tables.slurm_summary import (
    limit_notes,
    orphan_notes,
    qos_notes,
    settings_of,
    state_counts,
    stranger_remarks,
    summary_of,
    unread_notes,
)
from ptaskmodel.results.tables.slurm_unfit import unfit_remarks
from ptaskmodel.runs.options import check_nothing_to_write, fresh
from ptaskmodel.runs.scheduling_options import CHANGES, SLURM, SlurmOptions
from ptaskmodel.slurm.accounts.facts import AUTO, Accounts, accounts_of_jobs
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Conf
from ptaskmodel.slurm.conf.phases import (
    Costs,
    Phases,
    Recorded,
    drawn,
    read_cycles,
    read_phases,
)
from ptaskmodel.slurm.conf.reading import read_conf, without_memory
from ptaskmodel.slurm.conf.reservations import Reserved, read_reservations
from ptaskmodel.slurm.conf.values import date as date_of
from ptaskmodel.slurm.controller.controller import Changes, failures_of_nodes
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.record import REFUSED, JobRecord
from ptaskmodel.slurm.jobs.request import Submissions
from ptaskmodel.slurm.jobs.submissions import AS_GIVEN, read_submissions, with_profiles
from ptaskmodel.slurm.loop import Progress
from ptaskmodel.slurm.run import (
    Part,
    SlurmRun,
    alone_s,
    execution_on,
    parts_of,
    simulate_slurm,
    simulate_together,
    warn_of_overload,
)
from ptaskmodel.style.text import count, duration

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.batch.jobs.execution import Attempt
    from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution
    from ptaskmodel.platform import Platform


@dataclass(frozen=True, slots=True, eq=False)
class SlurmResults:
    """Runs, one a controller, the content of summary.json, and the stories that were asked for.

    directory: where it is written, and files: the names there; None and () if nowhere. alone_s: of
    jobs on a platform, the time that they take without others, by id.
    """

    summary: dict[str, Any]
    runs: tuple[SlurmRun, ...]
    stories: dict[str, list[str]]
    directory: Path | None = None
    files: tuple[str, ...] = field(default=())
    alone_s: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        jobs = sum(len(run.jobs) for run in self.runs)
        return f"<SlurmResults in {self.directory}: {jobs} jobs>"

    def frame(self) -> pandas.DataFrame:
        """The jobs as a table, one row each: the columns of jobs.csv; nan where there is none."""
        import pandas as pd

        found = (job_row(*each, self.alone_s) for each in jobs_of(self.runs))
        frame = pd.DataFrame(found, columns=JOB_COLUMNS)
        numbers = [name for name in JOB_COLUMNS if name not in JOB_TEXTS]
        frame[numbers] = frame[numbers].apply(pd.to_numeric)
        return frame


class SlurmInputs(NamedTuple):
    """What `slurm_into` takes, from parameters; inputs: the files that were read."""

    conf: Conf
    submissions: Submissions
    options: SlurmOptions
    accounts: Accounts | None
    phases: Phases
    recorded: Recorded | None
    platform: Platform | None
    reserved: Reserved | None
    failures: Mapping[str, Changes]
    inputs: tuple[Path, ...]
    parameters: Mapping[str, Any]


def slurm_inputs(parameters: Mapping[str, Any], read: Callable[..., Any] = fresh) -> SlurmInputs:
    """Read what a run of Slurm with these parameters needs; command line and campaigns call it.

    parameters: the files conf and workload; of the options in `SLURM` any; jobs: only the first so
    many; `CHANGES`: values of keys of the slurm.conf. read: how a reader and its arguments give an
    input. Raises PTaskModelError.
    """
    given = values(SLURM, parameters)
    changes = tuple(parameters.get(CHANGES, {}).items())
    files = parameters["conf"], parameters["workload"]
    conf, submissions = read(
        _submissions,
        *files,
        changes,
        given["slurm_version"],
        given["processors_per_node"],
        given["ignore_memory"],
        given["dependencies"],
    )
    if "jobs" in parameters:
        submissions = replace(submissions, jobs=submissions.jobs[: parameters["jobs"]])
    meta, law = given["meta"], given["failure_law"]
    if given["begin"] is not None:
        submissions = _begun(submissions, given["begin"], meta)
    t0 = submissions.t0 or 0
    phases = drawn(given["seed"], t0) if meta is None else read_phases(meta, conf)

    def read_if_given(name: str, reader: Reader[..., Any], *more: Any) -> Any:
        return None if given[name] is None else reader(given[name], *more)

    more = ("platform", "accounts", "meta", "cycles", "reservations", "failures")
    options = SlurmOptions(**fields_in(SlurmOptions, given))
    return SlurmInputs(
        conf,
        submissions,
        options,
        accounts=(
            accounts_of_jobs(submissions.jobs)
            if str(given["accounts"]) == AUTO
            else read_if_given("accounts", read_accounts)
        ),
        phases=phases,
        recorded=read_if_given("cycles", read_cycles),
        platform=None if given["platform"] is None else read(load_platform, given["platform"]),
        reserved=read_if_given("reservations", read_reservations, conf, phases.t0),
        failures=failures_of_nodes(
            conf, file=given["failures"], law=FailureLaw.of(law) if law else None
        ),
        inputs=tuple(
            Path(file)
            for file in (*files, *(given[name] for name in more))
            if file and str(file) != AUTO
        ),
        parameters=parameters_of(SLURM, given),
    )


def _begun(submissions: Submissions, begin: str, meta: object) -> Submissions:
    """The jobs with the date of second 0 that is given; SlurmError if it is known otherwise."""
    known = "the jobs have dates" if submissions.t0 is not None else meta and "--meta has the date"
    if known:
        raise SlurmError(f"--begin {begin}: {known}; leave out --begin")
    try:
        return replace(submissions, t0=date_of(begin))
    except ValueError as fault:
        raise SlurmError(f"--begin is {shown(begin)}: {fault}") from None


def _submissions(
    conf_file: str | Path,
    workload_file: str | Path,
    changes: tuple[tuple[str, Any], ...],
    version: str,
    processors_per_node: int | None,
    ignore_memory: bool,
    dependencies: bool,
) -> tuple[Conf, Submissions]:
    conf = read_conf(conf_file, dict(changes), version)
    if ignore_memory:
        conf = without_memory(conf)
    return conf, read_submissions(
        workload_file,
        conf,
        processors_per_node=processors_per_node,
        dependencies=dependencies,
    )


@joining()
def slurm_into(
    directory: str | Path | None,
    conf: Conf,
    submissions: Submissions,
    options: SlurmOptions | None = None,
    *,
    accounts: Accounts | None = None,
    phases: Phases | None = None,
    recorded: Recorded | None = None,
    platform: Platform | None = None,
    reserved: Reserved | None = None,
    failures: Mapping[str, Changes] | None = None,
    inputs: Iterable[str | Path] = (),
    parameters: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> SlurmResults:
    """Simulate a Slurm configuration and write the results into a directory.

    The directory appears when complete, and replaces earlier results; None: nothing is written.
    platform: its hosts are the nodes, by name, or in order if no name is a node's; jobs that are
    parallel tasks share it. inputs: files that were read, named in the summary with their digests.
    parameters: values of options by name, for the summary; None: not known. conf, submissions,
    options, accounts, phases, recorded, reserved, failures, progress: as of `simulate_slurm`.

    Raises PTaskModelError if the directory holds anything else, or something cannot be simulated.
    """
    options, inputs = options or SlurmOptions(), tuple(inputs)
    if directory is None:
        check_nothing_to_write(attribution=options.attribution, neighbours=options.neighbours)
    check_options(options, submissions, recorded, platform)
    if recorded is not None and failures:
        raise SlurmError("--cycles gives the times of a recorded run; leave out --failures")
    execution = None if platform is None else execution_on(platform, conf)
    if execution is not None:
        submissions = with_profiles(
            submissions,
            options.profiles,
            execution.machine,
            ratio=options.ratio,
            pattern=options.pattern,
        )
    if (options.attribution or options.neighbours) and all(
        job.run_s is not None for job in submissions.jobs
    ):
        raise SlurmError(
            f"--{'attribution' if options.attribution else 'neighbours'}: every job is a delay and "
            "uses no host and no link; --profiles ptask converts delays into parallel tasks"
        )
    if reserved is not None and options.controllers > 1:
        raise SlurmError("--reservations works with one controller only; leave out --controllers")
    parts, notes = parts_of(conf, submissions.jobs, options.controllers, options.seed)
    warn_of_overload(conf, submissions.jobs)

    watch = None
    if execution is not None and options.neighbours:
        from ptaskmodel.recording.attribution import Neighbours

        watch = Neighbours(execution.simulation)

    def run() -> tuple[list[Simulated], dict[str, float], dict[str, Any]]:
        began = time.perf_counter()
        given: dict[str, Any] = {
            "accounts": accounts,
            "phases": phases,
            "failures": failures,
            "progress": progress,
        }
        if execution is not None and len(parts) > 1:
            found = _together(conf, parts, options, execution, given)
        else:
            given |= {"recorded": recorded, "reserved": reserved, "execution": execution}
            found = [_simulated(part, options, given) for part in parts]
        took_s = time.perf_counter() - began
        alone = _alone(found, execution)
        summary = {
            "command": "slurm",
            **dict(zip(("conf", "workload"), map(str, inputs), strict=False)),
            **summary_of(found, alone),
            "remarks": for_summary(
                () if platform is None else platform.remarks,
                conf.remarks,
                unread_notes(conf),
                submissions.remarks,
                () if accounts is None else accounts.remarks,
                () if reserved is None else reserved.remarks,
                notes,
                orphan_notes(found),
                stranger_remarks(found, accounts is not None),
                unfit_remarks(found),
                [] if accounts is None else qos_notes(found),
                [] if accounts is None else limit_notes(conf, accounts),
                outcome_remarks(state_counts(each.run for each in found), "job"),
            ),
            "not_used": [one.key for one in conf.others],
            **({} if submissions.t0 is None else {"begin_unix_s": submissions.t0}),
            "seed": options.seed,
            "test_cost_s": options.test_cost,
            "count_tests": options.count_tests,
            "settings": settings_of(conf),
            "simulation_wall_time_s": took_s,
            **provenance(inputs, parameters),
        }
        over = sum(each.run.loop.controller.over for each in found)
        if interrupts.arrived() and over < len(submissions.jobs):
            taken = sum(len(each.run.jobs) for each in found)
            to_come = len(submissions.jobs) - taken
            now = max(each.run.loop.now for each in found)
            summary["stopped_early"] = {"at_s": now, "not_submitted": to_come}
            text = (
                f"stopped at {duration(now)}: {count(taken - over, 'job')} running or waiting, "
                f"{count(to_come)} still to be submitted"
            )
            summary["remarks"] += for_summary([Remark(text, effect=STOPPED)])
        return found, alone, summary

    if directory is None:
        found, alone, summary = run()
        return SlurmResults(summary, _runs(found), _stories(found), alone_s=alone)
    with whole_directory(directory) as place:
        observed: tuple[str, ...] = ()
        if execution is not None and options.attribution:
            from ptaskmodel.runs.recording import Observation

            with Observation(execution.simulation, place, attribution=True) as observation:
                found, alone, summary = run()
            observed = tuple(observation.files)
        else:
            found, alone, summary = run()
        if watch is not None and execution is not None:
            lost = lost_seconds(execution, *_ended_on(found, alone), watch.charges)
            observed += (write_neighbours(place, lost),)
        stories = _stories(found)
        tables = *write_tables(place, found, alone), *_write_stories(place, stories)
        files = (*tables, *observed, SUMMARY)
        write_json(place / SUMMARY, {"format": FORMAT, "files": files} | summary)
    return SlurmResults(summary, _runs(found), stories, Path(directory), files, alone)


def check_options(
    options: SlurmOptions,
    submissions: Submissions,
    recorded: Recorded | None,
    platform: Platform | None,
) -> None:
    """Raise SlurmError if options, submissions, recorded phases and platform do not go together."""
    known = {request.id for request in submissions.jobs}
    for job in options.explain:
        if job not in known:
            raise SlurmError(
                f"--explain {shown(job)}: the workload has no such job; give a job's id"
            )
    if recorded is not None and (options.controllers > 1 or options.test_cost > 0):
        raise SlurmError("--cycles gives the times of one real controller; leave out "
                         "--controllers and --test-cost")  # fmt: skip
    for name, given in (
        (f"profiles {options.profiles}", options.profiles != AS_GIVEN),
        ("attribution", options.attribution),
        ("neighbours", options.neighbours),
    ):
        if given and platform is None:
            raise SlurmError(f"--{name} needs a platform; give --platform")


def _watch(part: Part, options: SlurmOptions) -> Watch:
    mine = {request.id for request in part.jobs}
    explained = [job for job in options.explain if job in mine]
    return Watch(explained, priorities_s=options.priorities)


def _together(
    conf: Conf,
    parts: Sequence[Part],
    options: SlurmOptions,
    execution: PtaskExecution,
    given: Mapping[str, Any],
) -> list[Simulated]:
    """Several controllers, whose jobs share a platform."""
    watches = [_watch(part, options) for part in parts]
    runs = simulate_together(
        conf,
        parts,
        execution,
        watches,
        compiled=not INTERPRETED,
        costs=Costs(options.test_cost, counts_all=options.count_tests),
        **given,
    )
    return [Simulated(run, watch) for run, watch in zip(runs, watches, strict=True)]


def _simulated(part: Part, options: SlurmOptions, given: Mapping[str, Any]) -> Simulated:
    """One controller with its jobs."""
    watch = _watch(part, options)
    run = simulate_slurm(
        part.conf,
        part.jobs,
        watch=watch,
        compiled=not INTERPRETED,
        costs=Costs(options.test_cost, counts_all=options.count_tests),
        **given,
    )
    return Simulated(run, watch)


def _alone(found: Sequence[Simulated], execution: PtaskExecution | None) -> dict[str, float]:
    """How long each job that ran on a platform would have taken there alone, s, by id."""
    if execution is None:
        return {}
    return times_alone([job for each in found for job in each.run.jobs], execution)


def times_alone(jobs: Sequence[JobRecord], execution: PtaskExecution) -> dict[str, float]:
    """Return how long each of `jobs` that ran would have taken alone on the platform, s, by id.

    execution: of the jobs.
    """
    jobs = [job for job in jobs if is_over(job) and job.request.run_s is None]
    attempts = [job.attempt for job in jobs if job.attempt is not None]
    times = alone_s(execution, attempts)
    return {job.id: time_s for job, time_s in zip(jobs, times, strict=True) if time_s == time_s}


def _ended_on(
    found: Sequence[Simulated], alone: Mapping[str, float]
) -> tuple[list[Attempt], list[float]]:
    """The last attempts of the jobs that ran and ended on the platform, and their times alone."""
    jobs = [job for each in found for job in each.run.jobs if job.id in alone]
    return [job.attempt for job in jobs if job.attempt is not None], [alone[job.id] for job in jobs]


def _runs(found: Sequence[Simulated]) -> tuple[SlurmRun, ...]:
    return tuple(each.run for each in found)


def _stories(found: Sequence[Simulated]) -> dict[str, list[str]]:
    """The stories of the jobs that were asked for; that of one that is refused is short."""
    refused = {
        job.id: f"{job.submit_s - each.run.phases.t0:12.3f} s  refused at submission: {job.reason}"
        for each in found
        for job in each.run.jobs
        if job.state == REFUSED
    }
    stories = {job: story for each in found for job, story in each.watch.stories.items()}
    return {
        job: story or [refused[job]] for job, story in stories.items() if story or job in refused
    }


def _write_stories(place: Path, stories: dict[str, list[str]]) -> list[str]:
    if not stories:
        return []
    lines = [line for job, story in stories.items() for line in (f"job {job}", *story)]
    (place / "explanation.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return ["explanation.txt"]
