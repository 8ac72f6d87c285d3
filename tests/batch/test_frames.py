"""Schedules as tables: a row a job, whatever became of it."""

import math
from pathlib import Path

import numpy as np

from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Job,
    Reject,
    Start,
    Workload,
    contention_slowdown,
    run_batch,
)
from ptaskmodel.platform import load_platform
from ptaskmodel.workload.works import DelayWork, HomogeneousWork

PLATFORM = Path(__file__).resolve().parents[2] / "platforms" / "small_cluster.xml"


class RejectsLarge:
    def decide(self, view):
        return [Reject(job, "large") if job.num_hosts > 2 else Start(job) for job in view.queue]


def job(name, hosts, walltime_s=None):
    return Job(name, 1.0, hosts, "d", DelayWork(10.0), walltime_s)


def test_a_schedule_is_a_row_a_job():
    jobs = [job("a", 2), job("b", 3), job("c", 1, 4.0)]
    schedule = BatchSimulation(jobs, 3, RejectsLarge()).run()
    table = schedule.frame().set_index("job_id")
    assert table.start_s.tolist()[::2] == [1.0, 1.0]
    assert math.isnan(table.start_s["b"])
    assert table.end_s.tolist()[::2] == [11.0, 5.0]
    assert table.hosts.tolist() == ["0-1", "", "2"]
    assert table.state["b"] == "REJECTED"
    assert repr(schedule) == "<Schedule at 11 s: 3 jobs, 2 of them ended>"


def test_a_batch_adds_what_the_platform_did():
    work = HomogeneousWork(1e9, 1e9)
    jobs = [Job(f"j{k}", float(k), 4, "p", work) for k in range(3)]
    jobs.append(Job("late", 1e6, 4, "p", work))
    platform = load_platform(PLATFORM)
    options = BatchOptions(until_s=1e5)
    result = run_batch(platform, Workload(jobs, {"p": work}), options)
    table = result.frame()
    assert table.job_id.tolist() == [each.job.id for each in result.schedule.final]
    ran = table[table.end_s.notna()]
    assert np.array_equal(ran.time_alone_s, result.alone_s)
    expected = contention_slowdown(result.schedule, result.alone_s)
    assert np.array_equal(ran.contention_slowdown, expected)
    assert repr(result).startswith("<BatchResult on 32 hosts: <Schedule at ")


def test_delays_have_no_time_alone():
    platform = load_platform(PLATFORM)
    workload = Workload([job("a", 2)], {"d": DelayWork(10.0)})
    table = run_batch(platform, workload).frame()
    assert table[["time_alone_s", "contention_slowdown"]].isna().all(axis=None)
    assert repr(workload) == "<Workload w0: 1 jobs>"
