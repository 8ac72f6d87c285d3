"""Redirection: short jobs that wait behind long ones have these moved to a group set apart.

The hosts are cut in two: the first form the principal group, the last (a share alpha of all,
rounded, at least one) the redirection group. New jobs go to the principal group, under a policy of
their own (EASY by default).

Each running job of the principal group has a counter. A job that is submitted while others run and
does not start at once raises by one the counter of every running job whose walltime is at least its
own. A running job whose counter exceeds the threshold theta, and which fits in the free hosts of
the redirection group, is killed and started again there from the beginning. That happens to a job
once at most; then all counters are set to zero. Whether a job qualifies is asked each time its
counter is raised. When several jobs qualify at once, the rule of conflict chooses one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.batch.policies import Easy, Order
from ptaskmodel.batch.state import Decision, Policy, Reject, Restart, Run, View
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

CONFLICTS: Mapping[str, Callable[[Run, int, float], tuple]] = {
    "counter": lambda run, counter, walltime: (-counter, run.number),
    "longest": lambda run, counter, walltime: (-walltime, run.number),
    "shortest": lambda run, counter, walltime: (walltime, run.number),
    "largest": lambda run, counter, walltime: (-run.job.num_hosts, run.number),
    "smallest": lambda run, counter, walltime: (run.job.num_hosts, run.number),
    "oldest": lambda run, counter, walltime: (run.number,),
    "youngest": lambda run, counter, walltime: (-run.number,),
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
        self.order = self.principal.order
        self.redirected = 0
        self._conflict = CONFLICTS[conflict]
        self._counters: dict[Job, int] = {}

    def groups(self, num_hosts: int) -> tuple[HostSet, HostSet]:
        """The hosts of the principal group and of the redirection group."""
        apart = max(1, min(num_hosts - 1, int(self.alpha * num_hosts + 0.5)))
        principal = (1 << (num_hosts - apart)) - 1
        return principal, ((1 << num_hosts) - 1) ^ principal

    def decide(self, view: View) -> Iterator[Decision]:
        principal, apart = self.groups(view.num_hosts)
        part = view.part(principal)
        for run in view.ended:
            self._counters.pop(run.job, None)
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
                self.redirected += 1
                yield Restart(chosen.job, within=apart)
                yield from self._principal(part)

    def _principal(self, part: View) -> Iterator[Decision]:
        """The decisions of the policy of the principal group, about jobs that still wait."""
        yield from self.principal.decide(_Waiting(part))

    def _count(self, job: Job, principal: View, apart: View) -> Run | None:
        """Raise the counters for a job that was made to wait; the run to redirect, if any."""
        limit, candidates = principal.estimate_s(job), []
        for run in principal.running:
            walltime = principal.estimate_s(run.job)
            if run.attempt or walltime < limit:
                continue
            counter = self._counters[run.job] = self._counters.get(run.job, 0) + 1
            if counter > self.theta and apart.fits(run.job):
                candidates.append((self._conflict(run, counter, walltime), run))
        return min(candidates, key=lambda entry: entry[0])[1] if candidates else None


class _Waiting(View):
    """A view whose queue leaves out what was decided on already at this date."""

    __slots__ = ()

    def __init__(self, view: View) -> None:
        super().__init__(view._state, view.within)

    @property
    def queue(self) -> list[Job]:
        return [job for job in super().queue if self.is_waiting(job)]
