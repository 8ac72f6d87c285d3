"""What is left out for speed changes nothing: idle turns, and answers that are known."""

import random
from math import inf

import pytest
from slurm.small_clusters import CORES, FOUR, LINEAR, conf_of, job

from ptaskmodel.slurm import loop
from ptaskmodel.slurm.conf.phases import drawn
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.slurm.select import plugin

DAY_S = 86_400
DATABASE = """AccountingStorageType=accounting_storage/slurmdbd
PriorityWeightFairshare=1000
PriorityWeightAge=1000
"""
SHARED = """NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=4
PartitionName=p Nodes=ALL Default=YES
PartitionName=q Nodes=n[2-4] PriorityTier=2 OverSubscribe=FORCE:2
"""


def told(conf, jobs, seed=0):
    watch = Watch(explained=[jobs[-1].id])
    run = simulate_slurm(conf, jobs, phases=drawn(seed), watch=watch)
    starts = [(one.start_s, one.end_s, one.allocation, one.by) for one in run.jobs]
    seen = watch.events, watch.cycles, watch.reasons, watch.stories
    return starts, seen, run.loop.statistics


@pytest.mark.parametrize("seed", [0, 3])
def test_turns_of_an_idle_controller(tmp_path, monkeypatch, seed):
    kind = LINEAR if seed == 0 else LINEAR.replace("basic", "multifactor") + DATABASE
    dates = 0, 10, DAY_S + 3.7, DAY_S + 50, DAY_S + 700.2, 3 * DAY_S, 3 * DAY_S + 1
    jobs = [job(f"j{k}", date, 300 + k, 20, nodes=2) for k, date in enumerate(dates)]
    conf = conf_of(tmp_path, kind + FOUR)
    quick = told(conf, jobs, seed)
    monkeypatch.setattr(loop, "IDLE_S", inf)
    assert told(conf, jobs, seed) == quick


@pytest.mark.parametrize("select", [CORES, LINEAR])
def test_answers_that_are_known(tmp_path, monkeypatch, select):
    draw = random.Random(7)
    size = "tasks" if select == CORES else "nodes"
    jobs = [
        job(
            f"j{k}",
            30 * k * draw.random(),
            draw.randint(1, 900),
            draw.randint(5, 40),
            partitions=draw.choice([(), ("q",)]),
            **{size: draw.randint(1, 20 if select == CORES else 3)},
        )
        for k in range(70)
    ]
    conf = conf_of(tmp_path, select + SHARED)
    quick = told(conf, jobs)
    monkeypatch.setattr(plugin.Answers, "_known", lambda _, kept, need, within, ask: ask())
    assert told(conf, jobs) == quick
