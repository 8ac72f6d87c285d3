"""A user's policy that is at fault ends in one line: file, line, job, date; -v shows more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptaskmodel.cli import main

ROOT = Path(__file__).resolve().parents[2]
GRAPHENE = str(ROOT / "platforms" / "graphene.xml")
HEAD = "from ptaskmodel.batch import *\n"
JOBS = {
    "nb_res": 144,
    "jobs": [
        {"id": "first", "subtime": 0, "res": 2, "profile": "wait"},
        {"id": "later", "subtime": 3, "res": 2, "profile": "wait"},
    ],
    "profiles": {"wait": {"type": "delay", "delay": 40}},
}

DECIDES = {
    "raises": ("for job in view.queue: 1 / 0", "raised ZeroDivisionError at bad.py:4"),
    "deep": ("return sum(view.queue)", "raised TypeError at bad.py:4"),
    "exits": ("import sys; sys.exit(0)", "raised SystemExit at bad.py:4"),
    "ours called wrongly": ("return [j for j in view.queue if view.fits(5)]", "AttributeError"),
    "not a decision": ("yield 'job'", "yields 'job', which is not a decision"),
    "none": ("pass", "answers None: yield decisions"),
    "number": ("return 7", "answers 7: yield decisions"),
    "one decision": ("return Start(view.queue[0])", "yield decisions, or return a list"),
    "list of none": ("return [None]", "which is not a decision"),
    "absent host": ("yield Start(view.queue[0], [999])", "host 999, and there are hosts 0 to 143"),
    "negative host": ("yield Start(view.queue[0], [-1])", "is not a set of hosts"),
    "negative mask": ("yield Start(view.queue[0], -1)", "job 'first'"),
    "no hosts": ("yield Start(view.queue[0], 'ab')", "is not a set of hosts"),
    "too few hosts": ("yield Start(view.queue[0], [1])", "not 2 free ones"),
    "no job": ("yield Start(None)", "decides on job 'None', which is not waiting"),
    "kills what waits": ("yield Kill(view.queue[0])", "kills job 'first', which does not run"),
    "requeues what waits": ("yield Requeue(view.queue[0])", "requeues job 'first'"),
    "suspends what waits": ("yield Suspend(view.queue[0])", "suspends job 'first'"),
    "resumes what waits": ("yield Resume(view.queue[0])", "which is not suspended"),
    "wakes in the past": ("yield Wake(-1)", "woken at -1"),
    "wakes never": ("yield Wake(float('inf'))", "woken at inf"),
    "power": ("yield SetPower(HostSet.of([0]), 'dim')", "'dim'; use 'on', 'off'"),
    "forgets": ("return []", "never starts job 'first' and 1 more"),
}


def run(tmp_path, text, *more):
    policy, workload = tmp_path / "bad.py", tmp_path / "w.json"
    policy.write_text(text)
    workload.write_text(json.dumps(JOBS))
    out = tmp_path / "out"
    spec = f"{policy}:Bad"
    code = main(["batch", GRAPHENE, str(workload), "--policy", spec, "-o", str(out), *more])
    assert not out.exists()
    return code


def policy_that(decides):
    return f"{HEAD}class Bad:\n    def decide(self, view):\n        {decides}\n"


@pytest.mark.parametrize("case", DECIDES)
def test_what_a_policy_does_wrong_is_told_in_one_line(capsys, tmp_path, case):
    decides, message = DECIDES[case]
    assert run(tmp_path, policy_that(decides)) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    if case != "forgets":
        assert "bad.py:" in told
        assert "0 s" in told


def test_the_job_and_the_date_are_told_and_the_traceback_on_demand(capsys, tmp_path):
    text = policy_that("for j in view.submitted:\n            if view.now: raise KeyError(j.id)")
    assert run(tmp_path, text + "            yield j\n") == 2
    told = capsys.readouterr().err
    assert "raised KeyError at bad.py:5: 'later' (job 'later', 3 s)" in told
    assert run(tmp_path, text + "            yield j\n", "-v") == 2
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.splitlines()[-1].startswith("ptaskmodel: error: policy Bad raised KeyError")


BROKEN = {
    "import": ("import no_such_module_at_all\n", "raised ModuleNotFoundError at bad.py:1"),
    "syntax": ("class Bad\n", "raised SyntaxError at bad.py:1"),
    "exit": ("import sys\nsys.exit(0)\n", "raised SystemExit at bad.py:2"),
    "init": (
        "class Bad:\n    def __init__(self):\n        raise OSError('gone')\n",
        "raised OSError at bad.py:3: gone",
    ),
    "init exits": ("class Bad:\n    def __init__(self):\n        exit(0)\n", "raised SystemExit"),
    "order": ("class Bad:\n    order = 5\n    def decide(self, view): pass\n", "its order is '5'"),
    "order raises": (
        "class Bad:\n    def order(self, job): return job.nothing\n"
        "    def decide(self, view): return []\n",
        "raised AttributeError at bad.py:2",
    ),
    "order mixes": (
        "class Bad:\n    def order(self, job): return 1 if job.id == 'first' else 'x'\n"
        "    def decide(self, view): return []\n",
        "keys cannot be compared",
    ),
    "no decide": ("class Bad:\n    decide = 3\n", "no method decide(self, view)"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_holds_no_policy_is_refused_in_one_line(capsys, tmp_path, case):
    text, message = BROKEN[case]
    assert run(tmp_path, text) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


def test_a_policy_finds_what_lies_beside_it(capsys, tmp_path, monkeypatch):
    (tmp_path / "taste.py").write_text("def best(queue):\n    return queue[0].nothing\n")
    monkeypatch.chdir(tmp_path)
    text = "from taste import best\nclass Bad:\n    def decide(self, view): best(view.queue)\n"
    (tmp_path / "bad.py").write_text(text)
    (tmp_path / "w.json").write_text(json.dumps(JOBS))
    assert main(["batch", GRAPHENE, "w.json", "--policy", "bad.py:Bad", "-o", "out"]) == 2
    assert "raised AttributeError at bad.py:3" in capsys.readouterr().err
