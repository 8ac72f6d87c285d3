"""Redirection: running long jobs move to a group of reserved hosts when short jobs wait for them.

The hosts form two groups. The first hosts are the principal group. The last ones (a share alpha of
all, rounded, at least one) are the redirection group. New jobs go to the principal group, under a
policy of their own (EASY by default).

Each running job of the principal group has a counter. A job that is submitted while others run, and
does not start at once, adds one to the counter of every running job whose walltime is at least its
own. A running job qualifies if its counter exceeds the threshold theta and it fits in the
redirection group: in its free hosts, or, if redirected jobs queue there, in all of them. It is then
killed and restarted there, at most once; all counters are reset. Each rise of a counter triggers
this test. If several jobs qualify at once, the conflict rule chooses one. The redirection group
serves its queue first come, first served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ptaskmodel.batch.jobs.execution import Attempt
from ptaskmodel.batch.loop.decisions import Decision, Reject, Requeue, Start
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.batch.policies import Order
from ptaskmodel.batch.policies.backfilling import Easy
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

if TYPE_CHECKING:
    from ptaskmodel.batch.loop.view import Policy, View

CONFLICTS: Mapping[str, Callable[[Attempt, int, float], tuple[float, ...]]] = {
    "counter": lambda attempt, counter, walltime: (-counter, attempt.number),
    "longest": lambda attempt, counter, walltime: (-walltime, attempt.number),
    "shortest": lambda attempt, counter, walltime: (walltime, attempt.number),
    "largest": lambda attempt, counter, walltime: (-attempt.job.num_hosts, attempt.number),
    "smallest": lambda attempt, counter, walltime: (attempt.job.num_hosts, attempt.number),
    "oldest": lambda attempt, counter, walltime: (attempt.number,),
    "youngest": lambda attempt, counter, walltime: (-attempt.number,),
}
START, QUEUE = "start", "queue"


class Redirection:
    """A policy on the principal group, with redirection to the rest of the hosts.

    alpha: share of the hosts in the redirection group, in (0, 1). theta: threshold of the counters,
    0 or more. conflict: which of the jobs that qualify is redirected: that of the largest
    ``counter`` (the oldest of equals), or the ``longest`` or ``shortest`` by walltime, the
    ``largest`` or ``smallest`` by hosts, the ``oldest`` or ``youngest`` by start. redirected: jobs
    are redirected when they can ``start`` at once, or whatever runs in the group, to ``queue``
    there. principal: the policy of the principal group (None: EASY, by ``order``). Jobs larger than
    the principal group are rejected.
    """

    def __init__(
        self,
        alpha: float,
        theta: float,
        *,
        conflict: str = "counter",
        redirected: str = START,
        principal: Policy | None = None,
        order: Order | None = None,
    ) -> None:
        if not 0 < alpha < 1:
            raise SimulationError(f"redirection: alpha is {alpha:g}: it must be between 0 and 1")
        if not theta >= 0:
            raise SimulationError(f"redirection: theta is {theta:g}: it must be 0 or more")
        if conflict not in CONFLICTS:
            raise SimulationError(
                f"redirection: conflict rule '{conflict}' is unknown; use one of "
                f"{', '.join(CONFLICTS)}"
            )
        if redirected not in (START, QUEUE):
            raise SimulationError(
                f"redirection: redirected is '{redirected}'; use {START} or {QUEUE}"
            )
        self.alpha = alpha
        self.theta = theta
        self.principal = principal or Easy(order)
        self.order = getattr(self.principal, "order", None)
        self.conflict = conflict
        self._conflict = CONFLICTS[conflict]
        self.queues = redirected == QUEUE
        self._counters: dict[Job, int] = {}
        self._queue: list[Job] = []  # of the redirection group

    def groups(self, num_hosts: int) -> tuple[Mask, Mask]:
        """Return the hosts, of `num_hosts`, of the principal and of the redirection group."""
        apart = max(1, min(num_hosts - 1, int(self.alpha * num_hosts + 0.5)))
        principal = (1 << (num_hosts - apart)) - 1
        return principal, ((1 << num_hosts) - 1) ^ principal

    def decide(self, view: View) -> Iterator[Decision]:
        principal, apart = self.groups(view.num_hosts)
        part, group = view.part(principal), view.part(apart)
        for attempt in view.ended:
            self._counters.pop(attempt.job, None)
        for job in view.submitted:
            if job.num_hosts > part.num_hosts:
                yield Reject(job, f"larger than the principal group ({part.num_hosts} hosts)")
        yield from self._start_queued(group)
        yield from self._principal(part)
        for job in view.submitted:
            if not view.is_waiting(job) or job in self._queue:
                continue
            chosen = self._count(job, part, group)
            if chosen is not None:
                self._counters.clear()
                yield Requeue(chosen.job, "redirected")
                self._queue.append(chosen.job)
                yield from self._start_queued(group)
                yield from self._principal(part)

    def _start_queued(self, group: View) -> Iterator[Decision]:
        """Start the first jobs of the queue of the redirection group as long as they fit."""
        while self._queue and group.fits(self._queue[0]):
            yield Start(self._queue.pop(0), within=group.within)

    def _principal(self, part: View) -> Iterator[Decision]:
        """The decisions of the policy of the principal group, about jobs that still wait there."""
        if self._queue:
            moved = set(self._queue)
            queue = [job for job in part.queue if part.is_waiting(job) and job not in moved]
            yield from self.principal.decide(part.part(queue=queue))
        else:
            yield from self.principal.decide(part.part(still_waiting=True))

    def _count(self, job: Job, principal: View, apart: View) -> Attempt | None:
        """Raise the counters for a job that was made to wait; the attempt to redirect, if any."""
        limit, candidates = principal.estimate_s(job), []
        for attempt in principal.running:
            walltime = principal.estimate_s(attempt.job)
            if attempt.ordinal or walltime < limit:
                continue
            counter = self._counters[attempt.job] = self._counters.get(attempt.job, 0) + 1
            if counter > self.theta and self._has_room(apart, attempt.job):
                candidates.append((self._conflict(attempt, counter, walltime), attempt))
        return min(candidates, key=lambda entry: entry[0])[1] if candidates else None

    def _has_room(self, apart: View, job: Job) -> bool:
        return job.num_hosts <= apart.num_hosts if self.queues else apart.fits(job)
