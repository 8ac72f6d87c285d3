"""The free hosts against a plain set, in both of their forms."""

from __future__ import annotations

import random

import pytest

from ptaskmodel.batch.machine import host_sets
from ptaskmodel.batch.machine.host_sets import FreeHosts


@pytest.mark.parametrize(("num_hosts", "rounds"), [(1, 5), (7, 40), (70, 20), (5000, 4)])
def test_free_hosts_are_a_set_that_gives_its_lowest(num_hosts, rounds):
    draw = random.Random(num_hosts)
    for _ in range(rounds):
        free, expected = FreeHosts(num_hosts), set(range(num_hosts))
        away = []
        for _ in range(80):
            kind = draw.random()
            if kind < 0.5:
                count = min(len(expected), draw.randint(0, len(expected) // 3 + 1))
                placement = free.take_lowest(count)
                taken = set(host_sets.members(placement))
                assert taken == set(sorted(expected)[:count])
                expected -= taken
                away.append((placement, taken))
            elif kind < 0.6 and expected:
                taken = set(draw.sample(sorted(expected), draw.randint(1, len(expected))))
                placement = host_sets.of_hosts(taken)
                free.take(placement if draw.random() < 0.5 else host_sets.flat_runs(placement))
                expected -= taken
                away.append((placement, taken))
            elif away:
                placement, taken = away.pop(draw.randrange(len(away)))
                free.give(placement)
                expected |= taken
            assert free.count == len(expected)
            if draw.random() < 0.3:
                assert free.mask == host_sets.of_hosts(expected)
            if draw.random() < 0.3:
                assert host_sets.members(free.runs) == sorted(expected)


@pytest.mark.parametrize("num_hosts", [70, 6000])
def test_runs_and_masks_are_the_same_placement(num_hosts):
    draw = random.Random(num_hosts)
    for share in (0.0, 0.02, 0.5, 0.98, 1.0):
        hosts = {k for k in range(num_hosts) if draw.random() < share}
        mask = host_sets.of_hosts(hosts)
        flat = host_sets.flat_runs(mask)
        assert host_sets.mask_of(flat, num_hosts) == host_sets.mask_of(flat) == mask
        assert host_sets.members(flat) == host_sets.members(mask) == sorted(hosts)
        assert host_sets.text(flat) == host_sets.text(mask)
        for host in (0, num_hosts // 2, num_hosts - 1):
            assert host_sets.holds(flat, host) == host_sets.holds(mask, host) == (host in hosts)
