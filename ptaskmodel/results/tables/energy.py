"""Write energy results: energy.csv, power.csv, their part of the summary, and Batsim's files.

Batsim's files (version 4) have the pstate changes of hosts and their energy.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import Attempt
from ptaskmodel.batch.loop.schedule import Schedule
from ptaskmodel.batch.machine.host_sets import text
from ptaskmodel.batch.schedule_metrics import Load, unavailable_hosts
from ptaskmodel.results.directory import POWER, POWER_COLUMNS

if TYPE_CHECKING:
    from ptaskmodel.batch.jobs.metering import BatchEnergy
    from ptaskmodel.batch.loop.power_states import Pstates, Switch
    from ptaskmodel.energy.meter import Meter
    from ptaskmodel.platform import Platform
    from ptaskmodel.simulation.records import TaskRecord
    from ptaskmodel.simulation.simulation import Simulation


FloatArray = NDArray[np.float64]

ENERGY = "energy.csv"
ENERGY_FILES = (ENERGY, POWER)
ENERGY_COLUMNS = ("kind", "name", "energy_J", "share_J")
STATE_COLUMNS = (
    "time",
    "nb_sleeping",
    "nb_switching_on",
    "nb_switching_off",
    "nb_idle",
    "nb_computing",
    "nb_unavailable",
)
PSTATE_COLUMNS = ("time", "machine_id", "new_pstate")
CONSUMED_ENERGY_COLUMNS = ("time", "energy", "event_type", "wattmin", "epower")
# Instead of a pstate while hosts switch.
SWITCHING_OFF, SWITCHING_ON = -2, -1


class PowerFile:
    """Takes the power curve of a run and writes power.csv as it comes, if there is a directory.

    Each line holds up to the date of the next; the last one says how far that is. ``peak_W``: the
    most that hosts and links drew together.
    """

    def __init__(self, directory: str | Path | None) -> None:
        self.peak_W: float | None = None
        self._directory = None if directory is None else Path(directory)
        self._file: IO[str] | None = None
        self._last: tuple[float, ...] = ()

    def __enter__(self) -> PowerFile:
        if self._directory is not None:
            self._file = (self._directory / POWER).open("w", encoding="utf-8", newline="")
            self._write([POWER_COLUMNS])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def __call__(self, rows: np.ndarray) -> None:
        peak = float((rows["hosts_W"] + rows["links_W"]).max())
        self.peak_W = peak if self.peak_W is None else max(self.peak_W, peak)
        lines = rows.tolist()
        self._last = lines[-1]
        self._write(lines)

    def end(self, date_s: float) -> None:
        """The run is over at this date; the file is whole."""
        if self._last and date_s > self._last[0]:
            self._write([(date_s, *self._last[1:])])
        if self._file is not None:
            self._file.close()

    def _write(self, lines: Iterable[Sequence[Any]]) -> None:
        if self._file is not None:
            csv.writer(self._file, lineterminator="\n").writerows(lines)


class TaskEnergyFiles:
    """Counts the joules of a simulation, in a context around its run.

    Raises PlatformError where power is not what it should be, or nobody says any.
    """

    def __init__(self, simulation: Simulation, directory: Path | None) -> None:
        from ptaskmodel.energy.tasks import TaskEnergy

        self._simulation = simulation
        self._directory = directory
        self._power = PowerFile(directory)
        self._energy = TaskEnergy(simulation, curve=self._power)

    def __enter__(self) -> TaskEnergyFiles:
        self._power.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._power.__exit__(*error)

    def write(self, records: Sequence[TaskRecord]) -> dict[str, Any]:
        """Write energy.csv, and what is left of power.csv; what the summary says of them."""
        platform, meter = self._simulation.platform, self._energy.meter
        whole, share = self._energy.tasks_J()
        self._power.end(self._simulation.now)
        if self._directory is not None:
            names = [record.task_id for record in records]
            found = names, whole.tolist(), share.tolist()
            write_energy(self._directory, platform, meter, "task", *found)
        return energy_summary(platform, meter, self._power)


def write_energy(
    directory: Path,
    platform: Platform,
    meter: Meter,
    what: str,
    names: Sequence[str],
    energy_J: Sequence[float | None],
    share_J: Sequence[float | None],
) -> None:
    """Write energy.csv: the run, hosts, links, then the tasks or jobs (what), one line each.

    share_J of hosts and links is the part of their energy in shares of tasks or jobs.
    """
    charged = meter.charged_J
    n = len(platform.hosts)
    hosts_J, links_J = meter.hosts_J, meter.links_J
    with (directory / ENERGY).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(ENERGY_COLUMNS)
        total, all_charged = float(hosts_J.sum() + links_J.sum()), float(charged.sum())
        writer.writerow(("run", "", total, all_charged))
        for kind, its, joules, part in (
            ("host", [host.name for host in platform.hosts], hosts_J, charged[:n]),
            ("link", [link.name for link in platform.links], links_J[:-1], charged[n:-1]),
        ):
            found = zip(its, joules.tolist(), part.tolist(), strict=True)
            writer.writerows((kind, *row) for row in found)
        writer.writerows((what, *row) for row in zip(names, energy_J, share_J, strict=True))


def energy_summary(
    platform: Platform, meter: Meter, power: PowerFile, counted: Sequence[int] | None = None
) -> dict[str, Any]:
    """What summary.json says of energy. counted: indices of the hosts that count (None: all)."""
    from ptaskmodel.platform.power import host_power

    indices = range(len(platform.hosts)) if counted is None else counted
    hosts_J, links_J = float(meter.hosts_J.sum()), float(meter.links_J.sum())
    silent = sum(host_power(platform, platform.hosts[k]) is None for k in indices)
    return {
        "total_J": hosts_J + links_J,
        "hosts_J": hosts_J,
        "links_J": links_J,
        "shared_J": float(meter.charged_J.sum()),
        "peak_W": power.peak_W,
        "hosts_without_power": silent,
    }


class States(NamedTuple):
    """How many hosts are in which state over time: values hold from ``date_s[k]`` on."""

    date_s: FloatArray
    sleeping: NDArray[Any]
    switching_on: NDArray[Any]
    switching_off: NDArray[Any]
    idle: NDArray[Any]
    computing: NDArray[Any]
    unavailable: NDArray[Any]


def machine_states(schedule: Schedule, over_time: Load) -> States:
    """The states of the hosts; over_time: the load of the same schedule."""
    changes = _switched(schedule) if schedule.switches else []
    gone = unavailable_hosts(schedule)
    others = [*(change[0] for change in changes), *(date for date, _ in gone)]
    dates = over_time.date_s
    if others:
        dates = np.unique(np.concatenate([dates, others]))
    counts = np.zeros((3, len(dates)), dtype=np.int64)
    for date, *rest in changes:
        counts[:, np.searchsorted(dates, date)] += rest
    asleep, on, off = np.cumsum(counts, axis=1)
    place = np.searchsorted(over_time.date_s, dates, side="right") - 1
    used = np.append(over_time.used_hosts, 0)[place]
    since = np.searchsorted([date for date, _ in gone], dates, side="right") - 1
    unavailable = np.append([count for _, count in gone], 0)[since].astype(np.int64)
    idle = schedule.num_hosts - asleep - on - off - used - unavailable
    return States(dates, asleep, on, off, idle, used, unavailable)


def _switched(schedule: Schedule) -> list[tuple[float, int, int, int]]:
    """(date in s, how many hosts more are asleep, being switched on and off from then on)."""
    from ptaskmodel.batch.loop.power_states import AT_ONCE, TO_SLEEP

    changes = []
    for switch in schedule.switches:
        n, is_done = len(switch.hosts), switch.done_s <= schedule.now_s
        if switch.kind == TO_SLEEP:
            changes.append((switch.asked_s, 0, 0, n))
            changes += [(switch.done_s, n, 0, -n)] if is_done else []
        elif switch.kind != AT_ONCE:
            changes.append((switch.asked_s, -n, n, 0))
            changes += [(switch.done_s, 0, -n, 0)] if is_done else []
    return changes


def host_seconds(states: States, until_s: float) -> dict[str, float]:
    """Host seconds in each state up to a date, by Batsim's names."""
    if not len(states.date_s):
        return dict.fromkeys(("sleeping", "switching_on", "switching_off"), 0.0)
    lasts = np.diff(np.minimum(np.append(states.date_s, until_s), until_s))
    return {
        name: float((getattr(states, name) * lasts).sum())
        for name in ("sleeping", "switching_on", "switching_off")
    }


def pstate_rows(schedule: Schedule, pstates: Pstates) -> Iterator[tuple[Any, ...]]:
    """The lines of pstate_changes.csv: at 0, then what is asked for and what is done, by date."""
    from ptaskmodel.batch.loop.power_states import TO_SLEEP, done, hosts_of

    first: dict[int, list[int]] = {}
    for host, fact in enumerate(pstates.facts):
        first.setdefault(fact.pstate, []).append(host)
    rows: list[tuple[float, int, str, int]] = []
    for pstate, hosts in first.items():
        rows.append((0.0, 0, text(sum(1 << host for host in hosts)), pstate))
    for requests in _by_request(schedule.switches):
        to_sleep = requests[0].kind == TO_SLEEP
        asked = SWITCHING_OFF if to_sleep else SWITCHING_ON
        rows.append((requests[0].asked_s, 1, text(hosts_of(requests)), asked))
    for date, parts in done(schedule.switches, schedule.now_s):
        rows.append((date, 1, text(hosts_of(parts)), parts[0].pstate))
    rows.sort(key=lambda row: row[:2])
    return ((f"{date:g}", hosts, pstate) for date, _, hosts, pstate in rows)


def _by_request(switches: Sequence[Switch]) -> list[list[Switch]]:
    found: dict[int, list[Switch]] = {}
    for switch in switches:
        found.setdefault(switch.request, []).append(switch)
    return list(found.values())


def switch_counts(schedule: Schedule) -> dict[str, int]:
    """How many changes of pstates were asked for, and of how many hosts in all."""
    return {
        "nb_grouped_switches": len({switch.request for switch in schedule.switches}),
        "nb_machine_switches": sum(len(switch.hosts) for switch in schedule.switches),
    }


def energy_rows(energy: BatchEnergy) -> Iterator[tuple[str, ...]]:
    """The lines of consumed_energy.csv; epower: the mean power since the line before."""
    last_s, last_J = 0.0, 0.0
    for date, joules, event, epsilon_W in energy.rows:
        power = f"{(joules - last_J) / (date - last_s):g}" if date > last_s else "NA"
        yield f"{date:g}", f"{joules:g}", event, f"{epsilon_W:g}", power
        last_s, last_J = date, joules


def by_job(attempts: Sequence[Attempt], joules: FloatArray) -> dict[str, float]:
    """Sums over all attempts of each job, by its id, J."""
    found: dict[str, float] = {}
    for attempt in attempts:
        found[attempt.job.id] = found.get(attempt.job.id, 0.0) + float(joules[attempt.number])
    return found
