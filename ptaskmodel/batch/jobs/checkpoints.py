"""Checkpoints of jobs: how much work an interrupted job keeps, and what checkpoints cost.

A job runs for an interval, stops to write a checkpoint, and runs on; it writes none at its end. An
interrupted job loses its work since the last complete checkpoint. Its next attempt first reads that
checkpoint. The walltime includes all of this, and starts anew with each attempt.

Sources of the best interval between checkpoints: Young, "A first order approximation to the optimum
checkpoint interval", CACM 17(9), 1974; Daly, "A higher order estimate of the optimum checkpoint
interval for restart dumps", FGCS 22(3), 2006. If each host fails every M s, a job on n hosts is
interrupted every M / n s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ptaskmodel.batch.names import CHECKPOINT
from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.lazy import with_old_names
from ptaskmodel.workload.jobs import Job

BEST = ("young", "daly")
# Sums of dates are rounded: what lacks less than this part of an interval is written.
ROUNDING = 1e-9
LONGEST_S = 1e12


class Spent(NamedTuple):
    """What became of the seconds that an attempt ran: work, of which kept, and checkpoints."""

    work_s: float
    kept_s: float
    overhead_s: float


@with_old_names
@dataclass(frozen=True, slots=True)
class Checkpointing:
    """How jobs write checkpoints.

    interval: seconds of work between two, or "young" or "daly" for the best one by these formulas
    (which need ``mtbf_s``, the mean time between failures of a host), or None: only when a policy
    asks for one. write_s, read_s: how long it takes to write one and to read it again.
    """

    interval: float | str | None = None
    write_s: float = 0.0
    read_s: float = 0.0
    mtbf_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("write", self.write_s), ("read", self.read_s)):
            if not _is_number(value) or not 0 <= value <= LONGEST_S:
                raise SimulationError(
                    f"checkpoint: {name} is {shown(value)}; give 0 to {LONGEST_S:g} s"
                )
        if self.mtbf_s is not None and not (
            _is_number(self.mtbf_s) and 1e-3 <= self.mtbf_s <= LONGEST_S
        ):
            raise SimulationError(
                f"checkpoint: mtbf is {shown(self.mtbf_s)}; give 0.001 to {LONGEST_S:g} s"
            )
        if isinstance(self.interval, str):
            if self.interval not in BEST:
                raise SimulationError(
                    f"checkpoint: interval is {shown(self.interval)}; give seconds, young or daly"
                )
            if self.mtbf_s is None or self.write_s == 0:
                raise SimulationError(
                    f"checkpoint: interval={self.interval} needs the mtbf of a host and a write > 0"
                )
        elif self.interval is not None and not (
            _is_number(self.interval) and 1e-3 <= self.interval <= LONGEST_S
        ):
            raise SimulationError(
                f"checkpoint: interval is {shown(self.interval)}; give 0.001 to {LONGEST_S:g} s, "
                "young or daly"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any], mtbf_s: float | None = None) -> Checkpointing:
        """From KEY=VALUE options, and ``mtbf_s`` where they have none.

        Raises SimulationError if one is wrong.
        """
        for key in options:
            if key not in CHECKPOINT:
                raise SimulationError(
                    f"checkpoint: option '{key[:60]}' is unknown; use one of "
                    f"{', '.join(CHECKPOINT)}"
                )
        given = {key if key == "interval" else f"{key}_s": value for key, value in options.items()}
        return cls(**{"mtbf_s": mtbf_s, **given})

    def interval_s(self, job: Job) -> float:
        """Seconds of work between two checkpoints of a job; inf: it writes none by itself."""
        if self.interval is None:
            return math.inf
        if not isinstance(self.interval, str):
            return float(self.interval)
        assert self.mtbf_s is not None
        mean_s = self.mtbf_s / max(job.num_hosts, 1)
        if self.interval == "young":
            return math.sqrt(2 * self.write_s * mean_s)
        if self.write_s >= 2 * mean_s:
            return mean_s
        ratio = self.write_s / (2 * mean_s)
        return (
            math.sqrt(2 * self.write_s * mean_s) * (1 + math.sqrt(ratio) / 3 + ratio / 9)
            - self.write_s
        )

    def lasts_s(self, job: Job, work_s: float, saved_s: float) -> float:
        """How long an attempt lasts with its checkpoints if nothing stops it.

        work_s: all the work of the job; saved_s: what a checkpoint holds of it already.
        """
        left_s, interval_s = work_s - saved_s, self.interval_s(job)
        count = max(0, math.ceil(left_s / interval_s - ROUNDING) - 1)
        return self.reading_s(saved_s) + left_s + count * self.write_s

    def spent(self, job: Job, run_s: float, saved_s: float) -> Spent:
        """Return what an attempt of `job` that ran for `run_s` seconds has done, and spent.

        saved_s: seconds of its work that a checkpoint held when the attempt began.
        """
        read_s, interval_s = self.reading_s(saved_s), self.interval_s(job)
        since_s = run_s - read_s
        if since_s <= 0:
            return Spent(0.0, 0.0, run_s)
        if interval_s == math.inf:
            return Spent(since_s, 0.0, read_s)
        cycle_s = interval_s + self.write_s
        count = math.floor(since_s / cycle_s + ROUNDING)
        rest_s = max(0.0, since_s - count * cycle_s)
        kept_s = count * interval_s
        writing_s = max(0.0, rest_s - interval_s)
        return Spent(kept_s + rest_s - writing_s, kept_s, read_s + count * self.write_s + writing_s)

    def reading_s(self, saved_s: float) -> float:
        """Return how long an attempt reads first, s; saved_s: work that a checkpoint holds, s."""
        return self.read_s if saved_s > 0 else 0.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
