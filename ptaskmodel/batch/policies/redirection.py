"""Redirection: running long jobs move to a group of reserved hosts when short jobs wait for them.

The hosts form two groups. The first hosts are the principal group. The last ones (a share alpha of
all, rounded, at least one) are the redirection group. New jobs go to the principal group, under a
policy of their own (EASY by default).

Each running job of the principal group has a counter. When a job is submitted while others run and
does not start at once, the counter of every running job whose walltime is at least its own rises by
one. A running job qualifies if its counter exceeds the threshold theta and it fits in the free
hosts of the redirection group. It is then killed and restarted there from the beginning, at most
once; all counters are reset. Each rise of a counter triggers this test. If several jobs qualify at
once, the rule of conflict chooses one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptaskmodel.batch.jobs.attempt import Attempt
from ptaskmodel.batch.loop.decisions import Decision, Reject, Requeue, Start
from ptaskmodel.batch.loop.view import Policy, View
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.batch.policies.easy import Easy
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

CONFLICTS: Mapping[str, Callable[[Attempt, int, float], tuple[float, ...]]] = {
    "counter": lambda attempt, counter, walltime: (-counter, attempt.number),
    "longest": lambda attempt, counter, walltime: (-walltime, attempt.number),
    "shortest": lambda attempt, counter, walltime: (walltime, attempt.number),
    "largest": lambda attempt, counter, walltime: (-attempt.job.num_hosts, attempt.number),
    "smallest": lambda attempt, counter, walltime: (attempt.job.num_hosts, attempt.number),
    "oldest": lambda attempt, counter, walltime: (attempt.number,),
    "youngest": lambda attempt, counter, walltime: (-attempt.number,),
}


class Redirection:
    """A policy on the principal group, with redirection to the rest of the hosts.

    alpha: share of the hosts in the redirection group, in (0, 1). theta: threshold of the
    counters, 0 or more. conflict: which of the jobs that qualify is redirected: that of the
    largest ``counter`` (the oldest of equals), or the ``longest`` or ``shortest`` by walltime, the
    ``largest`` or ``smallest`` by hosts, the ``oldest`` or ``youngest`` by start. principal: the
    policy of the principal group. Jobs larger than the principal group are rejected.
    """

    def __init__(
        self,
        alpha: float,
        theta: float,
        *,
        conflict: str = "counter",
        principal: Policy | None = None,
        order: Order | None = None,
    ) -> None:
        if not 0 < alpha < 1:
            raise SimulationError(f"redirection: alpha is {alpha:g}: it must be between 0 and 1")
        if not theta >= 0:
            raise SimulationError(f"redirection: theta is {theta:g}: it must be 0 or more")
        if conflict not in CONFLICTS:
            raise SimulationError(
                f"redirection: conflict rule '{conflict}' is unknown: use one of "
                f"{', '.join(CONFLICTS)}"
            )
        self.alpha = alpha
        self.theta = theta
        self.principal = principal or Easy(order)
        self.order = getattr(self.principal, "order", None)
        self.conflict = conflict
        self._conflict = CONFLICTS[conflict]
        self._counters: dict[Job, int] = {}

    def groups(self, num_hosts: int) -> tuple[Mask, Mask]:
        """The hosts of the principal group and of the redirection group."""
        apart = max(1, min(num_hosts - 1, int(self.alpha * num_hosts + 0.5)))
        principal = (1 << (num_hosts - apart)) - 1
        return principal, ((1 << num_hosts) - 1) ^ principal

    def decide(self, view: View) -> Iterator[Decision]:
        principal, apart = self.groups(view.num_hosts)
        part = view.part(principal)
        for attempt in view.ended:
            self._counters.pop(attempt.job, None)
        for job in view.submitted:
            if job.num_hosts > part.num_hosts:
                yield Reject(job, f"larger than the principal group ({part.num_hosts} hosts)")
        yield from self._principal(part)
        for job in view.submitted:
            if not view.is_waiting(job):
                continue
            chosen = self._count(job, part, view.part(apart))
            if chosen is not None:
                self._counters.clear()
                yield Requeue(chosen.job, "redirected")
                yield Start(chosen.job, within=apart)
                yield from self._principal(part)

    def _principal(self, part: View) -> Iterator[Decision]:
        """The decisions of the policy of the principal group, about jobs that still wait."""
        yield from self.principal.decide(part.part(still_waiting=True))

    def _count(self, job: Job, principal: View, apart: View) -> Attempt | None:
        """Raise the counters for a job that was made to wait; the attempt to redirect, if any."""
        limit, candidates = principal.estimate_s(job), []
        for attempt in principal.running:
            walltime = principal.estimate_s(attempt.job)
            if attempt.ordinal or walltime < limit:
                continue
            counter = self._counters[attempt.job] = self._counters.get(attempt.job, 0) + 1
            if counter > self.theta and apart.fits(attempt.job):
                candidates.append((self._conflict(attempt, counter, walltime), attempt))
        return min(candidates, key=lambda entry: entry[0])[1] if candidates else None
