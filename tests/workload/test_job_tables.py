"""Rows of jobs: tables that are no DataFrame, and columns that nobody reads."""

from __future__ import annotations

from dataclasses import fields

import pytest

import ptaskmodel as pm
from ptaskmodel.workload.jobs import TOGETHER, Job, JobMaker
from ptaskmodel.workload.works import DelayWork

pandas = pytest.importorskip("pandas")

ROW = {"job_id": "a", "submit_time_s": 1.0, "num_hosts": 2, "delay_s": 3.0}


def test_rows_are_a_table_too():
    frame = pm.workload_from_frame(pandas.DataFrame([ROW])).frame()
    assert pm.workload_from_frame([ROW]).frame().equals(frame)


@pytest.mark.parametrize("given", [7, "jobs.csv", [ROW, 3], [], {"job_id": ["a"]}])
def test_what_is_no_table_is_told(given):
    with pytest.raises(
        pm.WorkloadError, match=r"is neither a pandas.DataFrame nor a list of " r"dicts"
    ):
        pm.workload_from_frame(given)


def test_columns_that_are_not_read_are_named():
    notes = pm.workload_from_frame([ROW | {"walltime": 9.0, "colour": "red"}]).notes
    assert notes == ("columns that are not used: walltime (did you mean walltime_s?), colour",)
    assert pm.workload_from_frame(pm.workload_from_frame([ROW]).frame()).notes == ()


def test_jobs_that_a_maker_makes_equal_others():
    maker, work = JobMaker(), DelayWork(3.0)
    for k in range(TOGETHER + 1):
        made, other = (make(f"j{k}", 1.5 * k, k, "w", work) for make in (maker.make, Job))
        assert all(getattr(made, each.name) == getattr(other, each.name) for each in fields(Job))
