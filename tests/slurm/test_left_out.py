"""What is left out for speed changes nothing: idle turns, and answers that are known."""

import random
from math import inf

import pytest
from slurm.small_clusters import CORES, FOUR, LINEAR, conf_of, job

from ptaskmodel.slurm import loop
from ptaskmodel.slurm.conf.phases import drawn
from ptaskmodel.slurm.conf.reservations import Reservation, Reserved
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.request import Command
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.slurm.scheduling import main, steady
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


def told(conf, jobs, seed=0, **more):
    watch = Watch(explained=[jobs[-1].id])
    run = simulate_slurm(conf, jobs, phases=drawn(seed), watch=watch, **more)
    starts = [(one.start_s, one.end_s, one.allocation, one.by) for one in run.jobs]
    seen = watch.events, watch.cycles, watch.reasons, watch.stories
    return starts, seen, run.loop.statistics


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("reserves", [False, True])
def test_turns_of_an_idle_controller(tmp_path, monkeypatch, seed, reserves):
    kind = LINEAR if seed == 0 else LINEAR.replace("basic", "multifactor") + DATABASE
    dates = 0, 10, DAY_S + 3.7, DAY_S + 50, DAY_S + 700.2, 3 * DAY_S, 3 * DAY_S + 1
    jobs = [job(f"j{k}", date, 300 + k, 20, nodes=2) for k, date in enumerate(dates)]
    conf = conf_of(tmp_path, kind + FOUR)
    begins = (500, 5000), (DAY_S // 10, 600), (6000, 700), (2 * DAY_S + 30, 900)
    more = {
        "reserved": Reserved(
            [Reservation(f"r{k}", since, since + lasts, 0b0111) for k, (since, lasts) in
             enumerate(begins)]
        )
    } if reserves else {}  # fmt: skip
    quick, (events, *seen), counts = told(conf, jobs, seed, **more)
    assert sum(event.who == "main" for event in events) < 800  # of 4,300 minutes
    monkeypatch.setattr(loop, "IDLE_S", inf)
    slow, (all_events, *all_seen), all_counts = told(conf, jobs, seed, **more)
    assert (slow, all_seen, all_counts) == (quick, seen, counts)
    passes = [event for event in all_events if event.what == "full queue"]
    assert len(passes) > 4000
    assert [each for each in events if each.what != "full queue"] == [
        each for each in all_events if each.what != "full queue"
    ]
    assert set(passes) >= {each for each in events if each.what == "full queue"}


def test_idle_years_are_no_work(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "PROGRESS_EVERY", 1)
    steps = []
    conf = conf_of(tmp_path, LINEAR + FOUR)
    jobs = [job("a", 0, 300, 20, nodes=2), job("b", 10 * 365 * DAY_S, 300, 20, nodes=2)]
    simulate_slurm(conf, jobs, progress=lambda *state: steps.append(state))
    assert len(steps) < 300


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


@pytest.mark.parametrize("seed", range(4))
def test_starts_where_the_number_of_idle_nodes_decides(tmp_path, monkeypatch, seed):
    draw = random.Random(seed)
    text = LINEAR.replace("basic", "multifactor") + DATABASE if seed % 2 else LINEAR
    text += "SchedulerParameters=default_queue_depth=6\nSlurmdTimeout=60\n"
    text += "NodeName=n[1-30] CPUs=8\nPartitionName=p Nodes=ALL Default=YES MaxTime=60\n"
    jobs = []
    for k in range(140):
        date = 15 * k * draw.random()
        more = {"nodelist": ("n3",)} if draw.random() < 0.05 else {}
        if draw.random() < 0.15:
            what = draw.choice(["hold", "requeue", "cancel"])
            more["commands"] = (Command(date + 400, what), Command(date + 700, "release"))
        nodes = draw.choice([1, 2, 3, 5, 8, 13, 21, 29, (2, 6)])
        limit = draw.choice([5, 20, 40, 90])
        jobs.append(job(f"j{k}", date, draw.randint(1, 1500), limit, nodes=nodes, **more))
    fails = {"n4": [(300.0, False), (2500.0, True)], "n9": [(900.0, False), (9000.0, True)]}
    conf, failures = conf_of(tmp_path, text), fails if seed in (0, 3) else None
    looks, look = [], steady.SteadyStarts.start
    monkeypatch.setattr(
        steady.SteadyStarts,
        "start",
        lambda self, entries, *rest, **more: (
            looks.append((len(entries), left := look(self, entries, *rest, **more))) or left
        ),
    )
    quick = told(conf, jobs, seed, failures=failures)
    settled = [count for count, left in looks if count and not left]
    assert len(settled) > 100
    monkeypatch.setattr(main, "is_steady", lambda controller: False)
    monkeypatch.setattr(main, "repeats", lambda controller: False)
    assert told(conf, jobs, seed, failures=failures) == quick
    assert len(quick[1][0]) > 400
