"""The built-in kinds of runs give the numbers that the commands give."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from ptaskmodel.campaign.run_types import KINDS, numbers_of
from ptaskmodel.cli import main
from ptaskmodel.errors import CampaignError, SlurmError
from ptaskmodel.slurm.conf.reading import read_conf

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "platforms" / "small_cluster.xml"


def numbers(kind, given):
    return numbers_of(KINDS[kind].run(given))


@pytest.fixture
def workload(tmp_path):
    path = tmp_path / "jobs.json"
    arguments = ["--jobs", "40", "--hosts", "16", "--seed", "1", "--walltime-factor", "2"]
    assert main(["workload", "generate", "lublin", "-o", str(path), *arguments]) == 0
    return path


def test_a_batch_gives_its_summary(workload, tmp_path, capsys):
    capsys.readouterr()
    given = {"platform": str(CLUSTER), "workload": str(workload), "leave_out_larger": True}
    found = numbers("batch", {**given, "policy": "metric-aware", "policy_options.window": 2})
    options = ["--leave-out-larger", "--policy", "metric-aware", "--policy-option", "window=2"]
    assert main(["batch", str(CLUSTER), str(workload), *options, "--json"]) == 0
    summary = numbers_of(json.loads(capsys.readouterr().out))
    for name in KINDS["batch"].metrics:
        assert found[name] == summary[name]


def test_what_changes_a_workload(workload):
    given = {"platform": str(CLUSTER), "workload": str(workload), "leave_out_larger": True}
    run = partial(numbers, "batch")
    light, heavy = run({**given, "load": 0.1}), run({**given, "load": 20.0})
    assert heavy["waiting_s.mean"] > light["waiting_s.mean"]
    assert run({**given, "jobs": 5})["jobs.all"] == 5
    busy = {**given, "shuffle": True, "load": 20.0}
    shuffled = [run({**busy, "seed": seed})["waiting_s.mean"] for seed in (0, 0, 1)]
    assert shuffled[0] == shuffled[1] != shuffled[2]


CONF = """SchedulerParameters=bf_interval=30,bf_continue
SelectType=select/linear
NodeName=n[1-4] CPUs=1
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
"""
JOBS = "id,submit,nodes,cores,limit,run\n" + "".join(
    f"j{k},{k * 7},{k % 4 + 1},,{600 + 60 * (k % 3)},{90 + 37 * (k % 5)}\n" for k in range(40)
)


def test_slurm_runs_with_keys_of_its_configuration(tmp_path, capsys):
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.csv").write_text(JOBS)
    given = {"conf": str(tmp_path / "slurm.conf"), "workload": str(tmp_path / "jobs.csv")}
    plain = numbers("slurm", given)
    assert main(["slurm", *given.values(), "--json"]) == 0
    assert plain["waiting_s.mean"] == json.loads(capsys.readouterr().out)["waiting_s"]["mean"]
    same = numbers("slurm", {**given, "set.bf_interval": 30})
    assert same["waiting_s.mean"] == plain["waiting_s.mean"]
    first = numbers("slurm", {**given, "set.SchedulerType": "sched/builtin"})
    assert first["waiting_s.mean"] > plain["waiting_s.mean"]
    slow = numbers("slurm", {**given, "set.bf_interval": 600})
    assert slow["backfill.cycles"] < plain["backfill.cycles"]
    assert numbers("slurm", {**given, "jobs": 5})["jobs.submitted"] == 5


def test_changes_of_a_configuration(tmp_path):
    path = tmp_path / "slurm.conf"
    path.write_text(CONF)
    changes = {
        "bf_interval": 60,
        "bf_continue": False,
        "bf_window": 10,
        "priorityType": "priority/basic",
    }
    conf = read_conf(path, changes)
    assert (conf.scheduler.bf_interval_s, conf.scheduler.bf_continue) == (60, False)
    assert conf.nodes == read_conf(path).nodes
    for name, value, said in (
        ("bf_intervall", 1, "did you mean bf_interval"),
        ("NodeName", "n[1-2]", "is no key of a whole slurm.conf"),
        ("bf_continue", "x", "give true or false"),
        ("SchedulerType", "sched/best", "slurm.conf, SchedulerType changed"),
    ):
        with pytest.raises(SlurmError, match=re.escape(said)):
            read_conf(path, {name: value})


def test_every_built_in_kind_knows_what_it_needs(tmp_path):
    for kind in KINDS.values():
        assert kind.known is not None
        assert {*kind.needed, *kind.files} <= kind.known()


def test_what_is_no_number_is_left_out():
    found = numbers_of({"a": 1, "b": {"c": 2.5, "d": "x"}, "e": float("nan"), "versions": {"v": 1}})
    assert found == {"a": 1, "b.c": 2.5}
    for nothing in ({}, {"a": "x"}, [1]):
        with pytest.raises(CampaignError, match="return a mapping"):
            numbers_of(nothing)
