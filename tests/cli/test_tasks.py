"""``ptaskmodel tasks``."""

from __future__ import annotations

import json

import pytest

from ptaskmodel.cli import main

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="None"><host id="a" speed="1f"/></zone></platform>
"""


@pytest.fixture
def files(tmp_path):
    platform, tasks = tmp_path / "p.xml", tmp_path / "t.json"
    platform.write_text(PLATFORM)
    tasks.write_text(
        json.dumps(
            {
                "tasks": [
                    {"id": 1, "hosts": ["a"], "cpu": 1},
                    {"id": 2, "hosts": ["a", "b"], "cpu": 1, "start": 2},
                ]
            }
        )
    )
    return str(platform), str(tasks)


def test_validate(files, capsys):
    assert main(["tasks", "validate", files[1]]) == 0
    assert capsys.readouterr().out == f"{files[1]}: 2 tasks on 2 hosts, start from 0 to 2 s\n"


def test_validate_against_a_platform(files, capsys):
    assert main(["tasks", "validate", files[1], "--platform", files[0]]) == 2
    assert f"/tasks/1/hosts: 'b' is not a host of {files[0]}" in capsys.readouterr().err


TWO_HOSTS = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><host id="dead" speed="0f"/>
<link id="l" bandwidth="1GBps" latency="0s"/>
<route src="a" dst="b"><link_ctn id="l"/></route>
</zone></platform>
"""


def warnings(tmp_path, capsys, tasks, profiles=None):
    """(pointer, kind) of what `tasks validate` says."""
    platform, file = tmp_path / "two.xml", tmp_path / "odd.json"
    platform.write_text(TWO_HOSTS)
    named = [{"id": k} | task for k, task in enumerate(tasks)]
    file.write_text(json.dumps({"profiles": profiles or {}, "tasks": named}))
    assert main(["tasks", "validate", str(file), "--platform", str(platform)]) == 0
    *lines, summary = capsys.readouterr().out.splitlines()
    assert ("warning" in summary) == bool(lines)
    return [tuple(line.removeprefix(f"{file}: ").split(": ")[:2]) for line in lines]


PAIR = {"hosts": ["a", "b"]}


def test_nothing_to_warn_of(tmp_path, capsys):
    tasks = [
        PAIR | {"cpu": 1e9, "com": [0, 1e9, 1e9, 0], "walltime": 2},
        PAIR | {"flows": [[0, 1, 1e9]]},
        {"hosts": ["dead"], "delay": 5},
        PAIR | {"profile": "steps"},
        {"hosts": ["a"], "cpu": 0},
    ]
    profiles = {
        "one": {"type": "parallel", "cpu": [1e9, 0]},
        "two": {"type": "parallel", "cpu": [0, 1e9], "flows": [[0, 1, 1e6]]},
        "steps": {"type": "composed", "seq": ["one", "two"]},
    }
    assert warnings(tmp_path, capsys, tasks, profiles) == []


def test_unused_profiles(tmp_path, capsys):
    profiles = {
        "used": {"type": "delay", "delay": 1},
        "in/use": {"type": "composed", "seq": ["used"]},
        "not/used": {"type": "delay", "delay": 1},
    }
    found = warnings(tmp_path, capsys, [{"profile": "in/use"}], profiles)
    assert found == [("/profiles/not~1used", "unused profile")]


def test_hosts_that_only_exchange_or_do_nothing(tmp_path, capsys):
    profile = {"type": "parallel", "cpu": [1e9, 0], "com": [0, 1e6, 0, 0]}
    tasks = [
        PAIR | {"profile": "p"},
        PAIR | {"profile": "p"},
        PAIR | {"cpu": [1e9, 0]},
    ]
    assert warnings(tmp_path, capsys, tasks, {"p": profile}) == [
        ("/profiles/p", "traffic to an idle host"),
        ("/tasks/2", "idle host"),
    ]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            PAIR | {"cpu": 1e9, "com": [0, 3e9, 0, 0], "walltime": 2},
            ("/tasks/0/walltime", "walltime"),
        ),
        ({"hosts": ["a"], "cpu": 1e19}, ("/tasks/0", "long")),
        ({"hosts": ["a"], "cpu": 60}, ("/tasks/0", "short")),
        ({"hosts": ["dead"], "cpu": 1e9}, ("/tasks/0", "speed 0")),
        ({"hosts": ["a", "dead"], "flows": [[0, 1, 1e9]]}, ("/tasks/0", "no route")),
    ],
)
def test_what_the_platform_says(tmp_path, capsys, task, expected):
    assert warnings(tmp_path, capsys, [task]) == [expected]


def test_schema(capsys):
    assert main(["schema", "tasks"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "ptaskmodel tasks file"
