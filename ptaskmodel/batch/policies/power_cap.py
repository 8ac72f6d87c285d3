"""Jobs start only while the hosts together draw no more than a cap.

Source: a cap kept by what hosts draw at most in their pstates, as SLURM's power saving does it:
Y. Georgiou, D. Glesser and D. Trystram, "Adaptive resource and job management for limited power
consumption", IPDPSW 2015.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ptaskmodel.batch.decisions import Decision, Reject, SetPower, Start
from ptaskmodel.batch.hostset import Mask, as_mask, mask_of, members
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.batch.policies.under import policy_under
from ptaskmodel.batch.view import View
from ptaskmodel.errors import SimulationError

WAYS = ("wait", "pstates")
# Sums of what hosts draw are rounded; W for each W of the cap.
ROUNDING = 1e-12


class PowerCap:
    """A policy under which the hosts never draw more than ``cap`` W, links not counted.

    A host that runs a job counts with all its cores busy in its pstate, any other as it draws idle.
    The first job that would exceed the cap waits, and so do all behind it; one that exceeds it on
    an otherwise idle machine is rejected. by: "wait", or "pstates": hosts are put into the fastest
    pstate that the cap allows when a job starts there (a lower one makes parallel tasks longer,
    delays not). under: the policy that starts jobs, "easy" or "fcfs"; reservations are of hosts,
    not of power.

    Raises SimulationError where hosts do not say what they draw, or the cap is below what they draw
    idle.
    """

    def __init__(
        self, cap: float, order: Order | None = None, by: str = "wait", under: str = "easy"
    ) -> None:
        if by not in WAYS:
            raise SimulationError(f"power-cap: option by is '{by}': use {' or '.join(WAYS)}")
        if not 0.0 <= cap < inf:
            raise SimulationError(f"power-cap: cap={cap} is not a number of W >= 0")
        self.order = order
        self._under = policy_under(under, order)
        self._cap_W = cap * (1.0 + ROUNDING)
        self._by_pstates = by == "pstates"
        self._drawn: list[float] = []
        self._in: list[int] = []
        self._busy: Mask = 0
        self._total_W = 0.0

    def decide(self, view: View) -> Iterator[Decision]:
        self._note(view)
        for decision in self._under.decide(view):
            if not isinstance(decision, Start):
                yield decision
                continue
            job = decision.job
            hosts = self._hosts(view, decision)
            ways = [self._present(view, hosts), *self._common(view, hosts)]
            fitting = (way for way in ways if self._with(view, hosts, way) <= self._cap_W)
            chosen = next(fitting, None)
            if chosen is None:
                if not view.running:
                    yield Reject(job, self._too_much(view, hosts, ways))
                    continue
                return
            for pstate in sorted(set(chosen.values())):
                changed = [
                    host
                    for host, wanted in chosen.items()
                    if wanted == pstate != view.pstates.now[host]
                ]
                if changed:
                    yield SetPower(changed, pstate)
            yield Start(job, hosts)
            self._note(view)

    @staticmethod
    def _hosts(view: View, decision: Start) -> Mask:
        """The hosts on which a job is to start."""
        if decision.hosts is not None:
            return as_mask(decision.hosts)
        candidates = view.candidates(decision.job)
        chosen = view.allocation.choose(decision.job.num_hosts, candidates)
        assert chosen is not None
        return mask_of(chosen)

    def _present(self, view: View, hosts: Mask) -> dict[int, int]:
        """The pstates of hosts: their fastest if they may change, else those that they are in."""
        if not self._by_pstates:
            return {host: view.pstates.now[host] for host in members(hosts)}
        return {host: _by_speed(view, host)[0] for host in members(hosts)}

    def _common(self, view: View, hosts: Mask) -> list[dict[int, int]]:
        """Slower and slower pstates of hosts: the second fastest of each, the third ..."""
        if not self._by_pstates:
            return []
        orders = {host: _by_speed(view, host) for host in members(hosts)}
        most = max(len(order) for order in orders.values())
        return [
            {host: order[min(k, len(order) - 1)] for host, order in orders.items()}
            for k in range(1, most)
        ]

    def _with(self, view: View, hosts: Mask, way: dict[int, int]) -> float:
        """What all hosts may draw once a job runs on these."""
        watts = view.pstates.watts
        return self._total_W + sum(
            watts(host, pstate, True) - self._drawn[host] for host, pstate in way.items()
        )

    def _too_much(self, view: View, hosts: Mask, ways: list[dict[int, int]]) -> str:
        least = min(self._with(view, hosts, way) for way in ways)
        return f"would draw {least:g} W, above the cap of {self._cap_W:g} W"

    def _note(self, view: View) -> None:
        """What the hosts may draw now: those that changed are looked at."""
        pstates = view.pstates
        busy = view.available_mask & ~view.free_mask
        busy |= pstates.switching_on | pstates.switching_off
        if not self._drawn:
            self._drawn = [pstates.watts(host) for host in range(view.num_hosts)]
            self._in = list(pstates.now)
            self._total_W = sum(self._drawn)
            if self._total_W > self._cap_W:
                raise SimulationError(
                    f"power-cap: cap={self._cap_W:g} W is below the {self._total_W:g} W that the "
                    "hosts draw idle: give more"
                )
        changed = busy ^ self._busy
        if self._in != pstates.now:
            pairs = zip(self._in, pstates.now, strict=True)
            for host, (before, now) in enumerate(pairs):
                changed |= (before != now) << host
            self._in = list(pstates.now)
        for host in members(changed):
            self._drawn[host] = pstates.watts(host, busy=bool(busy >> host & 1))
        if changed:
            self._busy = busy
            self._total_W = sum(self._drawn)


def _by_speed(view: View, host: int) -> list[int]:
    """The pstates of a host that compute, fastest first."""
    fact = view.pstates.facts[host]
    return sorted(fact.computing, key=lambda pstate: -fact.speeds_flops[pstate])
