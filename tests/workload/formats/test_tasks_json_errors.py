"""Bad tasks files: each is one line with the file, the place and the remedy."""

from __future__ import annotations

import copy
import json
import re
import struct
import zipfile

import numpy as np
import pytest

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats import host_names
from ptaskmodel.workload.formats.tasks_json import load_tasks

BASE = {
    "profiles": {
        "two": {"type": "parallel", "cpu": [1, 2], "com": [0, 3, 4, 0]},
        "wait": {"type": "delay", "delay": 1},
        "seq": {"type": "composed", "seq": ["two", "wait"]},
    },
    "tasks": [
        {"id": "T1", "hosts": ["a", "b"], "profile": "two"},
        {"id": "T2", "hosts": ["a", "b"], "cpu": 5, "after": ["T1"]},
        {"id": "T3", "hosts": ["a", "b"], "cpu": [1, 2], "flows": [[0, 1, 7]]},
    ],
}


def message(tmp_path, content, problems=1):
    path = tmp_path / "tasks.json"
    path.write_bytes(content)
    with pytest.raises(WorkloadError) as caught:
        load_tasks(path)
    text = str(caught.value)
    assert len(text.splitlines()) == (1 if problems == 1 else 1 + problems)
    assert text.replace("\n", "").isprintable()
    assert len(text) < 600
    return text.removeprefix(f"{path}")


NOT_DOCUMENTS = {
    "empty file": (b"", ":1:1: is empty"),
    "only blanks": (b" \n ", ": is empty"),
    "truncated": (json.dumps(BASE).encode()[:-9], ": it ends too early; is it truncated?"),
    "truncated in a string": (
        b'{"tasks": "abc',
        ":1:11: is not JSON: unterminated string; correct",
    ),
    "a platform": (b"<?xml version='1.0'?>", ":1:1: is XML, not JSON"),
    "two documents": (b'{"tasks": []}\n{}', ":2:1: is not JSON: extra data; correct the line"),
    "trailing comma": (b'{"tasks": [],\n}', ":2:1: is not JSON: expecting property name"),
    "comment": (b'{"tasks": [] // none\n}', ":1:14: is not JSON"),
    "NaN": (b'{"tasks": [{"id": 1, "delay": NaN}]}', ": NaN is not JSON; give a finite"),
    "Infinity": (b'{"tasks": [{"id": 1, "delay": -Infinity}]}', ": -Infinity is not JSON"),
    "two byte order marks": (b"\xef\xbb\xbf\xef\xbb\xbf{}", ":1:1: is not JSON"),
    "Latin-1": ('{"description":\n"h\xf4te"}'.encode("latin-1"), ":2: is not UTF-8"),
    "UTF-16": ("{}".encode("utf-16"), ":1: is not UTF-8"),
    "binary": (bytes(range(128, 256)), ":1: is not UTF-8"),
    "a million lists": (b"[" * 1_000_000 + b"]" * 1_000_000, ": is nested too deep; flatten it"),
    "a million objects": (b'{"a":' * 1_000_000, ": is nested too deep; flatten it"),
    "5000 digits": (
        b'{"tasks": ' + b"9" * 5000 + b"}",
        ": contains a number with too many digits; shorten it",
    ),
    "list": (b"[]", ": top level: is a list; give an object"),
    "null": (b"null", ": top level: is null; give an object"),
    "key twice": (b'{"tasks": [], "tasks": []}', ": top level: 'tasks' is given twice"),
    "key twice below": (
        b'{"tasks": [{"id": 1, "delay": 3, "delay": 4}]}',
        ": /tasks/0: 'delay' is given twice; keep one",
    ),
    "key twice inside a key twice": (
        b'{"tasks": [{"a": 1, "a": 2}], "tasks": []}',
        ": top level: 'tasks' is given twice",
    ),
}


@pytest.mark.parametrize("name", NOT_DOCUMENTS)
def test_files_that_are_no_documents(tmp_path, name):
    content, expected = NOT_DOCUMENTS[name]
    assert expected in message(tmp_path, content)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(WorkloadError, match=r"nothing\.json: no such file"):
        load_tasks(tmp_path / "nothing.json")
    with pytest.raises(WorkloadError, match="is a directory"):
        load_tasks(tmp_path)
    with pytest.raises(WorkloadError, match="cannot be read"):
        load_tasks("a\0b")


# name: (place in BASE, what to put there, the message from the pointer on)
REMOVED = object()
BAD = {
    "no tasks": ("/tasks", REMOVED, "/tasks: is missing; give a list"),
    "tasks is an object": ("/tasks", {}, "/tasks: is not a list"),
    "no task at all": ("/tasks", [], "/tasks: is empty; give at least one task"),
    "unknown top field": ("/task", [], "/task: is not a field of a tasks file; did you mean 'tas"),
    "description not text": ("/description", 3, "/description: is 3; give a string"),
    "profiles is a list": ("/profiles", [], "/profiles: is a list; give an object of profiles"),
    "task is a list": ("/tasks/1", [], "/tasks/1: is a list; give an object (a task)"),
    "misspelt field": ("/tasks/1/host", ["a"], "/tasks/1/host: is not a field of a task; did you"),
    "unknown field": ("/tasks/1/zzz", 1, "/tasks/1/zzz: is not a field of a task; it may have id"),
    "odd field": ("/tasks/1/a~1b\n", 1, "/tasks/1/a~1b\\n: is not a field"),
    "no id": ("/tasks/0/id", REMOVED, "/tasks/0: has no id; give each task its own"),
    "id null": ("/tasks/0/id", None, "/tasks/0/id: is null; give a string or a whole number"),
    "id empty": ("/tasks/0/id", "", "/tasks/0/id: is ''; give a string or a whole number, not em"),
    "id negative": ("/tasks/0/id", -1, "/tasks/0/id: is -1; give a whole number"),
    "id not whole": ("/tasks/0/id", 1.5, "/tasks/0/id: is 1.5; give a whole number"),
    "id of two lines": ("/tasks/0/id", "a\nb", "/tasks/0/id: is 'a\\nb'; give"),
    "id with half a character": ("/tasks/0/id", "\ud800", "/tasks/0/id: is '\\ud800'; give"),
    "id very long": ("/tasks/0/id", "a\n" * 10**5, "/tasks/0/id: is 'a\\na"),
    "id twice": ("/tasks/2/id", "T1", "/tasks/2/id: is 'T1', the id of /tasks/0; give another"),
    "hosts is a name": ("/tasks/0/hosts", "a", "/tasks/0/hosts: is 'a'; write ['a']"),
    "hosts is null": ("/tasks/0/hosts", None, "/tasks/0/hosts: is null; give a list of names"),
    "no hosts": ("/tasks/1/hosts", REMOVED, "/tasks/1/hosts: is missing; give the hosts"),
    "hosts empty": ("/tasks/1/hosts", [], "/tasks/1/hosts: is missing; give the hosts"),
    "host not a name": ("/tasks/1/hosts/1", 3, "/tasks/1/hosts/1: is 3; give the name of a host"),
    "host empty": ("/tasks/1/hosts/1", "", "/tasks/1/hosts/1: '' is not a printable name"),
    "range goes down": ("/tasks/1/hosts", ["n[3-1]"], "/tasks/1/hosts/0: 'n[3-1]' has the range"),
    "range open": ("/tasks/1/hosts", ["n[3-"], "/tasks/1/hosts/0: 'n[3-' has brackets that do"),
    "range huge": ("/tasks/1/hosts", ["n[0-9999999]"], "stands for more than 1000000 hosts"),
    "too few hosts": ("/tasks/0/hosts", ["a"], "/tasks/0/hosts: has 1 host for a profile of 2"),
    "no work": ("/tasks/1/cpu", REMOVED, "/tasks/1: has no work; give a profile, or cpu"),
    "profile and cpu": ("/tasks/0/cpu", 1, "/tasks/0/cpu: is given in addition to profile"),
    "delay and cpu": ("/tasks/1/delay", 1, "/tasks/1/delay: is given in addition to cpu"),
    "com and flows": ("/tasks/2/com", [0, 0, 0, 0], "/tasks/2/flows: is given in addition to com"),
    "unknown profile": ("/tasks/0/profile", "tow", "/tasks/0/profile: is 'tow', which is unknown"),
    "profile not a name": ("/tasks/0/profile", 3, "/tasks/0/profile: is 3; give the name"),
    "start negative": ("/tasks/0/start", -1, "/tasks/0/start: -1.0 is negative"),
    "start a string": ("/tasks/0/start", "0", "/tasks/0/start: is '0'; give a number"),
    "start true": ("/tasks/0/start", True, "/tasks/0/start: is true; give a number"),
    "start null": ("/tasks/0/start", None, "/tasks/0/start: is null; give a number"),
    "start huge": ("/tasks/0/start", 10**400, "/tasks/0/start: is larger than 1e+100"),
    "walltime 0": ("/tasks/0/walltime", 0, "/tasks/0/walltime: 0 is too small"),
    "weight 0": ("/tasks/0/weight", 0, "/tasks/0/weight: 0 is too small; give a number above 0"),
    "weight tiny": ("/tasks/0/weight", 1e-300, "/tasks/0/weight: 1e-300 is below 1e-100"),
    "competitors 0": ("/tasks/0/competitors", 0, "/tasks/0/competitors: 0 is too small"),
    "rate_bound a list": ("/tasks/0/rate_bound", [1], "/tasks/0/rate_bound: is a list; give a nu"),
    "cpu too long": (
        "/tasks/2/cpu",
        [1, 2, 3],
        "/tasks/2/cpu: has 3 values for 2 hosts; give one per host or a single number",
    ),
    "cpu empty": ("/tasks/2/cpu", [], "/tasks/2/cpu: has 0 values for 2 hosts"),
    "cpu nested": ("/tasks/2/cpu", [[1, 2]], "/tasks/2/cpu: has shape 1 x 2 for 2 hosts"),
    "cpu negative": ("/tasks/2/cpu", [1, -2], "/tasks/2/cpu/1: -2.0 is negative"),
    "cpu one negative": ("/tasks/1/cpu", -2, "/tasks/1/cpu: -2.0 is negative"),
    "cpu holds a string": ("/tasks/2/cpu", [1, "2"], "/tasks/2/cpu/1: is '2'; give a number"),
    "cpu holds true": ("/tasks/2/cpu", [1, True], "/tasks/2/cpu/1: is true; give a number"),
    "cpu holds null": ("/tasks/2/cpu", [1, None], "/tasks/2/cpu/1: is null; give a number"),
    "cpu is a string": ("/tasks/1/cpu", "5", "/tasks/1/cpu: is '5'; give a number"),
    "cpu is huge": ("/tasks/1/cpu", 1e101, "/tasks/1/cpu: 1e+101 is larger than 1e+100"),
    "cpu holds a huge integer": ("/tasks/2/cpu", [1, 10**400], "/tasks/2/cpu/1: is 1000"),
    "flows not triples": ("/tasks/2/flows", [[0, 1]], "/tasks/2/flows: is not a list of triples"),
    "flows ragged": ("/tasks/2/flows", [[0, 1, 2], [0]], "/tasks/2/flows/1: has 1 values, the fi"),
    "flow from nowhere": ("/tasks/2/flows", [[0, 2, 1]], "/tasks/2/flows/0/1: 2 is not one of the"),
    "flow negative": ("/tasks/2/flows", [[0, 1, -1]], "/tasks/2/flows/0/2: -1.0 is negative"),
    "flow twice": ("/tasks/2/flows", [[0, 1, 1], [0, 1, 1]], "/tasks/2/flows/1: from 0 to 1 again"),
    "flows a number": ("/tasks/2/flows", 3, "/tasks/2/flows: is 3; give a list ([from, to, byte"),
    "after a name": ("/tasks/1/after", "T1", "/tasks/1/after: is 'T1'; give a list of task ids"),
    "after unknown": (
        "/tasks/1/after",
        ["T9"],
        "/tasks/1/after/0: is 'T9', which is not the id of a task",
    ),
    "after twice": ("/tasks/1/after", ["T1", "T1"], "/tasks/1/after/1: repeats 'T1'"),
    "after itself": ("/tasks/0/after", ["T1"], "/tasks/0/after: is circular: 'T1' after 'T1'"),
    "after in a circle": ("/tasks/0/after", ["T2"], "/tasks/0/after: is circular: 'T1' after 'T2'"),
    "type missing": ("/profiles/two/type", REMOVED, "/profiles/two: has no type; give one of par"),
    "type unknown": ("/profiles/two/type", "paralel", "/profiles/two/type: is 'paralel', which is"),
    "type not a name": ("/profiles/two/type", 4, "/profiles/two/type: is 4; give the name"),
    "profile not an object": ("/profiles/two", 4, "/profiles/two: is 4; give an object with a ty"),
    "profile without name": ("/profiles/", {"type": "delay"}, "/profiles/: is ''; give a name"),
    "profile field": ("/profiles/two/delay", 1, "/profiles/two/delay: is not a field of a profile"),
    "profile no work": ("/profiles/p", {"type": "parallel"}, "/profiles/p: has no work; give cpu"),
    "profile cpu empty": ("/profiles/two/cpu", [], "/profiles/two/cpu: is empty; give one number"),
    "profile com size": ("/profiles/two/com", [1, 2, 3], "/profiles/two/com: has 3 values for 2 h"),
    "profile com a number": ("/profiles/two/com", 5, "/profiles/two/com: is 5; give a list (n x n"),
    "profile com ragged": ("/profiles/two/com", [[1, 2], [3]], "/profiles/two/com/1: has 1 values"),
    "profile com bad entry": ("/profiles/two/com", [[1, 2], [3, "4"]], "/profiles/two/com/1/1: is"),
    "profile com empty rows": ("/profiles/two/com", [[], []], "/profiles/two/com/0: is empty"),
    "com of no n": (
        "/profiles/p",
        {"type": "parallel", "com": [1, 2]},
        "/profiles/p/com: has 2 va",
    ),
    "flow of no rank": (
        "/profiles/p",
        {"type": "parallel", "flows": [[0, 10**7, 5]]},
        "/profiles/p/flows/0/1: 1e+07 is not one of the",
    ),
    "delay missing": ("/profiles/wait/delay", REMOVED, "/profiles/wait: has no delay; give it in"),
    "delay negative": ("/profiles/wait/delay", -2, "/profiles/wait/delay: -2.0 is negative"),
    "homogeneous list": (
        "/profiles/p",
        {"type": "parallel_homogeneous", "cpu": [1]},
        "/profiles/p/cpu: is a list; give a number",
    ),
    "homogeneous negative": (
        "/profiles/p",
        {"type": "parallel_homogeneous", "cpu": 1, "com": -1},
        "/profiles/p/com: -1.0 is negative",
    ),
    "homogeneous nothing": (
        "/profiles/p",
        {"type": "parallel_homogeneous_total"},
        "/profiles/p: has no work; give cpu or com",
    ),
    "strategy unknown": (
        "/profiles/p",
        {"type": "parallel_homogeneous", "cpu": 1, "generation_strategy": "spread"},
        "/profiles/p/generation_strategy: is 'spread'; give Defined",
    ),
    "seq missing": ("/profiles/seq/seq", REMOVED, "/profiles/seq/seq: is not a list of profile n"),
    "seq empty": ("/profiles/seq/seq", [], "/profiles/seq/seq: is not a list of profile names"),
    "seq unknown": ("/profiles/seq/seq/1", "wiat", "/profiles/seq/seq/1: is 'wiat', which is unkn"),
    "seq not a name": ("/profiles/seq/seq/1", {}, "/profiles/seq/seq/1: is an object; give the na"),
    "seq of itself": ("/profiles/seq/seq/1", "seq", "/profiles/seq/seq: contains 'seq', which con"),
    "repeat 0": ("/profiles/seq/repeat", 0, "/profiles/seq/repeat: 0 is not a whole number from 1"),
    "repeat 1.5": ("/profiles/seq/repeat", 1.5, "/profiles/seq/repeat: is 1.5; give a whole numb"),
    "repeat huge": ("/profiles/seq/repeat", 10**10, "/profiles/seq/repeat: 10000000000 is not a"),
    "repeat in repeat": (
        "/profiles/p",
        {"type": "composed", "seq": ["wait", "seq", "q"]},
        "/profiles/p/seq/2: is 'q', which is unknown",
    ),
    "npz and more": ("/tasks/1/cpu", {"npz": "a", "kee": 1}, "/tasks/1/cpu/kee: is not a field"),
    "npz without key": ("/tasks/1/cpu", {"npz": "a"}, "/tasks/1/cpu: has no key; give the npz"),
    "npz absent": ("/tasks/1/cpu", {"npz": "a.npz", "key": "k"}, "a.npz is not a file"),
    "npz is no name": (
        "/tasks/1/cpu",
        {"npz": 4, "key": "k"},
        "/tasks/1/cpu/npz: is 4; give a str",
    ),
    "npz is the tasks file": (
        "/tasks/1/cpu",
        {"npz": "tasks.json", "key": "k"},
        "tasks.json is not an .npz file that can be read",
    ),
    "npz is a directory": ("/tasks/1/cpu", {"npz": ".", "key": "k"}, "is not a file"),
}


def changed(place, value):
    document = copy.deepcopy(BASE)
    *path, last = [part.replace("~1", "/") for part in place.split("/")[1:]]
    target = document
    for part in path:
        target = target[int(part)] if isinstance(target, list) else target[part]
    if isinstance(target, list):
        last = int(last)
    if value is REMOVED:
        del target[last]
    else:
        target[last] = value
    return document


@pytest.mark.parametrize("name", BAD)
def test_documents_with_one_mistake(tmp_path, name):
    place, value, expected = BAD[name]
    content = json.dumps(changed(place, value)).encode()
    text = message(tmp_path, content)
    assert text.startswith(": /")
    assert expected in text


def test_the_unchanged_document_is_right(tmp_path):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(BASE))
    assert len(load_tasks(path)) == 3


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        (
            {"p": {"type": "composed", "seq": ["q"]}, "q": {"type": "composed", "seq": ["p"]}},
            "/profiles/q/seq: contains 'p', which contains it",
        ),
        (
            {f"p{k}": {"type": "composed", "seq": [f"p{k + 1}"]} for k in range(5000)}
            | {"p5000": {"type": "delay", "delay": 1}},
            "is nested more than 100 deep; flatten it",
        ),
        (
            {f"p{k}": {"type": "composed", "seq": [f"p{k + 1}"] * 2} for k in range(60)}
            | {"p60": {"type": "delay", "delay": 1}},
            "stages a round, over 1000000",
        ),
        (
            {
                "two": {"type": "parallel", "cpu": [1, 2]},
                "three": {"type": "parallel", "cpu": [1, 2, 3]},
                "p": {"type": "composed", "seq": ["two", "three"]},
            },
            "/profiles/p/seq: has stages for different numbers of hosts (2, 3)",
        ),
        (
            {
                "two": {"type": "parallel", "cpu": [1, 2]},
                "three": {"type": "parallel", "flows": [[0, 2, 1]]},
                "p": {"type": "composed", "seq": ["two", "three"]},
            },
            "/profiles/p/seq: has stages for different numbers of hosts (2, 3)",
        ),
    ],
)
def test_bad_sets_of_profiles(tmp_path, profiles, expected):
    document = {"profiles": profiles, "tasks": [{"id": 1, "delay": 1}]}
    assert expected in message(tmp_path, json.dumps(document).encode())


def test_flows_of_a_profile_need_enough_hosts(tmp_path):
    document = {
        "profiles": {"p": {"type": "parallel", "flows": [[0, 2, 1]]}},
        "tasks": [{"id": 1, "profile": "p", "hosts": ["a", "b"]}],
    }
    text = message(tmp_path, json.dumps(document).encode())
    assert "/tasks/0/hosts: has 2 hosts for a profile with flows between 3 ranks" in text


def test_lists_of_hosts_are_bounded_together(tmp_path, monkeypatch):
    monkeypatch.setattr(host_names, "MAX_TOTAL_HOSTS", 1000)
    tasks = [{"id": k, "hosts": [f"n[{k}-{k + 99}]"], "cpu": 1} for k in range(20)]
    text = message(tmp_path, json.dumps({"tasks": tasks}).encode())
    assert "/tasks/10/hosts/0: the host lists of this file contain more than 1000 hosts" in text


def test_a_long_circle_is_told_shortly(tmp_path):
    tasks = [{"id": f"t{k}", "delay": 1, "after": [f"t{(k + 1) % 500}"]} for k in range(500)]
    text = message(tmp_path, json.dumps({"tasks": tasks}).encode())
    assert "is circular: 't0' after 't1' after 't2' after 't0' (through 500 tasks)" in text


def test_all_unknown_fields_and_circles_are_told(tmp_path):
    task = {"id": "a", "delay": 1, "colour": 1, "strat": 2, "waltime": 3}
    text = message(tmp_path, json.dumps({"tasks": [task]}).encode(), 3)
    for name in ("colour", "strat", "waltime"):
        assert f"/tasks/0/{name}: is not a field of a task" in text
    after = {"a": ["b"], "b": ["a"], "c": ["c"], "d": ["e"]}
    tasks = [{"id": name, "delay": 1, "after": others} for name, others in after.items()]
    stages = {"p": ["q"], "q": ["p"], "r": ["r"]}
    profiles = {name: {"type": "composed", "seq": seq} for name, seq in stages.items()}
    text = message(tmp_path, json.dumps({"tasks": tasks, "profiles": profiles}).encode(), 2)
    assert "/profiles/r/seq: contains 'r', which contains it" in text
    text = message(tmp_path, json.dumps({"tasks": tasks}).encode(), 3)
    assert "/tasks/0/after: is circular: 'a' after 'b' after 'a'" in text
    assert "/tasks/2/after: is circular: 'c' after 'c'" in text
    assert "/tasks/3/after/0: is 'e', which is not the id of a task" in text


def npz_message(tmp_path, key="com"):
    task = {"id": 1, "hosts": ["a", "b"], "com": {"npz": "w.npz", "key": key}}
    return message(tmp_path, json.dumps({"tasks": [task]}).encode())


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.zeros((2, 3)), "/tasks/0/com: has shape 2 x 3 for 2 hosts"),
        (np.zeros(3), "/tasks/0/com: has 3 values for 2 hosts"),
        (np.float64(3), "/tasks/0/com: has a single number"),
        (np.array([[0, np.nan], [0, 0]]), "/tasks/0/com/0/1: nan is not a finite number"),
        (np.array([0, 1, -1, 0]), "/tasks/0/com/2: -1.0 is negative"),
        (np.array([True] * 4), "array 'com' holds bool values; save numbers"),
        (np.array(["a"] * 4), "array 'com' holds <U1 values; save numbers"),
        (np.zeros(4, dtype=complex), "holds complex128 values"),
        (np.array([1, None, 2, 3], dtype=object), "array 'com' holds object values"),
    ],
)
def test_bad_arrays_in_npz_files(tmp_path, array, expected):
    np.savez(tmp_path / "w.npz", com=array)
    assert expected in npz_message(tmp_path)


def test_an_npz_file_without_the_key(tmp_path):
    np.savez(tmp_path / "w.npz", com=np.zeros(4))
    assert "has no array 'cpu'; it has: 'com'" in npz_message(tmp_path, "cpu")


def test_an_npz_file_cut_short(tmp_path):
    np.savez(tmp_path / "w.npz", com=np.zeros(4))
    content = (tmp_path / "w.npz").read_bytes()
    (tmp_path / "w.npz").write_bytes(content[: len(content) // 2])
    assert "is not an .npz file that can be read" in npz_message(tmp_path)


def test_an_npz_file_with_damaged_data(tmp_path):
    np.savez_compressed(tmp_path / "w.npz", com=np.arange(4.0))
    content = bytearray((tmp_path / "w.npz").read_bytes())
    content[60:80] = b"\xff" * 20
    (tmp_path / "w.npz").write_bytes(content)
    assert "is not an .npz file that can be read" in npz_message(tmp_path)


def test_an_array_that_claims_to_be_huge_is_not_read(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }".ljust(117)
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header + b"\n"
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.writestr("com.npy", npy)
    assert re.search(r"array 'com' has shape \(100000000000,\); at most", npz_message(tmp_path))


def test_the_mistakes_of_all_tasks_are_told(tmp_path):
    flows = {"T1": [[0, 2, 7]], "T2": [[0, 1, 7], [0, 1, 7]], "T3": "none"}
    tasks = [{"id": name, "hosts": ["a", "b"], "flows": sent} for name, sent in flows.items()]
    document = {"profiles": {"p": {"type": "delay"}}, "tasks": tasks}
    document["tasks"].append({"profile": "p", "start": "now", "weight": "x", "after": "T1"})
    (tmp_path / "tasks.json").write_text(json.dumps(document))
    with pytest.raises(WorkloadError) as caught:
        load_tasks(tmp_path / "tasks.json")
    head, *told = str(caught.value).splitlines()
    assert head.endswith("tasks.json: 8 problems:")
    assert [line.partition(": ")[0].strip() for line in told] == [
        "/profiles/p", "/tasks/0/flows/0/1", "/tasks/1/flows/1", "/tasks/2/flows", "/tasks/3",
        "/tasks/3/start", "/tasks/3/weight", "/tasks/3/after",
    ]  # fmt: skip
    assert told[2].endswith("from 0 to 1 again; give each pair once")
