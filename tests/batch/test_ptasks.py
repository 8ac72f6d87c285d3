"""Jobs as parallel tasks: walltimes, storage, traces, contention, and SimGrid's times."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import simgrid_driver

from ptaskmodel.batch.jobs.execution import FAILED, SUCCESS, WALLTIME
from ptaskmodel.batch.loop.decisions import Resume, Suspend, Wake
from ptaskmodel.batch.loop.loop import BatchSimulation
from ptaskmodel.batch.machine.machine import machine_of
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.plan import Plan
from ptaskmodel.batch.run import new_simulation, run_batch
from ptaskmodel.batch.schedule_metrics import contention_slowdown, metrics
from ptaskmodel.batch.verifier import check_schedule
from ptaskmodel.errors import PlatformError, SimulationError
from ptaskmodel.platform import load_platform
from ptaskmodel.workload.batch_works import StagingWork, StorageWork, UsageTraceWork
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.models import JobKind, weibull
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, SequenceWork

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.jit

GRAPHENE = ROOT / "platforms" / "graphene.xml"
TINY = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Full">
    <cluster id="nodes" prefix="n" suffix="" radical="0-3" speed="100f" core="2" bw="10Bps"
             lat="0us" bb_bw="12Bps" bb_lat="0us"/>
    <zone id="disks" routing="Full">
      <host id="disk" speed="1f"><prop id="role" value="storage"/></host>
      <link id="bay" bandwidth="6Bps" latency="0us"/>
      <route src="disk" dst="disk"><link_ctn id="bay"/></route>
    </zone>
    <link id="wire" bandwidth="5Bps" latency="0us"/>
    <zoneRoute src="nodes" dst="disks" gw_src="nnodes_router" gw_dst="disk">
      <link_ctn id="wire"/>
    </zoneRoute>
  </zone>
</platform>
"""


@pytest.fixture(scope="module")
def graphene():
    return load_platform(GRAPHENE)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("tiny") / "tiny.xml"
    path.write_text(TINY)
    return load_platform(path)


def workload(*jobs):
    return Workload(tuple(jobs), {job.profile: job.work for job in jobs}, name="test")


def job(name, submit, hosts, work, walltime=None, return_code=0):
    return Job(name, float(submit), hosts, f"p{name}", work, walltime, return_code)


def ends(platform, *jobs, **options):
    options.setdefault("policy", "filler")
    options.setdefault("estimates", "walltime")
    result = run_batch(platform, workload(*jobs), BatchOptions(**options))
    check_schedule(result.schedule, result.workload.jobs)
    return {run.job.id: (run.end_s, run.state) for run in result.schedule.final}, result


def test_jobs_count_for_the_competitors_that_they_name(tiny):
    """Of the backbone of 12 B/s the first gets 3 B/s and the second, of 3 competitors, 9 B/s."""
    pair = HomogeneousWork(0.0, 30.0)
    three = replace(job("b", 0, 2, pair), competitors=3.0)
    for loop in ("compiled", "open"):
        found, result = ends(tiny, job("a", 0, 2, pair), three, loop=loop)
        assert found["b"][0] == pytest.approx(60 / 9)
        assert found["a"][0] == pytest.approx((60 + 60) / 12)
        assert result.loop == loop
    assert result.alone_s == pytest.approx([5, 5])  # 60 B at 12 B/s


def test_neighbours_slow_each_other_down(tiny):
    """Each pair alone: 100 B at 10 B/s; together they share the backbone of 12 B/s."""
    pair = HomogeneousWork(0.0, 50.0)
    found, result = ends(tiny, job("a", 0, 2, pair), job("b", 0, 2, pair))
    assert found["a"][0] == pytest.approx(200 / 12)
    assert result.alone_s == pytest.approx([100 / 12] * 2)
    assert contention_slowdown(result.schedule, result.alone_s) == pytest.approx([2, 2])
    assert metrics(result.schedule, alone_s=result.alone_s)["contention_slowdown"][
        "mean"
    ] == pytest.approx(2)


def test_who_slowed_whom_adds_up_to_what_was_lost(tiny, graphene):
    """Two pairs alike take each other's half; on Graphene the sums are the times lost."""
    pair = HomogeneousWork(0.0, 50.0)
    _, result = ends(tiny, job("a", 0, 2, pair), job("b", 5, 2, pair), neighbours=True)
    lost = {(one, other): seconds for one, other, seconds in result.neighbours}
    assert set(lost) == {("a", "b"), ("b", "a")}
    assert lost["a", "b"] == pytest.approx(lost["b", "a"])
    kinds = [JobKind(f"ft{p}", ft(p), p) for p in (8, 16, 32)]
    jobs = weibull(60, kinds, 4, shape=2, scale_s=0.02, hosts=144)
    options = BatchOptions(policy="fcfs", allocation="random", neighbours=True)
    result = run_batch(graphene, jobs, options)
    total = dict.fromkeys((run.job.id for run in result.schedule.final), 0.0)
    for one, other, seconds in result.neighbours:
        assert one != other
        assert seconds > 0
        total[one] += seconds
    for run, alone in zip(result.schedule.final, result.alone_s, strict=True):
        executed = run.end_s - run.start_s
        assert total[run.job.id] == pytest.approx(max(executed - alone, 0), abs=1e-6)


def test_a_walltime_kills_and_lets_the_others_go_faster(tiny):
    pair = HomogeneousWork(0.0, 60.0)
    found, _ = ends(tiny, job("a", 0, 2, pair), job("b", 0, 2, pair, walltime=5.0))
    assert found["b"] == (5.0, WALLTIME)
    assert found["a"] == (pytest.approx(5 + (120 - 30) / 12), SUCCESS)


def test_a_job_that_needs_exactly_its_walltime_is_killed(tiny):
    exact = HomogeneousWork(500.0, 0.0)
    found, _ = ends(
        tiny,
        job("ptask", 0, 1, exact, walltime=5.0),
        job("delay", 0, 1, DelayWork(5.0), walltime=5.0),
        job("more", 0, 1, exact, walltime=5.000001),
        job("fails", 0, 1, exact, return_code=3),
    )
    assert found == {
        "ptask": (5.0, WALLTIME),
        "delay": (5.0, WALLTIME),
        "more": (5.0, SUCCESS),
        "fails": (5.0, FAILED),
    }


def test_storage_staging_and_sequences(tiny):
    save = StorageWork(0.0, 10.0)
    found, result = ends(tiny, job("a", 0, 2, SequenceWork((HomogeneousWork(100, 0), save), 2)))
    assert result.machine.names == ("n0", "n1", "n2", "n3")
    assert found["a"][0] == pytest.approx(2 * (1 + 20 / 5))
    found, _ = ends(tiny, job("s", 3, 0, StagingWork(12.0, "pfs", "disk")))
    assert found["s"][0] == pytest.approx(3 + 12 / 6)
    on_disk, _ = ends(tiny, job("s", 0, 1, StorageWork(1.0, 1.0, "disk")))
    with pytest.warns(UserWarning, match="no storage 'tape'; its only storage, disk, is used"):
        found, _ = ends(tiny, job("s", 0, 1, StorageWork(1.0, 1.0, "tape")))
    assert found == on_disk


def test_ranks_of_a_usage_trace_do_not_wait_for_each_other(tiny):
    trace = UsageTraceWork((((1.0, 100.0), (0.5, 200.0)), ((1.0, 500.0),)))
    found, _ = ends(tiny, job("a", 0, 2, trace), job("b", 1, 2, trace, walltime=2.0))
    assert found == {"a": (pytest.approx(5), SUCCESS), "b": (3.0, WALLTIME)}
    twice = SequenceWork((trace, DelayWork(1.0)), 2)
    found, _ = ends(tiny, job("a", 0, 2, twice))
    assert found["a"][0] == pytest.approx(12)


def test_ptasks_and_delays_mix(tiny):
    found, result = ends(
        tiny,
        job("d", 0, 1, DelayWork(2.0)),
        job("p", 0, 1, HomogeneousWork(200.0, 0.0)),
        job("wait", 0.5, 4, DelayWork(1.0)),
        policy="fcfs",
    )
    assert found == {"d": (2.0, SUCCESS), "p": (2.0, SUCCESS), "wait": (3.0, SUCCESS)}
    assert result.alone_s == pytest.approx([2, 2, 1])


def test_profiles_become_delays_or_parallel_tasks(tiny):
    pair = HomogeneousWork(0.0, 50.0)
    found, _ = ends(tiny, job("a", 0, 2, pair), job("b", 0, 2, pair), profiles="delay")
    assert found["a"][0] == found["b"][0] == pytest.approx(100 / 12)
    delays = [job(name, 0, 2, DelayWork(10.0)) for name in "ab"]
    found, _ = ends(tiny, *delays, profiles="ptask", ratio=0.6)
    assert found["a"][0] == pytest.approx(20)
    found, _ = ends(tiny, delays[0], profiles="ptask", ratio=0.6)
    assert found["a"][0] == pytest.approx(10)


def test_exact_estimates_are_times_alone(tiny):
    pair = HomogeneousWork(0.0, 60.0)
    jobs = [job("x", 0, 3, pair), job("head", 1, 4, pair), job("s", 2, 1, DelayWork(1.0))]
    found, result = ends(tiny, *jobs, policy="easy", estimates="exact")
    assert found["s"][0] == 3
    assert "estimates: exact (time alone)" in result.notes
    found, _ = ends(tiny, *jobs, policy="easy", estimates="factor:0.01")
    with pytest.raises(SimulationError, match="use exact, walltime or factor"):
        ends(tiny, *jobs, estimates="factor:x")


def test_restarted_jobs_run_again_from_the_beginning(tiny):
    long = job("long", 0, 2, HomogeneousWork(10000.0, 0.0), walltime=500.0)
    short = [job(f"s{k}", 1 + k, 2, DelayWork(1.0), walltime=5.0) for k in range(3)]
    options = {"alpha": 0.5, "theta": 0}
    result = run_batch(
        tiny, workload(long, *short), BatchOptions(policy="redirection", policy_options=options)
    )
    final = {run.job.id: run for run in result.schedule.final}
    assert final["long"].ordinal == 1
    assert final["long"].start_s == 1.0
    assert final["long"].end_s == pytest.approx(101)
    check_schedule(result.schedule, result.workload.jobs)


def ft(hosts, n=256**3):
    """One iteration of NAS FT on a cube of n complex values."""
    return HomogeneousWork(5 * n * math.log2(n) / hosts, 16 * n / hosts**2)


def test_contiguity_matters_with_ptasks_and_not_with_delays(graphene):
    kinds = [JobKind(f"ft{p}", ft(p), p) for p in (8, 16, 32)]
    jobs = weibull(150, kinds, 4, shape=2, scale_s=0.02, hosts=144)
    means = {}
    for profiles in ("as-given", "delay"):
        for allocation in ("random", "contiguous-best-effort"):
            options = BatchOptions(
                policy="fcfs",
                allocation=allocation,
                profiles=profiles,
                estimates="walltime",
                contention=False,
            )
            result = run_batch(graphene, jobs, options)
            times = metrics(result.schedule)["execution_s"]
            means[profiles, allocation] = times["mean"]
    assert means["delay", "random"] == pytest.approx(means["delay", "contiguous-best-effort"])
    assert means["as-given", "random"] > 1.2 * means["as-given", "contiguous-best-effort"]


@pytest.mark.simgrid
@pytest.mark.skipif(not simgrid_driver.available(), reason="SimGrid is not installed")
def test_execution_times_are_simgrids(graphene):
    """With the fair bottleneck solver: SimGrid's bmf gives up on these systems."""
    kinds = [JobKind(f"ft{p}", ft(p), p) for p in (4, 8, 16)]
    jobs = weibull(40, kinds, 2, shape=2, scale_s=0.3, hosts=144)
    options = BatchOptions(policy="fcfs", allocation="random", solver="fairbottleneck")
    result = run_batch(graphene, jobs, options)
    tasks = []
    for run in result.schedule.final:
        hosts = [result.machine.names[k] for k in list(run.hosts)]
        work, n = run.job.work, len(hosts)
        flows = [(i, j, work.bytes) for i in range(n) for j in range(n) if i != j]
        tasks.append(
            {
                "id": f"t{run.job.id}",
                "start": run.start_s,
                "hosts": hosts,
                "flops": [work.flops] * n,
                "flows": flows,
            }
        )
    scenario = {"platform_path": str(GRAPHENE), "tasks": tasks, "observer": hosts[0]}
    times = simgrid_driver.run(scenario, timeout_s=60.0)
    theirs = np.array([times[task["id"]][1] - task["start"] for task in tasks])
    ours = np.array([run.end_s - run.start_s for run in result.schedule.final])
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert ours.max() > 1.5 * min(result.alone_s)


def test_hosts_with_roles_run_no_jobs(tiny, tmp_path):
    assert machine_of(tiny).facts.storages == {"disk": "disk", "pfs": "disk"}
    named = machine_of(tiny, {"fast": "n3"})
    assert named.names == ("n0", "n1", "n2")
    assert named.facts.storages["fast"] == "n3"
    with pytest.raises(SimulationError, match="no host is left"):
        machine_of(tiny, {f"s{k}": f"n{k}" for k in range(4)})


def test_switches_come_from_the_platform(graphene):
    switches = machine_of(graphene).switches()
    assert [below.bit_count() for below in switches] == [39, 35, 30, 40]


def test_the_workloads_of_batsim_run(shared_data):
    platform = load_platform(shared_data / "platforms" / "batsim_cluster512_pfs.xml")
    for path in sorted((shared_data / "workloads").glob("*.json")):
        source = read_workload(path)
        result = run_batch(platform, source, BatchOptions())
        check_schedule(result.schedule, source.jobs)
        assert len(result.schedule.final) == len(source.jobs)


def test_usage_traces_take_the_time_that_batsim_expects(shared_data, tmp_path):
    """On two hosts of 100 flop/s and two of 50: the times that Batsim's own tests expect."""
    path = tmp_path / "uneven.xml"
    fast, slow = (
        f'<cluster id="{name}" prefix="{name}" suffix="" radical="0-1" speed="{speed}f" bw="1Bps" '
        'lat="0us"/>'
        for name, speed in (("fast", 100), ("slow", 50))
    )
    path.write_text(
        f'<platform version="4.1"><zone id="all" routing="Full">{fast}{slow}</zone></platform>'
    )
    source = shared_data / "workloads" / "test_usage_trace.json"
    result = run_batch(load_platform(path), read_workload(source), BatchOptions(policy="fcfs"))
    jobs = {str(fields["id"]): fields for fields in json.loads(source.read_text())["jobs"]}
    for run in result.schedule.final:
        took = run.end_s - run.start_s
        expected = jobs[run.job.id]
        assert took == pytest.approx(expected["expected_execution_time"]), run.job.id
        assert run.state == expected["expected_state"]


def engine(platform, *jobs, **more):
    """A simulation of jobs as parallel tasks, to be stepped."""
    options = BatchOptions(policy="filler", estimates="walltime", **more)
    plan = Plan(machine_of(platform), workload(*jobs), options)
    return new_simulation(plan, plan.machine)


def test_a_suspended_job_gives_its_part_to_the_others(tiny):
    """Two pairs share 12 B/s; while one is suspended the other has them all."""
    pair = HomogeneousWork(0.0, 60.0)
    a, b = job("a", 0, 2, pair), job("b", 0, 2, pair, walltime=12.0)

    class Pausing:
        def decide(self, view):
            yield from view.queue
            if view.now == 0:
                yield Wake(5.0)
                yield Wake(8.0)
            elif view.now == 5:
                yield Suspend(b)
            elif view.now == 8:
                yield Resume(b)

    plan = Plan(machine_of(tiny), workload(a, b), BatchOptions(estimates="walltime"))
    simulation = BatchSimulation(
        [a, b], 4, Pausing(), execution=plan.execution, estimate=plan.estimate
    )
    schedule = simulation.run()
    # Of the 120 B of a, 30 are through at 5 s, 66 at 8 s, 108 when b is killed at 15 s.
    found = {x.job.id: (x.end_s, x.state) for x in schedule.final}
    assert found["a"] == (pytest.approx(16.0), SUCCESS)
    # b's walltime of 12 s, of which 5 are gone, goes on at 8 s
    assert found["b"] == (15.0, WALLTIME)
    check_schedule(schedule, [a, b])


def test_jobs_that_share_a_host_contend_on_its_network_card(tiny):
    """Each on one core of two hosts: alone 50 B at 10 B/s a direction, together half of it."""
    pair = HomogeneousWork(0.0, 50.0)
    alone, _ = ends(tiny, replace(job("a", 0, 2, pair), cores=1), contention=False)
    jobs = [replace(job(name, 0, 2, pair), cores=1) for name in "ab"]
    result = run_batch(tiny, workload(*jobs), BatchOptions(policy="filler", estimates="walltime"))
    check_schedule(result.schedule, jobs, machine_of(tiny).capacities)
    assert [str(x.hosts) for x in result.schedule.final] == ["0-1", "0-1"]
    assert [x.end_s for x in result.schedule.final] == [pytest.approx(2 * alone["a"][0])] * 2
    assert result.alone_s == pytest.approx([alone["a"][0]] * 2)


def test_a_job_on_cores_has_a_rank_on_each(tiny):
    found, _ = ends(tiny, job("a", 0, 1, HomogeneousWork(500.0, 0.0)))
    shared = replace(job("b", 0, 1, HomogeneousWork(500.0, 0.0)), cores=2)
    result = run_batch(tiny, workload(shared), BatchOptions(policy="filler"))
    assert result.schedule.final[0].ranks == [0, 0]
    assert result.schedule.final[0].end_s == pytest.approx(found["a"][0])


TRACED = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Full">
    <host id="a" speed="100f" core="4" {file}="t.txt">
      <prop id="memory" value="2kB"/><prop id="resources" value="{resources}"/>
    </host>
    <host id="b" speed="100f" core="4"><prop id="memory" value="2kB"/></host>
    <link id="l" bandwidth="100Bps" latency="0us"/>
    <route src="a" dst="b"><link_ctn id="l"/></route>
  </zone>
</platform>
"""


def traced(tmp_path, file, events, resources="gpu:2, nvme"):
    """Hosts a and b, the first with an availability trace."""
    (tmp_path / "t.txt").write_text(events)
    path = tmp_path / "traced.xml"
    path.write_text(TRACED.format(file=file, resources=resources))
    return load_platform(path)


def test_times_alone_are_those_from_the_start_of_the_job(tmp_path):
    """The speed of host a halves at 100 s: alone, a job takes what it takes from its own start."""
    platform = traced(tmp_path, "speed_file", "0 1\n100 0.5\n")
    long = HomogeneousWork(15000.0, 0.0)
    one, two = job("one", 0, 1, long), job("two", 0, 1, long)
    _, result = ends(platform, one, two)
    assert [x.end_s - x.start_s for x in result.schedule.final] == pytest.approx([200, 150])
    assert result.alone_s == pytest.approx([200, 150])
    late = job("late", 200, 1, long)
    _, result = ends(platform, one, late)
    assert result.alone_s == pytest.approx([200, 300])


def test_no_ptask_starts_on_a_host_that_is_down(tmp_path):
    """Host a is off from 10 s on: the job on it fails, the others run on b, one after the other."""
    platform = traced(tmp_path, "state_file", "10 0\n100 1\n")
    work = HomogeneousWork(1500.0, 0.0)
    jobs = [job(f"j{k}", 0, 1, work) for k in range(6)]
    delays = [job(f"d{k}", 0, 1, DelayWork(15.0)) for k in range(6)]
    for kind in (jobs, delays):
        found, result = ends(platform, *kind, policy="fcfs")
        assert [found[j.id] for j in kind] == [
            (10.0, FAILED),
            *((pytest.approx(15.0 * (k + 1)), SUCCESS) for k in range(5)),
        ]
        assert result.schedule.final[0].reason == "host 0 went down"
    found, result = ends(platform, *jobs[:2], policy="fcfs", on_failure="requeue")
    assert [x.ordinal for x in result.schedule.final] == [1, 0]
    assert found["j0"] == (pytest.approx(30.0), SUCCESS)


def test_ptask_hosts_fail_and_change_their_speed_by_hand(tiny):
    work = HomogeneousWork(1000.0, 0.0)
    simulation = engine(tiny, job("a", 0, 2, work), job("b", 0, 2, work), job("c", 1, 2, work))
    simulation.advance_to(2.0)
    simulation.fail(0)
    schedule = simulation.run()
    found = {x.job.id: (x.end_s, x.state) for x in schedule.final}
    assert found == {"a": (2.0, FAILED), "b": (10.0, SUCCESS), "c": (20.0, SUCCESS)}
    assert schedule.final[0].reason == "host 0 went down"


def test_stepping_and_stopping_change_no_bit_of_ptasks(graphene):
    kinds = [JobKind(f"ft{p}", ft(p), p) for p in (8, 16, 32)]
    jobs = weibull(60, kinds, 4, shape=2, scale_s=0.02, hosts=144).jobs
    options = BatchOptions(policy="easy", allocation="random", estimates="walltime")
    whole = run_batch(graphene, workload(*jobs), options).schedule
    plan = Plan(machine_of(graphene), workload(*jobs), options)
    cut = new_simulation(plan, plan.machine)
    date = 0.0
    while cut.next_event_s() is not None:
        date += 0.0371
        cut.advance_to(date)
    rows = [
        [(x.job.id, x.start_s, x.end_s, x.mask) for x in schedule.attempts]
        for schedule in (whole, cut.schedule())
    ]
    assert rows[0] == rows[1]


def test_hosts_say_what_they_have(tmp_path):
    platform = traced(tmp_path, "state_file", "0 1\n")
    a, b = machine_of(platform).capacities
    assert (a.cores, a.memory_B, dict(a.resources)) == (4, 2000.0, {"gpu": 2, "nvme": 1})
    assert (b.memory_B, dict(b.resources)) == (2000.0, {})
    for value in ("gpu:x", ":2"):
        with pytest.raises(PlatformError, match="host 'a': property resources"):
            machine_of(traced(tmp_path, "state_file", "0 1\n", value))


def test_walltimes_are_enforced_ignored_or_extended(tiny):
    jobs = [
        job("delay", 0, 1, DelayWork(10.0), walltime=5.0),
        job("ptask", 0, 1, HomogeneousWork(1000.0, 0.0), walltime=5.0),
        job("exact", 0, 1, DelayWork(5.0), walltime=5.0),
    ]
    killed, result = ends(tiny, *jobs)
    assert set(killed.values()) == {(5.0, WALLTIME)}
    assert any("2 jobs run past their walltime" in note for note in result.notes)
    for kind in ("ignore", "extend"):
        found, result = ends(tiny, *jobs, walltimes=kind)
        assert found == {
            "delay": (10.0, SUCCESS),
            "ptask": (pytest.approx(10.0), SUCCESS),
            "exact": (5.0, SUCCESS),
        }
    assert result.workload.jobs[0].walltime_s == pytest.approx(10.0)
    with pytest.raises(SimulationError, match="walltimes 'none'"):
        ends(tiny, *jobs, walltimes="none")


def test_a_run_can_be_stopped_at_a_date(tiny):
    ten = DelayWork(10.0)
    jobs = [job("a", 0, 4, ten), job("b", 1, 4, ten), job("c", 9, 1, ten)]
    options = BatchOptions(policy="fcfs", until_s=5.0)
    result = run_batch(tiny, workload(*jobs), options)
    assert [x.state for x in result.schedule.final] == ["RUNNING", "WAITING"]
    assert result.notes[-1] == "stopped at 5 s: 1 job running, 1 waiting, 1 still to be submitted"
