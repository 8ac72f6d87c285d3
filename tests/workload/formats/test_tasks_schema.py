"""The published JSON Schema says what the reader says, as far as a schema can."""

from __future__ import annotations

import copy
import json
from importlib import resources

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tasks_documents import DOCUMENTS

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats.tasks_json import load_tasks

SCHEMA = json.loads(
    resources.files("ptaskmodel.workload").joinpath("tasks.schema.json").read_text()
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

# Values that are wrong nearly everywhere.
ODD_VALUES = [
    None,
    True,
    -1,
    0,
    1e101,
    1e-200,
    1.5,
    "",
    "a",
    "T1",
    [],
    [[]],
    {},
    [1],
    [[0, 1]],
    [None],
]
ODD = st.sampled_from(ODD_VALUES).map(copy.deepcopy)


def places(value, path=()):
    """The path of every value in a document."""
    yield path
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            yield from places(member, (*path, key))


@st.composite
def mutated_documents(draw):
    """A valid document with one to three values removed, replaced or added."""
    document = copy.deepcopy(draw(st.sampled_from(DOCUMENTS)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(sorted(places(document), key=str)))
        if not path:
            continue
        target = document
        for key in path[:-1]:
            target = target[key]
        kind = draw(st.sampled_from(["remove", "replace", "copy", "add"]))
        if kind == "remove":
            del target[path[-1]]
        elif kind == "replace":
            target[path[-1]] = draw(ODD | st.floats() | st.text(max_size=5))
        elif kind == "copy":
            other = draw(st.sampled_from(sorted(places(document), key=str)))
            value = document
            for key in other:
                value = value[key]
            target[path[-1]] = copy.deepcopy(value)
        elif isinstance(target, list):
            target.append(draw(ODD))
        else:
            names = ["cpu", "com", "flows", "delay", "profile", "after", "type", "x"]
            target[draw(st.sampled_from(names))] = draw(ODD)
    return document


def complaint(path, content):
    """What the reader says of a file, None if it takes it. Anything but a WorkloadError goes by."""
    path.write_bytes(content)
    try:
        load_tasks(path)
    except WorkloadError as error:
        return str(error)
    return None


def loads(path, document):
    said = complaint(path, json.dumps(document).encode())
    assert said is None or all(line[:2] == "  " for line in said.splitlines()[1:])
    return said is None


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_valid_documents(document, tmp_path):
    VALIDATOR.validate(document)
    assert loads(tmp_path / "tasks.json", document)


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(document=mutated_documents())
def test_what_the_reader_takes_the_schema_takes_and_nothing_but_its_error_comes_out(
    document, tmp_path
):
    if loads(tmp_path / "tasks.json", document):
        VALIDATOR.validate(document)


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_bytes_changed_at_random_are_never_a_traceback(data, tmp_path):
    content = bytearray(json.dumps(data.draw(st.sampled_from(DOCUMENTS))).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content = content or bytearray(b"{}")
        place = data.draw(st.integers(0, len(content) - 1))
        end = place + data.draw(st.sampled_from([0, 1, 1, 1, 5, 200]))
        content[place:end] = data.draw(st.binary(max_size=3) | st.sampled_from([b"[", b'"', b"9"]))
    said = complaint(tmp_path / "tasks.json", content)
    assert said is None or all(line[:2] == "  " for line in said.splitlines()[1:])


# What a schema can see of the mistakes of test_tasks_json_errors.
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("tasks",), []),
        (("tasks",), {}),
        (("task",), []),
        (("tasks", 0, "id"), None),
        (("tasks", 0, "id"), ""),
        (("tasks", 0, "id"), 1.5),
        (("tasks", 0, "hosts"), "a"),
        (("tasks", 0, "hosts"), []),
        (("tasks", 0, "hosts"), [3]),
        (("tasks", 0, "host"), ["a"]),
        (("tasks", 0, "start"), -1),
        (("tasks", 0, "start"), True),
        (("tasks", 0, "start"), 10**400),
        (("tasks", 0, "walltime"), 0),
        (("tasks", 0, "weight"), 1e-300),
        (("tasks", 0, "cpu"), "5"),
        (("tasks", 0, "cpu"), [-5]),
        (("tasks", 0, "com"), 5),
        (("tasks", 0, "com"), [[1], 2]),
        (("tasks", 0, "flows"), [[0, 1, 5]]),
        (("tasks", 0, "delay"), 5),
        (("tasks", 0, "profile"), "p"),
        (("tasks", 1, "flows"), [[0, 1]]),
        (("tasks", 1, "flows"), [[0, 1.5, 1]]),
        (("tasks", 1, "flows"), {"npz": "a"}),
        (("tasks", 1, "after"), ["a", "a"]),
        (("profiles",), []),
        (("profiles",), {"p": {}}),
        (("profiles",), {"p": {"type": "other"}}),
        (("profiles",), {"p": {"type": "parallel"}}),
        (("profiles",), {"p": {"type": "delay"}}),
        (("profiles",), {"p": {"type": "delay", "delay": 1, "cpu": 1}}),
        (("profiles",), {"p": {"type": "composed", "seq": []}}),
        (("profiles",), {"p": {"type": "parallel_homogeneous", "cpu": [1]}}),
        (("profiles",), {"": {"type": "delay", "delay": 1}}),
    ],
)
def test_both_refuse(path, value, tmp_path):
    document = copy.deepcopy(DOCUMENTS[0])
    target = document
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    assert not VALIDATOR.is_valid(document)
    assert not loads(tmp_path / "tasks.json", document)
