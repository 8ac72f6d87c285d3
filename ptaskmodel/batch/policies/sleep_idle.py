"""Idle hosts sleep after a while and are woken for the queue.

Source: the shutdown of idle resources after a timeout is that of A.-C. Orgerie, L. Lefevre and
J.-P. Gelas, "Save watts in your grid: green strategies for energy-aware framework in large scale
distributed systems", ICPADS 2008, without its predictions.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from ptaskmodel.batch.decisions import OFF, ON, Decision, SetPower, Wake
from ptaskmodel.batch.hostset import Mask, lowest, members
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.batch.policies.under import policy_under
from ptaskmodel.batch.view import View
from ptaskmodel.errors import SimulationError


class SleepIdle:
    """A policy under which hosts that have been idle for ``timeout`` seconds sleep.

    under: the policy that starts jobs, "easy" or "fcfs". spare: how many free hosts stay awake
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
