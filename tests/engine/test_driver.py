"""Activities on a core, driven from Python: dates against closed forms, the stream, copies."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.engine.check import check_state
from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import CAPACITY, ENDED, FAILED, RATE, WOKE
from ptaskmodel.engine.usage.network_models import network_model

TWO_HOSTS = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="100f" core="2"/>
    <host id="b" speed="100f"/>
    <link id="l" bandwidth="100Bps" latency="0"/>
    <route src="a" dst="b"><link_ctn id="l"/></route>
  </zone>
</platform>
"""
A, B, LINK = 0, 1, 2
ONE_FLOP = pm.ParallelWork.of(1, 1.0)
ONE_BYTE = pm.ParallelWork.of(2, 0.0, [[0.0, 1.0], [0.0, 0.0]])


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    path = tmp_path_factory.mktemp("core") / "platform.xml"
    path.write_text(TWO_HOSTS)
    return pm.load_platform(path)


def new_core(platform: pm.Platform, solver: str = "bmf", model: str = "L07") -> Core:
    return Core(platform, network_model(model, platform.config), solver)


def pattern(core: Core, work: pm.ParallelWork | pm.DelayWork, *hosts: int) -> int:
    """The pattern of a work on hosts, routed and held."""
    shape, _ = core.router.shape(work, hosts, None)
    (number,) = core.find([shape])
    core.hold([number])
    core.route([number])
    return number


def told(events: np.ndarray, *kinds: int) -> list[tuple]:
    """(date, kind, subject) of the events of some kinds."""
    return [(e["date"], e["kind"], e["subject"]) for e in events if not kinds or e["kind"] in kinds]


def test_activities_share_and_end(platform):
    core = new_core(platform)
    flow = pattern(core, ONE_BYTE, A, B)
    core.start(flow, 300.0, owner=7)
    core.start(flow, 100.0, owner=8)
    assert told(core.advance()) == [(2.0, ENDED, 8)]
    assert told(core.advance()) == [(4.0, ENDED, 7)]
    assert not len(core.advance())
    assert core.now == 4.0


def test_messages_of_any_size_share_a_pattern_and_a_weight_divides_a_link(platform):
    core = new_core(platform)
    flow = pattern(core, ONE_BYTE, A, B)
    assert pattern(core, ONE_BYTE, A, B) == flow
    core.start(flow, 300.0, weight=3.0, owner=1)
    core.start(flow, 100.0, weight=1.0, owner=2)
    assert told(core.advance()) == [(4.0, ENDED, 1), (4.0, ENDED, 2)]


def test_a_bound_holds_an_activity_back(platform):
    core = new_core(platform)
    core.start(pattern(core, ONE_FLOP, A), 100.0, bound=20.0, owner=1)
    assert told(core.advance()) == [(5.0, ENDED, 1)]


def test_wake_ups_and_delays_come_in_order_of_date_then_of_asking(platform):
    core = new_core(platform)
    core.wake(2.0, 41)
    core.wake(1.0, 42)
    unwanted = core.wake(1.5, 43)
    core.start(pattern(core, pm.DelayWork(0.0), A), 0.0, delay_s=2.0, owner=9)
    core.cancel_wake(unwanted)
    assert told(core.advance()) == [(1.0, WOKE, 42)]
    assert core.next_date() == 2.0
    assert told(core.advance()) == [(2.0, WOKE, 41), (2.0, ENDED, 9)]


def test_advance_stops_where_it_is_told(platform):
    core = new_core(platform)
    core.start(pattern(core, ONE_FLOP, A), 100.0, owner=1)
    assert not len(core.advance(0.25))
    assert core.now == 0.25
    assert told(core.advance(1.0)) == [(1.0, ENDED, 1)]


def test_what_has_nothing_to_do_is_over_at_once(platform):
    core = new_core(platform)
    core.start(pattern(core, ONE_FLOP, A), 0.0, owner=1)
    assert told(core.advance()) == [(0.0, ENDED, 1)]


def test_suspension_freezes_a_share_and_a_wait(platform):
    core = new_core(platform)
    work = core.start(pattern(core, ONE_FLOP, A), 100.0, owner=1)
    delay = core.start(pattern(core, pm.DelayWork(0.0), A), 0.0, delay_s=3.0, owner=2)
    core.advance(0.5)
    core.suspend(work)
    core.suspend(delay)
    core.advance(10.0)
    core.resume(work)
    core.resume(delay)
    assert told(core.advance()) == [(10.5, ENDED, 1)]
    assert told(core.advance()) == [(12.5, ENDED, 2)]


def test_what_uses_a_resource_that_goes_off_fails(platform):
    core = new_core(platform)
    core.start(pattern(core, ONE_FLOP, A), 100.0, owner=1)
    core.start(pattern(core, ONE_FLOP, B), 200.0, owner=2)
    core.advance(0.5)
    assert core.set_on(A, False) == [1]
    core.start(pattern(core, ONE_FLOP, A), 100.0, owner=3)
    assert told(core.advance(), ENDED, FAILED) == [(0.5, FAILED, 3)]


def test_stopped_activities_say_nothing_and_give_their_place(platform):
    core = new_core(platform)
    flop = pattern(core, ONE_FLOP, A)
    slot = core.start(flop, 100.0, owner=1)
    core.stop(slot)
    assert core.start(flop, 100.0, owner=2) == slot
    assert told(core.advance()) == [(1.0, ENDED, 2)]


class Kept:
    """A listener that keeps what it takes."""

    def __init__(self) -> None:
        self.events: list[np.ndarray] = []
        self.forgotten: list[int] = []

    def take(self, events: np.ndarray) -> None:
        self.events.append(events)

    def forget(self, patterns: list[int]) -> None:
        self.forgotten += patterns


def test_listeners_are_told_of_rates_and_of_capacities_set_by_hand(platform):
    core, kept = new_core(platform), Kept()
    core.listen(kept)
    flow = pattern(core, ONE_BYTE, A, B)
    core.start(flow, 300.0, owner=7)
    core.advance(1.0)
    core.set_capacity(LINK, 50.0)
    core.advance()
    events = np.concatenate(kept.events)
    assert told(events, RATE, CAPACITY, ENDED) == [
        (0.0, RATE, 7), (1.0, CAPACITY, LINK), (1.0, RATE, 7), (5.0, ENDED, 7), (5.0, RATE, 7)
    ]  # fmt: skip
    rates = events[events["kind"] == RATE]
    assert rates["value"].tolist() == [100.0, 50.0, 0.0]
    assert rates["limit"].tolist()[:2] == [LINK, LINK]
    assert set(rates["pattern"]) == {flow}
    assert set(rates["amount"]) == {300.0}


@pytest.mark.jit
def test_places_are_given_again_so_that_a_long_run_needs_little(platform):
    core = new_core(platform)
    flop, flow = pattern(core, ONE_FLOP, A), pattern(core, ONE_BYTE, A, B)
    for k in range(2000):
        core.start((flop, flow)[k % 2], 1.0 + k % 7, owner=k)
        if k % 4 == 3:
            core.advance()
    while len(core.advance()):
        pass
    assert len(core.state.activities) <= 2048
    assert core.state.clock[0]["n_active"] == 0
    assert check_state(core.state) == []


@pytest.mark.jit
def test_patterns_that_nobody_holds_are_freed_and_their_numbers_given_again(platform):
    core, kept = new_core(platform), Kept()
    core.listen(kept)
    works = [pm.ParallelWork.of(2, [1.0 + k, 1.0], [[0.0, 1.0], [0.0, 0.0]]) for k in range(2000)]
    numbers = set()
    for work in works:
        shape, _ = core.router.shape(work, (A, B), None)
        if core.has_idle_patterns():
            core.reclaim()
        (number,) = core.find([shape])
        core.route([number])
        core.start(number, 1.0)
        core.advance()
        numbers.add(number)
    assert len(numbers) < 1000
    assert len(core.state.elements) < 5000
    assert kept.forgotten


def test_a_copy_and_a_pickle_go_on_bit_for_bit(platform):
    core = new_core(platform)
    flow, flop = pattern(core, ONE_BYTE, A, B), pattern(core, ONE_FLOP, A)
    for k in range(40):
        core.start((flow, flop)[k % 2], 1.0 + k / 3.0, weight=1.0 + k % 3, owner=k)
    core.wake(1.7, 99)
    core.advance(1.0)
    rest = []
    for twin in (core.copy(), pickle.loads(pickle.dumps(core)), core):
        found = []
        while len(events := twin.advance()):
            found += told(events, ENDED, WOKE)
        rest.append(found)
    assert len(rest[0]) >= 40
    assert rest[0] == rest[1] == rest[2]


class Asking(Kept):
    """A listener that looks up what patterns ask as late as it may."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self.core = core
        self.found: list[tuple[int, list[float]]] = []

    def forget(self, patterns: list[int]) -> None:
        for pattern in patterns:
            _, _, usage = self.core.uses(np.array([pattern]))
            self.found.append((pattern, usage.tolist()))


def test_listeners_may_ask_for_the_uses_of_patterns_that_they_are_to_forget(platform):
    core = new_core(platform)
    asking = Asking(core)
    core.listen(asking)
    gone = pattern(core, pm.ParallelWork.of(1, 3.0), A)
    pattern(core, ONE_FLOP, A)
    core.hold([gone], -1)
    core.reclaim()
    assert asking.found == [(gone, [3.0])]
