"""Columns of tasks.csv: a field of the record and a row of tables.toml, as the guide says."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys

import pytest
from documents import ROOT, blocks

from ptaskmodel.results.schemas import schema_of
from ptaskmodel.simulation.records import COLUMNS

GUIDE = ROOT / "docs" / "guides" / "extend.md"
TASKS = {"profiles": {"p": {"type": "parallel", "cpu": [100, 100], "com": [0, 0, 0, 0]}}}
TASKS["tasks"] = [{"id": "t", "profile": "p", "hosts": ["a", "b"]}]
TYPES = {"float | None": "number", "str": "string", "str | None": "string", "int": "integer"}


def test_rows_and_fields_are_the_same_and_of_the_same_types():
    schema = schema_of("tasks.csv")
    assert schema["required"] == list(COLUMNS)
    for column, field in COLUMNS.items():
        found = schema["properties"][column]
        inner = found.get("anyOf", [found, {}])
        if field.type == "tuple[str, ...]":
            assert found["type"] == ["string", "null"]
        else:
            assert inner[0]["type"] == TYPES[field.type]
            assert ("anyOf" in found) == field.type.endswith("None")


def put(file, before, text):
    source = file.read_text()
    assert source.count(before) == 1
    file.write_text(source.replace(before, before + text))


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A copy of the package with the additions of the guide."""
    place = tmp_path_factory.mktemp("extended")
    package = place / "ptaskmodel"
    shutil.copytree(ROOT / "ptaskmodel", package, ignore=shutil.ignore_patterns("__pycache__"))
    page = blocks(GUIDE.read_text(encoding="utf-8"))
    field, value, row = (block.text for block in page if block.text.strip().startswith("num_hosts"))
    records = package / "simulation" / "records.py"
    put(records, "    hosts: tuple[str, ...]\n", field)
    put(records, "        hosts=hosts,\n", value)
    rows = (package / "results" / "schemas" / "tables.toml").read_text()
    head, mark, rest = rows.partition("time_alone = ")
    (package / "results" / "schemas" / "tables.toml").write_text(head + row + mark + rest)
    (place / "t.json").write_text(json.dumps(TASKS))
    shutil.copy(ROOT / "platforms" / "worked_example.xml", place / "p.xml")
    return place


def output(place, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(place), "PTASKMODEL_KERNELS": "interpreted"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_new_column_is_in_the_table_and_in_what_is_printed(extended):
    command = ["-m", "ptaskmodel", "simulate", "p.xml", "t.json", "-o", "out", "--json"]
    (printed,) = json.loads(output(extended, *command, "--attribution"))["records"]
    with (extended / "out" / "tasks.csv").open() as stream:
        (written,) = csv.DictReader(stream)
    assert printed["num_hosts"] == 2
    assert list(written) == [*COLUMNS, "num_hosts", "time_alone", "slowdown"]
    assert written["num_hosts"] == "2"


def test_a_new_column_is_in_schemas_and_on_the_page(extended):
    program = (
        "from ptaskmodel.results.schemas import schema_of as of\n"
        "print(of('tasks.csv')['properties']['num_hosts']['type'])\n"
        "print(of('simulate')['properties']['records']['items']['required'][-1])"
    )
    assert output(extended, "-c", program).split() == ["integer", "num_hosts"]
    for folder in ("reference", "guides"):
        shutil.copytree(ROOT / "docs" / folder, extended / "docs" / folder)
    shutil.copy(ROOT / "docs" / "reference_pages.py", extended / "docs")
    output(extended, "docs/reference_pages.py")
    page = (extended / "docs" / "reference" / "results.md").read_text()
    assert "| `num_hosts` | how many hosts it has |" in page
