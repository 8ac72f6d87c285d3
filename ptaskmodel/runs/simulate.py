"""Run tasks and write their directory: simulate, record, write the results atomically."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel import interrupts
from ptaskmodel.engine.usage.network_models import WIRES, NetworkModel, read_wire
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.kernels.decorators import Stopwatch
from ptaskmodel.options import fields_in, parameters_of, values
from ptaskmodel.platform import load_platform
from ptaskmodel.platform.routing import PLATFORM, Ecmp, GivenRoutes, routing_of
from ptaskmodel.remarks import OVERLOAD, STOPPED, WARNING, for_summary, joining, warn, warn_of
from ptaskmodel.results.directory import whole_directory
from ptaskmodel.results.states import outcome_remarks, stopped_remark
from ptaskmodel.results.tables.tasks import (
    summarise,
    times_of_loops,
    write_flow_routes,
    write_results,
)
from ptaskmodel.runs.options import (
    PACKETS,
    SIMULATE,
    SimulationOptions,
    check_group,
    check_nothing_to_write,
    fresh,
)
from ptaskmodel.runs.recording import Checkpoints, Observation
from ptaskmodel.simulation.checks import check_given_routes, overload_text
from ptaskmodel.simulation.records import frame
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.style.text import duration
from ptaskmodel.workload.blocks import TaskTable
from ptaskmodel.workload.formats.tasks_json import read_tasks_file

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.packets.tasks import PacketSimulation
    from ptaskmodel.platform import Platform
    from ptaskmodel.results.tables.energy import TaskEnergyFiles
    from ptaskmodel.runs.draws import TaskRanges
    from ptaskmodel.simulation.records import TaskRecord
    from ptaskmodel.workload.tasks import Task

# Told now and then of the date, the number of tasks that ended, and their number in all.
Progress = Callable[[float, int, int], None]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimulationRun:
    """What became of the tasks: the content of summary.json, and a record for each task.

    directory: where it is written, and files: the names there; None and () if nowhere. ranges: with
    draws, of each task by id the ends between which 80 % of its durations lie, s (nan: none).
    """

    summary: dict[str, Any]
    records: tuple[TaskRecord, ...]
    directory: Path | None = None
    files: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<SimulationRun in {self.directory}: {len(self.records)} tasks>"

    def frame(self) -> pandas.DataFrame:
        """The records as a table, one row a task."""
        return frame(self.records)


class SimulationInputs(NamedTuple):
    """What `simulate_into` takes, from parameters; inputs: the files that were read."""

    platform: Platform
    tasks: Sequence[Task]
    options: SimulationOptions
    inputs: tuple[Path, ...]
    parameters: Mapping[str, Any]


def simulation_inputs(
    parameters: Mapping[str, Any], read: Callable[..., Any] = fresh
) -> SimulationInputs:
    """Read what a simulation with these parameters needs; command line and campaigns call it.

    parameters: the files platform and tasks; of the options in `SIMULATE` any. read: how a reader
    and its arguments give an input. Raises PTaskModelError.
    """
    given = values(SIMULATE, parameters)
    kept = parameters_of(SIMULATE, given)
    check_group(given)
    tasks, files, told = read(read_tasks_file, parameters["tasks"])
    warn_of(told)
    platform = read(load_platform, parameters["platform"])
    files = [parameters["platform"], *files]
    if given["network_parameters"] is not None:
        given["network_model"] = _model_of(given["network_parameters"], given["network_model"])
        files.append(given["network_parameters"])
    if given["calibration"] is not None:
        from ptaskmodel.calibration import apply, parse_labels

        labels = parse_labels(given["group"] or "")
        platform, tasks = apply(given["calibration"], platform, tasks, labels)
        files.append(given["calibration"])
    if given["energy"]:
        from ptaskmodel.energy.meter import power_tables

        power_tables(platform)  # what is wrong with it is said before anything is compiled
    if isinstance(given["routing"], str):
        given["routing"] = routing = routing_of(given["routing"]) or PLATFORM
        if isinstance(routing, GivenRoutes):
            check_given_routes(routing, platform, tasks)
            warn_of(routing.remarks)
            files.append(routing.file)
    options = SimulationOptions(**fields_in(SimulationOptions, given))
    return SimulationInputs(platform, tasks, options, tuple(map(Path, files)), kept)


def _model_of(path: str | Path, name: str | None) -> NetworkModel:
    """The wire model of a file of parameters. Raises SimulationError."""
    if name is not None and name not in WIRES:
        raise SimulationError(
            f"--network-parameters need a wire model, but --network-model is {name}; "
            f"choose one of {', '.join(WIRES)}"
        )
    return NetworkModel.of_wire(read_wire(path, name))


@joining()
def simulate_into(
    directory: str | Path | None,
    platform: Platform,
    tasks: Iterable[Task],
    options: SimulationOptions | None = None,
    *,
    inputs: Iterable[str | Path] = (),
    parameters: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> SimulationRun:
    """Run tasks on a platform and write a directory of results.

    The directory is written atomically, and replaces earlier results; None: nothing is written.
    options: of the run; None: the defaults. inputs: the files that platform and tasks come from;
    the summary lists them, the files that they name, and all digests (`compare` and ``plot
    topology`` use them). parameters: values of options by name, for the summary; None: not known.
    progress: called with the progress of the run.

    Raises PTaskModelError if the directory holds anything else, or something cannot be simulated or
    written; then nothing is written.
    """
    options = options or SimulationOptions()
    if options.until_s is not None and not 0 <= options.until_s < float("inf"):
        raise PTaskModelError(
            f"until_s: {options.until_s!r} is not a time; give seconds, 0 or more"
        )
    if directory is None:
        check_nothing_to_write(
            traces=options.traces, attribution=options.attribution,
            neighbours=options.neighbours, routes=options.routes,
        )  # fmt: skip
    if options.draws and options.until_s is not None:
        raise PTaskModelError("--draws needs whole runs; leave out --until")
    if options.draws and options.routing == PLATFORM:
        options = replace(options, routing=Ecmp())
        parameters = parameters and {**parameters, "routing": str(options.routing)}
    inputs, tasks = list(inputs), tasks if isinstance(tasks, TaskTable) else list(tasks)
    checkpoints = Checkpoints(directory, options, platform, tasks)
    watch = Stopwatch()
    made = checkpoints.found()
    if made is None:
        made = Simulation(
            platform,
            solver=options.solver,
            network_model=options.network_model,
            count=options.count,
            routing=options.routing,
        )
        made.add_all(tasks)
    own_routes = options.routing != PLATFORM
    by_packets = options.network_level == PACKETS
    if not (own_routes or by_packets) and (piling_up := overload_text(platform, tasks)) is not None:
        warn(piling_up, OVERLOAD)

    runner: Simulation | PacketSimulation = made
    packets: PacketSimulation | None = None
    if by_packets:
        runner = packets = packet_simulation(made, options, directory is not None)

    drawn: list[TaskRanges] = []

    def run(place: Path | None) -> tuple[dict[str, Any], tuple[TaskRecord, ...]]:
        with _energy_files(made, place, options.energy) as energy:
            run_watch = Stopwatch()
            runner.run(options.until_s, progress=checkpoints.watching(made, progress))
            took_s, processor_s = run_watch.rest_s, run_watch.processor_s
            records = tuple(runner.records())
            if progress is not None:
                over = sum(record.end_s is not None for record in records)
                progress(runner.now, over, len(records))
            summary = summarise(
                runner, records, took_s, processor_s, watch.kernels_s, inputs, parameters
            )
            states = summary["counts"]
            if options.draws and not interrupts.arrived():
                drawn.extend(_ranges(made, options, by_packets, progress))
                if drawn:
                    summary["draws"] = drawn[0].facts
            summary["remarks"] = for_summary(
                platform.remarks,
                stopped_remark(states, runner.now),
                outcome_remarks(states, "task"),
            )
            if not isinstance(tasks, TaskTable) and (loops := times_of_loops(tasks, records)):
                summary["loops"] = loops
            stopped = options.until_s is not None or interrupts.arrived()
            if stopped and any(r.end_s is None for r in records):
                summary["stopped_early"] = {"at_s": runner.now, "not_submitted": 0}
            if energy is not None:
                summary["energy"] = energy.write(records)
        return summary, records

    def range_ends(records: Iterable[TaskRecord]) -> dict[str, tuple[float, float]]:
        names = [record.task_id for record in records]
        ends = [(each.low_s, each.high_s) for one in drawn for each in one.ranges]
        return dict(zip(names, ends, strict=True)) if ends else {}

    if directory is None:
        summary, records = run(None)
        return SimulationRun(summary, records, ranges=range_ends(records))
    with whole_directory(directory) as place:
        recorded = options.traces, options.attribution, options.trace_limit_GB
        neighbours = None
        if options.neighbours:
            from ptaskmodel.recording.attribution import Neighbours

            neighbours = Neighbours(made, by_limit=True)
        with Observation(made, place, *recorded) as observation:
            summary, records = run(place)
        files, alone_s = tuple(observation.files), None
        if options.energy:
            from ptaskmodel.results.tables.energy import ENERGY_FILES

            files = (*files, *ENERGY_FILES)
        if options.attribution or neighbours is not None:
            from ptaskmodel.recording.attribution import times_alone

            alone_s = times_alone(made)
        if neighbours is not None and alone_s is not None:
            from ptaskmodel.results.tables.costs import costs_of, write_costs

            costs, left_out = costs_of(made, neighbours, alone_s)
            files = (*files, write_costs(place, costs))
            if left_out:
                warn(left_out)
                summary["remarks"] += [{"level": WARNING, "text": left_out, "effect": None}]
        if packets is not None:
            from ptaskmodel.results.tables.tasks import write_packet_tables

            files = (*files, *write_packet_tables(place, packets))
        if options.routes:
            files = (*files, write_flow_routes(place, made))
        beside = None
        if drawn:
            from ptaskmodel.results.tables.tasks import range_columns, write_draws

            names = [record.task_id for record in records]
            files = (*files, write_draws(place, names, drawn[0].durations))
            beside = range_columns((each.low_s, each.high_s) for each in drawn[0].ranges)
        files = write_results(place, summary, records, alone_s=alone_s, beside=beside, files=files)
    checkpoints.remove()
    interrupts.check()
    return SimulationRun(summary, records, Path(directory), files, range_ends(records))


def _ranges(
    made: Simulation, options: SimulationOptions, by_packets: bool, progress: Progress | None
) -> list[TaskRanges]:
    """The ranges of the tasks of a simulation; none, and a warning, if a signal ends the draws."""
    from ptaskmodel.runs.draws import task_ranges

    n, n_tasks = options.draws or 0, sum(1 for _ in made.tasks())

    def tell(done: int) -> None:
        if progress is not None:
            progress(made.now, (done + 1) * n_tasks, (n + 1) * n_tasks)

    try:
        return [task_ranges(made, by_packets, n, options.jitter_s, tell)]
    except interrupts.Interrupted:
        warn("a signal ended the draws: there are no ranges", STOPPED)
        return []


def _energy_files(
    simulation: Simulation, place: Path | None, wanted: bool
) -> AbstractContextManager[TaskEnergyFiles | None]:
    """What counts the joules of a simulation in a context around its run, if that is wanted."""
    if not wanted:
        return nullcontext()
    from ptaskmodel.results.tables.energy import TaskEnergyFiles

    return TaskEnergyFiles(simulation, place)


_log = logging.getLogger(__name__)
# Runs that take longer are announced without -v.
LONG_S = 30.0
# Fields of the options that only the fluid level has, and their values that ask nothing.
FLUID_ONLY = {
    "solver": None,
    "count": "task",
    "traces": (),
    "attribution": False,
    "energy": False,
    "neighbours": False,
    "checkpoint_every_s": None,
    "resume": False,
}


def packet_simulation(
    simulation: Simulation, options: SimulationOptions, recorded: bool
) -> PacketSimulation:
    """The tasks of ``simulation`` as packets; says how long they will take if that is long.

    options: as `simulate_into` takes them. recorded: keep queues over time. Raises PTaskModelError
    for options that packets do not have, and as `PacketSimulation`.
    """
    from ptaskmodel.packets.tasks import PacketSimulation

    for name, nothing in FLUID_ONLY.items():
        if getattr(options, name) != nothing:
            flag = {"traces": "trace"}.get(name, name).replace("_", "-")
            raise PTaskModelError(
                f"--{flag}: --network-level packets has no such option; leave it out, or use fluid"
            )
    made = PacketSimulation(simulation, recorded=recorded)
    # Each draw is a run more, and so are all tasks alone, one after the other.
    runs = 1 if options.draws is None else options.draws + 2
    expected_s = runs * made.expected_s
    _log.log(
        logging.WARNING if expected_s > LONG_S else logging.INFO,
        "packets cross %s links in total, which takes about %s",
        f"{runs * made.expected_hops:,.0f}",
        duration(expected_s),
    )
    return made
