"""Backfill cycles by the kernel are those of Python, job by job, and so are their counts."""

import random

import pytest
from batch.slurm.small_clusters import LINEAR, conf_of, job

from ptaskmodel.batch.slurm.nodes import nodes_of
from ptaskmodel.batch.slurm.phases import Phases
from ptaskmodel.batch.slurm.quick_cycle import suits
from ptaskmodel.batch.slurm.run import simulate

TWO = """NodeName=n[1-70] CPUs=4
PartitionName=p Nodes=n[1-50] Default=YES
PartitionName=q Nodes=n[30-70] PriorityTier=2
"""


@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_makes_the_same_cycles(tmp_path, seed):
    draw = random.Random(seed)
    options = "SchedulerParameters=bf_max_job_test=30,bf_window=200,bf_node_space_size=25\n"
    conf = conf_of(tmp_path, ("" if seed == 0 else options) + LINEAR + TWO)
    assert suits(conf, nodes_of(conf))
    jobs = []
    for k in range(110):
        limit = draw.randint(1, 60)
        run_s = limit * 60 * draw.random() * 1.1
        nodes = draw.choice([1, 1, 2, 3, 5, 8, 13, 21, 34])
        where = draw.choice([(), ("q",)])
        date = 20 * k * draw.random()
        jobs.append(job(f"j{k}", date, run_s, limit, nodes=nodes, partitions=where))
    found = [
        simulate(conf, jobs, phases=Phases(boot_s=-41.0), compiled=compiled)
        for compiled in (False, True)
    ]
    slow, quick = (
        [(one.id, one.start_s, one.end_s, one.allocation, one.by) for one in each.jobs]
        for each in found
    )
    assert slow == quick
    assert found[0].loop.statistics == found[1].loop.statistics
    assert found[0].loop.statistics.tested > 200
