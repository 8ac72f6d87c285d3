"""Parallel tasks through the compiled loop: the schedules and times alone of the open one."""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf

import pytest
from platform_text import HEADER

from ptaskmodel.batch import BatchOptions, Job, run_batch
from ptaskmodel.batch.machine.machine import machine_of
from ptaskmodel.batch.plan import Plan
from ptaskmodel.batch.run import compiled_batch_of
from ptaskmodel.batch.schedule_metrics import load, metrics
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform import load_platform
from ptaskmodel.results.tables.batch import write_schedule
from ptaskmodel.workload.jobs import Workload, sorted_jobs
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, ParallelWork, SequenceWork

CLUSTERS = {
    "fat tree": '<cluster id="c" prefix="h" suffix="" radical="0-15" speed="10f" core="2" '
    'bw="12Bps" lat="20ms" topology="FAT_TREE" topo_parameters="2;4,4;1,2;1,1"/>',
    "backbone": '<cluster id="c" prefix="h" suffix="" radical="0-15" speed="10f" '
    'bw="12Bps" lat="0s" bb_bw="30Bps" bb_lat="1s"/>',
}
OTHERS = (
    {},
    {"solver": "fairbottleneck"},
    {"solver": "maxmin", "count": "pair"},
    {"count": "flow", "walltimes": "ignore"},
    {"estimates": "factor:0.5", "order": "sjf"},
    {"walltimes": "ignore", "until_s": 120.0},
)


@pytest.fixture(scope="module")
def platforms(tmp_path_factory):
    found = {}
    for name, text in CLUSTERS.items():
        path = tmp_path_factory.mktemp("platform") / "cluster.xml"
        path.write_text(f"{HEADER}{text}</platform>")
        found[name] = load_platform(path)
    return found


def random_work(draw, count):
    """Computing or sending much or little, or nothing."""
    flops, size = draw.choice((0.0, draw.uniform(1, 900))), draw.choice((0.0, draw.uniform(1, 200)))
    if draw.random() < 0.7:
        return HomogeneousWork(flops, size, draw.random() < 0.5)
    flows = {(draw.randrange(count), draw.randrange(count)): size + 1 for _ in range(4)}
    each = [draw.uniform(1, 900) for _ in range(count)]
    return ParallelWork.of(count, each, flows=[(a, b, w) for (a, b), w in flows.items()])


def random_workload(seed, jobs=60):
    draw, made = random.Random(seed), []
    for k in range(jobs):
        count = draw.choice((1, 2, 2, 3, draw.randint(1, 16)))
        date = float(draw.choice((draw.randrange(40), draw.randrange(600))))
        walltime = draw.choice((5.0, 60.0, 400.0, draw.uniform(1, 200)))
        work = random_work(draw, count)
        code = int(draw.random() < 0.1)
        made.append(Job(str(k), date, count, "p", work, walltime, return_code=code))
    return Workload(tuple(sorted_jobs(made)), {str(k): job.work for k, job in enumerate(made)})


def said(result):
    """All that a result says."""
    schedule = result.schedule
    final, every = (
        [
            (
                *(a.job.id, a.start_s, a.end_s, a.expected_end_s, a.state, a.number, a.mask),
                *(a.ordinal, a.part_done),
            )
            for a in attempts
        ]
        for attempts in (schedule.final, schedule.attempts)
    )
    return final, every, schedule.events, schedule.now_s, result.alone_s, result.notes


def both(platform, workload, **options):
    made = [
        run_batch(platform, workload, BatchOptions(loop=loop, **options))
        for loop in ("compiled", "open")
    ]
    return made, [result.loop for result in made]


@pytest.mark.jit
@pytest.mark.parametrize("others", OTHERS, ids=str)
@pytest.mark.parametrize("policy", ["easy", "fcfs", "filler", "conservative"])
def test_random_workloads(platforms, policy, others):
    for seed, platform in enumerate(platforms.values()):
        asked = {"policy": policy, **others}
        if policy == "conservative":
            asked.pop("order", None)
        results, loops = both(platform, random_workload(f"{policy}{others}{seed}"), **asked)
        assert loops == ["compiled", "open"]
        assert repr(said(results[0])) == repr(said(results[1]))


@pytest.mark.jit
def test_jobs_may_count_for_as_many_competitors_as_they_say(platforms):
    draw = random.Random(5)
    for seed, platform in enumerate(platforms.values()):
        workload = random_workload(seed, jobs=50)
        said_by_jobs = [
            replace(job, competitors=draw.choice((None, 0.4, 1.0, 7.5))) for job in workload.jobs
        ]
        workload = replace(workload, jobs=tuple(said_by_jobs))
        results, loops = both(platform, workload, policy="easy")
        assert loops == ["compiled", "open"]
        assert repr(said(results[0])) == repr(said(results[1]))


def test_few_jobs(platforms):
    results, loops = both(platforms["backbone"], random_workload(1, jobs=8))
    assert loops == ["compiled", "open"]
    assert repr(said(results[0])) == repr(said(results[1]))


@pytest.mark.parametrize("until_s", [None, 90.0])
def test_files_and_metrics(platforms, tmp_path, until_s):
    texts, figures = [], []
    workload = random_workload(2, jobs=12)
    for result in both(platforms["fat tree"], workload, policy="fcfs", until_s=until_s)[0]:
        names = {"workload_name": "w0", "host_names": result.machine.names, "version": "1"}
        used = load(result.schedule)
        more = {"simulation_s": 0.0, "alone_s": result.alone_s}
        write_schedule(tmp_path, result.schedule, used, **names, **more)
        texts.append((tmp_path / "jobs.csv").read_bytes())
        figures.append(metrics(result.schedule, alone_s=result.alone_s))
    assert texts[0] == texts[1]
    assert repr(figures[0]) == repr(figures[1])


def test_what_is_for_the_open_loop(platforms):
    platform = platforms["fat tree"]
    machine = machine_of(platform)

    def compiled(work, hosts=2, **options):
        job = Job("0", 0.0, hosts, "p", work, 100.0)
        workload = Workload((job,), {"p": work})
        plan = Plan(machine, workload, BatchOptions(loop="compiled", **options))
        return compiled_batch_of(plan, machine) is not None

    work = HomogeneousWork(10.0, 1.0)
    assert compiled(work)
    assert not compiled(SequenceWork((work, work)))
    assert not compiled(SequenceWork((work, DelayWork(1.0))))
    assert not compiled(work, allocation="spread")
    assert not compiled(work, policy="redirection", policy_options={"alpha": 0.5, "theta": 1.0})
    assert not compiled(work, neighbours=True)
    assert not compiled(HomogeneousWork(10.0, 0.0), hosts=1, network_model="LV08")


def test_hosts_that_something_turns_off_are_for_the_open_loop(platforms):
    traced = CLUSTERS["backbone"]
    path = platforms["backbone"].path.parent / "traced.xml"
    host = '<host id="z" speed="1f"><prop id="role" value="storage"/></host>'
    zone = f'<zone id="w" routing="Full">{traced}<zone id="e" routing="Full">{host}</zone></zone>'
    trace = '<trace id="t" periodicity="0">5 0.5</trace><trace_connect trace="t" element="z"/>'
    path.write_text(f"{HEADER}{zone}{trace}</platform>")
    platform = load_platform(path)
    workload = random_workload(3, jobs=5)
    result = run_batch(platform, workload, BatchOptions(loop="compiled"))
    assert result.loop == "open"


def test_a_job_that_never_ends_is_said_by_the_open_loop(platforms):
    platform = load_platform_with_dead_links(platforms)
    work = HomogeneousWork(10.0, 10.0)
    workload = Workload((Job("x", 0.0, 4, "p", work, 9.0),), {"p": work})
    options = BatchOptions(loop="compiled", walltimes="ignore", contention=False)
    with pytest.raises(SimulationError, match="'x' can never end"):
        run_batch(platform, workload, options)


def load_platform_with_dead_links(platforms):
    path = platforms["backbone"].path.parent / "dead.xml"
    path.write_text(f"{HEADER}{CLUSTERS['backbone'].replace('30Bps', '0Bps')}</platform>")
    return load_platform(path)


def test_no_job_at_all(platforms):
    work = HomogeneousWork(1.0, 0.0)
    plan = Plan(
        machine_of(platforms["fat tree"]),
        Workload((Job("0", 5.0, 1, "p", work, 9.0),), {"p": work}),
        BatchOptions(loop="compiled", until_s=2.0),
    )
    batch = compiled_batch_of(plan, plan.machine)
    schedule = batch.run(2.0)
    assert (len(schedule.final), schedule.now_s) == (0, 2.0)
    assert batch.run(inf) is not None
