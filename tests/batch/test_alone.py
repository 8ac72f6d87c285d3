"""Times alone by formula, against simulations of one job alone from date 0 on."""

from __future__ import annotations

import random

import pytest
from platform_text import HEADER

from ptaskmodel.batch import Attempt, Job, machine_of
from ptaskmodel.batch.jobs.isolated import AloneTimes
from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution
from ptaskmodel.platform import load_platform
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.works import HomogeneousWork, ParallelWork, SequenceWork, Work

CLUSTERS = {
    "fat tree": '<cluster id="c" prefix="h" suffix="" radical="0-15" speed="100Gf" core="2" '
    'bw="1.25GBps" lat="20us" topology="FAT_TREE" topo_parameters="2;4,4;1,2;1,1"/>',
    "backbone": '<cluster id="c" prefix="h" suffix="" radical="0-15" speed="3Gf" bw="125MBps" '
    'lat="50us" bb_bw="1GBps" bb_lat="1ms"/>',
    "window": '<cluster id="c" prefix="h" suffix="" radical="0-15" speed="1Gf" bw="1GBps" '
    'lat="100ms" bb_bw="1GBps" bb_lat="1ms" bb_sharing_policy="FATPIPE"/>',
}


def random_work(draw: random.Random, count: int) -> Work:
    """Computing or sending much or little."""
    flops = draw.choice((0.0, draw.uniform(1, 1e12)))
    if draw.random() < 0.5:
        return HomogeneousWork(flops, draw.choice((0.0, draw.uniform(1.0, 1e10))))
    flows = [
        (draw.randrange(count), draw.randrange(count), draw.uniform(1.0, 1e10)) for _ in range(5)
    ]
    unique = {(a, b): size for a, b, size in flows if a != b}
    return ParallelWork.of(
        count,
        [draw.uniform(1, 1e12) for _ in range(count)],
        flows=[(a, b, size) for (a, b), size in unique.items()],
    )


def simulated(machine, job, hosts, solver):
    execution = PtaskExecution(machine, Simulation(machine.platform, solver=solver), False)
    execution.start(Attempt(job, hosts, 0.0, 1e99, 0), 0.0)
    return execution.advance(float("inf"))[0]


@pytest.mark.jit
@pytest.mark.parametrize("solver", ["bmf", "fairbottleneck"])
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_times_alone_are_those_of_a_simulation_alone(tmp_path, cluster, solver):
    path = tmp_path / "platform.xml"
    path.write_text(f"{HEADER}{CLUSTERS[cluster]}</platform>")
    machine = machine_of(load_platform(path))
    draw = random.Random(cluster)
    attempts = []
    for number in range(40):
        count = draw.randint(1, 6)
        hosts = sum(1 << host for host in draw.sample(range(16), count))
        work = random_work(draw, count)
        if number % 10 == 9:
            work = SequenceWork([work, work], 2)
        elif number % 10 == 4:
            work = SequenceWork([work])
        attempts.append(Attempt(Job(f"j{number}", 0.0, count, "p", work), hosts, 0.0, 1e99, number))
    alone = AloneTimes(machine, lambda: Simulation(machine.platform, solver=solver))
    for attempt, time_s in zip(attempts, alone.of_attempts(attempts), strict=True):
        expected = simulated(machine, attempt.job, attempt.placement, solver)
        if len(attempt.job.work.one_round()) == 1:
            assert time_s == expected
        else:  # a difference of dates
            assert time_s == pytest.approx(expected, rel=1e-12)
