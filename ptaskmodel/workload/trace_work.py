"""The work of ranks that replay a trace; apart, as each simulation loads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.works import Work

if TYPE_CHECKING:
    from ptaskmodel.workload.traces import Trace


@dataclass(frozen=True, slots=True, eq=False)
class TraceWork(Work):
    """The ranks of a trace, message by message: rank k on host k, over again if they run out."""

    trace: Trace

    def divided(self, flops: float, bytes: float) -> TraceWork:
        """Raise WorkloadError: a trace cannot be scaled by `flops` and `bytes`."""
        raise WorkloadError(
            f"{self.trace.origin}: a trace cannot be scaled; convert it to a parallel task first "
            "(ptaskmodel trace to-ptask)"
        )
