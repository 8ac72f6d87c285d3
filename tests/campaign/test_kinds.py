"""The built-in kinds of runs give the numbers that the commands give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptaskmodel.campaign.kinds import KINDS, numbers_of
from ptaskmodel.campaign.plan import plan_of
from ptaskmodel.cli import main
from ptaskmodel.errors import CampaignError

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "platforms" / "small_cluster.xml"


@pytest.fixture
def workload(tmp_path):
    path = tmp_path / "jobs.json"
    arguments = ["--jobs", "40", "--hosts", "16", "--seed", "1", "--walltime-factor", "2"]
    assert main(["workload", "generate", "lublin", str(path), *arguments]) == 0
    return path


def test_a_batch_gives_its_summary(workload, tmp_path, capsys):
    capsys.readouterr()
    given = {"platform": str(CLUSTER), "workload": str(workload), "leave_out_larger": True}
    found = KINDS["batch"].run({**given, "policy": "metric-aware", "policy_options.window": 2})
    options = ["--leave-out-larger", "--policy", "metric-aware", "--policy-option", "window=2"]
    assert main(["batch", str(CLUSTER), str(workload), *options, "--json"]) == 0
    summary = numbers_of(json.loads(capsys.readouterr().out))
    for name in KINDS["batch"].metrics:
        assert found[name] == summary[name]


def test_what_changes_a_workload(workload):
    given = {"platform": str(CLUSTER), "workload": str(workload), "leave_out_larger": True}
    run = KINDS["batch"].run
    light, heavy = run({**given, "load": 0.1}), run({**given, "load": 20.0})
    assert heavy["waiting_s.mean"] > light["waiting_s.mean"]
    assert run({**given, "jobs": 5})["jobs.all"] == 5
    busy = {**given, "shuffle": True, "load": 20.0}
    shuffled = [run({**busy, "seed": seed})["waiting_s.mean"] for seed in (0, 0, 1)]
    assert shuffled[0] == shuffled[1] != shuffled[2]


def test_every_built_in_kind_knows_what_it_needs(tmp_path):
    for kind in KINDS.values():
        assert kind.known is not None
        assert {*kind.needed, *kind.files} <= kind.known()


def test_what_is_no_number_is_left_out():
    found = numbers_of({"a": 1, "b": {"c": 2.5, "d": "x"}, "e": float("nan"), "versions": {"v": 1}})
    assert found == {"a": 1, "b.c": 2.5}
    for nothing in ({}, {"a": "x"}, [1]):
        with pytest.raises(CampaignError, match="give a mapping"):
            numbers_of(nothing)


def test_kernels_are_those_of_what_runs(workload, tmp_path):
    text = f'run = "batch"\n[parameters]\nplatform = "{CLUSTER}"\nworkload = "{workload}"\n'
    run = plan_of(text, tmp_path, "plan").runs()[0]
    assert KINDS["batch"].kernels(run.parameters) == ("tasks", "laying")
    delays = {**run.parameters, "workload": "log.swf.gz"}
    assert KINDS["batch"].kernels(delays) == ("batches",)
