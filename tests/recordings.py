"""Runs random scenarios with listeners: what is recorded, and what it has to add up to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from engine_runner import finish, prepare

import ptaskmodel as pm
from ptaskmodel.recording.intervals import Phases, Recorder, Uses
from ptaskmodel.results.traces.tables import Trace

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="100MBps" lat="50us"
           bb_bw="300MBps" bb_lat="10us"/>
</platform>
"""


class Kept(Trace):
    """Keeps everything in memory."""

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self.all_phases: list[Phases] = []
        self.all_uses: list[Uses] = []

    def phases(self, phases: Phases) -> None:
        self.all_phases.append(phases)

    def uses(self, uses: Uses) -> None:
        self.all_uses.append(uses)

    def end(self) -> None:
        self.phase_table = self.joined(self.all_phases, len(Phases._fields))
        self.use_table = self.joined(self.all_uses, len(Uses._fields))

    @staticmethod
    def joined(batches: list, width: int) -> list[np.ndarray]:
        if not batches:
            return [np.zeros(0, dtype=np.int64)] * width
        return [np.concatenate(column) for column in zip(*batches, strict=True)]


def recorded(scenario: dict, *listeners: Any, **options: Any) -> tuple[pm.Simulation, dict]:
    """A scenario run to its end with listeners."""
    simulation = prepare(scenario, **options)
    with Recorder(simulation, listeners):
        times = finish(scenario, simulation)
    return simulation, times


def small_platform(directory: Path) -> pm.Platform:
    path = directory / "platform.xml"
    path.write_text(PLATFORM)
    return pm.load_platform(path)


def busy_tasks(rng: np.random.Generator, count: int) -> list[pm.Task]:
    """Tasks of every kind on the hosts n0 to n7 of `small_platform`, many at a time."""
    tasks: list[pm.Task] = []
    for k in range(count):
        hosts = [f"n{h}" for h in rng.choice(8, size=int(rng.integers(2, 5)), replace=False)]
        n = len(hosts)
        work = pm.ParallelWork.of(n, rng.uniform(0, 3e9, n), rng.uniform(0, 3e8, (n, n)))
        common: dict[str, Any] = {"id": f"job {k}", "start_s": float(rng.uniform(0, 3 * count))}
        kind = k % 4
        if kind == 0:
            tasks.append(pm.Task(tuple(hosts), work, **common))
        elif kind == 1:
            stages = [work, pm.DelayWork(float(rng.uniform(0, 5))), pm.HomogeneousWork(1e9, 1e7)]
            tasks.append(pm.Sequence(hosts, stages, repeat=2, **common))
        elif kind == 2:
            tasks.append(pm.Task(tuple(hosts), work, walltime_s=4.0, **common))
        else:
            tasks.append(pm.Task(tuple(hosts), work, after=[f"job {k - 2}"], **common))
    return tasks
