"""Hostile files of every format: nothing but errors of ours, bounded, in one line."""

from __future__ import annotations

import gzip
import io
import json
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.errors import MOST_PROBLEMS, PTaskModelError, WorkloadError
from ptaskmodel.workload.formats.batsim import read_batsim
from ptaskmodel.workload.formats.host_names import expand
from ptaskmodel.workload.formats.swf import read_swf
from ptaskmodel.workload.formats.tasks_json import load_tasks
from ptaskmodel.workload.formats.tasks_json_profiles import ArrayFiles
from ptaskmodel.workload.reading import read_workload, write_workload

WORKLOAD = {
    "nb_res": 4,
    "jobs": [{"id": "1", "subtime": 0, "res": 2, "profile": "p", "walltime": 9}],
    "profiles": {
        "p": {"type": "delay", "delay": 3},
        "q": {"type": "parallel", "cpu": [1, 2], "com": [0, 1, 1, 0]},
        "r": {"type": "composed", "seq": ["p"], "repeat": 2},
    },
}
TASKS = {
    "profiles": {"p": {"type": "parallel_homogeneous", "cpu": 1, "com": 2}},
    "tasks": [
        {"id": "a", "hosts": ["n[0-1]"], "profile": "p", "start": 1},
        {"id": "b", "hosts": ["x", "y"], "cpu": [1, 2], "flows": [[0, 1, 5]], "after": ["a"]},
        {"id": "c", "delay": 1, "walltime": 4},
    ],
}
LOG = "; MaxProcs: 8\n1 0 0 9 4 -1 -1 4 9 -1 1 3 1 2 0 0 -1 -1\n"

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.just(10**400),
    st.floats(allow_nan=False),
    st.sampled_from([1e308, 1e-308, -1.0, 0.5]),
    st.text(max_size=6),
    st.lists(st.integers(0, 2), max_size=3),
    st.dictionaries(st.sampled_from(["id", "type", "npz"]), st.integers(), max_size=2),
)


def places(value, path=()):
    """The paths of all values in a document."""
    found = [path]
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            found += places(member, (*path, key))
    return found


def replaced(document, path, value):
    """The document as JSON with another value, or without it if the value is ..."""
    document = json.loads(json.dumps(document))
    if not path:
        return json.dumps(value if value is not ... else None)
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    if value is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return json.dumps(document)


def only_ours(read, path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        message = problem_of(lambda: read(path), PTaskModelError)
    lines = (message or "").split("\n")  # of several problems a head, and a line for each
    assert len(lines) <= MOST_PROBLEMS + 2
    assert all(len(line) < 1100 for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])


def problem_of(call, kind):
    """What a call says that it refuses, None if it does not; other errors pass."""
    try:
        call()
    except kind as error:
        return str(error)
    return None


READERS = [(load_tasks, TASKS, "t.json"), (read_batsim, WORKLOAD, "w.json")]


@pytest.mark.parametrize(("read", "document", "name"), READERS)
def test_documents_with_one_odd_value(tmp_path, read, document, name):
    @settings(max_examples=150, deadline=None)
    @given(st.sampled_from(places(document)), st.one_of(st.just(...), odd_values))
    def check(path, value):
        only_ours(read, tmp_path / name, replaced(document, path, value))

    check()


@pytest.mark.parametrize("read", [load_tasks, read_batsim, read_swf, read_workload])
def test_files_of_any_bytes(tmp_path, read):
    @settings(max_examples=60, deadline=None)
    @given(st.one_of(st.binary(max_size=40), st.text('{}[]",:0n \0-;e\x00', max_size=30)))
    def check(content):
        only_ours(read, tmp_path / "x", content)

    check()


def test_logs_with_odd_words(tmp_path):
    words = st.sampled_from(["1", "0", "-1", "1e308", "1e-308", "nan", "inf", "x", "9" * 400, "\0"])

    @settings(max_examples=80, deadline=None)
    @given(st.lists(words, min_size=17, max_size=19))
    def check(row):
        only_ours(read_workload, tmp_path / "x.swf", " ".join(row))

    check()


@settings(max_examples=150)
@given(st.text("ab[]-,0129\0 ", max_size=14))
def test_expressions_of_hosts(expression):
    found = []
    assert problem_of(lambda: found.extend(expand(expression)), ValueError) or found


@pytest.mark.parametrize("read", [load_tasks, read_batsim])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"jobs":' * 100_000, "", " \n"])
def test_deep_and_empty_documents(tmp_path, read, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(WorkloadError, match=r"nested too deep|is empty|not JSON|ends too early"):
        read(path)


@pytest.mark.parametrize("name", ["w.json", "w.swf", "w"])
def test_an_empty_file_is_no_workload(tmp_path, name):
    (tmp_path / name).write_text("\n")
    with pytest.raises(WorkloadError, match="is empty; give a"):
        read_workload(tmp_path / name)


@pytest.mark.parametrize("bad", [[], {}, True, None, ""])
def test_ids_are_texts_or_numbers(tmp_path, bad):
    path = tmp_path / "w.json"
    path.write_text(replaced(WORKLOAD, ("jobs", 0, "id"), bad))
    with pytest.raises(WorkloadError, match=r"/jobs/0/id: .* is neither a string nor a number"):
        read_batsim(path)


def test_ten_thousand_sequences_in_one_another(tmp_path):
    deep = {f"s{k}": {"type": "composed", "seq": [f"s{k + 1}"]} for k in range(10_000)}
    profiles = deep | {"s10000": {"type": "delay", "delay": 1}}
    path = tmp_path / "w.json"
    jobs = [{"id": "1", "subtime": 0, "res": 1, "walltime": 9, "profile": "s0"}]
    path.write_text(json.dumps({"jobs": jobs, "profiles": profiles}))
    with pytest.raises(WorkloadError, match="nested more than 100 deep"):
        read_batsim(path)


def test_an_array_larger_than_its_task_needs_is_not_read(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", com=np.zeros((1024, 1024)))
    tasks = [{"id": 1, "hosts": ["a", "b"], "com": {"npz": "a.npz", "key": "com"}}]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"tasks": tasks}))
    monkeypatch.setattr(
        "ptaskmodel.workload.formats.tasks_json_profiles.npy.read_array",
        lambda *_, **__: pytest.fail("the array is read"),
    )
    with pytest.raises(WorkloadError, match=r"has shape \(1024, 1024\); at most 4 values"):
        load_tasks(path)
    with pytest.raises(WorkloadError, match="at most 5 values"):
        ArrayFiles(tmp_path).read("a.npz", "com", 5)


@pytest.mark.parametrize(("read", "jobs"), [(load_tasks, False), (read_batsim, True)])
def test_a_sequence_that_takes_for_ever_is_told(tmp_path, read, jobs):
    document = {"profiles": {"d": {"type": "delay", "delay": 1}}}
    document["profiles"]["s"] = {"type": "composed", "seq": ["d"], "repeat": 10**9}
    document["jobs" if jobs else "tasks"] = [] if jobs else [{"id": 1, "profile": "s"}]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.warns(
        UserWarning, match=r"/profiles/s: makes 1,000,000,000 consecutive " r"stages.*minutes"
    ):
        read(path)


def test_each_kind_of_file_given_to_the_other_reader_says_whose_it_is(tmp_path):
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "t.json").write_text(json.dumps(TASKS))
    with pytest.raises(WorkloadError, match="this is a Batsim workload; run it by `ptaskmodel bat"):
        load_tasks(tmp_path / "w.json")
    with pytest.raises(
        WorkloadError, match="this is a tasks file; run it by `ptaskmodel simulate`"
    ):
        read_workload(tmp_path / "t.json")


def test_tasks_and_workloads_come_packed_or_from_standard_input(tmp_path, monkeypatch):
    for read, document in ((load_tasks, TASKS), (lambda p: read_workload(p).jobs, WORKLOAD)):
        data = json.dumps(document).encode()
        (tmp_path / "x.json.gz").write_bytes(gzip.compress(data))
        ids = [one.id for one in read(tmp_path / "x.json.gz")]
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert [one.id for one in read("-")] == ids
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(LOG.encode())))
    assert [job.id for job in read_workload("-").jobs] == ["1"]


def test_batsim_submits_jobs_of_one_date_by_id_as_text_and_logs_keep_their_order(tmp_path):
    jobs = [dict(WORKLOAD["jobs"][0], id=k, subtime=date) for k, date in ((9, 5), (10, 5), (11, 0))]
    path = tmp_path / "w.json"
    path.write_text(json.dumps(WORKLOAD | {"jobs": jobs}))
    assert [job.id for job in read_workload(path).jobs] == ["11", "10", "9"]
    rows = [f"{k} 5 0 9 4 -1 -1 4 9 -1 1 3 1 2 0 0 -1 -1" for k in (9, 10)]
    (tmp_path / "w.swf").write_text("\n".join(rows))
    assert [job.id for job in read_workload(tmp_path / "w.swf").jobs] == ["9", "10"]


@pytest.mark.parametrize(("run_time", "message"), [("1e308", "beyond"), ("1e-308", "job 1: run")])
def test_absurd_run_times_are_told(tmp_path, run_time, message):
    path = tmp_path / "w.swf"
    path.write_text(LOG.replace(" 9 4 ", f" {run_time} 4 "))
    with pytest.raises(WorkloadError, match=message):
        read_workload(path)


def test_a_full_disk_keeps_the_earlier_workload(tmp_path, monkeypatch):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(WORKLOAD))
    workload = read_workload(path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(WorkloadError, match="cannot be written: No space left on device"):
        write_workload(workload, path)
    assert json.loads(path.read_text()) == WORKLOAD
    assert [entry.name for entry in tmp_path.iterdir()] == ["w.json"]
