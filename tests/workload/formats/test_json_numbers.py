"""Arrays of numbers cut out of JSON: same values and same messages as without."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ptaskmodel.errors import WorkloadError
from ptaskmodel.files import UTF8_MARK
from ptaskmodel.workload.formats import json as json_document
from ptaskmodel.workload.formats.json import SMALLEST, cut_numbers, read_json
from ptaskmodel.workload.formats.tasks_json import load_tasks

NAMES = ("cpu", "com", "flows")
EVER = 10**9


def bits(values):
    return [struct.pack("d", value) for value in values]


def cut(text, count=SMALLEST):
    """The values read from ``count`` times a number, None if it was left in the text."""
    short, arrays = cut_numbers(f'{{"cpu": [{", ".join([text] * count)}]}}'.encode(), NAMES)
    if not arrays:
        return None
    assert short == '{"cpu": NaN}'
    return arrays[0].tolist()


digits = st.text("0123456789", min_size=1, max_size=19)
odd_numbers = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["", "-"]), digits),
    st.builds("{}.{}".format, digits, digits),
    st.builds("{}e{}".format, digits, st.integers(-25, 25)),
    st.builds("{}.{}E+{}".format, digits, digits, st.integers(0, 12)),
    # Near the middle of two doubles, and one that is.
    st.builds(lambda k, d: f"{2**53 + k}.{d}", st.integers(0, 9), digits),
    st.builds(lambda k, d: f"{10**17 + k}e{d}", st.integers(0, 99), st.integers(0, 9)),
)


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.floats(0, 1e22).map(repr), st.integers(-(10**18), 10**18).map(str), odd_numbers)
)
def test_a_number_is_read_as_python_does_or_left(text):
    try:
        expected = float(json.loads(text))
    except ValueError:
        expected = None
    found = cut(text)
    if found is not None:
        assert expected is not None
        assert bits(found) == bits([expected] * SMALLEST)


@pytest.mark.parametrize(
    "text", ["0", "-0", "-0.0", "7", "1.5", "1e3", "1E-3", "0.1", "123456789.123456", "1e22"]
)
def test_usual_numbers_are_read(text):
    assert bits(cut(text)) == bits([float(json.loads(text))] * SMALLEST)


def test_most_numbers_of_seventeen_digits_are_read():
    values = np.random.default_rng(1).uniform(0.0, 1e12, 1000).tolist()
    assert sum(cut(repr(value)) is not None for value in values) > 950
    assert all(bits(cut(repr(x)) or [x]) == bits([x] * len(cut(repr(x)) or [x])) for x in values)


@pytest.mark.parametrize(
    "text",
    [
        *("01", "+1", ".5", "1.", "1e", "1e+", "--1", "1e400", "1e23", "1" * 19, "1_0", "1 0", ""),
        *("NaN", "true", "null", '"1"', "[]", "[[1,2]]", "1,,2", "1]", "0x1", "\u0661"),
    ],
)
def test_what_is_not_understood_stays(text):
    assert cut(text) is None


def test_rows_need_one_length():
    def arrays(text):
        return [array.tolist() for array in cut_numbers(text.encode(), NAMES)[1]]

    rows = [[k, k + 1, 0.5] for k in range(4)]
    assert arrays(json.dumps({"flows": rows})) == [rows]
    assert arrays(json.dumps({"flows": [*rows, [1, 2]]})) == []
    assert arrays(json.dumps({"flows": [*rows, 1]})) == []
    assert arrays(json.dumps({"flows": [1, *rows]})) == []
    assert arrays(json.dumps({"flows": [rows]})) == []
    assert arrays(json.dumps({"other": rows})) == []
    assert arrays(json.dumps({"flows": rows[:2]})) == []


def test_strings_are_left_alone():
    numbers = json.dumps(list(range(9)))
    text = json.dumps({"a": f'"cpu": {numbers}', '"cpu': 3, "cpu": "[1,2,3,4,5,6,7,8,9]"})
    assert cut_numbers(text.encode(), NAMES) == (text, [])


def plain(value):
    """The document with lists in place of arrays."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list) else value


numbers = st.one_of(st.integers(-9, 10**6), st.floats(0, 1e12), st.just(-0.0))
rows = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=5)
arrays = st.one_of(st.lists(numbers, min_size=6, max_size=12), rows)
values = st.recursive(
    st.one_of(arrays, numbers, st.text('"\\[]:,cpu', max_size=6), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*NAMES, "x", 'y"cpu']), inner, max_size=4),
    ),
    max_leaves=6,
)


def outcome(read, path, large, monkeypatch):
    monkeypatch.setattr(json_document, "LARGE", large)
    try:
        return read(path)
    except WorkloadError as error:
        return str(error)


def edited(data, text):
    """The text with a few characters changed."""
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(text)))
        piece = data.draw(st.sampled_from(["", *'[]{},:"0-.eN\\ ', "NaN", "Infinity", '"cpu":']))
        text = text[:place] + piece + text[place + data.draw(st.integers(0, 1)) :]
    return text


@settings(max_examples=100, deadline=None)
@given(values, st.sampled_from([None, 1]), st.data())
def test_a_document_is_the_same_with_and_without_cutting(tmp_path_factory, value, indent, data):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(edited(data, json.dumps(value, indent=indent)))

    def read(path):
        return plain(read_json(path, arrays=NAMES))

    with pytest.MonkeyPatch.context() as patch:
        quick, slow = (outcome(read, path, large, patch) for large in (0, EVER))
    if isinstance(slow, str) or isinstance(quick, str):
        assert quick == slow
    else:
        # Whole numbers of an array are floats.
        one, other = (json.loads(json.dumps(value), parse_int=float) for value in (slow, quick))
        assert json.dumps(one) == json.dumps(other)


TASKS = {
    "profiles": {
        "p": {"type": "parallel", "cpu": [1.5] * 8},
        "q": {"type": "parallel_homogeneous", "cpu": 1, "com": 2},
    },
    "tasks": [
        {"id": "a", "hosts": ["n[0-7]"], "profile": "p"},
        {"id": "b", "hosts": ["n[0-3]"], "com": [[0, 1, 2, 3]] * 4, "cpu": [1, 2, 3, 4]},
        {"id": "c", "hosts": ["n[0-3]"], "flows": [[0, 1, 5], [1, 2, 5.5], [1, 0, 7], [3, 3, 1]]},
        {"id": "d", "hosts": ["n[0-1]"], "profile": "q", "after": ["a"]},
    ],
}


def told(tasks):
    demands = [
        [part.demand(len(task.hosts)) for part in task.work.parts() if part.duration_s is None]
        for task in tasks
    ]
    return [(task.id, task.hosts, asked) for task, asked in zip(tasks, demands, strict=True)]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_tasks_and_messages_are_the_same_with_and_without_cutting(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "tasks.json"
    text = json.dumps(TASKS)
    if data.draw(st.booleans()):  # another value of an amount
        key = data.draw(st.sampled_from(['"cpu": ', '"com": ', '"flows": ']))
        place = text.index(key) + len(key)
        value = data.draw(st.one_of(arrays, values).map(json.dumps))
        decoded, end = json.JSONDecoder().raw_decode(text[place:])
        assume(decoded is not None)
        text = text[:place] + value + text[place + end :]
    path.write_text(edited(data, text))
    with pytest.MonkeyPatch.context() as patch:
        quick, slow = (
            outcome(lambda path: repr(told(load_tasks(path))), path, large, patch)
            for large in (0, EVER)
        )
    assert quick == slow


def test_large_files_are_cut(tmp_path):
    task = {"id": "a", "hosts": ["n[0-199]"], "com": [[1.25] * 200] * 200}
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps({"tasks": [task]}))
    assert path.stat().st_size > json_document.LARGE
    assert isinstance(read_json(path, arrays=NAMES)["tasks"][0]["com"], np.ndarray)
    assert load_tasks(path)[0].work.flow_bytes.sum() == 50_000.0


@pytest.mark.parametrize("large", [0, EVER])
def test_what_is_not_utf_8_is_told_with_its_line(tmp_path, monkeypatch, large):
    monkeypatch.setattr(json_document, "LARGE", large)
    path = tmp_path / "tasks.json"
    numbers = json.dumps(list(range(9))).encode()
    path.write_bytes(b'{"cpu": ' + numbers + b',\n"description": "h\xf4te"}')
    with pytest.raises(WorkloadError, match=r"tasks\.json:2: is not UTF-8"):
        read_json(path, arrays=NAMES)
    path.write_bytes(UTF8_MARK + b'{"cpu": ' + numbers + b"}")
    assert list(read_json(path, arrays=NAMES)["cpu"]) == list(range(9))


@pytest.mark.jit
def test_numba_is_not_needed():
    text = json.dumps({"cpu": [float(k) for k in range(SMALLEST)]})
    code = (
        "import sys\nfrom ptaskmodel.workload.formats.json import cut_numbers\n"
        f"assert cut_numbers({text.encode()!r}, ('cpu',))[1]\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
