"""A campaign and a command with the same parameters give the same summary, for every option."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.campaign.run_types import KINDS
from ptaskmodel.cli import main
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.options import FLAG, PAIRS
from ptaskmodel.runs.options import REPLAY, SIMULATE, ReplayFiles, SimulationOptions
from ptaskmodel.runs.scheduling_options import BATCH, SLURM, BatchWriting, SlurmOptions

ROWS = {"batch": BATCH, "simulate": SIMULATE, "replay": REPLAY, "slurm": SLURM}
PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="1-4" speed="1Gf" core="4" bw="125MBps" lat="50us">
    <prop id="wattage_per_state" value="95:100:200"/>
  </cluster>
</platform>
"""
PTASK = {"type": "parallel", "cpu": [1e9] * 2, "com": [0, 1e9, 1e9, 0]}
WORKLOAD = {
    "nb_res": 4,
    "jobs": [
        {"id": str(k), "subtime": k, "res": res, "walltime": 400, "profile": name}
        for k, (res, name) in enumerate(
            [(2, "p"), (4, "d"), (1, "d"), (2, "p"), (3, "d"), (1, "d"), (2, "p"), (4, "d")]
        )
    ],
    "profiles": {"d": {"type": "delay", "delay": 100}, "p": PTASK},
}
SWF = "".join(f"{k} {k} 0 {50 + k} {k % 4 + 1} -1 -1 {k % 4 + 1} 90 -1 1 1 1 1 1 1 -1 -1\n"
              for k in range(1, 9))  # fmt: skip
FLOWS = [[0, 1, 1e11], [1, 0, 1e11]]
TASKS = {"tasks": [{"id": name, "hosts": ["n1", "n2"], "flows": FLOWS} for name in "ab"]}
CONF = """ClusterName=c
SchedulerParameters=bf_interval=30
SelectType=select/linear
NodeName=n[1-4] CPUs=4
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
"""
JOBS = "id,submit,nodes,cores,limit,run,user,account\n" + "".join(
    f"j{k},{k * 7},{k % 4 + 1},,{600 + 60 * (k % 3)},{90 + 37 * (k % 5)},ann,bio\n"
    for k in range(12)
)
EFFICIENCIES = {"network_efficiency": 0.8, "compute_efficiency": 0.5, "competitors": 2.0}
CALIBRATION = {
    "version": 1,
    "model": "ptask",
    "fit_on": "all",
    "source": "m.csv",
    "groups": [
        {
            "labels": {"cluster": "lab"},
            "note": None,
            "chi_square": 0.0,
            "degrees_of_freedom": 0,
            "parameters": {
                name: {"value": value, "stderr": None, "unit": "1", "interval95": None}
                for name, value in EFFICIENCIES.items()
            },
            "predictions": [],
        }
    ],
}
FILES = {
    "p.xml": PLATFORM,
    "w.json": json.dumps(WORKLOAD),
    "log.swf": SWF,
    "t.json": json.dumps(TASKS),
    "flow.json": json.dumps({"tasks": [{"id": "a", "hosts": ["n1", "n2"], "flows": FLOWS[:1]}]}),
    "wire.json": '{"network_model": "ROCE", "mss_B": 1024}',
    "down.csv": "date,resource,event\n50,n1,down\n250,n1,up\n",
    "windows.csv": "hosts,start,end\nn1,500,600\n",
    "r0": "0 init\n0 compute 1e9\n0 send 1 0 1e6\n0 barrier\n0 finalize\n",
    "r1": "1 init\n1 recv 0 0 1e6\n1 compute 5e8\n1 barrier\n1 finalize\n",
    "traces.txt": "r0\nr1\n",
    "hostfile": "n3\nn4\n",
    "slurm.conf": CONF,
    "jobs.csv": JOBS,
    "accounts.txt": "add account bio\nadd user ann account=bio maxjobs=1\n",
    "reserved.txt": "create reservation ReservationName=m Nodes=n[3-4] Users=root "
    "StartTime=now+300 Duration=5\n",
    "meta.json": '{"t0": 1704067200, "loaded": -49.5, "speed": 20.0, "phase": 0.5, "jobs": 12}',
    "events.csv": "time,who,what,id\n-10,main,full queue,\n0.5,job,submit,j0\n20,backfill,begin,\n",
}
# Of each kind: the files that it needs, and for each option the parameters of a run with it.
GIVEN = {
    "batch": {"platform": "p.xml", "workload": "w.json"},
    "simulate": {"platform": "p.xml", "tasks": "t.json"},
    "replay": {"platform": "p.xml", "traces": "traces.txt"},
    "slurm": {"conf": "slurm.conf", "workload": "jobs.csv"},
}
MODEL = {
    "solver": {"solver": "maxmin"},
    "count": {"count": "flow"},
    "calibration": {"calibration": "c.json"},
    "group": {"calibration": "c.json", "group": "cluster=lab"},
}
CASES = {
    "batch": {
        **MODEL,
        "network_model": {"workload": "log.swf", "network_model": "CM02"},
        "policy": {"policy": "conservative"},
        "order": {"order": "largest"},
        "backfill_order": {"backfill_order": "smallest"},
        "policy_options": {"policy": "metric-aware", "policy_options": {"window": 2}},
        "allocation": {"allocation": "spread"},
        "seed": {"allocation": "random", "seed": 3},
        "estimates": {"estimates": "factor:3"},
        "profiles": {"profiles": "ptask"},
        "ratio": {"profiles": "ptask", "ratio": 0.3},
        "pattern": {"profiles": "ptask", "pattern": "ring"},
        "roles": {"roles": {"n4": "master"}, "leave_out_larger": True},
        "host_order": {"host_order": "natural"},
        "most_hosts": {"most_hosts": 3, "leave_out_larger": True},
        "delay_power": {"energy": True, "delay_power": "busy"},
        "tau_s": {"tau_s": 5.0},
        "storages": {"storages": {"pfs": "n4"}, "leave_out_larger": True},
        "processors_per_host": {"workload": "log.swf", "processors_per_host": 2},
        "walltimes": {"walltimes": "extend"},
        "on_failure": {"failures": "down.csv", "on_failure": "requeue"},
        "failures": {"failures": "down.csv"},
        "failure_law": {"failure_law": {"mtbf": "1h", "repair": 60, "seed": 2}},
        "checkpoint": {"checkpoint": {"interval": "1m", "write": 2}},
        "maintenance": {"maintenance": "windows.csv"},
        "licences": {"licences": {"matlab": 2}},
        "dependencies": {"dependencies": True},
        "loop": {"loop": "open"},
        "until_s": {"until_s": 150.0},
        "fairness": {"fairness": "both"},
        "frozen": {"fairness": "runtimes", "frozen": True},
        "leave_out_larger": {"leave_out_larger": True},
        "verify": {"verify": "head"},
        "contention": {"contention": False},
        "energy": {"energy": True},
    },
    "simulate": {
        **MODEL,
        "network_model": {"tasks": "flow.json", "network_model": "CM02"},
        "network_parameters": {"tasks": "flow.json", "network_parameters": "wire.json"},
        "routing": {"routing": "ecmp:1"},
        "network_level": {
            "tasks": "flow.json",
            "network_model": "DCTCP",
            "network_level": "packets",
        },
        "draws": {"routing": "ecmp:1", "draws": 2},
        "jitter_s": {"draws": 2, "jitter_s": 1e-3},
        "until_s": {"until_s": 500.0},
        "energy": {"energy": True},
    },
    "replay": {
        "ranks": {"ranks": 2},
        "ranks_on": {"ranks_on": "hostfile"},
        "hosts": {"hosts": "n[3-4]"},
        "per_host": {"per_host": 2},
        "collectives": {"collectives": {"barrier": "ompi_basic_linear"}},
        "network_model": {"network_model": "L07"},
        "solver": {"solver": "bmf", "network_model": "L07"},
        "critical_path": {"critical_path": True},
        "routing": {"routing": "ecmp:1"},
    },
    "slurm": {
        "platform": {"platform": "p.xml"},
        "profiles": {"platform": "p.xml", "profiles": "ptask"},
        "ratio": {"platform": "p.xml", "profiles": "ptask", "ratio": 0.3},
        "pattern": {"platform": "p.xml", "profiles": "ptask", "pattern": "ring"},
        "slurm_version": {"slurm_version": "23.11"},
        "accounts": {"accounts": "accounts.txt"},
        "processors_per_node": {"workload": "log.swf", "processors_per_node": 1},
        "reservations": {"meta": "meta.json", "reservations": "reserved.txt"},
        "begin": {"begin": "2024-03-01T10:00:00"},
        "failures": {"failures": "down.csv"},
        "failure_law": {"failure_law": {"mtbf": "1h", "repair": 60, "seed": 2}},
        "seed": {"seed": 5},
        "meta": {"meta": "meta.json"},
        "cycles": {"meta": "meta.json", "cycles": "events.csv"},
        "controllers": {"controllers": 2, "seed": 1},
        "test_cost": {"test_cost": 2.0},
        "count_tests": {"count_tests": True},
        "dependencies": {"workload": "log.swf", "dependencies": True},
        "ignore_memory": {"ignore_memory": True},
    },
}
# What a command alone says of its files, and what differs from run to run.
APART = {"inputs", "versions", *GIVEN["batch"], *GIVEN["slurm"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("inputs")
    for name, text in FILES.items():
        (place / name).write_text(text)
    (place / "c.json").write_text(json.dumps(CALIBRATION))
    return place


def words(kind, given):
    """The parameters as the command line writes them."""
    rows = {row.name: row for row in ROWS[kind]}
    found = [given[name] for name in GIVEN[kind]]
    for name in given.keys() - GIVEN[kind].keys():
        row = rows[name]
        if row.type == FLAG:
            assert given[name] != row.default
            found.append(row.written)
        elif row.type == PAIRS:
            for key, value in given[name].items():
                found += [row.written, f"{key}={value}"]
        else:
            found += [row.written, str(given[name])]
    return found


def flat(given):
    """The parameters as a campaign writes them."""
    found = {}
    for name, value in given.items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            found[name] = value
    return found


def compared(summary):
    return {
        name: value
        for name, value in summary.items()
        if name not in APART and not name.endswith(("wall_time_s", "processor_time_s"))
    }


@pytest.mark.jit
@pytest.mark.parametrize(
    ("kind", "option"), [(kind, option) for kind, cases in CASES.items() for option in cases]
)
def test_a_campaign_and_a_command_give_the_same_summary(folder, monkeypatch, capsys, kind, option):
    monkeypatch.chdir(folder)
    given = {**GIVEN[kind], **CASES[kind][option]}
    capsys.readouterr()
    assert main([kind, *words(kind, given), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    KINDS[kind].check_names(flat(given))
    for name, value in flat(given).items():
        KINDS[kind].check_value(name, value, "parameters")
    found = json.loads(json.dumps(KINDS[kind].run(flat(given))))
    assert compared(found) == compared(printed.get("summary", printed))


@pytest.mark.parametrize("kind", ROWS)
def test_every_option_of_a_campaign_is_compared(kind):
    assert CASES[kind].keys() == {row.name for row in ROWS[kind] if not row.writes}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("batch", (BatchOptions, BatchWriting)),
        ("simulate", (SimulationOptions,)),
        ("replay", (ReplayFiles,)),
        ("slurm", (SlurmOptions,)),
    ],
)
def test_defaults_are_those_of_the_library(kind, options):
    defaults = {each.name: getattr(option(), each.name) for option in options
                for each in fields(option)}  # fmt: skip
    rows = {row.name: {} if row.type == PAIRS else row.default for row in ROWS[kind]}
    both = rows.keys() & defaults.keys()
    assert {name: rows[name] for name in both} == {name: defaults[name] for name in both}


def test_a_group_needs_a_calibration(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for kind in ("batch", "simulate"):
        with pytest.raises(PTaskModelError, match="give --calibration FILE"):
            KINDS[kind].run({**GIVEN[kind], "group": "cluster=lab"})
