"""What the reader of tasks.json makes of valid files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tasks_documents import EVERYTHING, WORKED

from ptaskmodel.workload.formats.tasks_json import load_tasks, read_tasks_file
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, SequenceWork


def load(tmp_path, document):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(document))
    return load_tasks(path)


def test_inline_work(tmp_path):
    first, second, third = load(tmp_path, WORKED)
    assert (first.id, first.start_s, first.hosts, first.profile) == ("T1", 0.0, ("a", "b"), None)
    assert first.work.flops.tolist() == [1000.0, 1000.0]
    assert first.work.flow_bytes.tolist() == [600.0]
    assert second.work.flops.tolist() == [0.0, 0.0]
    assert (second.work.flow_from.tolist(), second.work.flow_to.tolist()) == ([0], [1])
    assert third.work.flops.tolist() == [300.0, 1000.0]


def test_profiles_of_every_type(tmp_path):
    tasks = {task.id: task for task in load(tmp_path, EVERYTHING)}
    assert list(tasks) == [*"abc", "4", *"efghijklm"]
    assert tasks["a"].work.flow_bytes.tolist() == [3.0, 4.0]
    assert tasks["b"].work.flops.tolist() == [5.0] * 4
    assert tasks["b"].work.flow_to.tolist() == [2]
    assert tasks["c"].work.flops.tolist() == [0.0, 0.0]
    assert tasks["4"].work == HomogeneousWork(1e9, 1e6)
    assert tasks["e"].work == HomogeneousWork(0.0, 1e6)
    assert tasks["f"].work.per_rank(4) == (2.0, 10.0)
    assert tasks["g"].work.per_rank(4) == (2.0, 30.0)
    assert tasks["h"].work == DelayWork(2.5)
    composed = tasks["j"].work.stages[0]
    assert composed == SequenceWork((tasks["a"].work, DelayWork(0.0)), 4)
    assert tasks["j"].work == SequenceWork((composed, tasks["4"].work, composed))
    assert tasks["k"].work == SequenceWork((DelayWork(0.0), DelayWork(2.5)), 2)
    assert tasks["m"].work == DelayWork(4.0)


def test_fields_of_tasks(tmp_path):
    tasks = {task.id: task for task in load(tmp_path, EVERYTHING)}
    assert tasks["a"].profile == "old parallel"
    assert tasks["c"].weight == 2.5
    assert tasks["c"].hosts == ("n-0", "n-0")
    assert tasks["4"].walltime_s == 100.0
    assert (tasks["e"].rate_bound, tasks["e"].competitors) == (0.5, 3.0)
    assert tasks["f"].after == ("a", "4")
    assert tasks["4"].hosts[:2] == ("n-00", "n-01")
    assert tasks["b"].hosts == ("n-0", "n-1", "n-2", "n-3")


def test_tasks_share_the_work_of_their_profile_and_equal_lists_of_hosts(tmp_path):
    task = {"hosts": ["n-[0-1]"], "profile": "p"}
    profile = {"type": "parallel", "cpu": 3, "flows": [[0, 1, 5]]}
    document = {"profiles": {"p": profile}, "tasks": [{"id": k, **task} for k in range(3)]}
    first, *others = load(tmp_path, document)
    for other in others:
        assert other.work is first.work
        assert other.hosts is first.hosts


def test_arrays_in_npz_files(tmp_path):
    (tmp_path / "data").mkdir()
    matrix = np.array([[0, 1], [2, 0]], dtype=np.int32)
    flows = np.array([[0, 1, 4.5]])
    np.savez_compressed(tmp_path / "data" / "w.npz", com=matrix, cpu=[3.0, 4.0], flows=flows)

    def reference(key):
        return {"npz": "data/w.npz", "key": key}

    profile = {"type": "parallel", "cpu": reference("cpu"), "com": reference("com")}
    task = {"id": "x", "hosts": ["a", "b"], "flows": reference("flows")}
    document = {
        "profiles": {"p": profile},
        "tasks": [{"id": "y", "hosts": ["a", "b"], "profile": "p"}, task],
    }
    first, second = load(tmp_path, document)
    assert first.work.flops.tolist() == [3.0, 4.0]
    assert first.work.flow_bytes.tolist() == [1.0, 2.0]
    assert second.work.flow_bytes.tolist() == [4.5]
    paths = read_tasks_file(tmp_path / "tasks.json").paths
    assert paths == [tmp_path / "tasks.json", tmp_path / "data" / "w.npz"]


def test_the_same_profile_fits_several_numbers_of_hosts(tmp_path):
    profiles = {
        "ring": {"type": "parallel", "cpu": 1, "flows": [[0, 1, 5]]},
        "twice": {"type": "composed", "seq": ["ring", "ring"]},
    }
    tasks = [
        {"id": k, "hosts": [f"n[1-{k}]"], "profile": name}
        for k, name in enumerate(["ring", "twice", "ring", "twice"], start=2)
    ]
    loaded = load(tmp_path, {"profiles": profiles, "tasks": tasks})
    assert [task.work.ranks for task in loaded] == [2, 3, 4, 5]


def test_a_long_chain_of_after_is_no_trouble(tmp_path):
    tasks = [{"id": k, "delay": 1, "after": [k + 1]} for k in range(20_000)]
    tasks.append({"id": 20_000, "delay": 1})
    assert len(load(tmp_path, {"tasks": tasks})) == 20_001


def test_a_hundred_thousand_tasks_load(tmp_path):
    profiles = {
        "p": {"type": "parallel", "cpu": [1, 2], "com": [0, 5, 0, 0]},
        "h": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
    }
    tasks = [
        {"id": f"t{k}", "start": k, "hosts": [f"n{k % 99}", f"n{k % 97}"], "profile": "ph"[k % 2]}
        for k in range(100_000)
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps({"profiles": profiles, "tasks": tasks}))
    assert len(load_tasks(path)) == 100_000


def test_paths_may_be_strings(tmp_path):
    load(tmp_path, WORKED)
    assert len(load_tasks(str(tmp_path / "tasks.json"))) == 3


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "experiments" / "first_steps").glob("*.json")), ids=lambda p: p.name
)
def test_the_examples_load(path):
    assert load_tasks(path)
