"""Metrics by hand, files with Batsim's columns, and evalys' agreement where it is installed."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from ptaskmodel.batch import BatchSimulation, Easy, Fcfs, Redirection
from ptaskmodel.batch.jobs.execution import actual_duration_s
from ptaskmodel.batch.loop.schedule import figures_of
from ptaskmodel.batch.schedule_metrics import PERCENTILES, distribution, job_times, load, metrics
from ptaskmodel.errors import SimulationError
from ptaskmodel.results.tables.batch import JOB_COLUMNS, write_schedule
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.works import DelayWork


def job(name, submit, hosts, duration, walltime=None):
    return Job(name, float(submit), hosts, f"d{duration}", DelayWork(float(duration)), walltime)


@pytest.fixture
def schedule():
    """Three jobs on 4 hosts, first come first served: starts 10, 110, 110; ends 110, 120, 160."""
    jobs = [job("a", 10, 4, 100), job("b", 10, 2, 10), job("c", 60, 2, 60, walltime=50.0)]
    return BatchSimulation(jobs, 4, Fcfs()).run()


def test_times_and_slowdowns_by_hand(schedule):
    times = job_times(schedule)
    assert times.waiting_s.tolist() == [0, 100, 50]
    assert times.turnaround_s.tolist() == [100, 110, 100]
    assert times.slowdown.tolist() == [1, 11, 2]
    assert times.bounded_slowdown(60.0) == pytest.approx([1, 110 / 60, 100 / 60])
    assert times.per_processor_slowdown(10.0) == pytest.approx([1, 5.5, 1])


def test_a_schedule_is_put_into_arrays_once(schedule):
    assert figures_of(schedule) is figures_of(schedule)


def test_the_summary_by_hand(schedule):
    found = metrics(schedule)
    assert found["jobs"] == {
        "all": 3,
        "succeeded": 2,
        "killed_at_walltime": 1,
        "rejected": 0,
        "other": 0,
        "lost_runs": 0,
    }
    assert found["makespan_s"] == 160
    assert found["utilisation"] == pytest.approx((400 + 20 + 100) / (4 * 150))
    assert found["throughput_jobs_per_hour"] == pytest.approx(3600 * 3 / 150)
    assert found["waiting_s"]["mean"] == 50
    assert found["waiting_s"]["max"] == 100
    assert found["weighted_waiting_s"] == pytest.approx((100 * 20 + 50 * 100) / 520)
    with pytest.raises(SimulationError, match="tau is 0 s"):
        metrics(schedule, tau_s=0)


def test_distributions_leave_out_what_is_undefined():
    found = distribution(np.array([1.0, math.nan, 3.0]))
    assert (found["mean"], found["max"], found["p50"]) == (2, 3, 2)
    assert distribution(np.array([]))["mean"] is None
    jobs = [job("zero", 0, 1, 0), job("one", 0, 1, 1)]
    zero = BatchSimulation(jobs, 1, Fcfs(), estimate=actual_duration_s).run()
    assert metrics(zero)["slowdown"]["max"] == 1


def test_load_over_time(schedule):
    over_time = load(schedule)
    rows = zip(over_time.date_s, over_time.waiting_jobs, over_time.used_hosts, strict=True)
    assert list(rows) == [(10, 1, 4), (60, 2, 4), (110, 0, 4), (120, 0, 2), (160, 0, 0)]


def write(schedule, place, **options):
    names = [f"h{k}" for k in range(schedule.num_hosts)]
    return write_schedule(
        place,
        schedule,
        load(schedule),
        workload_name="w0",
        host_names=names,
        version="0",
        simulation_s=0.5,
        **options,
    )


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_jobs_have_batsims_columns_and_meanings(schedule, tmp_path):
    assert "runs.csv" not in write(schedule, tmp_path, alone_s=[100.0, 5.0, 60.0])
    jobs = rows(tmp_path / "jobs.csv")
    assert tuple(jobs[0]) == (*JOB_COLUMNS, "time_alone", "contention_slowdown")
    b, c = jobs[1], jobs[2]
    assert (b["job_id"], b["workload_name"], b["profile"]) == ("b", "w0", "d10")
    assert (b["success"], b["final_state"]) == ("1", "COMPLETED_SUCCESSFULLY")
    assert (c["success"], c["final_state"]) == ("0", "COMPLETED_WALLTIME_REACHED")
    assert (b["requested_time"], c["requested_time"]) == ("-1", "50.0")
    assert (b["stretch"], b["allocated_resources"], c["allocated_resources"]) == (
        "11.0",
        "0-1",
        "2-3",
    )
    assert b["consumed_energy"] == ""
    summary = json.loads((tmp_path / "schedule.json").read_text())
    assert list(summary) == sorted(summary)
    assert summary["nb_jobs"] == summary["nb_jobs_finished"] == 3
    assert summary["nb_jobs_killed"] == 1
    assert summary["success_rate"] == pytest.approx(2 / 3)
    assert summary["time_computing"] == 520
    assert summary["time_idle"] == 4 * 160 - 520
    states = rows(tmp_path / "machine_states.csv")
    assert {int(r["nb_idle"]) + int(r["nb_computing"]) for r in states} == {4}


def test_lost_runs_and_rejected_jobs_are_written(tmp_path):
    jobs = [job("long", 0, 3, 100, 100.0), job("big", 0, 6, 1, 9.0)]
    jobs += [job(f"s{k}", 1 + k, 3, 1, 5.0) for k in range(3)]
    schedule = BatchSimulation(jobs, 6, Redirection(0.5, 1)).run()
    assert "runs.csv" in write(schedule, tmp_path)
    by_id = {row["job_id"]: row for row in rows(tmp_path / "jobs.csv")}
    assert by_id["long"]["metadata"] == "attempt=1 first_starting_time=0.0"
    assert by_id["big"]["final_state"] == "REJECTED"
    assert by_id["big"]["starting_time"] == by_id["big"]["allocated_resources"] == ""
    attempts = [r["final_state"] for r in rows(tmp_path / "runs.csv") if r["job_id"] == "long"]
    assert attempts[0] == "COMPLETED_KILLED"
    assert metrics(schedule)["jobs"]["lost_runs"] == 1


@pytest.mark.filterwarnings("ignore")
def test_evalys_reads_the_files_and_agrees(tmp_path):
    jobset = pytest.importorskip("evalys.jobset")
    workload = lublin(800, 64, 3, pace=1.5)
    schedule = BatchSimulation(workload.jobs, 64, Easy(), estimate=actual_duration_s).run()
    write(schedule, tmp_path)
    theirs = jobset.JobSet.from_csv(str(tmp_path / "jobs.csv"), resource_bounds=(0, 63))
    ours = metrics(schedule)
    for column, name in (
        ("waiting_time", "waiting_s"),
        ("turnaround_time", "turnaround_s"),
        ("execution_time", "execution_s"),
        ("stretch", "slowdown"),
    ):
        assert theirs.df[column].mean() == pytest.approx(ours[name]["mean"], rel=1e-9)
        assert theirs.df[column].max() == pytest.approx(ours[name]["max"], rel=1e-9)
    assert theirs.mean_utilisation() == pytest.approx(ours["mean_used_hosts"], rel=1e-9)
    assert theirs.queue.load.max() == load(schedule).requested_hosts.max()


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1001])
def test_percentiles_are_those_of_numpy(count):
    values = np.random.default_rng(count).lognormal(size=count)
    found = distribution(values)
    expected = np.percentile(values, PERCENTILES).tolist()
    assert [found[f"p{p}"] for p in PERCENTILES] == expected
