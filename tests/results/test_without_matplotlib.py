"""Where matplotlib is not installed pages are written, and say what lacks in them."""

from __future__ import annotations

import json
import sys

import pytest

from ptaskmodel.cli import main
from ptaskmodel.results import PICTURES

LACK = "pictures need matplotlib; run: pip install matplotlib"
JOBS = {
    "nb_res": 2,
    "profiles": {"p": {"type": "delay", "delay": 10}},
    "jobs": [{"id": str(k), "subtime": k, "res": 2, "profile": "p"} for k in range(3)],
}
TRACE = "0 init\n0 send 1 0 1e6\n0 compute 1e9\n0 finalize\n1 init\n1 recv 0 0 1e6\n1 finalize\n"
PLAN = """name = "Two lengths"
run = "simulate"
[parameters]
platform = "platform.xml"
[factors]
tasks = ["short.json", "long.json"]
"""
PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us"/>
</platform>
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("runs")
    (made / "platform.xml").write_text(PLATFORM)
    (made / "jobs.json").write_text(json.dumps(JOBS))
    (made / "trace.txt").write_text(TRACE)
    platform = str(made / "platform.xml")
    ran = ["batch", platform, str(made / "jobs.json"), "--profiles", "ptask", "--attribution"]
    assert main([*ran, "-o", str(made / "jobs")]) == 0
    ran = ["replay", platform, str(made / "trace.txt"), "--attribution", "--timeline"]
    assert main([*ran, "-o", str(made / "ranks")]) == 0
    (made / "plan.toml").write_text(PLAN)
    for name, flop in (("short", 1e9), ("long", 3e9)):
        task = {"id": "a", "hosts": ["n0"], "cpu": [flop]}
        (made / f"{name}.json").write_text(json.dumps({"tasks": [task]}))
    assert main(["campaign", "run", str(made / "plan.toml"), "-o", str(made / "campaign")]) == 0
    return made


@pytest.fixture(autouse=True)
def without(monkeypatch):
    """Python finds no matplotlib."""
    names = [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]
    for name in ("matplotlib", "matplotlib.figure", *names):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("run", ["jobs", "ranks", "campaign"])
def test_a_page_draws_its_charts_itself(place, run, tmp_path):
    assert main(["report", str(place / run), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert LACK not in page
    jobs = str(place / "jobs")
    assert main(["compare", jobs, jobs, "--page", str(tmp_path / "page.html")]) == 0
    assert LACK not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_refused_in_one_line(place, picture, tmp_path, capsys):
    run = "ranks" if picture in ("ranks", "matrix", "times") else "jobs"
    code = main(["plot", str(place / run), picture, "-o", str(tmp_path / "picture.png")])
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1, said


@pytest.mark.filterwarnings("default")
def test_a_trace_is_compared_without_its_picture(place, tmp_path, caplog):
    made = tmp_path / "compared"
    inputs = [str(place / "platform.xml"), str(place / "trace.txt")]
    assert main(["trace", "compare", *inputs, "-o", str(made)]) == 0
    assert sorted(path.name for path in made.iterdir()) == ["comparison.csv", "summary.json"]
    assert f"comparison.png is not drawn: {LACK}" in caplog.messages
