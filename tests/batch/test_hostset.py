"""Sets of hosts, allocations and calendars against their obvious definitions."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.batch.allocations.rules import (
    Contiguous,
    FewestSwitches,
    FirstFit,
    Random,
    Spread,
)
from ptaskmodel.batch.machine import host_sets
from ptaskmodel.batch.machine.capacity import HostCounts, HostSpace, PlaceCalendar
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork

SETS = st.sets(st.integers(0, 70), min_size=1)


@given(SETS)
def test_a_set_of_hosts_is_its_members(hosts):
    mask = host_sets.of_hosts(hosts)
    assert host_sets.members(mask) == sorted(hosts)
    assert host_sets.parse(host_sets.text(mask)) == mask
    for count in range(1, len(hosts) + 1):
        assert host_sets.members(host_sets.lowest(mask, count)) == sorted(hosts)[:count]


@given(SETS, st.integers(1, 12))
def test_the_first_contiguous_run_is_found(hosts, count):
    fitting = [h for h in sorted(hosts) if all(h + k in hosts for k in range(count))]
    found = host_sets.contiguous(host_sets.of_hosts(hosts), count)
    if fitting:
        assert host_sets.members(found) == list(range(fitting[0], fitting[0] + count))
    else:
        assert found is None


@pytest.mark.parametrize("text", ["x", "3-1", "1-", "-2"])
def test_malformed_sets_are_refused(text):
    with pytest.raises(WorkloadError):
        host_sets.parse(text)


@given(SETS, st.data())
def test_allocations_give_free_hosts_of_the_right_number(hosts, data):
    free = host_sets.of_hosts(hosts)
    count = data.draw(st.integers(1, len(hosts)))
    switches = [host_sets.first_hosts(8) << (8 * k) for k in range(9)]
    for allocation in (
        FirstFit(),
        Contiguous(strict=False),
        Random(1),
        Spread(),
        FewestSwitches(switches),
    ):
        chosen = allocation.choose(count, free)
        assert chosen & ~free == 0
        assert chosen.bit_count() == count
    chosen = Contiguous().choose(count, free)
    assert chosen is None or len(list(host_sets.runs(chosen))) == 1


def test_what_each_allocation_prefers():
    free = host_sets.parse("0-1 3-6 8 10-19")
    assert host_sets.text(FirstFit().choose(5, free)) == "0-1 3-5"
    assert host_sets.text(Contiguous().choose(5, free)) == "10-14"
    assert Contiguous().choose(11, free) is None
    assert host_sets.text(Contiguous(strict=False).choose(11, free)) == "3 10-19"
    assert host_sets.text(Spread().choose(2, host_sets.first_hosts(10))) == "0 5"
    assert Random(7).choose(5, free) == Random(7).choose(5, free)
    switches = [host_sets.parse(t) for t in ("0-4", "5-9", "10-19")]
    assert host_sets.text(FewestSwitches(switches).choose(3, free)) == "5-6 8"
    assert host_sets.text(FewestSwitches(switches).choose(12, free)) == "5-6 10-19"


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8), st.integers(1, 4)), max_size=12),
    st.integers(1, 4),
    st.integers(1, 9),
)
def test_calendars_find_the_first_date(spans, count, duration):
    counts = HostCounts(0.0, 4)
    calendar = PlaceCalendar(0.0, HostSpace(4), 0b1111, lambda n, free: host_sets.lowest(free, n))
    used = []
    for begin, length, hosts in spans:
        load = max(sum(h for b, e, h in used if b <= t < e) for t in range(begin, begin + length))
        if load + hosts <= 4:
            used.append((begin, begin + length, hosts))
            counts.take(begin, begin + length, hosts)
    expected = next(
        t
        for t in range(60)
        if all(
            sum(h for b, e, h in used if b <= m < e) + count <= 4 for m in range(t, t + duration)
        )
    )
    assert counts.earliest(count, duration)[0] == expected
    assert counts.earliest(5, 1)[0] == inf
    for begin, end, hosts in used:
        counts.give(begin, end, hosts)
    assert (counts.times, counts.free) == ([0.0], [4])
    some, all_ = (Job("j", 0.0, n, "p", DelayWork(1.0)) for n in (count, 4))
    date, place = calendar.earliest(some, duration)
    calendar.take(date, date + duration, some, place)
    assert calendar.earliest(all_, duration)[0] == duration
    calendar.give(date, date + duration, some, place)
    assert (calendar.times, calendar.free) == ([0.0], [0b1111])


def test_many_hosts_make_the_set_that_few_at_a_time_make():
    many = [3 * k + 1 for k in range(2 * host_sets.MANY_HOSTS)][::-1]
    one_by_one = 0
    for host in many:
        one_by_one |= 1 << host
    assert host_sets.of_hosts(many) == host_sets.of_hosts(iter(many)) == one_by_one
    with pytest.raises(ValueError):
        host_sets.of_hosts([*many, -1])
