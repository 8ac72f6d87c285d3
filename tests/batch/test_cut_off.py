"""Jobs that are cut off: how much contention slowed them, by what they had done until then."""

from __future__ import annotations

import csv
import json
from math import isnan

import pytest

from ptaskmodel.batch.jobs.execution import KILLED, WALLTIME
from ptaskmodel.batch.loop.decisions import Kill, Start, Wake
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.run import run_batch
from ptaskmodel.batch.schedule_metrics import contention_slowdown, metrics
from ptaskmodel.cli import main
from ptaskmodel.platform import FatTree, Platform
from ptaskmodel.results.loading import load_results
from ptaskmodel.results.pictures.waiting import slowdown_figure
from ptaskmodel.runs.batch import batch_into
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, SequenceWork

pytestmark = pytest.mark.jit


def job(name, work, walltime=None, hosts=2, submit=0.0):
    return Job(name, submit, hosts, f"p{name}", work, walltime)


def run(platform, *jobs, **options):
    made = Workload(jobs, {each.profile: each.work for each in jobs}, name="test")
    asked = {"policy": "filler", "estimates": "walltime", **options}
    return run_batch(platform, made, BatchOptions(**asked))


def slowdown_of(result):
    found = contention_slowdown(result.schedule, result.alone_s).tolist()
    return dict(zip((each.job.id for each in result.schedule.ended()), found, strict=True))


PAIR = HomogeneousWork(0.0, 60.0)  # 120 B over the backbone: alone 10 s


@pytest.mark.parametrize("loop", ["open", "compiled"])
def test_a_job_that_is_killed_was_slowed_as_the_one_beside_it(cluster, loop):
    """Two share the backbone: by 15 s each has sent 90 of 120 B, which takes 7.5 s alone."""
    result = run(cluster, job("a", PAIR), job("b", PAIR, walltime=15.0), loop=loop)
    assert result.loop == loop
    assert [each.state for each in result.schedule.final][1] == WALLTIME
    # The other sends its last 30 B alone: 17.5 s instead of 10.
    assert slowdown_of(result) == pytest.approx({"a": 1.75, "b": 2.0})
    found = metrics(result.schedule, alone_s=result.alone_s)
    assert found["contention_slowdown"]["mean"] == pytest.approx(1.875)
    assert found["contention_slowdown_jobs"] == {"known": 2, "of": 2}
    assert found["killed_only_by_neighbours"] == 1


def test_what_a_walltime_cuts_off_without_neighbours_is_not_slowed(cluster):
    result = run(
        cluster,
        job("sends", PAIR, walltime=4.0),
        job("rests", DelayWork(20.0), walltime=5.0),
        job("exact", HomogeneousWork(1000.0, 0.0), walltime=10.0, submit=30.0),
    )
    assert slowdown_of(result) == pytest.approx({"sends": 1.0, "rests": 1.0, "exact": 1.0})
    assert metrics(result.schedule, alone_s=result.alone_s)["killed_only_by_neighbours"] == 0


def test_the_stages_of_a_sequence_count_by_what_they_take_alone(cluster):
    """5 s of computing, then 60 B in 5 s, twice; killed in the second transfer, at 3 s of it."""
    round_ = (HomogeneousWork(500.0, 0.0), HomogeneousWork(0.0, 30.0))
    work = SequenceWork(round_, repeat=2)
    result = run(cluster, job("a", work, walltime=18.0))
    (attempt,) = result.schedule.final
    assert attempt.done == pytest.approx(18 / 20)
    assert slowdown_of(result) == pytest.approx({"a": 1.0})


def test_within_a_delay_it_is_not_known_how_far_a_sequence_is(cluster):
    work = SequenceWork((HomogeneousWork(500.0, 0.0), DelayWork(5.0)))
    result = run(cluster, job("a", work, walltime=7.0))
    assert isnan(slowdown_of(result)["a"])
    found = metrics(result.schedule, alone_s=result.alone_s)
    assert found["contention_slowdown"]["mean"] is None
    assert found["contention_slowdown_jobs"] == {"known": 0, "of": 1}


class KillsAt15:
    """Starts all at once, and kills job b at 15 s."""

    def decide(self, view):
        for each in view.queue:
            yield Start(each)
        if view.now < 15.0:
            yield Wake(15.0)
        for attempt in view.running if view.now == 15.0 else ():
            if attempt.job.id == "b":
                yield Kill(attempt.job)


def test_who_slowed_a_job_that_a_failure_or_a_walltime_cut_off_adds_up(cluster, tmp_path):
    jobs = (job("a", PAIR), job("b", PAIR, walltime=15.0))
    result = run(cluster, *jobs, neighbours=True)
    assert {(one, other): lost for one, other, lost in result.neighbours} == pytest.approx(
        {("a", "b"): 7.5, ("b", "a"): 7.5}
    )
    path = tmp_path / "failures.csv"
    path.write_text("date,resource,event\n12,n3,down\n")
    result = run(cluster, *jobs, neighbours=True, failures=path)
    assert slowdown_of(result) == pytest.approx({"a": 1.6, "b": 2.0})
    assert {(one, other): lost for one, other, lost in result.neighbours} == pytest.approx(
        {("a", "b"): 6.0, ("b", "a"): 6.0}
    )


@pytest.mark.parametrize("begun", [False, True])
def test_checkpoints_are_neither_work_nor_contention(cluster, tmp_path, begun):
    """10 s of computing with a checkpoint of 1 s every 4 s; what was kept is not done again."""
    options = {"checkpoint": {"interval": 4.0, "write": 1.0}}
    if begun:
        (tmp_path / "f.csv").write_text(
            "date,resource,event\n7,n0,down\n7,n2,down\n8,n0,up\n8,n2,up\n"
        )
        options |= {"failures": tmp_path / "f.csv", "on_failure": "requeue"}
    jobs = (job("computes", HomogeneousWork(1000.0, 0.0)), job("rests", DelayWork(10.0)))
    result = run(cluster, *jobs, **options)
    assert slowdown_of(result) == pytest.approx({"computes": 1.0, "rests": 1.0})
    found = metrics(result.schedule, alone_s=result.alone_s)
    assert found["checkpoint_host_s"] == pytest.approx(2 * 2 * 2)


def fat_tree():
    tree = FatTree((4, 4), (1, 1), (1, 1))
    build = Platform.build("world")
    build.cluster("t", tree, prefix="n", speed=1e9, bandwidth=1.25e9, latency=1e-5)
    return build.finish()


def crowd():
    """Jobs of 1 to 8 hosts, one every 100 s, whose walltimes are half as long again as alone."""
    jobs, state = [], 7
    for k in range(60):
        state = (state * 1103515245 + 12345) % 2**31
        hosts = 2 ** (state // 65536 % 4)
        state = (state * 1103515245 + 12345) % 2**31
        time_s = 100.0 + state // 65536 % 1000
        jobs.append(Job(str(k), 100.0 * k, hosts, f"d{k}", DelayWork(time_s), 1.5 * time_s))
    return Workload(tuple(jobs), {each.profile: each.work for each in jobs}, name="crowd")


def test_allocations_in_order_of_what_they_cost(tmp_path):
    """Of the jobs that end, those under random look best: the slow ones are killed."""
    platform, found = fat_tree(), {}
    for allocation in ("contiguous", "first-fit", "random"):
        options = BatchOptions(allocation=allocation, profiles="ptask", neighbours=True)
        made = batch_into(tmp_path / allocation, platform, crowd(), options)
        found[allocation] = made.summary
    means = {name: summary["contention_slowdown"]["mean"] for name, summary in found.items()}
    assert means["contiguous"] < means["first-fit"] < means["random"]
    killed = found["random"]["killed_only_by_neighbours"]
    assert 0 < killed <= found["random"]["jobs"]["killed_at_walltime"]
    text = f"killed at walltime, {killed} of them only because of neighbours"
    assert any(text in each["text"] for each in found["random"]["remarks"])

    place = tmp_path / "random"
    with (place / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    known = [float(row["contention_slowdown"]) for row in rows]
    assert sum(known) / len(known) == pytest.approx(means["random"])
    with (place / "neighbours.csv").open(newline="") as file:
        slowed = {row["job_id"] for row in csv.DictReader(file)}
    cut = {row["job_id"] for row in rows if row["final_state"] == WALLTIME}
    assert {row["job_id"] for row in rows if float(row["contention_slowdown"]) > 1} == slowed
    assert cut & slowed
    with (place / "classes.csv").open(newline="") as file:
        classes = list(csv.DictReader(file))
    for kind in ("size", "length", "user"):
        assert sum(int(row["killed"]) for row in classes if row["kind"] == kind) == len(cut)

    (axes,) = slowdown_figure(load_results(place)).axes
    assert axes.get_title("left").endswith(f"mean {means['random']:.3g}")
    dashed = next(line for line in axes.lines if "killed" in str(line.get_label()))
    assert len(dashed.get_xdata()) == len(cut) + 1
    assert dashed.get_linestyle() == "--"


def test_slurm_counts_what_its_limits_cut_off(tmp_path, capsys):
    """Two jobs share the backbone beyond their limit of a minute; alone each takes 50 s."""
    (tmp_path / "p.xml").write_text(
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3" speed="100f" '
        'bw="10Bps" lat="0us" bb_bw="12Bps" bb_lat="0us"/></platform>'
    )
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/linear\nNodeName=n[0-3] CPUs=1\nPartitionName=p Nodes=ALL Default=YES\n"
    )
    work = {"type": "parallel_homogeneous", "cpu": 0.0, "com": 300.0}
    jobs = [
        {"id": name, "subtime": 0.0, "res": 2, "profile": "w", "walltime": 60.0} for name in "ab"
    ]
    document = {"nb_res": 4, "jobs": jobs, "profiles": {"w": work}}
    (tmp_path / "w.json").write_text(json.dumps(document))
    files = [str(tmp_path / name) for name in ("slurm.conf", "w.json")]
    out = tmp_path / "out"
    assert main(["slurm", *files, "--platform", str(tmp_path / "p.xml"), "-o", str(out)]) == 0
    found = json.loads((out / "summary.json").read_text())
    assert found["jobs"]["TIMEOUT"] == 2
    assert found["contention_slowdown"]["mean"] == pytest.approx(2.0)
    assert [task.slowdown for task in load_results(out).tasks] == pytest.approx([2.0, 2.0])
    assert "2 of 2 jobs were killed at walltime" in capsys.readouterr().out


def test_a_job_that_a_policy_kills_was_slowed_too(cluster, monkeypatch):
    monkeypatch.setattr("ptaskmodel.batch.run._policy_of", lambda plan: KillsAt15())
    result = run(cluster, job("a", PAIR), job("b", PAIR))
    assert [each.state for each in result.schedule.final][1] == KILLED
    assert slowdown_of(result)["b"] == pytest.approx(2.0)
