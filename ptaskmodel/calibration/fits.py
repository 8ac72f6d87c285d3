"""Fit a model to the measured run times of a group: the two-rate model, or the parallel task.

The two-rate model alternates between two rates. An application completes a part c1 of its whole
work per second while the interference is on, and c2 while it is off. The interference starts with
the application, on. The run time is exact, not an average over periods.

For the parallel task, parameters are chosen so that simulations predict the measured runs.

Three parameters describe an application on a platform. Two are the efficiencies of its network use
and of its computing: the part of the nominal speed that it reaches. The third is the number of
competitors k that it counts for where it meets interference (share coefficient m = a / k of the
sharing problem). The interference of w units (TCP connections, host pairs) is a task that counts
for w: the application gets k / (k + w) of a resource that limits both.

Unless the file names another application, it is PDGEMM in the two-group set-up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ptaskmodel.apps.interference import OnOff, TwoGroups, interference_tasks
from ptaskmodel.apps.pdgemm import Pdgemm, place
from ptaskmodel.calibration.measurements import (
    MeasuredGroup,
    Measurement,
    MeasurementError,
    Parameter,
    fit,
    standard_errors,
)
from ptaskmodel.calibration.results import Fitter, GroupCalibration, Prediction, not_fitted
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.amounts import FloatArray
from ptaskmodel.workload.formats.tasks_json import load_tasks
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Work

DEFAULT_FIXED = {"compute_efficiency": 1.0}


def predicted_runtime(c1: float, c2: float, pattern: OnOff) -> float:
    """Return the date at which progress reaches 1, in s.

    c1, c2: disturbed and undisturbed progress rates, 1/s; > 0 wherever the pattern needs them.
    pattern: when the interference is on.
    """
    _check(c1, c2)
    return float(predicted_runtimes(np.float64(c1), np.float64(c2), pattern))


def predicted_runtimes(
    c1: FloatArray | np.float64, c2: FloatArray | np.float64, pattern: OnOff
) -> FloatArray | np.float64:
    """Return the same for arrays of rates `c1` and `c2` > 0, in their shape.

    pattern: as of `predicted_runtime`.
    """
    if pattern.none or pattern.constant:
        return 1.0 / (c2 if pattern.none else c1)
    in_period = c1 * pattern.on_s + c2 * pattern.off_s
    whole = np.floor(1.0 / in_period)
    rest = 1.0 - whole * in_period
    whole, rest = np.where(rest <= 0.0, (whole - 1.0, rest + in_period), (whole, rest))
    slow = c1 * pattern.on_s
    tail_s = np.where(rest <= slow, rest / c1, pattern.on_s + (rest - slow) / c2)
    found: FloatArray = whole * pattern.period_s + tail_s
    return found


def progress(c1: float, c2: float, pattern: OnOff, dates_s: FloatArray) -> FloatArray:
    """Return the part of the work done at each date, at most 1; same shape as ``dates_s`` (s).

    c1, c2, pattern: as of `predicted_runtime`.
    """
    _check(c1, c2)
    dates = np.asarray(dates_s, np.float64)
    if pattern.none or pattern.constant:
        return np.minimum(1.0, dates * (c2 if pattern.none else c1))
    whole = np.floor(dates / pattern.period_s)
    in_period = dates - whole * pattern.period_s
    on_s = whole * pattern.on_s + np.minimum(in_period, pattern.on_s)
    return np.minimum(1.0, c1 * on_s + c2 * (dates - on_s))


def _check(c1: float, c2: float) -> None:
    if not (0.0 < c1 < math.inf and 0.0 < c2 < math.inf):
        raise PTaskModelError(f"progress rates c1 = {c1}, c2 = {c2}; give finite numbers > 0 (1/s)")


def rates_fitter(model_error: float = 0.0) -> Fitter:
    """A fitter of the rates model; each row weighs by its standard error.

    model_error: relative error of the model itself, added in quadrature (0: none), which keeps
    rows with very small standard deviations from deciding alone.
    """

    def fit_group(group: MeasuredGroup, used: Sequence[bool]) -> GroupCalibration:
        return _fit_group(group, used, model_error)

    return fit_group


def _fit_group(group: MeasuredGroup, used: Sequence[bool], model_error: float) -> GroupCalibration:
    chosen = [
        row
        for row, taken in zip(group.measurements, used, strict=True)
        if taken and row.runtime_s is not None
    ]
    if len({row.competitors for row in group.measurements if not row.pattern.none}) > 1:
        return not_fitted(
            group,
            "the number of competitors varies, but the rates model assumes one; use --model ptask",
        )
    start = _start(chosen)
    if start is None:
        return not_fitted(group, "needs rows with interference, and rows with less or none")
    measured = np.array([row.runtime_s for row in chosen], np.float64)

    def predict(rates: FloatArray) -> FloatArray:
        return np.array([predicted_runtimes(rates[0], rates[1], row.pattern) for row in chosen])

    best = fit(predict, start, measured, standard_errors(chosen, model_error), searched=True)
    c1, c2 = (float(value) for value in best.values)
    predictions = tuple(
        Prediction(row, predicted_runtime(c1, c2, row.pattern), taken and row.runtime_s is not None)
        for row, taken in zip(group.measurements, used, strict=True)
    )
    parameters = {"c1": best.parameter(0, "1/s"), "c2": best.parameter(1, "1/s")}
    return GroupCalibration(
        group.labels, parameters, predictions, best.chi_square, best.degrees_of_freedom
    )


def _start(rows: Sequence[Measurement]) -> tuple[float, float] | None:
    """Rates from the mean progress at the two extreme shares of time; None if there is only one.

    1 / runtime is about share c1 + (1 - share) c2: a line through the extremes gives both.
    """
    shares = [row.pattern.share for row in rows]
    if not rows or min(shares) == max(shares):
        return None
    low, high = shares.index(min(shares)), shares.index(max(shares))
    at_low, at_high = 1.0 / float(rows[low].runtime_s or 1), 1.0 / float(rows[high].runtime_s or 1)
    slope = (at_high - at_low) / (shares[high] - shares[low])
    c2 = at_low - slope * shares[low]
    c1 = c2 + slope
    return max(c1, 0.02 * c2), c2


def ptask_fitter(
    setting: Setting | Callable[[Mapping[str, str]], Setting],
    fixed: Mapping[str, float] = DEFAULT_FIXED,
    model_error: float = 0.0,
    spread: float = 0.0,
) -> Fitter:
    """A fitter of ``network_efficiency``, ``compute_efficiency`` and ``competitors``.

    setting: where the application runs, for all groups or as a function of a group's labels;
    fixed: values of the parameters that are not to be fitted. By default computing is taken at its
    nominal speed: a bundled task shows one of the two efficiencies only, that of its bottleneck.
    model_error: as in ``rates_fitter``; spread: as in ``leastsquares.fit`` (the search starts from
    the rates of progress, which for a bundled task are all but the answer).
    """
    strangers = sorted(set(fixed) - set(PARAMETERS))
    if strangers:
        raise MeasurementError(
            f"unknown parameter {strangers[0]!r} to fix; use one of {', '.join(PARAMETERS)}"
        )
    free = [name for name in PARAMETERS if name not in fixed]

    def fit_group(group: MeasuredGroup, used: Sequence[bool]) -> GroupCalibration:
        place = setting if isinstance(setting, Setting) else setting(group.labels)
        chosen = [
            row
            for row, taken in zip(group.measurements, used, strict=True)
            if taken and row.runtime_s is not None
        ]
        if not _determined(chosen, free):
            return not_fitted(
                group,
                f"too few rows with and without interference to fit {' and '.join(free)}",
            )
        return _fit_ptask_group(group, used, chosen, place.merged(), fixed, (model_error, spread))

    return fit_group


def _determined(rows: Sequence[Measurement], free: Sequence[str]) -> bool:
    """Whether there are as many different cases as parameters, and if needed both kinds."""
    cases = {(row.pattern, 0.0 if row.pattern.none else row.competitors) for row in rows}
    kinds = {case[0].share for case in cases}
    return bool(rows) and len(cases) >= len(free) and ("competitors" not in free or len(kinds) > 1)


def _fit_ptask_group(
    group: MeasuredGroup,
    used: Sequence[bool],
    chosen: Sequence[Measurement],
    setting: Setting,
    fixed: Mapping[str, float],
    error_and_spread: tuple[float, float],
) -> GroupCalibration:
    free = [name for name in PARAMETERS if name not in fixed]
    model_error, spread = error_and_spread

    def values(point: FloatArray) -> dict[str, float]:
        return dict(fixed) | {name: float(v) for name, v in zip(free, point, strict=True)}

    def predict(point: FloatArray) -> FloatArray:
        return setting.runtimes(values(point), chosen)

    start = _ptask_start(chosen, setting, free, fixed)
    measured = np.array([row.runtime_s for row in chosen], np.float64)
    best = fit(predict, start, measured, standard_errors(chosen, model_error), spread)
    if best.idle:
        names = " and ".join(free[number] for number in best.idle)
        kept = " ".join(f"--fix {free[number]}=VALUE" for number in best.idle)
        return not_fitted(
            group,
            f"no predicted runtime depends on {names}. Does the interference meet the application "
            f"at its bottleneck? Correct --pair or the amounts, or fix the value: {kept}",
        )
    if best.tied:
        names = " and ".join(free[number] for number in best.tied)
        return not_fitted(
            group,
            f"the predicted runtimes depend only on a combination of {names}; give rows that "
            "separate "
            f"them, or fix one: --fix {free[best.tied[0]]}=VALUE",
        )
    fitted = values(best.values)
    runtimes = setting.runtimes(fitted, group.measurements)
    predictions = tuple(
        Prediction(row, float(runtime_s), taken and row.runtime_s is not None)
        for row, runtime_s, taken in zip(group.measurements, runtimes, used, strict=True)
    )
    parameters = {
        name: best.parameter(free.index(name), unit)
        if name in free
        else Parameter(fixed[name], unit)
        for name, unit in PARAMETERS.items()
    }
    return GroupCalibration(
        group.labels, parameters, predictions, best.chi_square, best.degrees_of_freedom
    )


def _ptask_start(
    rows: Sequence[Measurement], setting: Setting, free: Sequence[str], fixed: Mapping[str, float]
) -> list[float]:
    """A first guess: the rates of progress of these rows, as the parameters of a bundled task."""
    alone = Measurement(OnOff(0.0, 0.0), None)
    (nominal_s,) = setting.runtimes({**NOMINAL, **fixed}, [alone])
    slow, fast, competitors = _disturbed_and_not(rows)
    kept = min(0.98, max(0.02, slow / fast))
    guess = {
        "network_efficiency": nominal_s * fast,
        "compute_efficiency": 1.0,
        "competitors": competitors * kept / (1.0 - kept),
    }
    return [guess[name] for name in free]


def _disturbed_and_not(rows: Sequence[Measurement]) -> tuple[float, float, float]:
    """(c1, c2, w): rates of progress in 1/s under w competitors and under none, about."""
    group = MeasuredGroup({}, tuple(rows))
    fitted = rates_fitter()(group, [True] * len(rows))
    stormy = max(rows, key=lambda row: row.pattern.share * row.competitors)
    if fitted.parameters:
        return fitted.value("c1"), fitted.value("c2"), stormy.competitors
    calm = min(rows, key=lambda row: row.pattern.share)
    return 1.0 / float(stormy.runtime_s or 1), 1.0 / float(calm.runtime_s or 1), stormy.competitors


PARAMETERS = {"network_efficiency": "1", "compute_efficiency": "1", "competitors": "competitors"}
NOMINAL = {"network_efficiency": 1.0, "compute_efficiency": 1.0, "competitors": 1.0}
CLUSTERS = ("paravance", "grisou")
ORDER = 80_000
PROCESSES = 256
# A placement whose undisturbed runtime is that of the published table, 311.5 s.
REFERENCE_SEED = 70


@dataclass(frozen=True, slots=True)
class Setting:
    """Where an application runs and meets interference.

    ``hosts`` has one name for each rank of ``work``, the application at nominal efficiencies;
    the interference saturates the route between the two hosts of ``pair``, both ways.
    """

    platform: Platform
    hosts: tuple[str, ...]
    work: Work
    pair: tuple[str, str]

    def task(self, values: Mapping[str, float]) -> Task:
        """The application with these values of ``PARAMETERS``."""
        work = self.work.divided(values["compute_efficiency"], values["network_efficiency"])
        return Task(self.hosts, work, competitors=values["competitors"])

    def runtimes(self, values: Mapping[str, float], rows: Sequence[Measurement]) -> FloatArray:
        """Return simulated runtimes, s, under the pattern and the competitors of each of `rows`.

        values: of the parameters of the model, by name.
        """
        task = self.task(values)
        undisturbed_s = undisturbed_runtime(self.platform, task)
        known: dict[tuple[OnOff, float], float] = {}
        for row in rows:
            case = (row.pattern, row.competitors)
            if case not in known:
                known[case] = self._runtime(task, row, undisturbed_s)
        return np.array([known[row.pattern, row.competitors] for row in rows])

    def merged(self) -> Setting:
        """The same with all flows from one host to another made one: lighter, same runtimes."""
        return replace(self, work=merge_flows(self.work, self.hosts))

    def _runtime(self, task: Task, row: Measurement, undisturbed_s: float) -> float:
        if row.pattern.none:
            return undisturbed_s
        noise = interference_tasks(
            row.pattern,
            *self.pair,
            until_s=latest_end(undisturbed_s, row.pattern),
            joint=True,
            competitors=row.competitors,
        )
        return runtime_beside(self.platform, task, noise)


def plain_runtime(setting: Setting, pattern: OnOff, connections: int = 1) -> float:
    """Return the runtime in s of the plain model: one competitor a task, nothing calibrated.

    setting: the application and its platform. pattern: of the interference. A connection is two
    tasks, one a direction, so the application keeps 1 / (1 + 2 connections) of what both directions
    share.
    """
    task = Task(setting.hosts, setting.work)
    undisturbed_s = undisturbed_runtime(setting.platform, task)
    until_s = latest_end(undisturbed_s, pattern)
    noise = interference_tasks(pattern, *setting.pair, until_s, connections=connections)
    return runtime_beside(setting.platform, task, noise)


def undisturbed_runtime(platform: Platform, task: Task) -> float:
    """Return the simulated runtime in s of a task alone on a platform.

    Raises SimulationError if it does not end.
    """
    return runtime_beside(platform, task, ())


def latest_end(undisturbed_s: float, pattern: OnOff) -> float:
    """Return a date in s by which a task ends that makes its usual progress at least while off.

    undisturbed_s: its runtime alone, s. pattern: of the interference, on and off.
    """
    if pattern.none or pattern.constant:
        return undisturbed_s
    return undisturbed_s / (1.0 - pattern.share) + 2.0 * pattern.period_s


def runtime_beside(platform: Platform, task: Task, others: Sequence[Task]) -> float:
    """Return the simulated runtime in s of a task beside others on a platform.

    Raises SimulationError if it does not end.
    """
    simulation = Simulation(platform)
    application = simulation.add(task)
    simulation.add_all(others)
    while application.end_s is None:
        if not simulation.run_until_change():
            raise SimulationError(
                f"the application does not end (state {application.state} at {simulation.now:g} s)"
            )
    return float(application.end_s) - task.start_s


def merge_flows(work: Work, hosts: Sequence[str]) -> Work:
    """The work with its flows between the same two hosts carried by one rank of each.

    The loads of hosts and links stay, and so does every runtime where competitors are given.
    """
    first = {name: rank for rank, name in reversed(list(enumerate(hosts)))}
    return work.with_merged_flows(np.array([first[name] for name in hosts]))


def setting_from_files(
    platform_file: str | Path, tasks_file: str | Path, pair: Sequence[str]
) -> Setting:
    """Return the setting of the first task in `tasks_file` on the platform in `platform_file`.

    Raises MeasurementError if ``pair`` is not two different hosts of the platform or there is no
    task, and the readers' errors.
    """
    platform = load_platform(platform_file)
    tasks = load_tasks(tasks_file)
    if not tasks:
        raise MeasurementError(
            f"{tasks_file}: contains no task; make the application the first one"
        )
    if len(pair) != 2 or pair[0] == pair[1]:
        raise MeasurementError(f"pair {','.join(pair)!r}; name two different hosts, HOST,HOST")
    for name in pair:
        platform.host(name)
    return Setting(platform, tasks[0].hosts, tasks[0].work, (pair[0], pair[1]))


@functools.cache
def two_groups_platform(name: str) -> Platform:
    """The platform of ``TwoGroups(name)``."""
    return TwoGroups(name).platform()


def pdgemm_setting(
    cluster: str = "paravance",
    *,
    sub_blocks: int = 1,
    blocking: bool = False,
    phases: int | None = None,
    seed: int = REFERENCE_SEED,
    part: float = 1.0,
) -> Setting:
    """Return the measured PDGEMM on ``cluster``, its ranks placed at random with ``seed``.

    sub_blocks, blocking: as of `Pdgemm`. phases: None for one bundled task (``Pdgemm.work``); part:
    of the whole run.
    """
    groups = TwoGroups(cluster)
    app = Pdgemm(ORDER, PROCESSES, sub_blocks, blocking)
    work = app.work(phases)
    if part != 1.0:
        work = work.divided(1.0 / part, 1.0 / part)
    return Setting(
        two_groups_platform(cluster),
        place(groups.hosts, PROCESSES, "random", seed),
        work,
        (groups.hosts[0], groups.hosts[groups.nodes_per_group]),
    )


def bundle_of_labels(labels: Mapping[str, str], part: float = 1.0) -> Setting:
    """The bundled task (or a part of it) on the cluster that a group's labels name.

    Other labels do not matter to a bundle. Any cluster but the measured ones has the same nodes.
    """
    named = labels.get("cluster", "")
    return _known_setting(named if named in CLUSTERS else CLUSTERS[0], None, 1, False, part)


def phases_of_labels(phases: int) -> Callable[[Mapping[str, str]], Setting]:
    """The settings of groups in ``phases`` phases, blocking and cut as their labels say."""

    def setting(labels: Mapping[str, str]) -> Setting:
        return _known_setting(
            labels["cluster"],
            phases,
            int(labels["block_subdivisions"]),
            labels["broadcast"] == "blocking",
        )

    return setting


@functools.lru_cache(maxsize=32)
def _known_setting(
    cluster: str, phases: int | None, sub_blocks: int, blocking: bool, part: float = 1.0
) -> Setting:
    return pdgemm_setting(
        cluster, phases=phases, blocking=blocking, sub_blocks=sub_blocks, part=part
    ).merged()
