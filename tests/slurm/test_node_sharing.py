"""Jobs on one node share its cores, its memory link and its network card, as the platform says."""

from dataclasses import replace

import pytest
from slurm.small_clusters import CORES, LINEAR, conf_of, job, run

from ptaskmodel.errors import SlurmError
from ptaskmodel.platform import load_platform
from ptaskmodel.slurm.jobs.request import Submissions
from ptaskmodel.slurm.jobs.submissions import with_profiles
from ptaskmodel.slurm.run import alone_s, execution_on, machine_for
from ptaskmodel.workload.works import HomogeneousWork, ParallelWork

# Two nodes of 4 cores of 1 Gflop/s, a memory link of 10 GB/s and a card of 1 GB/s each.
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="c" routing="Full">
    <host id="n1" speed="1Gf" core="4"/>
    <host id="n2" speed="1Gf" core="4"/>
    <link id="memory1" bandwidth="10GBps" latency="0us"/>
    <link id="memory2" bandwidth="10GBps" latency="0us"/>
    <link id="card1" bandwidth="1GBps" latency="0us"/>
    <link id="card2" bandwidth="1GBps" latency="0us"/>
    <route src="n1" dst="n1"><link_ctn id="memory1"/></route>
    <route src="n2" dst="n2"><link_ctn id="memory2"/></route>
    <route src="n1" dst="n2"><link_ctn id="card1"/><link_ctn id="card2"/></route>
  </zone>
</platform>
"""
NODES = "NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL Default=YES OverSubscribe={}\n"
COMPUTES = HomogeneousWork(10e9, 0.0)


@pytest.fixture
def platform(tmp_path):
    (tmp_path / "platform.xml").write_text(PLATFORM)
    return load_platform(tmp_path / "platform.xml")


def lasted(tmp_path, platform, works, select=CORES, share="NO"):
    """How long each job runs beside the others, and alone; jobs are (tasks, work, options)."""
    conf = conf_of(tmp_path, select + NODES.format(share))
    jobs = [
        replace(job(f"j{k}", 0.5, 1, 60, tasks=tasks, **options), work=work)
        for k, (tasks, work, options) in enumerate(works)
    ]
    execution = execution_on(platform, conf)
    _, records = run(conf, jobs, execution=execution)
    attempts = [record.attempt for record in records.values()]
    times = [attempt.end_s - attempt.start_s for attempt in attempts]
    return times, alone_s(execution, attempts)


def to_memory(flops, bytes_each, ranks=2):
    """Each rank computes, and moves bytes between its core and memory meanwhile."""
    return ParallelWork.of(ranks, [flops] * ranks, flows=[(k, k, bytes_each) for k in range(ranks)])


def test_jobs_on_cores_of_their_own_do_not_slow_each_other(tmp_path, platform):
    times, alone = lasted(tmp_path, platform, [(2, COMPUTES, {}), (2, COMPUTES, {})])
    assert times == pytest.approx([10, 10])
    assert alone == pytest.approx([10, 10])


def test_jobs_on_the_same_cores_take_twice_as_long(tmp_path, platform):
    works = [(8, COMPUTES, {}), (8, COMPUTES, {})]
    times, alone = lasted(tmp_path, platform, works, share="FORCE:2")
    assert times == pytest.approx([20, 20])
    assert alone == pytest.approx([10, 10])


@pytest.mark.parametrize(("bytes_each", "slowdown"), [(20e9, 1.0), (25e9, 1.0), (40e9, 1.6)])
def test_the_memory_of_a_node_is_shared_by_its_jobs(tmp_path, platform, bytes_each, slowdown):
    # In 10 s four ranks ask for 4 * bytes of a link that moves 100 GB.
    works = [(2, to_memory(10e9, bytes_each), {})] * 2
    times, alone = lasted(tmp_path, platform, works)
    assert alone == pytest.approx([10, 10])
    assert times == pytest.approx([10 * slowdown] * 2)


def test_who_leaves_memory_alone_is_not_slowed_by_who_does_not(tmp_path, platform):
    works = [(2, to_memory(10e9, 50e9), {}), (2, COMPUTES, {})]
    times, _ = lasted(tmp_path, platform, works)
    assert times == pytest.approx([10, 10])


def test_the_card_of_a_node_is_shared_by_its_jobs(tmp_path, platform):
    sends = ParallelWork.of(2, [0.0, 0.0], flows=[(0, 1, 10e9)])
    works = [(2, sends, {"nodes": 2})] * 2
    times, alone = lasted(tmp_path, platform, works)
    assert times == pytest.approx([20, 20])
    assert alone == pytest.approx([10, 10])


def test_a_job_of_whole_nodes_has_a_rank_on_each(tmp_path, platform):
    sends = ParallelWork.of(2, [10e9, 10e9], flows=[(0, 1, 5e9)])
    for select in (CORES, LINEAR):
        times, _ = lasted(tmp_path, platform, [(None, sends, {"nodes": 2})], select)
        assert times == pytest.approx([10])


@pytest.mark.parametrize("select", [CORES, LINEAR])
def test_tasks_fill_the_first_nodes(tmp_path, platform, select):
    # Four of the ranks are on n1, one on n2: what rank 0 sends to the last one crosses the cards.
    sends = ParallelWork.of(5, [0.0] * 5, flows=[(0, 1, 10e9), (0, 4, 10e9)])
    times, _ = lasted(tmp_path, platform, [(5, sends, {})], select)
    assert times == pytest.approx([10])


def test_delays_become_tasks_that_last_as_long_alone(tmp_path, platform):
    conf = conf_of(tmp_path, CORES + NODES.format("NO"))
    jobs = (job("tasks", 0.5, 100, 60, tasks=8), job("nodes", 0.5, 100, 60, nodes=2))
    machine = machine_for(platform, conf)
    for kind, ratio in (("ptask", 0.0), ("ptask", 0.5), ("smpi", 0.0)):
        made = with_profiles(Submissions(jobs), kind, machine, ratio=ratio, pattern="ring")
        execution = execution_on(platform, conf)
        _, records = run(conf, made.jobs, execution=execution)
        times = [r.attempt.end_s - r.attempt.start_s for r in records.values()]
        assert times == pytest.approx([100, 100]), kind
    assert with_profiles(Submissions(jobs), "as-given", machine).jobs == jobs
    with pytest.raises(SlurmError, match="profiles 'x'"):
        with_profiles(Submissions(jobs), "x", machine)
