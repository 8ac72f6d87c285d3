"""The order of a date, as a front end made up for this hears it from the engine."""

from __future__ import annotations

import pytest

import ptaskmodel as pm
from ptaskmodel.engine.activity import stop, succeeds
from ptaskmodel.engine.availability import follow_live
from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.loop import next_happening, to_next_date
from ptaskmodel.engine.state import (
    FAILING,
    NEW_DATE,
    NOTHING_MORE,
    OK,
    WAITED,
    WOKEN,
    WORKED,
    WORKED_FIRST,
)
from ptaskmodel.engine.usage.network_models import network_model
from ptaskmodel.kernels.decorators import as_compiled

# Host "off", and link "l", go off at date 1.
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="on" speed="100f" core="2"/>
    <host id="off" speed="100f" core="2" state_file="{state}"/>
    <link id="l" bandwidth="100Bps" latency="0" state_file="{state}"/>
    <route src="on" dst="on"><link_ctn id="l"/></route>
  </zone>
</platform>
"""
ON, OFF = 0, 1
EXECUTION = pm.ParallelWork.of_execution(1.0)
FLOW = pm.ParallelWork.of_flow(1.0)
WAKE_UP, DELAY, DELAYED, SHORT, LONG, LOST, SENT = range(1, 8)
NAMES = {
    WOKEN: "woken",
    WAITED: "waited",
    WORKED_FIRST: "worked first",
    WORKED: "worked",
    FAILING: "failing",
}


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    place = tmp_path_factory.mktemp("order")
    (place / "state").write_text("1 0\n")
    (place / "platform.xml").write_text(PLATFORM.format(state=place / "state"))
    return pm.load_platform(place / "platform.xml")


def loaded(platform: pm.Platform) -> Core:
    """Everything that can happen does at date 1, begun in another order; one thing at date 2."""
    core = Core(platform, network_model("L07", platform.config), "maxmin")

    def pattern(work: pm.ParallelWork | pm.DelayWork, *hosts: int) -> int:
        (number,) = core.find([core.router.shape(work, hosts, None)[0]])
        core.hold([number])
        core.route([number])
        return number

    core.start(pattern(EXECUTION, OFF), 150.0, owner=LONG)
    core.start(pattern(EXECUTION, OFF), 100.0, owner=LOST)
    core.start(pattern(FLOW, ON, ON), 100.0, owner=SENT)
    core.start(pattern(EXECUTION, ON), 100.0, owner=SHORT)
    core.start(pattern(EXECUTION, ON), 100.0, delay_s=1.0, owner=DELAYED)
    core.start(pattern(pm.DelayWork(0.0), ON), 0.0, delay_s=1.0, owner=DELAY)
    core.wake(1.0, WAKE_UP)
    core.make_room_for_events(100)
    return core


def diary(core: Core, work_first: bool) -> list[tuple[float, str, int, bool]]:
    """(date, what happens, to what, whether it succeeds), all told by the engine."""
    s, o = core.state, core.options
    told = []
    with as_compiled():
        follow_live(s, o)
        while to_next_date(s, o, 0) == OK:
            what = next_happening(s, o, NEW_DATE, work_first)
            while what != NOTHING_MORE:
                subject = int(s.clock[0]["argument"])
                if what == WOKEN:
                    told.append((core.now, NAMES[what], subject, True))
                else:
                    owner = int(s.activities["owner"][subject])
                    fine = bool(what != FAILING and succeeds(s, subject))
                    told.append((core.now, NAMES[what], owner, fine))
                    stop(s, subject)
                what = next_happening(s, o, what, work_first)
    return told


WAITS = [(1.0, "waited", DELAY, True), (1.0, "woken", WAKE_UP, True)]
REST = [(1.0, "failing", LONG, False), (2.0, "worked", DELAYED, True)]
WORK = ((LOST, False), (SENT, True), (SHORT, True))


def test_waits_come_before_work_that_is_done_and_that_before_failures(platform):
    work = [(1.0, "worked", owner, fine) for owner, fine in WORK]
    assert diary(loaded(platform), work_first=False) == WAITS + work + REST


def test_a_front_end_may_have_work_that_is_done_first(platform):
    work = [(1.0, "worked first", owner, fine) for owner, fine in WORK]
    rest = [REST[0], (2.0, "worked first", DELAYED, True)]
    assert diary(loaded(platform), work_first=True) == work + WAITS + rest
