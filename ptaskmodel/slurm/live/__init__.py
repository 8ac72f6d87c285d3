"""A real, unmodified Slurm schedules a simulated machine, under a virtual clock; its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptaskmodel.options import COURSE, NOT_NEGATIVE, option

if TYPE_CHECKING:
    from ptaskmodel.slurm.live.cluster import Failure


# Unix time of date 0: the beginning of a day, so that backfill's grid begins there.
T0 = 1_704_067_200
SETTLE_S = 50.0


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How a real Slurm is run.

    t0: date 0 in Unix time. settle_s: how long before it slurmctld comes up. slack_us: by how much
    every wait is longer, as a kernel's timers are; ties fall otherwise with another value. express:
    see `Clock`. idle_s: how long jobs may wait with nothing going on until they wait for ever.
    failures: daemons that die and come back; with any, nodes that do not answer go down.
    """

    t0: int = T0
    settle_s: float = SETTLE_S
    slack_us: float = option(
        0.0,
        NOT_NEGATIVE,
        "Lengthen every wait by this; it breaks ties in another way, like a seed.",
        COURSE,
        flag="--slack",
        metavar="MICROSECONDS",
    )
    express: bool = True
    idle_s: float = 3600.0
    failures: tuple[Failure, ...] = ()
