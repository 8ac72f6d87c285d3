"""The format that the guide adds is registered, written, recognised and read back."""

from __future__ import annotations

import re
import sys

import pytest
from documents import ROOT

from ptaskmodel.cli import main
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats import FORMATS, Format
from ptaskmodel.workload.models import lublin
from ptaskmodel.workload.reading import format_of, read_workload, write_workload

GUIDE = ROOT / "docs" / "guides" / "extend.md"


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """The format of the guide, in the table."""
    text = GUIDE.read_text(encoding="utf-8").split("## A format")[1].split("\n## ")[0]
    module, entry = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    (tmp_path / "lines_of_the_guide.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    name, suffix = re.search(r'"(\w+)": Format\("[\w.]+", \("(\.\w+)",\)\)', entry).groups()
    monkeypatch.setitem(FORMATS, name, Format("lines_of_the_guide", (suffix,)))
    yield name
    sys.modules.pop("lines_of_the_guide", None)


def test_a_workload_written_in_a_new_format_is_read_back(tmp_path, lines):
    made = lublin(20, 8, seed=3)
    for path in (tmp_path / "jobs.lines", tmp_path / "jobs.lines.gz"):
        write_workload(made, path)
        again = read_workload(path)
        assert [(j.id, j.submit_time_s, j.num_hosts, j.work.duration_s) for j in again.jobs] == [
            (j.id, j.submit_time_s, j.num_hosts, j.work.duration_s) for j in made.jobs
        ]


def test_a_new_format_is_recognised_by_its_content(tmp_path, lines):
    path = tmp_path / "jobs"
    write_workload(lublin(2, 8, seed=3), path, lines)
    assert format_of(path) == lines
    path.write_text("job submit_s hosts run_s\n1 0 x 5\n")
    with pytest.raises(WorkloadError, match=r"jobs:2: '1 0 x 5': give job submit_s hosts run_s"):
        read_workload(path)


def test_the_command_line_takes_a_new_format_by_its_name(tmp_path, lines, capsys):
    assert main(["workload", "generate", "lublin", "-o", str(tmp_path / "a.lines")]) == 0
    assert main(["workload", "info", str(tmp_path / "a.lines")]) == 0
    assert "1000 delay" in capsys.readouterr().out


def test_what_is_in_no_known_format_is_told(tmp_path):
    path = tmp_path / "x"
    path.write_text("hello\nyou")
    with pytest.raises(
        WorkloadError, match=r"begins with '.*', like no known format of workloads; " r"give"
    ):
        read_workload(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"<platform/>", "is XML, the format of platforms; give the platform first"),
        ("; Version: 2".encode("utf-16"), "is UTF-16; save it as UTF-8"),
    ],
)
def test_files_of_another_kind_are_known(tmp_path, text, message):
    (tmp_path / "jobs").write_bytes(text)
    with pytest.raises(WorkloadError, match=message):
        read_workload(tmp_path / "jobs")
