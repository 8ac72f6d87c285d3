"""The parallel task that calibration simulates, with efficiencies and a number of competitors.

Three parameters describe an application on a platform. Two are the efficiencies of its network use
and of its computing: the part of the nominal speed that it reaches. The third is the number of
competitors k that it counts for where it meets interference (share coefficient m = a / k of the
sharing problem). The interference of w units (TCP connections, host pairs) is a task that counts
for w: the application gets k / (k + w) of a resource that limits both.

Unless the file names another application, it is PDGEMM in the two-group set-up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ptaskmodel.apps.interference import OnOff, TwoGroups, interference_tasks
from ptaskmodel.apps.pdgemm import Pdgemm, place
from ptaskmodel.calibration.measurements import Measurement, MeasurementError
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.amounts import FloatArray
from ptaskmodel.workload.formats.tasks_json import load_tasks
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Work

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
        """Simulated runtimes in s under the pattern and the competitors of each row."""
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
    """Simulated runtime in s of the plain model: one competitor a task, nothing calibrated.

    A connection is two tasks, one a direction, so the application keeps 1 / (1 + 2 connections)
    of what both directions share.
    """
    task = Task(setting.hosts, setting.work)
    undisturbed_s = undisturbed_runtime(setting.platform, task)
    until_s = latest_end(undisturbed_s, pattern)
    noise = interference_tasks(pattern, *setting.pair, until_s, connections=connections)
    return runtime_beside(setting.platform, task, noise)


def undisturbed_runtime(platform: Platform, task: Task) -> float:
    """Simulated runtime in s of a task alone. Raises SimulationError if it does not end."""
    return runtime_beside(platform, task, ())


def latest_end(undisturbed_s: float, pattern: OnOff) -> float:
    """A date in s by which a task ends that makes at least its usual progress while off."""
    if pattern.none or pattern.constant:
        return undisturbed_s
    return undisturbed_s / (1.0 - pattern.share) + 2.0 * pattern.period_s


def runtime_beside(platform: Platform, task: Task, others: Sequence[Task]) -> float:
    """Simulated runtime in s of a task beside others. Raises SimulationError if it does not end."""
    simulation = Simulation(platform)
    application = simulation.add(task)
    simulation.add_all(others)
    while application.end_s is None:
        if not simulation.run_until_change():
            raise SimulationError(
                f"the application does not end: {application.state} at {simulation.now:g} s"
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
    """A setting whose application is the first task of a task file.

    Raises MeasurementError if ``pair`` is not two different hosts of the platform or there is no
    task, and the readers' errors.
    """
    platform = load_platform(platform_file)
    tasks = load_tasks(tasks_file)
    if not tasks:
        raise MeasurementError(f"{tasks_file}: no task; the first one is the application")
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
    """The measured PDGEMM on ``cluster``, its ranks placed at random with ``seed``.

    phases: None for one bundled task (``Pdgemm.work``); part: of the whole run.
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
