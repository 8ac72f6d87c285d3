"""What hosts and links say of power and sleep, and the one line that says what is wrong there."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptaskmodel as pm
from ptaskmodel.energy.meter import Meter
from ptaskmodel.platform import PlatformWarning
from ptaskmodel.platform.inspection import check_platform
from ptaskmodel.platform.power import Sleep, Watts, host_power, link_power, sleep_states


def a_host(speeds="100Mf", **properties: str) -> pm.Platform:
    build = pm.Platform.build("p")
    build.host("h", speeds, 4, properties=properties)
    return build.finish()


def a_link(**properties: str) -> pm.Platform:
    build = pm.Platform.build("p")
    build.host("h", "1Gf")
    build.link("l", "1GBps", properties=properties)
    return build.finish()


def power_of(platform: pm.Platform):
    return host_power(platform, platform.hosts[0])


def test_two_numbers_or_three_for_each_speed():
    found = power_of(a_host(["2f", "1f"], wattage_per_state="1:2:3, 4:5", wattage_off="0.5"))
    assert found is not None
    assert found.states == (Watts(1, 2, 3), Watts(4, 4, 5))
    assert found.off_W == 0.5


def test_exponents_signs_and_no_order():
    found = power_of(a_host(wattage_per_state="-5:2e1:+.5"))
    assert found is not None
    assert found.states == (Watts(-5, 20, 0.5),)


def test_nothing_said():
    assert power_of(a_host()) is None
    platform = a_link()
    assert link_power(platform, platform.links[0]) is None


@pytest.mark.parametrize(
    ("properties", "what"),
    [
        ({"wattage_per_state": "1:2,"}, "2 profiles for 1 speeds"),
        ({"wattage_per_state": "1"}, "neither Idle:AllCores"),
        ({"wattage_per_state": ""}, "neither Idle:AllCores"),
        ({"wattage_per_state": "1:2:3:4"}, "neither Idle:AllCores"),
        ({"wattage_per_state": "1:x"}, "'x' in '1:x' is not a number"),
        ({"wattage_per_state": "1 :2"}, "'1 ' in '1 :2' is not a number"),
        ({"wattage_per_state": "nan:2"}, "'nan'"),
        ({"wattage_per_state": "1:inf"}, "'inf'"),
        ({"wattage_per_state": "1:2e999"}, "'2e999'"),
        ({"wattage_off": "abc"}, "wattage_off: 'abc'"),
        ({"wattage_per_state": "1:2", "wattage_off": "3kW"}, "wattage_off: '3k'"),
    ],
)
def test_a_mistake_of_a_host_is_one_line(tmp_path, properties, what):
    file = tmp_path / "p.xml"
    props = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in properties.items())
    file.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1">\n<zone id="z" routing="Full">\n<host id="h" speed="1f">{props}'
        "</host></zone></platform>"
    )
    platform = pm.load_platform(file)
    with pytest.raises(pm.PlatformError, match=re.escape(what)) as caught:
        Meter(platform)
    assert str(caught.value).startswith(f"{file}:5: host 'h': wattage_")
    assert "\n" not in str(caught.value)
    (note,) = [note for note in check_platform(platform) if note.kind == "power"]
    assert what in note.text
    assert note.line == 5


def test_a_unit_of_watts_when_off():
    found = power_of(a_host(wattage_per_state="1:2", wattage_off="3W"))
    assert found is not None
    assert found.off_W == 3


def test_links():
    platform = a_link(wattage_range="1:2,3:4")
    assert link_power(platform, platform.links[0]) == (3, 4)
    platform = a_link(watt_range="1:2")
    assert link_power(platform, platform.links[0]) == (1, 2)
    assert [note.kind for note in check_platform(platform) if "watt" in note.text] == ["old power"]


@pytest.mark.parametrize("text", ["1", "1:2:3", "1:x", "x:1", "", "1:2,", "1:nan"])
def test_a_mistake_of_a_link(text):
    with pytest.raises(pm.PlatformError, match="link 'l': wattage_range"):
        Meter(a_link(wattage_range=text))


def test_nobody_says_what_it_draws():
    with pytest.raises(pm.PlatformError, match="no host or link has a power property"):
        Meter(a_link())


def test_findings_say_old_names_and_odd_orders():
    kinds = {note.kind for note in check_platform(a_host(watt_per_state="1:2"))}
    assert "old power" in kinds
    kinds = {note.kind for note in check_platform(a_host(wattage_per_state="2:1"))}
    assert "less power" in kinds


SPEEDS = ["100Mf", "50Mf", "1e-9f", "0.1f", "0.2f", "0.1f", "0.05f"]


def test_sleep_states():
    platform = a_host(SPEEDS, sleep_pstates=" 2:3:4 , 5:3:6")
    assert sleep_states(platform, platform.hosts[0]) == {2: Sleep(3, 4), 5: Sleep(3, 6)}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is not SLEEP:OFF:ON"),
        ("2:3", "is not SLEEP:OFF:ON"),
        ("2:3:4,", "is not SLEEP:OFF:ON"),
        ("2:-3:4", "is not SLEEP:OFF:ON"),
        ("2:3:x", "is not SLEEP:OFF:ON"),
        ("2:3:7", "there is no pstate 7"),
        ("2:3:3", "pstate 3 is a switch-off and a switch-on"),
        ("2:3:4,3:5:6", "pstate 3 is a switch-off and a sleep"),
        ("0:1:2,3:4:5,6:1:2", "no pstate is left to compute"),
    ],
)
def test_a_mistake_of_sleep(text, what):
    platform = a_host(SPEEDS, sleep_pstates=text)
    with pytest.raises(pm.PlatformError, match=re.escape(what)):
        sleep_states(platform, platform.hosts[0])
    assert any(what in note.text for note in check_platform(platform))


def test_switches_and_computing_need_a_speed():
    for speeds, text in ((["1f", "1f", "0f", "1f"], "1:2:3"), (["0f", "1f", "1f", "1f"], "1:2:3")):
        platform = a_host(speeds, sleep_pstates=text)
        with pytest.raises(pm.PlatformError, match="has speed 0"):
            sleep_states(platform, platform.hosts[0])


@given(st.text("0123456789.:,eE+- xnaif", max_size=30), st.text("0123456789:, -x", max_size=20))
def test_any_text_is_power_or_an_error(power, sleep):
    platform = a_host(SPEEDS[:3], wattage_per_state=power, wattage_off=power, sleep_pstates=sleep)
    assert is_fine_or_one_line(host_power, platform, platform.hosts[0])
    assert is_fine_or_one_line(sleep_states, platform, platform.hosts[0])
    platform = a_link(wattage_range=power)
    assert is_fine_or_one_line(link_power, platform, platform.links[0])


def is_fine_or_one_line(read, platform, fact) -> bool:
    try:
        read(platform, fact)
    except pm.PlatformError as error:
        return "\n" not in str(error)
    return True


@pytest.mark.parametrize(
    ("text", "cores", "watts"),
    [
        ("95:190", 4, (95, 95, 190)),
        ("95.0: 190.0", 1, (95, 95, 190)),
        # At one core of four 120 W, at all 180 W: a line that begins at 100 W.
        ("95:120:180", 4, (95, 100, 180)),
        ("95:120:180", 1, (95, 95, 180)),
    ],
)
def test_the_old_property_draws_at_one_core_and_at_all_what_it_says(text, cores, watts):
    build = pm.Platform.build("p")
    build.host("h", "1Gf", cores, properties={"watt_per_state": text, "watt_off": "9"})
    found = host_power(build.finish(), build.finish().hosts[0])
    assert found.states == (Watts(*watts),)
    assert found.off_W == 9
    if text.count(":") == 2 and cores > 1:
        _, epsilon, full = found.states[0]
        assert epsilon + (full - epsilon) / cores == 120


def test_energy_by_the_old_property_is_that_by_the_new_one_and_told():
    def joules(**properties):
        platform = a_host(**properties)
        simulation = pm.Simulation(platform)
        meter = Meter(platform)
        meter.follow(simulation)
        simulation.add(pm.Execution("h", 1e8))
        simulation.run()
        meter.count(simulation.now)
        return float(meter.hosts_J[0])

    with pytest.warns(PlatformWarning, match="watt_per_state='95:120:180' is taken for wattage"):
        old = joules(watt_per_state="95:120:180")
    assert old == joules(wattage_per_state="95:100:180")
    assert old == pytest.approx(120)  # one core of four for 1 s
