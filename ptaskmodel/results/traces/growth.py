"""Watches how large traces become: contention makes them grow with the square of the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.remarks import warn
from ptaskmodel.results.traces.writing import Trace

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Uses

# About what an interval of use takes in each format, bytes.
BYTES_PER_USE: Mapping[str, float] = {"csv": 75.0, "parquet": 10.0, "paje": 85.0, "perfetto": 470.0}
WARNED_GB = 1.0


class TraceGrowth(Trace):
    """Warns once when the traces of these formats reach a gigabyte, and stops them at a limit.

    limit_GB: their largest size together (about); None: none.
    """

    def __init__(self, formats: Sequence[str], limit_GB: float | None = None) -> None:
        self._bytes_per_use = sum(BYTES_PER_USE[name] for name in formats)
        self._limit_GB = limit_GB
        self._uses = 0
        self._told = False

    def uses(self, uses: Uses) -> None:
        self._uses += len(uses.task)
        size_GB = 1e-9 * self._bytes_per_use * self._uses
        now_s = float(uses.end.max())
        if self._limit_GB is not None and size_GB > self._limit_GB:
            raise PTaskModelError(
                f"--trace-limit: the traces reach {self._limit_GB:g} GB at {now_s:g} s; raise it, "
                "or leave --trace out: --attribution sums up"
            )
        if size_GB > WARNED_GB and not self._told:
            self._told = True
            warn(self._warning(size_GB, now_s))

    def _warning(self, size_GB: float, now_s: float) -> str:
        ended = [ref.finish_time is not None for ref in self.recorder.simulation.tasks()]
        text = f"the traces have {size_GB:.2g} GB at {now_s:g} s"
        if any(ended):
            text += f", with {sum(ended):,} of {len(ended):,} tasks over: expect about "
            text += f"{size_GB * len(ended) / sum(ended):.2g} GB"
        return (
            f"{text}; parquet is the smallest format, --attribution sums up without a trace, "
            "--trace-limit GB stops them"
        )
