"""Mean use of every host and link in intervals of equal length, in bounded memory.

The means are exact: they are integrals of piecewise constant shares, not samples. The length of the
intervals doubles whenever the simulation outgrows them.
"""

from __future__ import annotations

import csv
from typing import IO, TYPE_CHECKING

import numpy as np

from ptaskmodel.results.traces.writing import Trace, numbers, quoted

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Recorder, Uses

UTILISATION = "utilisation.csv"
COLUMNS = ("resource", "kind", "start_s", "end_s", "share")
BINS = 256


class Utilisation(Trace):
    """Adds up, while a simulation runs, what share of each resource is used."""

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self.origin_s = recorder.simulation.now
        self.width_s = 0.0
        self._row = np.full(len(recorder.names.resources), -1)
        self._resources: list[int] = []
        # Seconds of full use in each bin: directly, and as steps (of share) to be summed up.
        self._direct = np.zeros((0, BINS))
        self._steps = np.zeros((0, BINS + 1))

    def uses(self, uses: Uses) -> None:
        self._reach(float(uses.end.max()))
        self._enter(np.unique(uses.resource))
        row, share = self._row[uses.resource], uses.share
        start, end = ((t - self.origin_s) / self.width_s for t in (uses.start, uses.end))
        first = np.minimum(start.astype(np.int64), BINS - 1)
        last = np.minimum(end.astype(np.int64), BINS - 1)
        same = first == last
        self._add(row, first, share * np.where(same, end - start, first + 1 - start))
        apart = ~same
        row, share, first, last, end = (c[apart] for c in (row, share, first, last, end))
        self._add(row, last, share * (end - last))
        width = BINS + 1
        size = self._steps.size
        steps = np.bincount(row * width + first + 1, share, size)
        steps -= np.bincount(row * width + last, share, size)
        self._steps += steps.reshape(self._steps.shape)

    def _add(self, row: np.ndarray, place: np.ndarray, amount: np.ndarray) -> None:
        added = np.bincount(row * BINS + place, amount, self._direct.size)
        self._direct += added.reshape(self._direct.shape)

    def _reach(self, date: float) -> None:
        """Let the bins cover a date."""
        span = date - self.origin_s
        if self.width_s == 0.0:
            self.width_s = span / BINS
        while span > self.width_s * BINS:
            whole = self._sums()
            halves = whole[:, 0::2] + whole[:, 1::2]
            self._direct = np.zeros_like(self._direct)
            self._direct[:, : BINS // 2] = halves / 2.0
            self._steps[:] = 0.0
            self.width_s *= 2.0

    def _sums(self) -> np.ndarray:
        return self._direct + np.cumsum(self._steps[:, :BINS], axis=1)

    def _enter(self, resources: np.ndarray) -> None:
        new = resources[self._row[resources] < 0]
        self._row[new] = np.arange(len(new)) + len(self._resources)
        self._resources.extend(new.tolist())
        missing = len(self._resources) - len(self._direct)
        if missing > 0:
            room = max(missing, len(self._direct))
            self._direct = np.vstack([self._direct, np.zeros((room, BINS))])
            self._steps = np.vstack([self._steps, np.zeros((room, BINS + 1))])

    def write(self, stream: IO[str]) -> None:
        """Write COLUMNS as CSV: one row for each interval in which a resource was used."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        if not self._resources:
            return
        share = np.clip(self._sums(), 0.0, None)
        share[share < 1e-12] = 0.0
        edges = numbers(self.origin_s + self.width_s * np.arange(BINS + 1))
        names = self.recorder.names
        for resource in sorted(self._resources):
            values = share[self._row[resource]]
            used = np.flatnonzero(values)
            prefix = f"{quoted(names.resources[resource])},{names.kind(resource)}"
            texts = numbers(np.round(values[used], 9))
            stream.writelines(
                f"{prefix},{edges[k]},{edges[k + 1]},{text}\n"
                for k, text in zip(used.tolist(), texts, strict=True)
            )
