"""Joules in a directory of results: energy.csv, power.csv, and what the summary says of them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.platform.power import host_power
from ptaskmodel.results.output import POWER, POWER_COLUMNS

if TYPE_CHECKING:
    from ptaskmodel.energy.meter import Meter
    from ptaskmodel.platform import Platform
    from ptaskmodel.simulation.refs import TaskRecord
    from ptaskmodel.simulation.simulation import Simulation

FloatArray = NDArray[np.float64]

ENERGY = "energy.csv"
ENERGY_FILES = (ENERGY, POWER)
ENERGY_COLUMNS = ("kind", "name", "energy_J", "share_J")


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

    share_J of hosts and links is the part of their energy that is in the share of somebody.
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
