"""Run a batch and write its directory: schedule a workload, record, write it atomically.

It also writes the files of a Batsim run, under a prefix.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel import __version__
from ptaskmodel.batch.class_metrics import BASES, by_class
from ptaskmodel.batch.jobs.execution import NOT_OVER
from ptaskmodel.batch.loop.schedule import figures_of
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.plan import check_sizes, machine_with, only_delays
from ptaskmodel.batch.queue_metrics import QueueMeasures
from ptaskmodel.batch.run import BatchResult, Driver, run_batch
from ptaskmodel.batch.schedule_metrics import killed_only_by_neighbours, load, metrics
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.files import check_file_to_write, whole_path, write_json
from ptaskmodel.kernels.decorators import Stopwatch
from ptaskmodel.options import fields_in, parameters_of, values
from ptaskmodel.platform import load_platform
from ptaskmodel.remarks import STOPPED, WARNING, Remark, for_summary, joining
from ptaskmodel.results.directory import FORMAT, SUMMARY, provenance, whole_directory
from ptaskmodel.results.states import outcome_remarks
from ptaskmodel.results.tables.batch import (
    batsim_summary,
    write_classes,
    write_fair_starts,
    write_neighbours,
    write_over_time,
    write_schedule,
    write_tuning,
)
from ptaskmodel.results.tables.energy import (
    ENERGY_FILES,
    PowerFile,
    by_job,
    energy_summary,
    machine_states,
    write_energy,
)
from ptaskmodel.runs.options import check_group, check_nothing_to_write, fresh
from ptaskmodel.runs.scheduling_options import BATCH, TRANSFORMS, BatchWriting
from ptaskmodel.style.text import several
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.jobs import JobTable, columns_of, rows_of, sizes_of
from ptaskmodel.workload.reading import read_workload

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.batch.jobs.metering import BatchEnergy
    from ptaskmodel.batch.loop.loop import Progress
    from ptaskmodel.batch.loop.power_states import Pstates
    from ptaskmodel.batch.run import BatchResult
    from ptaskmodel.batch.schedule_metrics import Load
    from ptaskmodel.platform import Platform
    from ptaskmodel.runs.recording import Observation
    from ptaskmodel.simulation.simulation import Simulation
    from ptaskmodel.workload.jobs import Workload


# The pictures of --plots, each called after its kind (see `results.PICTURES`).
PLOTS = ("gantt.png", "load.png")
POWER_PLOT = "power.png"  # with energy


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchRun:
    """A schedule, and the content of its summary.json.

    directory: where it is written, and files: the names there; None and () if nowhere.
    """

    summary: dict[str, Any]
    result: BatchResult
    directory: Path | None = None
    files: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"<BatchRun in {self.directory}: {self.result!r}>"

    def frame(self) -> pandas.DataFrame:
        """The jobs as a table, one row each (see `BatchResult.frame`)."""
        return self.result.frame()


@joining()
def batch_into(
    directory: str | Path | None,
    platform: Platform,
    workload: Workload,
    options: BatchOptions | None = None,
    writing: BatchWriting | None = None,
    *,
    inputs: Iterable[str | Path] = (),
    parameters: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    driver: Driver | None = None,
) -> BatchRun:
    """Schedule a workload on a platform and write a directory of results.

    The directory is written atomically, and replaces earlier results; None: nothing is written.
    writing: what to record; None: the defaults. inputs: the files that platform and workload come
    from, which the summary lists with their digests. parameters: values of options by name,
    for the summary; None: not known. progress: called with the progress of the run.
    driver: decides instead of the policy of the options.

    Raises PTaskModelError if the directory holds anything else, or something cannot be simulated or
    written; then nothing is written.
    """
    options, writing = options or BatchOptions(), writing or BatchWriting()
    if directory is None:
        check_nothing_to_write(
            plots=writing.plots,
            neighbours=options.neighbours,
            traces=writing.traces,
            attribution=writing.attribution,
        )
    if (writing.traces or writing.attribution) and (
        options.profiles == "delay" or (options.profiles == "as-given" and only_delays(workload))
    ):
        raise SimulationError(
            f"{'--trace' if writing.traces else '--attribution'}: every job is a delay and uses "
            "no host and no link; --profiles ptask converts delays into parallel tasks"
        )
    inputs = tuple(inputs)
    watch = Stopwatch()
    if directory is None:
        power = PowerFile(None)
        result = run_batch(platform, workload, options, progress, power=power, driver=driver)
        queue = QueueMeasures(result.schedule)
        return BatchRun(
            _summary(result, queue, options, writing, watch.kernels_s, inputs, parameters, power),
            result,
        )
    with whole_directory(directory) as place, PowerFile(place if options.energy else None) as power:
        observed: list[str] = []

        def observation(simulation: Simulation) -> Observation:
            from ptaskmodel.runs.recording import Observation

            recorded = writing.traces, writing.attribution, writing.trace_limit_GB
            made = Observation(simulation, place, *recorded)
            observed.extend(made.files)
            return made

        watches = observation if writing.traces or writing.attribution else None
        result = run_batch(platform, workload, options, progress, watches, power, driver)
        queue = QueueMeasures(result.schedule)
        summary = _summary(
            result, queue, options, writing, watch.kernels_s, inputs, parameters, power
        )
        files = (*_write(place, result, queue, writing, power), *observed, SUMMARY)
        write_json(place / SUMMARY, {"format": FORMAT, "files": files} | summary)
        _draw(place, files)
    return BatchRun(summary, result, Path(directory), files)


class BatchInputs(NamedTuple):
    """What `batch_into` takes, from parameters; inputs: the files that were read."""

    platform: Platform
    workload: Workload
    options: BatchOptions
    writing: BatchWriting
    inputs: tuple[Path, ...]
    parameters: Mapping[str, Any]


def batch_inputs(parameters: Mapping[str, Any], read: Callable[..., Any] = fresh) -> BatchInputs:
    """Read what a batch with these parameters needs; command line and campaigns call it.

    parameters: the files platform and workload; of the options in `BATCH` and `TRANSFORMS` any.
    read: how a reader and its arguments give an input. Raises PTaskModelError.
    """
    given = values(BATCH, parameters)
    check_group(given)
    options = BatchOptions(**fields_in(BatchOptions, given))
    workload = read(read_workload, parameters["workload"], Cleaning(given["processors_per_host"]))
    platform = read(load_platform, parameters["platform"])
    files = [parameters["platform"], parameters["workload"]]
    if given["leave_out_larger"]:
        workload = without_larger(workload, platform, options)
    workload = _transformed(workload, parameters, options.seed, len(platform.hosts))
    if given["calibration"] is not None:
        from ptaskmodel.calibration import apply_to_jobs, parse_labels

        workload = apply_to_jobs(given["calibration"], workload, parse_labels(given["group"] or ""))
        files.append(given["calibration"])
    # Against all hosts, whatever they are for: what is left of them for jobs is counted later.
    check_sizes(workload, len(platform.hosts))
    files += [given[name] for name in ("failures", "maintenance") if given[name] is not None]
    writing = BatchWriting(**fields_in(BatchWriting, given))
    return BatchInputs(
        platform, workload, options, writing, tuple(map(Path, files)), parameters_of(BATCH, given)
    )


def _transformed(
    workload: Workload, parameters: Mapping[str, Any], seed: int, hosts: int
) -> Workload:
    """The workload as the parameters of `TRANSFORMS` ask for."""
    asked_for = [option.name for option in TRANSFORMS if option.name in parameters]
    if not asked_for:
        return workload
    from ptaskmodel.workload.sampling import sampled, shuffled
    from ptaskmodel.workload.scaling import loaded, offered_load, shrunk

    steps: dict[str, Callable[[Workload, Any], Workload]] = {
        "jobs": lambda made, count: made.with_jobs(
            made.jobs[:count], f"the first {count} jobs", same_dates=True
        ),
        "shuffle": lambda made, asked: shuffled(made, seed, "kept") if asked else made,
        "sample": lambda made, ratio: sampled(made, ratio),
        "shrink": lambda made, factor: shrunk(made, factor),
        "load": lambda made, load: loaded(made, load / offered_load(made, hosts)),
        "load_factor": lambda made, factor: loaded(made, factor),
    }
    for name in asked_for:
        workload = steps[name](workload, parameters[name])
    return workload


def without_larger(
    workload: Workload, platform: Platform, options: BatchOptions | None = None
) -> Workload:
    """Return a workload without the jobs larger than the platform, with a note of how many.

    options: which hosts of the platform are for jobs (None: all).
    """
    limit = machine_with(options or BatchOptions(), platform).num_hosts
    kept = (sizes_of(workload.jobs) <= limit).nonzero()[0].tolist()
    gone = len(workload.jobs) - len(kept)
    which = several(gone, "job that needs", "jobs that need")
    note = f"left out {which} more than {limit} hosts"
    if not gone:
        return workload
    left = JobTable.of(rows_of(columns_of(workload.jobs), kept))
    return workload.with_jobs(left, note, same_dates=True)


def _summary(
    result: BatchResult,
    queue: QueueMeasures,
    options: BatchOptions,
    writing: BatchWriting,
    kernels_s: float,
    inputs: tuple[str | Path, ...],
    parameters: Mapping[str, Any] | None,
    power: PowerFile,
) -> dict[str, Any]:
    named = dict(zip(("platform", "workload"), map(str, inputs), strict=False))
    driven = result.driven
    return {
        "command": "batch" if driven is None else "serve",
        **named,
        "hosts": result.machine.num_hosts,
        "policy": options.policy if driven is None else "external",
        "allocation": options.allocation,
        **(driven or {}),
        "remarks": for_summary(result.machine.platform.remarks, result.remarks, _outcomes(result)),
        **_stopped(result, options),
        **(
            {}
            if result.workload.begin_unix_s is None
            else {"begin_unix_s": result.workload.begin_unix_s}
        ),
        "loop": result.loop,
        "simulation_wall_time_s": result.simulation_s,
        "kernels_wall_time_s": kernels_s,
        **_choices(result),
        **metrics(result.schedule, tau_s=writing.tau_s, alone_s=result.alone_s),
        **({} if driven is not None else {"outlived_estimates": result.outlived}),
        **queue.summary(),
        **_fairness(result, options),
        **_energy(result, power),
        **provenance(inputs, parameters),
    }


def _choices(result: BatchResult) -> dict[str, Any]:
    """How the simulation was set up, if there is one."""
    if result.simulation is None:
        return {}
    from ptaskmodel.results.tables.tasks import choices

    return choices(result.simulation)


def _outcomes(result: BatchResult) -> list[Remark]:
    """Remarks on jobs that did not end by themselves, and on a scheduler that did not go on."""
    schedule, alone_s = result.schedule, result.alone_s
    by_neighbours = None if alone_s is None else killed_only_by_neighbours(schedule, alone_s)
    found = outcome_remarks(Counter(figures_of(schedule).states), "job", by_neighbours)
    stopped = (result.driven or {}).get("stopped")
    return found if stopped is None else [Remark(stopped, WARNING, STOPPED), *found]


def _stopped(result: BatchResult, options: BatchOptions) -> dict[str, Any]:
    """Where the batch was stopped, if some job was not over then."""
    missing = len(result.workload.jobs) - len(result.schedule.final)
    left = (state in NOT_OVER for state in figures_of(result.schedule).states)
    asked = options.until_s is not None or (result.driven or {}).get("stopped") is not None
    if not asked or not (missing or any(left)):
        return {}
    return {"stopped_early": {"at_s": result.schedule.now_s, "not_submitted": missing}}


def _fairness(result: BatchResult, options: BatchOptions) -> dict[str, Any]:
    """How many jobs started later than was fair, on each basis that was asked for."""
    if result.fairness is None:
        return {}
    bases = BASES if options.fairness == "both" else (options.fairness,)
    counts = {
        str(basis): sum(fair.is_unfair(str(basis)) for fair in result.fairness) for basis in bases
    }
    return {"unfair_jobs": {**counts, "frozen": options.frozen}}


def _energy(result: BatchResult, power: PowerFile) -> dict[str, Any]:
    """What the summary says of energy, if it was counted."""
    if result.energy is None:
        return {}
    platform = result.machine.platform
    counted = [platform.host(name).index for name in result.machine.names]
    found = energy_summary(platform, result.energy.meter, power, counted)
    return {"energy": found | {"consumed_J": result.energy.consumed_J}}


def _write(
    place: Path,
    result: BatchResult,
    queue: QueueMeasures,
    writing: BatchWriting,
    power: PowerFile,
) -> list[str]:
    """Write the schedule in an existing directory; returns the names of the files."""
    files = write_schedule(
        place,
        result.schedule,
        queue.load,
        workload_name=result.workload.name,
        host_names=result.machine.names,
        version=__version__,
        simulation_s=result.simulation_s,
        alone_s=result.alone_s,
        energy=result.energy,
        pstates=_pstates(result) if _wants_pstates(result) else None,
        metadata=result.metadata,
    )
    if result.energy is not None:
        files += _write_energy(place, result, result.energy, power)
    files.append(write_over_time(place, queue.over_time()))
    unfair = None
    if result.fairness is not None:
        files.append(write_fair_starts(place, result.fairness))
        unfair = [fair.job.id for fair in result.fairness if any(map(fair.is_unfair, BASES))]
    classes = by_class(result.schedule, tau_s=writing.tau_s, unfair=unfair)
    files.append(write_classes(place, classes))
    if result.tuning is not None:
        files.append(write_tuning(place, result.tuning))
    if result.neighbours is not None:
        files.append(write_neighbours(place, result.neighbours))
    if writing.plots and len(result.schedule.attempts):
        files += PLOTS
        if result.energy is not None and result.schedule.now_s > 0.0:
            files.append(POWER_PLOT)
    return files


def _wants_pstates(result: BatchResult) -> bool:
    return result.energy is not None or bool(result.schedule.switches)


def _pstates(result: BatchResult) -> Pstates:
    from ptaskmodel.batch.loop.power_states import Pstates

    return Pstates(result.machine.pstates())


def _write_energy(
    place: Path, result: BatchResult, energy: BatchEnergy, power: PowerFile
) -> tuple[str, ...]:
    """Write the joules of hosts, links and jobs, and what is left of the power curve."""
    attempts = result.schedule.attempts
    energy_J, share_J = by_job(attempts, energy.job_J), by_job(attempts, energy.share_J)
    names = list(energy_J)
    found = names, list(energy_J.values()), [share_J[name] for name in names]
    power.end(result.schedule.now_s)
    write_energy(place, result.machine.platform, energy.meter, "job", *found)
    return ENERGY_FILES


def _draw(place: Path, files: tuple[str, ...]) -> None:
    """Draw the pictures among the files of results that are written."""
    if not (names := [name for name in (*PLOTS, POWER_PLOT) if name in files]):
        return
    from ptaskmodel.results.pictures.catalogue import draw_results

    for name in names:
        draw_results(place, name.partition(".")[0], place / name)


SCHEDULE, MACHINES = "schedule.csv", "machine_states.csv"
ENERGY = ("consumed_energy.csv", "pstate_changes.csv")


def check_prefix(prefix: str) -> None:
    """Files may be written under a prefix; PTaskModelError if not."""
    check_file_to_write(f"{prefix}_jobs.csv")


def write_batsim_files(
    prefix: str, result: BatchResult, *, states: bool = True, energy: bool = False
) -> list[str]:
    """Write PREFIX_jobs.csv, PREFIX_schedule.csv and more of a `result`; return the names.

    prefix: path that begins each name. states: also PREFIX_machine_states.csv. energy: also
    PREFIX_pstate_changes.csv, and PREFIX_consumed_energy.csv if energy was counted. Raises
    PTaskModelError.
    """
    import tempfile

    schedule, used = result.schedule, load(result.schedule)
    wanted = ["jobs.csv", SCHEDULE, *([MACHINES] if states else []), *(ENERGY if energy else ())]
    found = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        there = write_schedule(
            place,
            schedule,
            used,
            workload_name=None,
            host_names=result.machine.names,
            version=__version__,
            simulation_s=result.simulation_s,
            energy=result.energy,
            pstates=_pstates(result) if energy else None,
            metadata=result.metadata,
        )
        there.append(_write_summary(place, result, used))
        for each in wanted:
            if each in there or (place / each).exists():
                with whole_path(f"{prefix}_{each}", error=PTaskModelError) as path:
                    path.write_bytes((place / each).read_bytes())
                found.append(f"{prefix}_{each}")
    return found


def _write_summary(place: Path, result: BatchResult, used: Load) -> str:
    """Write schedule.csv: a line of names, and one of values."""
    schedule = result.schedule
    states = machine_states(schedule, used)
    values = batsim_summary(schedule, __version__, result.simulation_s, states)
    if result.energy is not None:
        values["consumed_joules"] = result.energy.consumed_J
    values["scheduling_time"] = (result.driven or {}).get("scheduler_wall_time_s", 0.0)
    with (place / SCHEDULE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, sorted(values), lineterminator=os.linesep)
        writer.writeheader()
        writer.writerow(values)
    return SCHEDULE
