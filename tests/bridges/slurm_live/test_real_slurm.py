"""A real Slurm decides: its schedules are repeated to the byte, and those of recorded runs."""

from __future__ import annotations

import csv

import pytest

from ptaskmodel.batch.slurm.conf import read_conf
from ptaskmodel.batch.slurm.submissions import read_submissions
from ptaskmodel.batch.slurm.watching import hostlist
from ptaskmodel.bridges.slurm_live.faults import LiveFault
from ptaskmodel.bridges.slurm_live.installed import installed
from ptaskmodel.bridges.slurm_live.run import LiveRun, run_live

try:
    installed()
except LiveFault as fault:
    pytest.skip(str(fault), allow_module_level=True)


def lines(run: LiveRun) -> list[str]:
    """Everything that a run says of its jobs and events."""
    jobs = [
        f"{job.id} {job.submit_s} {job.start_s} {job.end_s} {job.state} {job.by} {job.allocation}"
        for job in run.jobs
    ]
    return [*jobs, *map(repr, run.events)]


def test_a_recorded_workload_starts_when_and_where_it_did(shared_data):
    # Gaps between repetitions of the recorded run itself are 3 s.
    place = shared_data / "slurm" / "memory"
    requests = read_submissions(place / "jobs.csv", read_conf(place / "slurm.conf")).jobs
    first = run_live(place / "slurm.conf", requests)
    assert first.stopped is None
    with (place / "run1.csv").open(newline="") as file:
        recorded = {row["id"]: row for row in csv.DictReader(file)}
    assert {job.id for job in first.jobs} == set(recorded)
    for job in first.jobs:
        row = recorded[job.id]
        assert job.state == row["state"]
        assert abs(job.start_s - first.phases.t0 - int(row["start"])) <= 3
        assert hostlist(first.nodes.names_of(job.allocation.nodes)) == row["nodelist"]
    again = run_live(place / "slurm.conf", requests)
    assert lines(again) == lines(first)
