"""What scheduling costs: how long backfill's tests take, off by default.

Without costs a cycle happens at one date. With them each test takes a while: the cycle holds the
controller for bf_yield_interval, lets it go for bf_yield_sleep, and is over at bf_max_time. Source
of the model: Slurm 22.05's documentation of these options. Cycles of a published simulation of
Stampede 2 (Simakov et al. 2018) lasted 0.5 to 0.75 s a test.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptaskmodel.errors import SlurmError

# Why a cycle was over: all were looked at, or a limit, or something changed in a pause.
QUEUE, DEPTH, TIME, CHANGED, STARTS, ROOM = "queue", "depth", "time", "changed", "starts", "room"


@dataclass(frozen=True, slots=True)
class Costs:
    """test_s: how long it takes backfill to test a job, s. Raises SlurmError below 0."""

    test_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.test_s < float("inf"):
            raise SlurmError(f"a test that costs {self.test_s} s: give 0 or more")


FREE = Costs()
