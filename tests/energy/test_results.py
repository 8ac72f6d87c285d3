"""Energy in directories of results: files that add up, what commands say, mistakes in one line."""

from __future__ import annotations

import csv
import itertools
import json
import re
from pathlib import Path

import pytest

import ptaskmodel as pm
from ptaskmodel.cli import main
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures import load, tracks
from ptaskmodel.style.text import column

ROOT = Path(__file__).resolve().parents[2]
TASKS = ROOT / "experiments" / "first_steps" / "worked_example.json"
XML = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="world" routing="Full">
<host id="a" speed="100f" core="2"><prop id="wattage_per_state" value="95:120:200"/></host>
<host id="b" speed="100f">{b}</host>
<link id="l" bandwidth="100Bps" latency="0s"><prop id="wattage_range" value="10:30"/></link>
<route src="a" dst="b"><link_ctn id="l"/></route>
</zone></platform>
"""


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def platform_file(tmp_path):
    def write(b: str = '<prop id="wattage_per_state" value="100:200"/>') -> Path:
        file = tmp_path / "p.xml"
        file.write_text(XML.format(b=b))
        return file

    return write


@pytest.fixture
def invoke(capsys):
    def run(*words: object) -> tuple[int, str]:
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def test_the_files_add_up(invoke, platform_file, tmp_path):
    out = tmp_path / "out"
    done = invoke("simulate", platform_file(), TASKS, "--energy", "-o", out)
    assert done[0] == 0, done[1]
    found = rows(out / "energy.csv")
    joules = {(row["kind"], row["name"]): float(row["energy_J"]) for row in found}
    shares = {(row["kind"], row["name"]): float(row["share_J"]) for row in found}
    total = joules["run", ""]
    assert total == pytest.approx(sum(v for (kind, _), v in joules.items() if kind in LOCAL))
    charged = sum(v for (kind, _), v in shares.items() if kind in LOCAL)
    assert sum(v for (kind, _), v in shares.items() if kind == "task") == pytest.approx(charged)
    curve = [tuple(map(float, row.values())) for row in rows(out / "power.csv")]
    drawn = sum((b[0] - a[0]) * (a[1] + a[2]) for a, b in itertools.pairwise(curve))
    assert drawn == pytest.approx(total)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["energy"]["total_J"] == total
    assert summary["energy"]["peak_W"] == max(a[1] + a[2] for a in curve)
    assert {"energy.csv", "power.csv"} <= set(summary["files"])
    assert "Wh of hosts" in done[1]
    picture = tmp_path / "power.png"
    pm.draw_results(out, "power", picture)
    assert picture.stat().st_size > 1000


LOCAL = ("host", "link")


def test_energy_is_compared_and_reported(invoke, platform_file, tmp_path):
    """100 W idle and 200 W busy on b, where one delay keeps a core busy for an hour."""
    jobs = [{"id": "j", "subtime": 0, "res": 1, "profile": "hour", "walltime": 4000}]
    profiles = {"hour": {"type": "delay", "delay": 3600}}
    workload = tmp_path / "w.json"
    workload.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    places = [tmp_path / name for name in ("metered", "busy", "not")]
    for place, options in zip(
        places, (["--energy"], ["--energy", "--delay-power", "busy"], []), strict=True
    ):
        done = invoke("batch", platform_file(), workload, "-o", place, *options)
        assert done[0] == 0, done[1]
    summaries = [json.loads((place / "summary.json").read_text()) for place in places[:2]]
    joules = [summary["energy"]["total_J"] for summary in summaries]
    more = 100 * (joules[1] / joules[0] - 1)
    lines = [
        re.split(r"\s{2,}", line.strip()) for line in invoke("compare", *places)[1].splitlines()
    ]
    found = {cells[0].partition(" (")[0]: cells for cells in lines if " (" in cells[0]}
    unit = column(joules, "energy")
    first, second = map(unit.text, joules)
    shown = [f"energy ({unit.unit})", first, f"{second}, {more:.2g} % more"]
    assert found["energy"] == [*shown, "less"]
    assert len(found["peak power"]) == 4
    assert "energy (" in invoke("compare", *places[:2])[1]
    assert "energy (" not in invoke("compare", places[2], places[2])[1]
    page = tmp_path / "report.html"
    for place, there in zip(places, (True, True, False), strict=True):
        assert invoke("report", place, "-o", page)[0] == 0
        said = re.search(r'"energy","[^"]*","at most', page.read_text(encoding="utf-8"))
        assert (said is not None) == there


def test_without_a_directory_the_summary_has_it(invoke, platform_file):
    done = invoke("simulate", platform_file(b=""), TASKS, "--energy", "--json")
    energy = json.loads(done[1])["summary"]["energy"]
    assert energy["hosts_J"] > 0
    assert energy["hosts_without_power"] == 1


def test_nobody_pays_for_what_is_not_asked(invoke, platform_file, tmp_path):
    out = tmp_path / "out"
    assert invoke("simulate", platform_file(), TASKS, "-o", out)[0] == 0
    assert not (out / "energy.csv").exists()
    assert "energy" not in json.loads((out / "summary.json").read_text())
    done = invoke("plot", out, "power", "-o", tmp_path / "x.png")
    assert done[0] == 2
    assert "--energy" in done[1]


@pytest.mark.parametrize(
    ("b", "what"),
    [
        ('<prop id="wattage_per_state" value="1:2,3:4"/>', "p.xml:5: host 'b': wattage_per_state"),
        ('<prop id="wattage_per_state" value="1;2"/>', "neither Idle:AllCores"),
    ],
)
def test_a_mistake_is_one_line(invoke, platform_file, tmp_path, b, what):
    done = invoke("simulate", platform_file(b), TASKS, "--energy", "-o", tmp_path / "out")
    assert done[0] == 2
    assert what in done[1]
    assert len(done[1].strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_checkpoints_and_energy_exclude_each_other(invoke, platform_file, tmp_path):
    words = ["--energy", "-o", tmp_path / "out", "--checkpoint-every", "1"]
    done = invoke("simulate", platform_file(), TASKS, *words)
    assert done[0] == 2
    assert "--energy" in done[1]


@pytest.mark.parametrize("text", ["", "time,hosts_W,links_W\n1,x,2\n3,4,5\n", "time\n1\n",
                                  "time,hosts_W,links_W\n2,1,1\n1,1,1\n",
                                  "time,hosts_W,links_W\n2,1,inf\n3,1,1\n"])  # fmt: skip
def test_a_damaged_curve(invoke, platform_file, tmp_path, text):
    out = tmp_path / "out"
    invoke("simulate", platform_file(), TASKS, "--energy", "-o", out)
    (out / "power.csv").write_text(text)
    with pytest.raises(pm.PTaskModelError):
        pm.draw_results(out, "power", tmp_path / "x.png")


@pytest.mark.parametrize(("step_s", "span"), [(0.5, "2 s"), (650.0, "60 min")])
def test_a_mean_power_says_over_how_long_in_round_units(step_s, span, monkeypatch, tmp_path):
    rows = [(k * step_s, 100.0 + k % 2, 0.0) for k in range(2004)]
    for module in (load, tracks):
        monkeypatch.setattr(module, "power_curve", lambda results: rows)
    (tmp_path / "power.csv").touch()
    figure = load.power_figure(Results(tmp_path, "task", {"end_date": rows[-1][0]}, []))
    (axes,) = figure.axes
    assert axes.get_title("left").endswith(f"mean of cells of {span}")
    assert "hosts" in [text.get_text() for text in axes.get_legend().get_texts()]
