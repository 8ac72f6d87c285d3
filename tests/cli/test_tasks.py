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


def test_schema(capsys):
    assert main(["tasks", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "ptaskmodel tasks file"
