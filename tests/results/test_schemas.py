"""Everything that is written or printed is as the schemas say: each file, line and number."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import pytest

from ptaskmodel.campaign.store import Store
from ptaskmodel.cli import main
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.directory import FORMAT, NAMES
from ptaskmodel.results.schemas import schema_names, schema_of
from ptaskmodel.workload.formats.batsim import JOB_FIELDS, ORIGINS

jsonschema = pytest.importorskip("jsonschema")

POWER = '<prop id="wattage_per_state" value="50:60:100, 60:70:120"/>'
PLATFORM = f"""<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="1Gf,2Gf" core="4">{POWER}</host><host id="b" speed="1Gf,2Gf">{POWER}</host>
<link id="wan" bandwidth="10Gbps" latency="8ms"/>
<route src="a" dst="b"><link_ctn id="wan"/></route></zone></platform>"""
TASKS = {
    "tasks": [
        {"id": "x", "hosts": ["a", "b"], "cpu": 1e9, "flows": [[0, 1, 1e9]]},
        {"id": "y", "hosts": ["a", "b"], "cpu": 1e9, "flows": [[0, 1, 1e9]], "start": 0.5},
        {"id": "z", "delay": 1, "after": ["y"], "walltime": 0.5},
    ]
}
CONF = """ClusterName=c
NodeName=n[1-4] CPUs=4
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
SchedulerType=sched/backfill
SelectType=select/cons_tres
PriorityType=priority/multifactor
PriorityWeightAge=1000
"""
SLURM_JOBS = "id,submit,nodes,cores,limit,run\nj1,0,4,,600,300\nj2,10,4,,300,100\nj3,20,1,,60,50\n"
PLANS = Path(__file__).parents[2] / "experiments"
EVERY = "--attribution --trace csv"
RUNS = {
    "simulate": f"simulate p.xml t.json {EVERY} --energy --neighbours --routes",
    "packets": "simulate p.xml f.json --network-model ROCE --network-level packets --draws 2",
    "batch": f"batch p.xml w.json --profiles ptask {EVERY} --neighbours --leave-out-larger",
    "fair": "batch p.xml w.json --fairness both --leave-out-larger --energy",
    "failing": "batch p.xml w.json --leave-out-larger --on-failure requeue "
    "--failure-law mtbf=20000 --failure-law repair=60",
    "tuned": "batch p.xml w.json --leave-out-larger --policy metric-aware "
    "--policy-option adaptive=both --policy-option threshold_s=100",
    "replay": f"replay p.xml r.txt {EVERY} --timeline --critical-path "
    "--timeline-as paje --timeline-as perfetto",
    "slurm": "slurm slurm.conf jobs.csv --priorities 60",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with the results of each kind of run."""
    made = tmp_path_factory.mktemp("schemas")
    (made / "p.xml").write_text(PLATFORM)
    (made / "t.json").write_text(json.dumps(TASKS))
    flows = [{"id": "f", "hosts": ["a", "b"], "flows": [[0, 1, 1e6]]}]
    (made / "f.json").write_text(json.dumps({"tasks": flows}))
    (made / "slurm.conf").write_text(CONF)
    (made / "jobs.csv").write_text(SLURM_JOBS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        lublin = "workload generate lublin -o w.json --jobs 60 --hosts 4 --walltime-factor 1.2"
        assert main(lublin.split()) == 0
        assert (
            main(["trace", "make", "stencil", "-o", "r.txt", "--ranks", "2", "--iterations", "3"])
            == 0
        )
        for name, command in RUNS.items():
            assert main([*command.split(), "-o", name, "-q"]) == 0, name
        assert main(["compare", "simulate", "simulate", "-o", "comparison.csv"]) == 0
        yield made


def as_typed(text, schema):
    """A field of a table as its column's schema means it."""
    if text == "":
        return None
    kinds = [one.get("type") for one in (schema, *schema.get("anyOf", []))]
    kinds += [
        inner.get("type") for one in schema.get("anyOf", []) for inner in one.get("anyOf", [])
    ]
    for kind, convert in (("integer", int), ("number", float)):
        if kind in kinds:
            try:
                return convert(text)
            except ValueError:
                break
    return text


def check_table(path, name):
    schema = schema_of(name)
    check = jsonschema.Draft202012Validator(schema)
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        rows = list(reader)
    assert set(schema["required"]) <= set(reader.fieldnames) <= set(schema["properties"])
    for row in rows:
        check.validate(
            {key: as_typed(text, schema["properties"][key]) for key, text in row.items()}
        )


@pytest.mark.jit
def test_every_file_is_as_its_schema_says(place):
    seen = set()
    for run in RUNS:
        for path in (place / run).iterdir():
            assert path.name in NAMES  # so that such a run may replace it
            name = f"slurm/{path.name}" if f"slurm/{path.name}" in schema_names() else path.name
            name = name if run == "slurm" else path.name
            if path.suffix == ".csv":
                check_table(path, name)
                seen.add(name)
            elif path.suffix == ".json" and "perfetto" not in path.name:
                jsonschema.validate(json.loads(path.read_text()), schema_of(name))
                seen.add(name)
    check_table(place / "comparison.csv", "comparison.csv")
    tables = {name for name in schema_names() if name.endswith(".csv")}
    assert tables - seen == {"comparison.csv"}


@pytest.mark.jit
def test_what_is_printed_as_json_is_as_the_schemas_say(place, capsys):
    for command, name in (
        ("simulate p.xml t.json", "simulate"),
        ("platform info p.xml", "platform-info"),
        ("workload info w.json", "workload-info"),
        ("trace info r.txt", "trace-info"),
    ):
        assert main([*command.split(), "--json"]) == 0
        jsonschema.validate(json.loads(capsys.readouterr().out), schema_of(name))
    jsonschema.validate(TASKS, schema_of("tasks"))


@pytest.mark.jit
@pytest.mark.parametrize("run", ["simulate", "batch", "replay", "slurm"])
def test_what_is_printed_names_the_files_that_are_written(place, capsys, run):
    assert main([*RUNS[run].split(), "-o", "again", "--json", "-q"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["directory"] == "again"
    assert printed["files"] == sorted(path.name for path in (place / "again").iterdir())
    name = "simulate" if run == "simulate" else "summary.json"
    whole = printed if run == "simulate" else {"format": FORMAT, **printed}
    jsonschema.validate(whole, schema_of(name))


CAMPAIGN = """run = "study.py:measure"
repetitions = 2
metrics = ["twice"]
timeout_s = 600
sample = { count = 2, seed = 1 }
constraints = ["x < 4"]
[factors]
x = [1, 2, 5]
y = { from = 0, to = 2 }
z = { least = 0.5, most = 2.0 }
"""
FUNCTION = """def measure(given):
    if given["x"] == 2:
        raise ValueError("no")
    return {"twice": 2 * given["x"], "share": 0.5}
"""


def test_campaign_files_and_runs_are_as_their_schemas_say(tmp_path, capsys):
    (tmp_path / "study.py").write_text(FUNCTION)
    (tmp_path / "plan.toml").write_text(CAMPAIGN)
    jsonschema.validate(tomllib.loads(CAMPAIGN), schema_of("campaign"))
    assert main(["campaign", "run", str(tmp_path / "plan.toml"), "--processes", "1"]) in (0, 2)
    index = Store(tmp_path / "plan-runs").index()
    runs = [index.record(k) for k in range(len(index.ids))]
    assert {run["status"] for run in runs} == {"done", "failed"}
    for run in runs:
        jsonschema.validate(run, schema_of("campaign-run"))
    capsys.readouterr()


@pytest.mark.parametrize("path", sorted(PLANS.glob("*/*.toml")), ids=lambda path: path.parent.name)
def test_campaigns_of_experiments_are_as_the_schema_says(path):
    jsonschema.validate(tomllib.loads(path.read_text()), schema_of("campaign"))


def test_what_jobs_ask_for_is_in_the_schema_of_workloads():
    job = {"id": 1, "subtime": 0, "res": 2, "profile": "p", "cores": 3, "memory": 10**9}
    job |= {"resources": {"gpu": 2}, "licences": {"matlab": 1}, "competitors": 2.5, "walltime": -1}
    whole = {"jobs": [job], "profiles": {"p": {"type": "delay", "delay": 1}}, "notes": ["none"]}
    jsonschema.validate(whole, schema_of("workload"))
    known = schema_of("workload")["properties"]["jobs"]["items"]["properties"]
    assert set(known) == {*JOB_FIELDS, *ORIGINS}
    for wrong in ({"cores": 0}, {"resources": {"gpu": -1}}, {"memory": "4 GB"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**whole, "jobs": [job | wrong]}, schema_of("workload"))


@pytest.mark.jit
def test_a_workload_is_as_its_schema_says(place):
    jsonschema.validate(json.loads((place / "w.json").read_text()), schema_of("workload"))


def test_the_phases_of_a_real_slurm_are_as_the_schema_says():
    meta = {"slurm": "24.11", "clock": "virtual", "t0": 1700000000, "loaded": -4.5, "phase": 0.5}
    jsonschema.validate({**meta, "jobs": 3, "nodes": 4}, schema_of("meta.json"))


def test_a_calibration_is_as_its_schema_says(tmp_path, capsys):
    rows = ["mean_runtime_s,interference_on_s,interference_off_s,stddev_s,runs"]
    rows += ["100,0,0,1,5", "200,inf,0,1,5", "151,15,15,1,5"]
    (tmp_path / "m.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "c.json"
    assert main(["calibrate", str(tmp_path / "m.csv"), "-o", str(out)]) == 0
    jsonschema.validate(json.loads(out.read_text()), schema_of("calibration"))
    capsys.readouterr()


@pytest.mark.parametrize("name", schema_names())
def test_schemas_are_schemas_and_are_printed(name, capsys):
    assert main(["schema", name]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == schema_of(name)
    jsonschema.Draft202012Validator.check_schema(printed)


def test_every_file_of_results_has_a_schema(capsys):
    known = {name.removeprefix("slurm/") for name in schema_names()}
    written = {name for name in NAMES if name.endswith((".csv", ".json"))}
    # Chrome's format, not ours:
    assert written - known == {"trace.perfetto.json", "timeline.perfetto.json"}
    assert main(["schema"]) == 0
    assert "bottlenecks.csv" in capsys.readouterr().out


def test_an_unknown_schema_is_told_with_the_nearest(capsys):
    assert main(["schema", "botlenecks.csv"]) == 2
    assert "did you mean 'bottlenecks.csv'?" in capsys.readouterr().err
    with pytest.raises(PTaskModelError, match="is unknown"):
        schema_of("x" * 1000)


def test_a_line_that_is_wrong_is_refused():
    check = jsonschema.Draft202012Validator(schema_of("power.csv"))
    assert check.is_valid({"time": 0.0, "hosts_W": 1.0, "links_W": 0.0})
    assert not check.is_valid({"time": "0.0", "hosts_W": 1.0, "links_W": 0.0})
    assert not check.is_valid({"time": 0.0, "hosts_W": 1.0})
