"""A real Slurm decides: its schedules repeat to the byte, and are those of recorded runs."""

from __future__ import annotations

import csv

import pytest
from real_slurm import CORES, dates, lines, needs_slurm, ran, written

from ptaskmodel.platform import load_platform
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.event_log import hostlist
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.live import LiveOptions
from ptaskmodel.slurm.live.cluster import Failure
from ptaskmodel.slurm.run import simulate_slurm

pytestmark = needs_slurm

# Jobs, and how many GPUs each wants; each of four nodes has two.
GPUS = list(zip("abcdefgh", (1, 2, 1, 2, 2, 1, 2, 1), strict=True))
NODES = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="1-4" speed="1Gf" bw="100MBps" lat="0us"
           bb_bw="100MBps" bb_lat="0us"/>
</platform>
"""


# The largest gap between a start here and in the first recorded run that a study has found, s.
@pytest.mark.parametrize(("name", "gap_s"), [("gangcores", 1), ("memory", 1), ("requeue", 10)])
def test_a_recorded_workload_starts_when_and_where_it_did(shared_data, name, gap_s):
    place = shared_data / "slurm" / name
    run = ran(place / "slurm.conf", place / "jobs.csv")
    assert run.stopped is None
    with (place / "run1.csv").open(newline="") as file:
        recorded = {row["id"]: row for row in csv.DictReader(file)}
    assert {job.id for job in run.jobs} == set(recorded)
    for job in run.jobs:
        row = recorded[job.id]
        assert job.state == row["state"]
        assert abs(job.start_s - run.phases.t0 - int(row["start"])) <= gap_s
        assert hostlist(run.nodes.names_of(job.allocation.nodes)) == row["nodelist"]


def test_a_run_repeats_to_the_byte_and_shortcuts_change_nothing(tmp_path):
    jobs = "id,submit,nodes,cores,limit,run,extra\na,0,,6,300,50,--array=0-5%2\nb,9,4,,300,70,\n"
    files = written(tmp_path, jobs, CORES)
    first = ran(*files)
    assert lines(ran(*files)) == lines(first)
    assert lines(ran(*files, options=LiveOptions(express=False))) == lines(first)
    assert {job.state for job in first.jobs} == {"COMPLETED"}
    assert [job.allocation.cpus for job in first.jobs][:2] == [(4, 2), (2, 4)]


def test_of_jobs_killed_at_one_check_the_first_is_gone_first(tmp_path):
    # The next job starts on the node of the first, whatever that is; the others find all clean.
    killed = "".join(f"k{node},0,,4,1,600,-w n{node}\n" for node in (3, 1, 4, 2))
    waiting = "".join(f"w{k},5,,4,60,70,\n" for k in range(4))
    conf, file = written(
        tmp_path, "id,submit,nodes,cores,limit,run,extra\n" + killed + waiting, CORES
    )
    live = ran(conf, file)
    simulated = simulate_slurm(read_conf(conf), read_submissions(file, read_conf(conf)).jobs,
                               phases=live.phases)  # fmt: skip
    where = [
        [run.nodes.names_of(job.allocation.nodes) for job in run.jobs] for run in (live, simulated)
    ]
    assert where[0][4] == ["n3"]
    assert where[0] == where[1]


def test_jobs_feel_each_other(tmp_path):
    # Each pair sends 2 GB over the backbone of 100 MB/s: 20 s alone, 40 s beside the other.
    (tmp_path / "nodes.xml").write_text(NODES)
    workload = """{"nb_res": 4, "jobs": [
      {"id": "a", "subtime": 0.5, "res": 2, "walltime": 600, "profile": "p"},
      {"id": "b", "subtime": 0.5, "res": 2, "walltime": 600, "profile": "p"}],
      "profiles": {"p": {"type": "parallel", "cpu": [0, 0], "com": [0, 2e9, 0, 0]}}}"""
    conf, _ = written(tmp_path, "")
    file = tmp_path / "jobs.json"
    file.write_text(workload)
    run = ran(conf, file, platform=load_platform(tmp_path / "nodes.xml"))
    assert run.stopped is None
    assert dates(run) == {"a": (1, 41), "b": (1, 41)}


def test_who_finds_no_gpu_waits_in_both(tmp_path):
    jobs = "id,submit,nodes,cores,limit,run,extra\n" + "".join(
        f"{name},{k},,1,600,60,--gres=gpu:{count}\n" for k, (name, count) in enumerate(GPUS)
    )
    conf, file = written(tmp_path, jobs, CORES)
    conf.write_text(conf.read_text().replace("RealMemory=1000", "RealMemory=1000 Gres=gpu:2"))
    live = ran(conf, file)
    assert live.stopped is None
    facts = read_conf(conf)
    ours = simulate_slurm(facts, read_submissions(file, facts).jobs, phases=live.phases)
    assert [job.start_s for job in ours.jobs] == [job.start_s for job in live.jobs]
    assert live.jobs[-1].start_s - live.jobs[0].start_s >= 60


def test_a_job_is_killed_at_its_limit_and_one_that_cannot_start_waits(tmp_path):
    jobs = "id,submit,nodes,cores,limit,run\nlong,0,1,,60,1000\nlarge,5,9,,60,10\n"
    run = ran(*written(tmp_path, jobs))
    assert [job.state for job in run.jobs] == ["TIMEOUT", "PENDING"]
    start, end = dates(run)["long"]
    assert 60 <= end - start <= 91
    assert run.jobs[1].reason == "PartitionNodeLimit"


def test_a_node_and_the_controller_die_and_no_job_is_lost(tmp_path):
    jobs = "id,submit,nodes,cores,limit,run\na,0,2,,1200,300\nb,0,2,,1200,400\nc,10,4,,1200,100\n"
    failures = (
        Failure(50, "n1", "dies"),
        Failure(200, "slurmctld", "restarts"),
        Failure(420, "n1", "starts"),
    )
    run = ran(*written(tmp_path, jobs), options=LiveOptions(failures=failures))
    assert run.stopped is None
    assert {job.id: (job.state, job.restarts) for job in run.jobs} == {
        "a": ("COMPLETED", 1),
        "b": ("COMPLETED", 0),
        "c": ("COMPLETED", 0),
    }
    assert any(event.what == "requeue" for event in run.events)
    start, end = dates(run)["a"]
    assert start >= 401
    assert end - start == 300
