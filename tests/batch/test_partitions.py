"""Partitions: which is chosen, what a job holds, and files that define them."""

from __future__ import annotations

import random

import pytest

from ptaskmodel.batch import BatchSimulation, Easy, HostSet, check_policy, metrics
from ptaskmodel.batch.allocations import allocation_by_name
from ptaskmodel.batch.allocations.rules import Partitions, buddy, from_file, intrepid
from ptaskmodel.batch.machine.host_sets import first_hosts, text
from ptaskmodel.batch.policies.backfilling import Conservative
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork


def job(name, submit, hosts, duration, walltime=None, **more):
    return Job(
        name, float(submit), hosts, "d", DelayWork(float(duration)), walltime or duration, **more
    )


@pytest.mark.parametrize(
    ("free", "places"),
    [
        ("11101111", {1: "5", 2: "6-7", 3: "0-3", 4: "0-3"}),
        ("11000011", {1: "0", 2: "0-1", 4: None}),
        ("11111110", {1: "1", 2: "2-3", 4: "4-7"}),
        ("10110111", {1: "2", 2: "0-1", 4: None}),
    ],
)
def test_the_partition_that_blocks_least(free, places):
    """Free hosts as bits, host 7 left."""
    for count, expected in places.items():
        found = buddy(8).choose(count, int(free, 2))
        assert (None if found is None else text(found)) == expected


def test_the_choice_is_the_one_of_the_definition():
    draw = random.Random(1)
    for _ in range(300):
        size = draw.randint(1, 12)
        catalogue = {draw.getrandbits(size) for _ in range(draw.randint(1, 12))} - {0}
        free, count = draw.getrandbits(size), draw.randint(1, size)
        if not catalogue:
            continue
        sizes = sorted({mask.bit_count() for mask in catalogue if mask.bit_count() >= count})
        inside = [mask for mask in catalogue if not mask & ~free]
        fitting = [mask for mask in inside if sizes and mask.bit_count() == sizes[0]]
        score = {
            mask: sum(o.bit_count() > mask.bit_count() and not mask & ~o for o in inside)
            for mask in fitting
        }
        best = min(fitting, key=lambda m: (score[m], (m & -m), m), default=None)
        assert Partitions(catalogue).choose(count, free) == best


def test_what_a_job_asks_for_and_what_it_holds():
    simulation = BatchSimulation([job("a", 0, 3, 10)], 8, Easy(), allocation=buddy(8))
    schedule = simulation.run()
    (attempt,) = schedule.attempts
    assert attempt.hosts == HostSet.of([0, 1, 2, 3])
    assert attempt.ranks == [0, 1, 2]
    found = metrics(schedule)
    assert found["utilisation"] == 4 / 8
    assert found["per_processor_bounded_slowdown"]["max"] == 1


@pytest.mark.parametrize("policy", [Easy, Conservative])
def test_backfilling_keeps_its_promises_on_partitions(policy):
    promise = "head" if policy is Easy else "none"
    check_policy(policy, promise=promise, make_allocation=lambda: buddy(8), workloads=20)


def test_intrepid():
    machine = intrepid(80)
    assert [machine.held(count) for count in (1, 3, 9, 17, 33, 65)] == [1, 4, 16, 32, 64, 80]
    assert machine.choose(64, first_hosts(80)) == first_hosts(64)
    assert machine.choose(20, first_hosts(80) & ~1) == first_hosts(32) << 32
    assert machine.choose(16, first_hosts(80)) == first_hosts(16) << 64
    with pytest.raises(SimulationError, match="80 midplanes, one host each, and the machine 144"):
        intrepid(144)


def test_a_machine_that_is_no_power_of_two():
    machine = buddy(6)
    assert [machine.held(count) for count in (1, 3, 5)] == [1, 4, 6]
    assert machine.choose(2, first_hosts(6)) == 0b110000
    with pytest.raises(SimulationError, match="8192 hosts at most"):
        buddy(100_000)


def test_partitions_of_a_file(tmp_path):
    path = tmp_path / "parts.txt"
    path.write_text("# two halves, and all\n0-3\n4,5 6-7 # the second\n\n0-7\n")
    machine = allocation_by_name(f"partitions:{path}", num_hosts=8)
    assert [machine.choose(count, first_hosts(8)) for count in (0, 1, 5)] == [0, 15, 255]
    assert machine.choose(2, 0b11111110) == 0b11110000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no partition in it"),
        ("0-3\n0-8\n", "parts.txt:2: host 8: the machine has hosts 0 to 7"),
        ("one\n", "parts.txt:1: 'one' is no host list"),
        ("3-1\n", "parts.txt:1: '3-1': 3-1 runs backwards"),
        ("0-99999999999999999999\n", "host 99999999999999999999"),
        ("-1\n", "parts.txt:1"),
    ],
)
def test_a_file_that_is_none_of_partitions(tmp_path, content, message):
    path = tmp_path / "parts.txt"
    path.write_text(content)
    with pytest.raises(SimulationError, match=message):
        from_file(path, 8)


def test_jobs_that_no_partition_holds():
    with pytest.raises(SimulationError, match="largest partition of 'partitions' has 2"):
        Partitions([0b11]).check([job("a", 0, 3, 1)])
    with pytest.raises(SimulationError, match="asks for more than whole hosts"):
        buddy(4).check([job("a", 0, 1, 1, cores=2)])
    with pytest.raises(SimulationError, match="has no partition"):
        Partitions([])
