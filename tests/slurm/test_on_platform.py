"""Jobs under Slurm that share a platform: slowed by neighbours, and killed at their limits."""

import json
import re

import pytest
from slurm.small_clusters import LINEAR, conf_of

from ptaskmodel.errors import PTaskModelError, SlurmError
from ptaskmodel.platform import load_platform
from ptaskmodel.results.loading import results_of
from ptaskmodel.results.pages.report import answer_in
from ptaskmodel.results.pictures.topology import platform_of
from ptaskmodel.results.tables.costs import read_costs
from ptaskmodel.runs.scheduling_options import SlurmOptions
from ptaskmodel.runs.slurm import slurm_into
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import execution_on, simulate_slurm

NODES = "NodeName=n[1-4] CPUs=1\nPartitionName=p Nodes=ALL Default=YES\n"
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="{prefix}" suffix="" radical="1-{hosts}" speed="1Gf" bw="1GBps"
   lat="0us" bb_bw="10MBps" bb_lat="0us"/>
</platform>
"""


def workload(path, walltime):
    # Each job sends 1 GB over the backbone: 100 s alone, 200 s beside the other.
    profile = {"type": "parallel", "cpu": [0, 0], "com": [0, 1e9, 0, 0]}
    jobs = [
        {"id": f"j{k}", "subtime": 0.5, "res": 2, "walltime": walltime, "profile": "send"}
        for k in range(2)
    ]
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"send": profile}}))
    return path


def platform(tmp_path, prefix="n", hosts=4):
    path = tmp_path / "platform.xml"
    path.write_text(PLATFORM.format(prefix=prefix, hosts=hosts))
    return load_platform(path)


@pytest.mark.parametrize("prefix", ["n", "host"])
def test_neighbours_slow_each_other(tmp_path, prefix):
    conf = conf_of(tmp_path, LINEAR + NODES)
    jobs = read_submissions(workload(tmp_path / "w.json", 600), conf).jobs
    execution = execution_on(platform(tmp_path, prefix), conf)
    found = simulate_slurm(conf, jobs, phases=Phases(boot_s=-45.0), execution=execution)
    assert [(job.start_s, job.end_s, job.state) for job in found.jobs] == [
        (1, 201, "COMPLETED")
    ] * 2


def test_jobs_whose_lengths_the_platform_says_end_as_late_as_the_others(tmp_path):
    conf = conf_of(tmp_path, LINEAR + NODES)
    jobs = read_submissions(workload(tmp_path / "w.json", 600), conf).jobs
    execution = execution_on(platform(tmp_path), conf)
    found = simulate_slurm(conf, jobs, phases=Phases(boot_s=-45.0, end_s=1.5), execution=execution)
    assert [(job.attempt.end_s, job.end_s) for job in found.jobs] == [(202.5, 202)] * 2


def test_a_job_that_is_slowed_beyond_its_limit_is_killed_at_the_next_check(tmp_path):
    conf = conf_of(tmp_path, LINEAR + NODES)
    jobs = read_submissions(workload(tmp_path / "w.json", 120), conf).jobs
    execution = execution_on(platform(tmp_path), conf)
    found = simulate_slurm(conf, jobs, phases=Phases(boot_s=-45.0), execution=execution)
    assert [(job.end_s, job.state) for job in found.jobs] == [(135, "TIMEOUT")] * 2


def test_it_is_recorded_who_slowed_whom_and_where(tmp_path):
    conf = conf_of(tmp_path, LINEAR + NODES)
    jobs = read_submissions(workload(tmp_path / "w.json", 600), conf)
    options = SlurmOptions(attribution=True, neighbours=True)
    place, on, file = tmp_path / "out", platform(tmp_path), tmp_path / "platform.xml"
    given = {"inputs": [file], "parameters": {"platform": str(file)}}
    phases = Phases(boot_s=-45.0)
    found = slurm_into(place, conf, jobs, options, phases=phases, platform=on, **given)
    assert {"neighbours.csv", "bottlenecks.csv", "utilisation.csv"} <= set(found.files)
    lost = {(cost.task_id, cost.slowed_by): cost.seconds for cost in read_costs(results_of(place))}
    # 200 s beside each other, 100 s alone.
    assert lost == {("j0", "j1"): pytest.approx(100), ("j1", "j0"): pytest.approx(100)}
    assert platform_of(results_of(place)).path == file
    said = r"Of 0\.111 host hours that jobs cost each other, job j[01] cost most, 0\.0556\."
    assert re.search(said, answer_in(place))


def test_whose_fault_an_end_is_needs_a_platform_and_works_that_share_it(tmp_path):
    conf = conf_of(tmp_path, LINEAR + NODES)
    (tmp_path / "jobs.csv").write_text("id,submit,nodes,limit,run\na,0,1,10,60\n")
    jobs = read_submissions(tmp_path / "jobs.csv", conf)
    for option in ("attribution", "neighbours"):
        options = SlurmOptions(**{option: True})
        with pytest.raises(SlurmError, match=f"--{option} needs a platform"):
            slurm_into(tmp_path / "out", conf, jobs, options)
        with pytest.raises(SlurmError, match=f"--{option}: every job is a delay"):
            slurm_into(tmp_path / "out", conf, jobs, options, platform=platform(tmp_path))
        with pytest.raises(PTaskModelError, match=f"--{option} writes files; give --output DIR"):
            slurm_into(None, conf, jobs, options, platform=platform(tmp_path))


def test_a_turn_of_the_main_loop_that_rounding_puts_before_an_end(tmp_path):
    conf = conf_of(tmp_path, LINEAR + NODES)
    runs_s = {"lasts": 200_000.0, "ends": 130_611.00000000001}
    profiles = {
        name: {"type": "parallel_homogeneous", "cpu": run_s * 1e9, "com": 0}
        for name, run_s in runs_s.items()
    }
    jobs = [
        {"id": str(k), "subtime": 0.5, "res": nodes, "walltime": 3e5, "profile": name}
        for k, (nodes, name) in enumerate([(2, "lasts"), (2, "ends"), (2, "lasts")])
    ]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    execution = execution_on(platform(tmp_path), conf)
    submitted = read_submissions(path, conf).jobs
    found = simulate_slurm(conf, submitted, phases=Phases(boot_s=-45.0), execution=execution)
    assert [job.end_s for job in found.jobs] == [200_001, 130_612, 330_612]


def test_nodes_without_hosts_are_told(tmp_path):
    conf = conf_of(tmp_path, LINEAR + NODES)
    with pytest.raises(SlurmError, match="1 of 4 nodes are not hosts, such as 'n4'"):
        execution_on(platform(tmp_path, hosts=3), conf)
