"""Policies that limit power: a cap on the power of all hosts, and idle hosts that sleep.

Under a cap, a job starts only while the hosts together draw no more than the cap; each host with a
job counts with the largest power of its pstate, as in Slurm's power saving. Idle hosts sleep after
a timeout and wake up for the queue; the predictions of the paper are left out.
Sources: Y. Georgiou, D. Glesser and D. Trystram, "Adaptive resource and job management for limited
power consumption", IPDPSW 2015 (cap); A.-C. Orgerie, L. Lefevre and J.-P. Gelas, "Save watts in
your grid: green strategies for energy-aware framework in large scale distributed systems", ICPADS
2008 (sleep).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ptaskmodel.batch.loop.decisions import OFF, ON, Decision, Reject, SetPower, Start, Wake
from ptaskmodel.batch.loop.view import View
from ptaskmodel.batch.machine.host_sets import Mask, as_mask, lowest, mask_of, members
from ptaskmodel.batch.policies import Order
from ptaskmodel.batch.policies.backfilling import policy_under
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
    not of power. order: of the queue (None: by submission).

    Raises SimulationError where hosts do not say what they draw, or the cap is below what they draw
    idle.
    """

    def __init__(
        self, cap: float, order: Order | None = None, by: str = "wait", under: str = "easy"
    ) -> None:
        if by not in WAYS:
            raise SimulationError(f"power-cap: option by is '{by}'; use {' or '.join(WAYS)}")
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
                    "hosts draw idle; give more"
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


class SleepIdle:
    """A policy under which hosts that have been idle for ``timeout`` seconds sleep.

    order: of the queue (None: by submission). under: the policy that starts jobs, "easy" or "fcfs".
    spare: how many free hosts stay awake
    beyond what the queue asks for. As many hosts are woken as the jobs of the queue ask for beyond
    those that are free or waking. A host sleeps in its first sleep pstate (the property
    sleep_pstates of the platform); one that has none is turned off, and on again at once. Those
    idle for longest sleep first. Reservations do not know of sleeping hosts: while the first of the
    queue needs more hosts than are awake it holds up nobody.
    """

    def __init__(
        self,
        order: Order | None = None,
        timeout: float = 600.0,
        spare: int = 0,
        under: str = "easy",
    ) -> None:
        if not 0.0 <= timeout < inf or spare < 0:
            raise SimulationError(f"sleep-idle: timeout {timeout} and spare {spare} are to be >= 0")
        self.order = order
        self._under = policy_under(under, order)
        self._timeout_s = timeout
        self._spare = spare
        # Free hosts since when, oldest first.
        self._idle: list[tuple[float, Mask]] = []
        self._off: Mask = 0
        self._wake_s = -1.0

    def decide(self, view: View) -> Iterator[Decision]:
        yield from self._under.decide(view)
        self._note_idle(view)
        asked = sum(job.num_hosts for job in view.queue if view.is_waiting(job))
        lacking = asked - view.free - _seen(view, view.pstates.switching_on).bit_count()
        if lacking > 0:
            yield from self._rouse(view, lacking)
        else:
            yield from self._rest(view, view.free - asked - self._spare)

    def _note_idle(self, view: View) -> None:
        free, known = view.free_mask, 0
        for _, hosts in self._idle:
            known |= hosts
        self._idle = [(since, hosts & free) for since, hosts in self._idle if hosts & free]
        if free & ~known:
            self._idle.append((view.now, free & ~known))

    def _rouse(self, view: View, count: int) -> Iterator[Decision]:
        """Wake so many hosts, those that are off first: they come back at once."""
        off = lowest(self._off, min(count, self._off.bit_count()))
        if off:
            self._off &= ~off
            yield SetPower(off, ON)
            yield Wake(view.now)
        asleep = _seen(view, view.pstates.sleeping)
        woken = lowest(asleep, min(count - off.bit_count(), asleep.bit_count()))
        by_pstate: dict[int, Mask] = {}
        for host in members(woken):
            pstate = view.pstates.facts[host].computing[0]
            by_pstate[pstate] = by_pstate.get(pstate, 0) | 1 << host
        for pstate, hosts in by_pstate.items():
            yield SetPower(hosts, pstate)

    def _rest(self, view: View, surplus: int) -> Iterator[Decision]:
        """Put to sleep at most so many hosts, and be asked again when others may."""
        left: list[tuple[float, Mask]] = []
        for since, hosts in self._idle:
            if surplus > 0 and since + self._timeout_s <= view.now:
                chosen = lowest(hosts, min(surplus, hosts.bit_count()))
                surplus -= chosen.bit_count()
                hosts &= ~chosen
                yield from self._put_to_sleep(view, chosen)
            if hosts:
                left.append((since, hosts))
        self._idle = left
        coming = [since + self._timeout_s for since, _ in left]
        coming = [date for date in coming if date > view.now]
        if surplus > 0 and coming and coming[0] != self._wake_s:
            self._wake_s = coming[0]
            yield Wake(coming[0])

    def _put_to_sleep(self, view: View, chosen: Mask) -> Iterator[Decision]:
        by_state: dict[int | None, Mask] = {}
        for host in members(chosen):
            pstate = view.pstates.sleep_pstate(host)
            by_state[pstate] = by_state.get(pstate, 0) | 1 << host
        for pstate, hosts in by_state.items():
            if pstate is None:
                self._off |= hosts
            yield SetPower(hosts, OFF if pstate is None else pstate)


def _seen(view: View, hosts: Mask) -> Mask:
    """The hosts that the policy has a say in."""
    return hosts if view.within is None else hosts & int(view.within)
