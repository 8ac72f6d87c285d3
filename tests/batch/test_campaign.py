"""Campaigns keep what is finished, through a kill -9 too; the experiments run small."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptaskmodel.batch.campaign import run_campaign
from ptaskmodel.errors import SimulationError

ROOT = Path(__file__).resolve().parents[2]
SLOW = """
import sys, time
from pathlib import Path
from ptaskmodel.batch.campaign import run_campaign

def slow(parameters):
    time.sleep(0.15)
    return {"square": parameters["n"] ** 2}

if __name__ == "__main__":
    runs = {f"n_{n}": {"n": n} for n in range(400)}
    run_campaign(Path(sys.argv[1]), runs, slow, processes=1)
"""


def square(parameters):
    return {"square": parameters["n"] ** 2, "pair": (1, 2)}


def test_what_is_there_is_not_made_again(tmp_path):
    runs = {f"n_{n}": {"n": n} for n in range(3)}
    told = []
    first = run_campaign(tmp_path, runs, square, processes=1, tell=lambda *t: told.append(t))
    assert first["n_2"] == {"square": 4, "pair": [1, 2]}
    assert [done for done, _, _ in told] == [1, 2, 3]
    (tmp_path / "n_1.json").write_text("{ half a fi")
    told.clear()
    runs["n_2"] = {"n": 5}
    again = run_campaign(tmp_path, runs, square, processes=1, tell=lambda *t: told.append(t))
    assert {name for _, _, name in told} == {"n_1", "n_2"}
    assert again["n_2"]["square"] == 25
    with pytest.raises(SimulationError, match="not fit to name a run"):
        run_campaign(tmp_path, {"a/b": {}}, square)


def test_a_kill_9_loses_no_finished_run(tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    place = tmp_path / "runs"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, str(script), str(place)], env=environment, start_new_session=True
    )
    deadline = time.monotonic() + 30
    while len(list(place.glob("n_*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {path.stem: path.stat().st_mtime_ns for path in place.glob("n_*.json")}
    assert 3 <= len(kept) < 400
    for path in place.glob("n_*.json"):
        json.loads(path.read_text())
    runs = {name: {"n": int(name[2:])} for name in [*sorted(kept), "n_999"]}
    made = []
    results = run_campaign(place, runs, square, processes=1, tell=lambda *t: made.append(t[2]))
    assert made == ["n_999"]
    assert results["n_999"]["square"] == 998001
    assert {path.stem: path.stat().st_mtime_ns for path in place.glob("n_*.json")}.items() >= (
        kept.items()
    )


def experiment(monkeypatch, name, *arguments):
    """Run an experiment's script in this process."""
    script = ROOT / "experiments" / name / "run.py"
    monkeypatch.setattr(sys, "argv", [str(script), "--processes", "1", *arguments])
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.delitem(sys.modules, "figures", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    monkeypatch.delitem(sys.modules, "figures", raising=False)
    assert ended.value.code == 0


def test_the_experiment_on_redirection_runs_small(monkeypatch, tmp_path, capsys):
    experiment(monkeypatch, "redirection", "--weeks", "1", "-o", str(tmp_path))
    assert "alpha 0.25: median mean_bounded_slowdown over EASY's" in capsys.readouterr().out
    assert (tmp_path / "redirection_synthetic.png").stat().st_size > 10_000
    assert len(list((tmp_path / "runs").iterdir())) == 1 + 4 * 9
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1 + 4 * 9


@pytest.mark.jit
def test_the_experiment_on_job_profiles_runs_small(monkeypatch, tmp_path, capsys):
    options = ["--jobs", "60", "--seeds", "1", "-o", str(tmp_path)]
    experiment(monkeypatch, "job_profiles", *options)
    table = (tmp_path / "summary.csv").read_text().splitlines()
    assert len(table) == 1 + 8
    times = {tuple(row.split(",")[1:3]): float(row.split(",")[3]) for row in table[1:]}
    assert times["delay", "random"] == times["delay", "contiguous"]
    assert times["ptask", "random"] > 1.3 * times["ptask", "contiguous"]
    assert (tmp_path / "gantt_60.png").stat().st_size > 10_000
