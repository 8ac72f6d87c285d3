"""Runs a scenario (see :mod:`scenarios`) with the package's own simulation."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import quiet
from simgrid_driver import Times, write_platform

import ptaskmodel as pm


def task_of(task: dict) -> pm.Task:
    """The package's task for one of a scenario."""
    common: dict[str, Any] = {"id": task["id"], "start_s": task["start"]}
    common["after"] = task.get("after", ())
    common["walltime_s"] = task.get("walltime")
    hosts, flops, flows = task["hosts"], task.get("flops"), task.get("flows")
    if "seconds" in task:
        return pm.Delay(task["seconds"], hosts, **common)
    if task.get("plain") == "exec":
        return pm.Execution(hosts[0], flops[0], **common)
    if task.get("plain") == "comm":
        return pm.Flow(hosts[0], hosts[1], flows[0][2], **common)
    return pm.ParallelTask(hosts, flops=flops, flows=flows or None, **common)


def prepare(scenario: dict, **options: Any) -> pm.Simulation:
    """A simulation with the scenario's tasks added, nothing run yet."""
    with tempfile.TemporaryDirectory() as place:
        platform = quiet.load(write_platform(scenario, Path(place)))
    simulation = pm.Simulation(platform, **options)
    simulation.add_all([task_of(task) for task in scenario["tasks"]])
    return simulation


def happen(simulation: pm.Simulation, what: str, target: str, value: float = 0.0) -> None:
    """Apply an event of a scenario now; to a task that is over nothing happens."""
    if what in ("bandwidth", "latency"):
        change = {"bandwidth": simulation.set_bandwidth, "latency": simulation.set_latency}[what]
        change(target, value)
    elif what == "pstate":
        simulation.set_pstate(target, int(value))
    elif what in ("host_off", "link_off"):
        simulation.fail(target)
    elif what in ("host_on", "link_on"):
        simulation.restore(target)
    else:
        task = simulation.task(target)
        if what == "cancel" and task.state in ("running", "suspended"):
            simulation.cancel(task)
        elif what == "suspend" and task.state == "running":
            simulation.suspend(task)
        elif what == "resume" and task.state == "suspended":
            simulation.resume(task)


def finish(scenario: dict, simulation: pm.Simulation) -> Times:
    """Run a prepared simulation through its events to the end."""
    for date, what, target, *value in sorted(scenario["events"], key=lambda event: event[0]):
        simulation.advance_to(date)
        happen(simulation, what, target, *value)
    simulation.run()
    return {
        record.task_id: (record.start_s, record.end_s, record.final_state)
        for record in simulation.records()
    }


def run(scenario: dict, solver: str = "fairbottleneck", **options: Any) -> Times:
    """{task id: (start, finish, state)} by the package."""
    return finish(scenario, prepare(scenario, solver=solver, **options))


def differences(expected: Times, found: Times, relative: float = 1e-9) -> list[str]:
    """One line per task whose dates or state are not the expected ones."""
    lines = []
    for task_id, (start, finish_date, state) in expected.items():
        start_2, finish_2, state_2 = found[task_id]
        same = state == state_2 and close(start, start_2, relative)
        if not (same and close(finish_date, finish_2, relative)):
            lines.append(f"{task_id}: expected {expected[task_id]}, found {found[task_id]}")
    return lines


def close(a: float | None, b: float | None, relative: float) -> bool:
    """Whether two dates are the same, up to a relative difference; None equals None only."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= relative * max(abs(a), abs(b)) + 1e-12
