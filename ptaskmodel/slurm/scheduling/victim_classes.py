"""Classes of jobs for compiled backfill: those of one class preempt the same other classes.

`SharedCycles` notes them for `victim_kernel`. A class is a QOS, or the tier of partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.slurm.conf.facts import BY_QOS, BY_TIER, NEVER, OFF, SUSPEND, WITHIN
from ptaskmodel.slurm.jobs.record import JobRecord

if TYPE_CHECKING:
    from ptaskmodel.slurm.controller.controller import Controller

# The class of a job that preempts no other, or is never preempted.
NO_CLASS = -1


def ends_all_victims(controller: Controller) -> bool:
    """Whether all victims of a `controller` end, and their class alone says whose victims."""
    conf, accounts = controller.conf, controller.rules.accounts
    modes = [conf.preempt_mode]
    modes += [words for p in conf.partitions if (words := p.preempt_mode) is not None]
    modes += [words for q in accounts.qos.values() if (words := q.preempt_mode) is not None]
    kind = conf.preempt_type
    return kind == NEVER or not any(SUSPEND in words or WITHIN in words for words in modes)


class VictimClasses:
    """The classes of the jobs of a `controller`.

    preempts: whether jobs of a class, by row, preempt those of another, by column.
    """

    def __init__(self, controller: Controller) -> None:
        self._preemption, self._kind = controller.preemption, controller.conf.preempt_type
        known = controller.rules.accounts.qos if self._kind == BY_QOS else {}
        tiers = sorted(
            {p.tier for p in controller.conf.partitions} if self._kind == BY_TIER else ()
        )
        self._numbers = {one: k for k, one in enumerate((*known, *tiers))}
        if known:
            found = [[b in known[a].preempt and a != b for b in known] for a in known]
        else:
            found = [[a > b for b in tiers] for a in tiers]
        self.preempts: NDArray[np.int64] = np.array(found, np.int64).reshape(2 * (len(found),))

    def of_waiting(self, job: JobRecord) -> int:
        """The class of a `job` that waits in its first partition, if it preempts any other."""
        found = self._of(job, job.partitions[0].tier)
        return found if found != NO_CLASS and self.preempts[found].any() else NO_CLASS

    def of_running(self, job: JobRecord) -> int:
        """The class of a `job` as a victim."""
        if self._preemption.mode_of(job) == OFF:
            return NO_CLASS
        return self._of(job, job.partition.tier)

    def _of(self, job: JobRecord, tier: int) -> int:
        which = self._preemption.qos_name(job) if self._kind == BY_QOS else tier
        return self._numbers.get(which, NO_CLASS)
