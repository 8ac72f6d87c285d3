"""Several controllers on one platform: they decide alone, and their jobs share the links."""

import csv
import json
import random
from dataclasses import replace

import pytest
from slurm.small_clusters import LINEAR, conf_of

from ptaskmodel.cli import main
from ptaskmodel.platform import load_platform
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import execution_on, parts_of, simulate_slurm, simulate_together

TWO = """NodeName=n[1-8] CPUs=1
PartitionName=a Nodes=n[1-4] Default=YES
PartitionName=b Nodes=n[5-8]
"""
# Two clusters with a backbone each, and one whose backbone all share.
APART = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Full">
    <cluster id="c" prefix="n" suffix="" radical="1-4" speed="1Gf" bw="1GBps" lat="0us"
     bb_bw="10MBps" bb_lat="0us"/>
    <cluster id="d" prefix="n" suffix="" radical="5-8" speed="1Gf" bw="1GBps" lat="0us"
     bb_bw="10MBps" bb_lat="0us"/>
  </zone>
</platform>
"""
SHARED = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="1-8" speed="1Gf" bw="1GBps" lat="0us"
   bb_bw="10MBps" bb_lat="0us"/>
</platform>
"""
PHASES = Phases(boot_s=-45.0)


def platform(tmp_path, text):
    path = tmp_path / "platform.xml"
    path.write_text(text)
    return load_platform(path)


def requests(tmp_path, conf, sizes):
    """Jobs of two nodes that send so much, B, now in one partition and now in the other."""
    profiles = {
        f"p{k}": {"type": "parallel", "cpu": [0, 0], "com": [0, size, 0, 0]}
        for k, size in enumerate(sizes)
    }
    jobs = [
        {"id": f"j{k}", "subtime": 0.5 + k // 2, "res": 2, "walltime": 3600, "profile": f"p{k}"}
        for k in range(len(sizes))
    ]
    file = tmp_path / "w.json"
    file.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    found = read_submissions(file, conf).jobs
    return [replace(job, partitions=("ab"[k % 2],)) for k, job in enumerate(found)]


def dates(runs):
    return {job.id: (job.start_s, job.end_s, job.state) for run in runs for job in run.jobs}


def together(conf, jobs, on):
    parts, _ = parts_of(conf, jobs, 2)
    execution = execution_on(on, conf)
    watches = [Watch(), Watch()]
    given = {"phases": PHASES, "compiled": True}
    return parts, simulate_together(conf, parts, execution, watches, **given)


def test_on_hosts_and_links_of_their_own_they_run_as_if_alone(tmp_path):
    conf, draw = conf_of(tmp_path, LINEAR + TWO), random.Random(1)
    on = platform(tmp_path, APART)
    sizes = [draw.uniform(1e8, 2e9) for _ in range(40)]
    parts, runs = together(conf, requests(tmp_path, conf, sizes), on)
    alone = [
        simulate_slurm(part.conf, part.jobs, phases=PHASES, execution=execution_on(on, part.conf))
        for part in parts
    ]
    assert dates(runs) == dates(alone)
    assert len({job.start_s for run in runs for job in run.jobs}) > 10


# 1 GB over 10 MB/s: 100 s alone, 200 s beside the other.
@pytest.mark.parametrize(("text", "lasts_s"), [(APART, 100), (SHARED, 200)])
def test_where_they_share_a_link_their_jobs_feel_each_other(tmp_path, text, lasts_s):
    conf = conf_of(tmp_path, LINEAR + TWO)
    jobs = requests(tmp_path, conf, [1e9, 1e9])
    _, runs = together(conf, jobs, platform(tmp_path, text))
    assert {end - start for start, end, _ in dates(runs).values()} == {lasts_s}
    masks = [run.jobs[0].attempt.mask for run in runs]
    assert masks == [0b11, 0b110000]


def test_the_command_writes_what_it_does_with_one_controller(tmp_path, capsys):
    conf_of(tmp_path, LINEAR + TWO)
    platform(tmp_path, SHARED)
    (tmp_path / "jobs.csv").write_text(
        "id,submit,nodes,cores,limit,run,partition\na,0,4,,600,100,a\nb,0,4,,600,100,b\n"
        "c,5,2,,600,50,b\n"
    )
    arguments = [str(tmp_path / name) for name in ("slurm.conf", "jobs.csv")]
    arguments += ["--platform", str(tmp_path / "platform.xml"), "--profiles", "ptask"]
    for count in ("1", "2"):
        out = tmp_path / count
        assert main(["slurm", *arguments, "--controllers", count, "-o", str(out)]) == 0
    names = [sorted(file.name for file in (tmp_path / count).iterdir()) for count in "12"]
    assert names[0] == names[1]
    with (tmp_path / "2" / "jobs.csv").open(newline="") as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    assert {name: row["controller"] for name, row in rows.items()} == {"a": "1", "b": "2", "c": "2"}
    assert {name: row["nodes"] for name, row in rows.items()} == {
        "a": "n[1-4]",
        "b": "n[5-8]",
        "c": "n[5-6]",
    }
    assert all(float(row["time_alone"]) > 0 for row in rows.values())
