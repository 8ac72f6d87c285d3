"""``ptaskmodel serve``, ``batsim``: sessions from records, results kept, mistakes in one line."""

from __future__ import annotations

import json
import shlex

import pytest
from batsim_sessions import Calls, job, reply, serve

from ptaskmodel.cli import main
from ptaskmodel.cli.commands.batsim import main as batsim
from ptaskmodel.connect.transport import recorded
from ptaskmodel.results.loading import load_results
from ptaskmodel.results.pages.report import command_of
from ptaskmodel.runs.serve import serve_inputs, serve_into

PROFILES = {"d10": {"type": "delay", "delay": 10}}


@pytest.fixture
def session(tmp_path):
    """The record of a session of two jobs, the second one killed."""

    def says(request):
        said = []
        for event in request["events"]:
            if event["type"] == "JOB_SUBMITTED":
                name = event["data"]["job_id"]
                said.append(("EXECUTE_JOB", {"job_id": name, "alloc": name[-1]}))
                said.append(("SET_JOB_METADATA", {"job_id": name, "metadata": f"of {name}"}))
        if not said and request["now"] == 0.0:
            said.append(("CALL_ME_LATER", {"timestamp": 4.0}))
        if request["now"] == 4.0 and request["events"][0]["type"] == "REQUESTED_CALL":
            said.append(("KILL_JOB", {"job_ids": ["w0!1"]}))
        return reply(request, *said)

    with recorded(Calls(says), tmp_path / "record.jsonl") as wire:
        made, _ = serve(tmp_path, wire, [job(0), job(1)], PROFILES)
    assert made.fault is None
    return tmp_path


def run(place, *more):
    inputs = [str(place / "p.xml"), str(place / "w0.json")]
    return main(["serve", *inputs, "--replay", str(place / "record.jsonl"), *more])


def test_a_record_is_replayed_into_a_directory_of_results(session, capsys):
    again = session / "again.jsonl"
    assert run(session, "-o", str(session / "out"), "--record", str(again)) == 0
    assert again.read_bytes() == (session / "record.jsonl").read_bytes()
    rows = (session / "out" / "jobs.csv").read_text().splitlines()
    assert rows[1].startswith("0,w0,d10,0.0,1,-1,1,COMPLETED_SUCCESSFULLY,0.0,10.0,10.0")
    assert rows[2].endswith(",1,,of w0!1")
    summary = json.loads((session / "out" / "summary.json").read_text())
    assert summary["command"] == "serve"
    assert summary["stopped"] is None
    said = capsys.readouterr().out
    assert "a scheduler elsewhere: 6 exchanges" in said
    assert "turnaround over execution; bounded: over 60 s at least, 1 or more" in said


def test_library_and_command_give_the_same_and_the_page_tells_the_command(session):
    assert run(session, "-o", str(session / "out")) == 0
    told = json.loads((session / "out" / "summary.json").read_text())
    given = {"platform": session / "p.xml", "workloads": [session / "w0.json"]}
    inputs = serve_inputs({**given, "replay": session / "record.jsonl"})
    found, fault = serve_into(None, **inputs._asdict())
    assert fault is None
    for summary in (told, made := json.loads(json.dumps(found.summary))):
        for name in [name for name in summary if "wall_time" in name]:
            del summary[name]
    assert {name: told[name] for name in made} == made
    words = shlex.split(command_of(load_results(session / "out")))
    assert main([*words[1:-1], str(session / "again")]) == 0
    jobs = [(session / name / "jobs.csv").read_bytes() for name in ("out", "again")]
    assert jobs[0] == jobs[1]


def test_a_session_that_differs_from_its_record(session, capsys):
    record = session / "record.jsonl"
    record.write_text(record.read_text().replace('"now":10.0', '"now":11.0', 1))
    assert run(session) == 2
    assert "record.jsonl:9: at 10 s /now is 10.0, but 11.0 was recorded" in capsys.readouterr().err


def test_a_record_appended_to_itself(session, capsys):
    record = session / "record.jsonl"
    record.write_text(2 * record.read_text())
    assert run(session, "-o", str(session / "out")) == 2
    told = "record.jsonl:13: continues after the simulation has ended; give the record of one run"
    assert told in capsys.readouterr().err
    assert not (session / "out").exists()


def test_what_happened_before_a_mistake_is_written(session, capsys):
    record = session / "record.jsonl"
    record.write_text(record.read_text().replace('["w0!1"]', '["w0!7"]', 1))
    assert run(session, "-o", str(session / "out")) == 2
    assert "event 0 (KILL_JOB): /data/job_ids/0: there is no job 'w0!7'" in capsys.readouterr().err
    assert len((session / "out" / "jobs.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-sched"], "--policy fcfs"),
        (["-W", "x.xml"], "workflows"),
        (["-r", "node-0"], "not HOSTS:ROLE"),
        (["--sg-cfg", "host/solver:x"], "solver 'x' is unknown"),
        (["-s", "nowhere"], "give an endpoint"),
    ],
)
def test_options_of_batsim_that_mean_nothing_here(arguments, message, session, capsys):
    inputs = ["-p", str(session / "p.xml"), "-w", str(session / "w0.json")]
    assert batsim([*inputs, "-e", str(session / "out"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(session.glob("out*"))


def test_the_context_of_a_batsim(session, capsys):
    inputs = ["-p", "p.xml", "-w", "w.json", "-s", "tcp://localhost:1"]
    assert batsim([*inputs, "--dump-execution-context"]) == 0
    assert json.loads(capsys.readouterr().out)["socket_endpoint"] == "tcp://localhost:1"
