"""The PDGEMM experiment as tables: published, simulated and measured runtimes side by side."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.apps.interference import OnOff, interference_tasks
from ptaskmodel.calibration.fits import (
    REFERENCE_SEED,
    Setting,
    bundle_of_labels,
    latest_end,
    pdgemm_setting,
    phases_of_labels,
    plain_runtime,
    predicted_runtime,
    ptask_fitter,
    rates_fitter,
    undisturbed_runtime,
)
from ptaskmodel.calibration.measurements import MeasuredGroup, Measurement
from ptaskmodel.calibration.results import (
    Calibration,
    calibrate,
    is_endpoint,
    summarise,
)
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.amounts import FloatArray
from ptaskmodel.workload.tasks import Task

if TYPE_CHECKING:
    import pandas

NONE, CONSTANT = OnOff(0.0, 0.0), OnOff(math.inf, 0.0)
PATTERNS = (NONE, OnOff(15, 45), OnOff(15, 15), OnOff(30, 30), OnOff(45, 15), CONSTANT)
ITERATIONS = 16
MODELS = ("rates", "ptask", "phases")
# tcpkali's connections on Grisou in the first experiment: not published; see docs/validation.md.
FIRST_CONNECTIONS = 100.0
# Relative error of the models themselves, beside which the scatter of the runs is small.
MODEL_ERROR = 0.01


def with_competitors(groups: Sequence[MeasuredGroup]) -> list[MeasuredGroup]:
    """The first experiment with its interference counted: 100 connections, or one host pair."""
    counted = []
    for group in groups:
        count = FIRST_CONNECTIONS if group.labels["cluster"] == "grisou" else 1.0
        rows = tuple(
            Measurement(row.pattern, row.runtime_s, row.stddev_s, row.runs, count)
            for row in group.measurements
        )
        counted.append(MeasuredGroup(group.labels, rows))
    return counted


def placement_rows(seed: int) -> list[dict[str, object]]:
    """The plain simulated model at a random placement: a row for each pattern.

    The plain model has one connection of two tasks, nothing calibrated; ``closed_form_s`` is the
    runtime at a third of the rate while disturbed.
    """
    setting = pdgemm_setting(seed=seed).merged()
    rate = 1.0 / undisturbed_runtime(setting.platform, Task(setting.hosts, setting.work))
    return [
        {
            "placement": seed,
            "pattern": str(pattern),
            "simulated_s": plain_runtime(setting, pattern),
            "closed_form_s": predicted_runtime(rate / 3.0, rate, pattern),
        }
        for pattern in PATTERNS
    ]


def placement_table(
    published_s: Mapping[OnOff, float], every: pandas.DataFrame
) -> pandas.DataFrame:
    """A row for each pattern, over random placements and the published one.

    every: the rows of all of them (see `placement_rows`).
    """
    import pandas as pd

    summary = []
    for pattern in PATTERNS:
        mine = every[every.pattern == str(pattern)]
        drawn = mine[mine.placement != REFERENCE_SEED]
        summary.append(
            {
                "pattern": str(pattern),
                "published_s": published_s[pattern],
                "reference_placement_s": mine[mine.placement == REFERENCE_SEED].simulated_s.iloc[0],
                "mean_s": drawn.simulated_s.mean(),
                "sd_s": drawn.simulated_s.std(),
                "closed_form_gap_s": (mine.simulated_s - mine.closed_form_s).abs().max(),
            }
        )
    return pd.DataFrame(summary)


def read_published(path: Path) -> dict[OnOff, float]:
    """The published predictions: runtime in s by pattern."""
    with open(path, newline="", encoding="utf-8") as file:
        return {
            OnOff(float(row["interference_on_s"]), float(row["interference_off_s"])): float(
                row["predicted_runtime_s"]
            )
            for row in csv.DictReader(file)
        }


def calibrations(groups: Sequence[MeasuredGroup], fit_on: str) -> dict[str, Calibration]:
    """Rates, bundled ptask and ptask in phases of the first experiment, by name and fit."""
    return {f"{model}, {fit_on}": fitted(groups, model, fit_on) for model in MODELS}


def fitted(groups: Sequence[MeasuredGroup], model: str, fit_on: str) -> Calibration:
    """One of `MODELS`. Fits on all rows take ``MODEL_ERROR`` into account."""
    model_error = MODEL_ERROR if fit_on == "all" else 0.0
    if model == "phases":
        return phase_wise(groups, fit_on, model_error)
    if model == "rates":
        return calibrate(groups, rates_fitter(model_error), model, fit_on)
    bundle = ptask_fitter(bundle_of_labels, model_error=model_error)
    return calibrate(groups, bundle, model, fit_on)


def phase_wise(
    groups: Sequence[MeasuredGroup], fit_on: str, model_error: float = 0.0
) -> Calibration:
    """The rows without sub-blocks by a task of one phase an iteration, two parameters free.

    Blocking: the network is used at its nominal speed, the efficiency of computing is fitted.
    Non-blocking: the other way round, since the broadcasts hide the products.
    """
    fitted = []
    for group in groups:
        if group.labels["block_subdivisions"] != "1":
            continue
        blocking = group.labels["broadcast"] == "blocking"
        fixed = {"network_efficiency" if blocking else "compute_efficiency": 1.0}
        fitter = ptask_fitter(phases_of_labels(ITERATIONS), fixed, model_error, spread=0.05)
        used = [fit_on == "all" or is_endpoint(row.pattern) for row in group.measurements]
        fitted.append(fitter(group, used))
    return Calibration("ptask", fit_on, "", tuple(fitted))


def comparison_table(found: Mapping[str, Calibration]) -> pandas.DataFrame:
    """One row a measurement: measured, and predicted by each calibration with its error."""
    import pandas as pd

    rows: dict[tuple, dict[str, object]] = {}
    for name, calibration in found.items():
        for group in calibration.groups:
            for row in group.predictions:
                key = (*group.labels.values(), str(row.measurement.pattern))
                entry = rows.setdefault(
                    key,
                    {
                        **group.labels,
                        "pattern": str(row.measurement.pattern),
                        "measured_s": row.measurement.runtime_s,
                        "stddev_s": row.measurement.stddev_s,
                    },
                )
                entry[f"{name}, s"] = row.predicted_s
                entry[f"{name}, error"] = row.relative_error
    return pd.DataFrame(list(rows.values()))


def error_table(found: Mapping[str, Calibration]) -> pandas.DataFrame:
    """Mean and largest absolute error of each calibration on the rows between the endpoints."""
    import pandas as pd

    rows = []
    for name, calibration in found.items():
        for which, wanted in (("all groups", None), ("without sub-blocks", "1")):
            chosen = [
                row
                for group in calibration.groups
                if wanted in (None, group.labels["block_subdivisions"])
                for row in group.predictions
                if not is_endpoint(row.measurement.pattern)
            ]
            found_errors = summarise(chosen)
            rows.append(
                {
                    "model": name,
                    "rows": which,
                    "count": found_errors.count,
                    "mean_error": found_errors.mean,
                    "largest_error": found_errors.largest,
                }
            )
    return pd.DataFrame(rows)


def gain_table(found: Mapping[str, Calibration]) -> pandas.DataFrame:
    """What phases gain over bundling without sub-blocks: mean errors between the endpoints.

    The groups that can be fitted that way; NaN where the endpoints were not both measured.
    """
    import pandas as pd

    rows = []
    for group in found["phases, all"].groups:
        entry: dict[str, object] = {**group.labels}
        for name in ("ptask, endpoints", "phases, endpoints", "ptask, all", "phases, all"):
            mine = found[name].group(**group.labels)
            between = [row for row in mine.predictions if not is_endpoint(row.measurement.pattern)]
            entry[name] = summarise(between).mean
        rows.append(entry)
    return pd.DataFrame(rows)


def time_scale_table(groups: Sequence[MeasuredGroup], repeats: int = 3) -> pandas.DataFrame:
    """What a finer time scale brings and costs: from one bundled task to one phase an iteration.

    Each row: a group, the number of phases (0: bundled), the mean error between the endpoints of
    the model fitted on the endpoints, and the wall time of one prediction (15/15).
    """
    import pandas as pd

    rows = []
    for group in groups:
        blocking = group.labels["broadcast"] == "blocking"
        fine = group.labels["block_subdivisions"] != "1"
        if (blocking and fine) or not all(
            any(row.pattern == end and row.runtime_s for row in group.measurements)
            for end in (NONE, CONSTANT)
        ):
            continue
        steps = (1, 2, 4, 8, 16, *((50, 800) if fine else ()))
        for phases in (None, *steps):
            bundled = phases is None or not blocking
            fixed = {"compute_efficiency" if bundled else "network_efficiency": 1.0}
            place = bundle_of_labels if phases is None else phases_of_labels(phases)
            setting = place(group.labels)
            used = [is_endpoint(row.pattern) for row in group.measurements]
            fitted = ptask_fitter(setting, fixed)(group, used)
            values = {name: item.value for name, item in fitted.parameters.items()}
            row = Measurement(OnOff(15, 15), None, competitors=group.measurements[0].competitors)
            rows.append(
                {
                    **group.labels,
                    "phases": phases or 0,
                    "mean_error": summarise(fitted.predictions, used_in_fit=False).mean,
                    "run_ms": 1e3 * _shortest_time(setting, values, row, repeats),
                }
            )
    return pd.DataFrame(rows)


def _shortest_time(
    setting: Setting, values: Mapping[str, float], row: Measurement, repeats: int
) -> float:
    """Wall time in s of one prediction (undisturbed, then disturbed), the shortest of some."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        setting.runtimes(values, [row])
        times.append(time.perf_counter() - begin)
    return min(times)


def progress_over_time(
    setting: Setting, values: Mapping[str, float], row: Measurement, step_s: float = 1.0
) -> tuple[FloatArray, FloatArray]:
    """(dates in s, progress 0 to 1) of a simulated bundled task under the pattern of a row."""
    task = setting.task(values)
    undisturbed_s = undisturbed_runtime(setting.platform, task)
    simulation = Simulation(setting.platform)
    application = simulation.add(task)
    simulation.add_all(
        interference_tasks(
            row.pattern,
            *setting.pair,
            until_s=latest_end(undisturbed_s, row.pattern),
            joint=True,
            competitors=row.competitors,
        )
    )
    dates, done = [0.0], [0.0]
    while application.end_s is None:
        simulation.advance_to(dates[-1] + step_s)
        dates.append(simulation.now)
        done.append(application.progress)
    dates[-1], done[-1] = application.end_s, 1.0
    return np.array(dates), np.array(done)


def phase_activity(
    setting: Setting, values: Mapping[str, float], router: str = "routing_node"
) -> pandas.DataFrame:
    """Each stage of an undisturbed run: start, end (s), use of the routing node (B/s) and flop/s.

    The stages run as tasks that wait for each other.
    """
    import pandas as pd

    work = setting.task(values).work
    stages = work.one_round() * work.rounds
    simulation = Simulation(setting.platform)
    for number, stage in enumerate(stages):
        after = (f"stage-{number - 1}",) if number else ()
        simulation.add(Task(setting.hosts, stage, id=f"stage-{number}", after=after))
    simulation.run()
    crosses = _crossing(setting, router)
    rows = []
    for stage, record in zip(stages, simulation.records(), strict=True):
        if stage.duration_s is not None or not record.execution_s:
            continue
        demand = stage.demand(len(setting.hosts))
        pairs = zip(demand.flow_from.tolist(), demand.flow_to.tolist(), strict=True)
        crossing = [
            crosses[setting.hosts[source]] != crosses[setting.hosts[destination]]
            for source, destination in pairs
        ]
        sent = demand.flow_bytes[np.array(crossing, bool)].sum()
        took_s = record.execution_s
        rows.append(
            {
                "start_s": record.start_s,
                "end_s": record.end_s,
                "router_Bps": sent * values["network_efficiency"] / took_s,
                "flops": np.sum(demand.flops) * values["compute_efficiency"] / took_s,
            }
        )
    return pd.DataFrame(rows)


def _crossing(setting: Setting, router: str) -> dict[str, bool]:
    """Whether each host is across the routing node, seen from the first host of the pair."""
    here = setting.pair[0]
    return {
        name: name != here and router in setting.platform.route(here, name).links
        for name in set(setting.hosts)
    }
