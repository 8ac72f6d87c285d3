"""Power states of hosts during a run: which compute, which sleep, and switches that take time.

The rules are Batsim's. Between pstates that compute, a host changes at once, even under load. To
fall asleep and to wake up, it passes through a special pstate (see `platform.power.Sleep`); the
switch takes as long as one flop on one core in that pstate. No job runs on a host that sleeps or
switches.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, NamedTuple

from ptaskmodel.batch.jobs.execution import Execution
from ptaskmodel.batch.loop.decisions import LATER, SWITCHED, Agenda, Event
from ptaskmodel.batch.machine.host_sets import HostSet, Mask, mask_of, members, of_hosts
from ptaskmodel.batch.machine.machine import HostPstates
from ptaskmodel.errors import SimulationError

TO_SLEEP, TO_COMPUTING, AT_ONCE = "to sleep", "to computing", "at once"


class Switch(NamedTuple):
    """Hosts that were asked for a pstate by one decision (``request``) and get there together.

    done_s: when they get there, s. kind: one of the names above.
    """

    request: int
    asked_s: float
    hosts: HostSet
    pstate: int
    done_s: float
    kind: str


class Pstates:
    """The pstate of each host, and which hosts sleep or switch; changed only by a `Switcher`.

    Without facts, pstates are unknown and each change is immediate.
    """

    def __init__(self, facts: Sequence[HostPstates] = ()) -> None:
        self.facts = tuple(facts)
        self.now = [fact.pstate for fact in self.facts]
        self.sleeping: Mask = 0
        self.switching_on: Mask = 0
        self.switching_off: Mask = 0
        asleep = [k for k, fact in enumerate(self.facts) if fact.pstate in fact.sleep]
        if asleep:
            raise SimulationError(
                f"host {asleep[0]} begins in sleep pstate {self.now[asleep[0]]}: begin in one that "
                "computes"
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> Pstates:
        other = copy.copy(self)
        other.now = list(self.now)
        return other

    def sleep_pstate(self, host: int) -> int | None:
        """The first sleep pstate of a host; None if it has none."""
        return next(iter(self.facts[host].sleep), None) if self.facts else None

    def switch_s(self, host: int) -> tuple[float, float]:
        """(time to fall asleep, time to come back) of a host by its first sleep pstate, s."""
        sleep = self.sleep_pstate(host)
        if sleep is None:
            return 0.0, 0.0
        speeds, via = self.facts[host].speeds_flops, self.facts[host].sleep[sleep]
        return 1.0 / speeds[via.off], 1.0 / speeds[via.on]

    def watts(self, host: int, pstate: int | None = None, busy: bool = False) -> float:
        """What a host draws idle, or busy at most, in a pstate (None: its present one), W.

        Raises SimulationError if that is not known.
        """
        if not self.facts or (power := self.facts[host].power) is None:
            raise SimulationError(
                f"host {host} has no power; give hosts the property wattage_per_state"
            )
        state = power.states[self.now[host] if pstate is None else pstate]
        return max(state) if busy else state.idle_W


class Switcher:
    """Carries out changes of pstates.

    fault: makes the error of a decision that cannot be carried out. told: called before what a
    decision asks for begins, and when it is done, with the date.
    """

    def __init__(
        self,
        pstates: Pstates,
        execution: Execution,
        agenda: Agenda,
        set_available: Callable[[Mask, bool], None],
        fault: Callable[[str], Exception],
        told: Callable[[float], None] | None = None,
    ) -> None:
        self.switches: list[Switch] = []
        self._pstates = pstates
        self._execution = execution
        self._agenda = agenda
        self._set_available = set_available
        self._fault = fault
        self._told = told
        self._requests = 0
        self._left: dict[int, int] = {}  # switches of a request that are under way

    def check_steady(self, hosts: Mask) -> None:
        """Raises a fault if one of the hosts sleeps or switches."""
        pstates = self._pstates
        busy = hosts & (pstates.sleeping | pstates.switching_on | pstates.switching_off)
        if busy:
            host = members(busy)[0]
            raise self._fault(f"switches host {host}, which {self._does(host)}; give it a pstate")

    def switch(self, hosts: Mask, pstate: int, occupied: Mask, now: float) -> None:
        """Let hosts go into a pstate from `now` (s) on; occupied: where jobs run."""
        if self._told is not None:
            self._told(now)
        if not self._pstates.facts:
            for host in members(hosts):
                self._execution.set_pstate(host, pstate, now)
            return
        together: dict[tuple[float, str], list[int]] = {}
        for host in members(hosts):
            together.setdefault(self._way(host, pstate, occupied), []).append(host)
        self._requests += 1
        for (lasts_s, kind), group in together.items():
            switch = Switch(self._requests, now, HostSet.of(group), pstate, now + lasts_s, kind)
            self.switches.append(switch)
            self._left[switch.request] = self._left.get(switch.request, 0) + 1
        for switch in self.switches[-len(together) :] if together else ():
            self._begin(switch)

    def _way(self, host: int, pstate: int, occupied: Mask) -> tuple[float, str]:
        """(how long it takes, kind) of the way of a host into a pstate."""
        pstates, fact = self._pstates, self._pstates.facts[host]
        bit = 1 << host
        if not 0 <= pstate < len(fact.speeds_flops):
            raise self._fault(
                f"gives host {host} pstate {pstate}: it has 0 to {len(fact.speeds_flops) - 1}"
            )
        if (pstates.switching_on | pstates.switching_off) & bit:
            raise self._fault(f"switches host {host}, which {self._does(host)}")
        if pstate in fact.sleep:
            if pstates.sleeping & bit:
                raise self._fault(f"puts host {host} to sleep, which sleeps")
            if occupied & bit:
                raise self._fault(f"puts host {host} to sleep, on which a job runs")
            return 1.0 / fact.speeds_flops[fact.sleep[pstate].off], TO_SLEEP
        if pstate not in fact.computing:
            raise self._fault(
                f"gives host {host} pstate {pstate}, through which it only passes; choose one that "
                "computes or sleeps"
            )
        if pstates.sleeping & bit:
            return 1.0 / fact.speeds_flops[fact.sleep[pstates.now[host]].on], TO_COMPUTING
        return 0.0, AT_ONCE

    def _begin(self, switch: Switch) -> None:
        pstates, mask = self._pstates, mask_of(switch.hosts)
        if switch.kind == AT_ONCE:
            self._set(switch.hosts, switch.pstate, switch.asked_s)
            self._finished(switch)
            return
        for host in members(mask):
            sleep = pstates.facts[host].sleep
            asleep = switch.pstate if switch.kind == TO_SLEEP else pstates.now[host]
            via = sleep[asleep].off if switch.kind == TO_SLEEP else sleep[asleep].on
            self._set([host], via, switch.asked_s)
        if switch.kind == TO_SLEEP:
            pstates.switching_off |= mask
            self._set_available(mask, False)
        else:
            pstates.sleeping &= ~mask
            pstates.switching_on |= mask
        self._agenda.add(Event(switch.done_s, SWITCHED, switch), LATER)

    def finish(self, switch: Switch) -> None:
        """Note that the hosts of a switch have got to the pstate that they were asked for."""
        pstates, mask = self._pstates, mask_of(switch.hosts)
        self._set(switch.hosts, switch.pstate, switch.done_s)
        if switch.kind == TO_SLEEP:
            pstates.switching_off &= ~mask
            pstates.sleeping |= mask
        else:
            pstates.switching_on &= ~mask
            self._set_available(mask, True)
        self._finished(switch)

    def _finished(self, switch: Switch) -> None:
        self._left[switch.request] -= 1
        if not self._left[switch.request]:
            del self._left[switch.request]
            if self._told is not None:
                self._told(switch.done_s)

    def _set(self, hosts: HostSet | list[int], pstate: int, now: float) -> None:
        for host in hosts:
            self._pstates.now[host] = pstate
            self._execution.set_pstate(host, pstate, now)

    def _does(self, host: int) -> str:
        return "sleeps" if self._pstates.sleeping >> host & 1 else "is switching"


def done(switches: Sequence[Switch], until_s: float = inf) -> list[tuple[float, list[Switch]]]:
    """Return (time, its switches) of each request completed by `until_s` (s), ordered by time."""
    requests: dict[int, list[Switch]] = {}
    for switch in switches:
        requests.setdefault(switch.request, []).append(switch)
    ends = [(max(part.done_s for part in parts), parts) for parts in requests.values()]
    return sorted(((date, parts) for date, parts in ends if date <= until_s), key=lambda e: e[0])


def hosts_of(switches: Sequence[Switch]) -> HostSet:
    """All hosts of some switches."""
    return HostSet(of_hosts(host for switch in switches for host in switch.hosts))
