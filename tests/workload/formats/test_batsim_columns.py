"""Jobs of a Batsim workload checked as columns: the same as one by one, or left to that."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.remarks import Account
from ptaskmodel.workload.formats import batsim
from ptaskmodel.workload.jobs import Job, JobTable, job_arrays, users_of

PROFILES = {
    "1": {"type": "delay", "delay": 5},
    "pair": {"type": "parallel", "cpu": [1.0, 2.0], "com": [0, 1, 1, 0]},
    "any": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0, "ret": 3},
}
USUAL = {
    "id": st.one_of(st.integers(0, 99), st.integers(0, 99).map(str)),
    "subtime": st.sampled_from([0, 0.5, 3, 7.25, 1e9]),
    "res": st.just(2),
    "profile": st.sampled_from(["1", 1, "pair", "any"]),
}
OPTIONAL = {
    "walltime": st.sampled_from([-1, -1.0, 1, 2.5, None]),
    "user": st.sampled_from(["ada", 7]),
    "queue": st.just("long"),
    "preceding_job": st.integers(0, 9),
    "think_time": st.sampled_from([0, 4, 2.5]),
    "comment": st.just("left alone"),
}
ODD = st.sampled_from([None, True, "", -1, -0.0, 0, 1.0, 2.0, 1e-200, 1e200, 2**70, "x", [1], {}])


def fields_of(jobs):
    names = [field.name for field in dataclasses.fields(Job) if field.name != "work"]
    return [[repr(getattr(job, name)) for name in names] for job in jobs]


def read(document, columns, account=None):
    with pytest.MonkeyPatch.context() as patch:
        if not columns:
            patch.setattr(batsim, "read_columns", lambda entries, profiles: None)
        account = account or Account("w.json", WorkloadError)
        return batsim.workload_of(copy.deepcopy(document), Path("w.json"), account)[0]


def outcome(document, columns):
    """What is read and told, or what is said."""
    account = Account("w.json", WorkloadError)
    try:
        workload = read(document, columns, account)
    except WorkloadError as error:
        return str(error)
    works = list(workload.profiles.values())
    found = [works.index(job.work) for job in workload.jobs]
    return fields_of(workload.jobs), found, account.remarks


jobs = st.lists(
    st.fixed_dictionaries(USUAL, optional=OPTIONAL),
    min_size=1,
    max_size=8,
    unique_by=lambda job: str(job["id"]),
)


@settings(max_examples=60, deadline=None)
@given(jobs)
def test_usual_jobs_are_the_same_by_columns(jobs):
    document = {"jobs": jobs, "profiles": PROFILES}
    one_by_one, by_columns = read(document, False), read(document, True)
    assert isinstance(by_columns.jobs, JobTable)
    expected = job_arrays(one_by_one.jobs)
    for wanted, found in zip(expected[:5], by_columns.jobs.arrays[:5], strict=True):
        assert wanted.dtype == found.dtype
        assert np.array_equal(wanted, found, equal_nan=wanted.dtype == np.float64)
    assert expected.plain == by_columns.jobs.arrays.plain
    assert list(users_of(one_by_one.jobs)) == list(users_of(by_columns.jobs))
    assert outcome(document, True) == outcome(document, False)


@settings(max_examples=300, deadline=None)
@given(
    jobs,
    st.sampled_from([*USUAL, *OPTIONAL, "ret", "cores", "memory", "licences", "competitors"]),
    ODD,
)
def test_what_is_odd_is_read_or_refused_the_same(jobs, field, value):
    jobs[-1][field] = value
    document = {"jobs": jobs, "profiles": PROFILES}
    assert outcome(document, True) == outcome(document, False)


@pytest.mark.parametrize("change", [{"id": "a"}, {"res": 3}, {"profile": "none"}, {"subtime": "1"}])
def test_an_error_names_the_job(change):
    entries = [
        {"id": "a", "subtime": 0, "res": 2, "profile": "pair"},
        {"id": "b", "subtime": 0, "res": 2, "profile": "pair"} | change,
    ]
    (field,) = change
    account = Account("w.json", WorkloadError)
    read({"jobs": entries, "profiles": PROFILES}, True, account)
    (remark,) = account.remarks
    assert remark.text.startswith(f"left out: /jobs/1/{field}: ")
