"""Remarks of runs: whatever the terminal warns of is in summary.json, with its effect."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from batsim_sessions import Calls, job, reply, serve

from ptaskmodel import remarks
from ptaskmodel.cli import main
from ptaskmodel.connect.transport import recorded
from ptaskmodel.errors import WorkloadError
from ptaskmodel.platform import load_platform
from ptaskmodel.remarks import (
    EFFECTS,
    LEVELS,
    Account,
    Remark,
    for_summary,
    joining,
    listening,
    shortened,
    warn,
)
from ptaskmodel.results.schemas import schema_of
from ptaskmodel.results.states import WORDS, outcome_remarks
from ptaskmodel.runs.options import SimulationOptions
from ptaskmodel.runs.simulate import simulate_into
from ptaskmodel.workload import load_tasks

pytestmark = pytest.mark.filterwarnings("default")

# `AS` is an old name, of which a warning tells.
OLD = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><AS id="z" routing="Full">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"/>
</AS></platform>
"""
MANY = "".join(f"{k} {k} 0 100 4 -1 -1 4 90 -1 1 1 1 1 1 1 -1 -1\n" for k in range(1, 1001))
CONF = """SelectType=select/linear
SchedulerParameters=bf_windw=10
NodeName=n[1-4] CPUs=8
PartitionName=p Nodes=ALL Default=YES
"""


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(OLD)
    tasks = [{"id": f"t{k}", "start": 0.1 * k, "hosts": ["n0"], "cpu": 1e9} for k in range(1000)]
    (tmp_path / "t.json").write_text(json.dumps({"tasks": tasks}))
    (tmp_path / "w.swf").write_text(MANY)
    (tmp_path / "r0").write_text("0 init\n0 isend 1 0 8\n0 finalize\n")
    (tmp_path / "r1").write_text("1 init\n1 finalize\n")
    (tmp_path / "traces.txt").write_text("r0\nr1\n")
    (tmp_path / "slurm.conf").write_text(CONF)
    jobs = "".join(f"{k},{k},4,60,50\n" for k in range(1000))
    (tmp_path / "jobs.csv").write_text(f"id,submit,nodes,limit,run\n{jobs}")
    return tmp_path


def told(capsys):
    """(warnings on standard error, lines of remarks on standard output)."""
    out, err = capsys.readouterr()
    mark = "ptaskmodel: warning: "
    warned = [line.removeprefix(mark) for line in err.splitlines() if line.startswith(mark)]
    said = [line.split(maxsplit=1) for line in out.splitlines() if line.startswith(LEVELS)]
    return warned, said


def kept(case):
    found = json.loads((case / "out" / "summary.json").read_text())["remarks"]
    schema = schema_of("summary.json")["properties"]["remarks"]["items"]
    assert all(
        set(schema["required"]) <= each.keys() <= set(schema["properties"]) for each in found
    )
    return {each["text"]: each for each in found}


RUNS = {
    "simulate": (
        ["simulate", "p.xml", "t.json", "--until", "50"],
        {"overload", "stopped"},
    ),
    "batch": (["batch", "p.xml", "w.swf"], {"overload", "killed"}),
    "replay": (["replay", "p.xml", "traces.txt"], set()),
    "slurm": (["slurm", "slurm.conf", "jobs.csv"], {"overload"}),
}


@pytest.mark.parametrize("kind", RUNS)
def test_every_warning_and_note_of_the_terminal_is_in_the_summary(case, capsys, kind):
    command, effects = RUNS[kind]
    assert main([*command, "-o", "out"]) == 0
    warned, said = told(capsys)
    found = kept(case)
    assert warned
    assert {text for text, each in found.items() if each["level"] == "warning"} >= set(warned)
    assert said == [[each["level"], each["text"]] for each in found.values()]
    assert {each["effect"] for each in found.values()} - {None} == effects


@pytest.mark.parametrize("kind", RUNS)
def test_every_warning_of_the_terminal_is_in_the_box_of_the_page(case, capsys, kind):
    pytest.importorskip("matplotlib")
    assert main([*RUNS[kind][0], "-o", "out"]) == 0
    warned, _ = told(capsys)
    assert main(["report", "out", "-o", "page.html"]) == 0
    data = json.loads(re.search(r'id="data"[^>]*>(.*?)</script>', _text("page.html"), re.DOTALL)[1])
    for text in warned:
        assert any(text in shown for shown in data["warnings"])
    reading = {text for text, each in kept(case).items() if each["effect"] is not None}
    assert all(any(text in shown for shown in data["warnings"]) for text in reading)
    # What is in the box is not said again among the inputs.
    assert not {text for _, text in data["facts"]} & {*warned, *reading}
    assert (data["stopped"] or "").startswith("Stopped at 50 s: " if kind == "simulate" else "")


def test_a_comparison_says_which_run_has_which_warning(case, capsys):
    assert main(["simulate", "p.xml", "t.json", "-o", "whole"]) == 0
    assert main(["simulate", "p.xml", "t.json", "--until", "50", "-o", "cut"]) == 0
    capsys.readouterr()
    assert main(["compare", "whole", "cut"]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning  ")]
    assert any(line.startswith("warning  all runs: p.xml:") for line in said)
    (stopped,) = (line for line in said if "stopped at 50 s" in line)
    assert stopped.startswith("warning  cut: ")
    assert "not in whole" in stopped


def _text(name):
    return (Path.cwd() / name).read_text()


def test_a_scheduler_that_stops_a_run_is_a_remark(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    profiles = {"d10": {"type": "delay", "delay": 10}}
    with recorded(Calls(lambda request: reply(request)), tmp_path / "r.jsonl") as wire:
        serve(tmp_path, wire, [job(0)], profiles)
    assert main(["serve", "p.xml", "w0.json", "--replay", "r.jsonl", "-o", "out"]) == 2
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {
        "level": "warning",
        "text": found["stopped"],
        "effect": "stopped",
    } in found["remarks"]
    assert found["stopped"] in capsys.readouterr().err


def test_a_run_in_a_program_has_the_same_remarks(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["simulate", "p.xml", "t.json", "--until", "50", "-o", "out"]) == 0
        platform, tasks = load_platform(case / "p.xml"), load_tasks(case / "t.json")
        run = simulate_into(None, platform, tasks, SimulationOptions(until_s=50.0))
    # What was said of the platform names the file as it was given.
    texts = [each["text"].replace(f"{case}/", "") for each in run.summary["remarks"]]
    assert sorted(texts) == sorted(kept(case))


def test_remarks_are_kept_for_the_run_at_hand_each_once():
    def run(text):
        with joining():
            warn(text)
            warn(text)
            return [each["text"] for each in for_summary([text, Remark("more")])]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn("to nobody")
        assert run("alone") == ["alone", "more"]
        with listening():
            warn("before")
            assert run("of a command") == ["before", "of a command", "more"]
            with listening():
                assert run("apart") == ["apart", "more"]


def test_effects_are_those_of_the_schema():
    items = schema_of("summary.json")["properties"]["remarks"]["items"]["properties"]
    assert items["effect"]["enum"] == [*EFFECTS, None]
    assert items["level"]["enum"] == list(LEVELS)
    assert {facts.effect for facts in WORDS.values()} <= {*EFFECTS, None}


def test_jobs_that_did_not_end_by_themselves():
    counts = {"COMPLETED": 1000, "PENDING": 3, "FAILED": 4, "TIMEOUT": 2, "REFUSED": 1}
    assert outcome_remarks(counts, "job") == [
        Remark("2 of 1\u202f010 jobs were killed at walltime", effect=remarks.KILLED),
        Remark("4 of 1\u202f010 jobs failed", effect=remarks.FAILED),
        Remark("1 of 1\u202f010 jobs was refused", effect=remarks.REFUSED),
        Remark("3 of 1\u202f010 jobs never started", effect=remarks.NEVER_STARTED),
    ]
    # The words are those of tables; of one state there is no remark twice.
    (both,) = outcome_remarks({"walltime": 1, "COMPLETED_WALLTIME_REACHED": 1}, "job", 1)
    assert both.text == "2 of 2 jobs were killed at walltime, 1 of them only because of neighbours"


def test_the_terminal_shows_the_first_of_remarks_that_are_alike_and_the_summary_all():
    account = Account("log.txt", WorkloadError)
    for line in range(2, 6):
        account.unused(f"field {line} is not read", line, "gpu")
    account.assumed("no memory: each job holds its nodes'", field="mem")
    account.bad_row("is no job", 9)
    account.check_rows(10)
    records = for_summary(account.remarks)
    assert [each["text"] for each in records] == [
        "log.txt:9: left out: is no job",
        *(f"log.txt:{line}: field {line} is not read" for line in range(2, 6)),
        "no memory: each job holds its nodes'",
    ]
    assert records[1] == {
        "level": "note", "text": "log.txt:2: field 2 is not read", "effect": None,
        "kind": "not used", "file": "log.txt", "line": 2, "field": "gpu",
    }  # fmt: skip
    assert [each["text"] for each in shortened(records)] == [
        "log.txt:9: left out: is no job",
        "log.txt:2: field 2 is not read (and 3 more such)",
        "no memory: each job holds its nodes'",
    ]


def test_an_account_keeps_a_bounded_number_and_counts_the_rest():
    account = Account("log.txt", WorkloadError)
    for line in range(1, 2 * remarks.MOST + 1):
        account.bad_row("is no job", line)
    assert len(account.remarks) == remarks.MOST
    (shown,) = shortened(for_summary(account.remarks))
    assert shown["text"].endswith(f"(and {2 * remarks.MOST - 1:,} more such)")


def test_a_file_is_refused_with_all_its_problems_at_once():
    account = Account("log.txt", WorkloadError)
    for line in range(1, 24):
        with account.problems(line):
            raise WorkloadError(f"log.txt:{line}: has {line}")
    with pytest.raises(WorkloadError) as caught:
        account.check()
    said = str(caught.value).splitlines()
    assert said[:2] == ["log.txt: 23 problems:", "  line 1: has 1"]
    assert said[-2:] == ["  line 20: has 20", "  and 3 more"]
    one = Account("log.txt", WorkloadError)
    one.problem("is wrong", 7)
    with pytest.raises(WorkloadError, match=r"^log.txt:7: is wrong$"):
        one.check()


def test_a_file_is_refused_when_most_of_its_rows_cannot_be_read():
    account = Account("log.txt", WorkloadError)
    for line in (1, 2):
        with account.row(line):
            raise WorkloadError("is no job")
    account.check_rows(4)
    with pytest.raises(WorkloadError, match=r"log.txt:1: is no job \(and 1 more such\)$"):
        account.check_rows(3)
