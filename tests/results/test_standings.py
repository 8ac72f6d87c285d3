"""Runs side by side: the same work first, no best, and who is compared with nobody."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ptaskmodel.batch.jobs import execution
from ptaskmodel.cli import main
from ptaskmodel.results.batch_comparison import curves_of, standings
from ptaskmodel.results.compared_metrics import COUNT, NUMBER, SHARE, change_text, short_names
from ptaskmodel.results.sentences import warnings_of_runs
from ptaskmodel.results.states import WORDS, in_words, outcome_of
from ptaskmodel.results.tables.slurm_reading import Spell, idle_while_waiting
from ptaskmodel.results.task_comparison import compare
from ptaskmodel.simulation.records import STATE_NAMES
from ptaskmodel.slurm.jobs import record

OK, CUT, RUNS, WAITS = execution.SUCCESS, execution.WALLTIME, execution.RUNNING, execution.WAITING
HEAD = "job_id,profile,starting_time,finish_time,execution_time,waiting_time,final_state,"
HEAD += "allocated_resources\n"
INPUTS = [{"path": "/x/p.xml", "sha256": "0" * 64}, {"path": "w.swf", "sha256": "1" * 64}]


def made(place, name, states, seconds=60.0, **summary):
    """A batch of jobs on two hosts: job k starts at k s and has the k-th state."""
    (place / name).mkdir()
    summary = {"makespan_s": 99.0, "policy": "easy", "inputs": INPUTS} | summary
    (place / name / "summary.json").write_text(json.dumps(summary))
    lines = []
    for k, state in enumerate(states):
        if state == WAITS:
            lines.append(f"{k},p,,,,,{state},\n")
        elif state == RUNS:
            lines.append(f"{k},p,{k},,,0.0,{state},0-1\n")
        else:
            lines.append(f"{k},p,{k},{k + seconds},{seconds},{10.0 * k},{state},0-1\n")
    (place / name / "jobs.csv").write_text(HEAD + "".join(lines))
    (place / name / "over_time.csv").write_text("time,queue_depth\n0,0\n99,3600\n")
    return str(place / name)


@pytest.fixture
def runs(tmp_path):
    """Two whole runs, of which the second kills more and is fuller, and one that was stopped."""
    return [
        made(tmp_path, "calm", [OK, OK, OK, CUT], utilisation=0.5, useful_utilisation=0.4,
             waiting_s={"mean": 600.0}),
        made(tmp_path, "wild", [OK, CUT, CUT, CUT], seconds=90.0, utilisation=0.9,
             useful_utilisation=0.004, waiting_s={"mean": 60.0}),
        made(tmp_path, "cut", [OK, RUNS, WAITS], utilisation=0.99, waiting_s={"mean": 1.0},
             stopped_early={"at_s": 30000.0, "not_submitted": 1}),
    ]  # fmt: skip


def row(found, name):
    for group in found.groups:
        for metric, values in group.rows:
            if metric.name == name:
                return metric, values
    raise AssertionError(name)


def test_the_head_counts_what_ended_and_says_what_a_full_machine_is_full_of(runs):
    assert standings(runs).head() == (
        "calm ends 3 of 4 jobs, wild 1; wild's machine is fullest (90 %), with work that was "
        "thrown away (0.4 % useful). cut is not comparable (stopped at 8 h 20 min): it ends 1 of 4 "
        "jobs."
    )


def test_of_many_runs_numbers_are_called_runs_and_warnings_that_are_alike_are_cut(tmp_path):
    remarks = [{"level": "warning", "text": "the load is {k}.5", "effect": "overload"}]
    many = [
        made(tmp_path, f"policy=easy,seed={k}", [OK] * k + [CUT] * (7 - k),
             remarks=[one | {"text": one["text"].format(k=k)} for one in remarks])
        for k in range(1, 8)
    ]  # fmt: skip
    found = standings(many)
    assert found.head() == (
        "run 7 ends 7 of 7 jobs, run 6 6, run 5 5, run 4 4, run 3 3, 2 others 1 to 2."
    )
    (said,) = warnings_of_runs(found.runs)
    assert said.startswith("1: the load is 1.5; 2: the load is 2.5; ")
    assert said.count("the load") == 5
    assert "; alike of 2 runs more. More comes than can be served" in said


def test_the_first_question_is_whether_the_work_was_the_same(runs):
    found = standings(runs)
    titles = [group.title for group in found.groups]
    assert titles[0] == "Did they do the same work?"
    assert titles[-1] == "Of the 1 job that ended in all runs"
    assert row(found, "ended")[1] == [3.0, 1.0, 1.0]
    metric, values = row(found, "killed at walltime")
    assert (metric.better, values) == ("less", [1.0, 3.0, 0.0])
    assert row(found, "not yet submitted")[1] == [0.0, 0.0, 1.0]
    names = [metric.name for metric, _ in found.groups[2].rows]
    assert names.index("useful utilisation") == names.index("utilisation") + 1


def test_a_stopped_run_is_compared_with_none(runs):
    found = standings(runs)
    metric, values = row(found, "mean waiting")
    texts = [found.text(metric, values, k) for k in range(3)]
    assert texts == ["600", "60, 90 % less", "1"]
    assert standings(runs[::-1]).first == "wild"


def test_host_hours_of_killed_jobs_are_thrown_away(runs):
    # One job of 60 s on two hosts; three jobs of 90 s on two hosts.
    values = row(standings(runs), "thrown away with killed jobs (host h)")[1]
    assert values[:2] == pytest.approx([120 / 3600, 540 / 3600])


def test_jobs_that_ended_in_all_runs_have_metrics_of_their_own(runs):
    found = standings(runs)
    assert len(found.common) == 1
    assert row(found, "mean time of these")[1][:2] == [60.0, 90.0]


def test_idle_hosts_are_counted_while_a_job_waits():
    submits, starts, ends = (np.array(dates) for dates in ([0.0, 0.0], [0.0, 10.0], [10.0, 30.0]))
    found = idle_while_waiting(submits, starts, ends, np.array([1.0, 4.0]), 4.0)
    # One of four works while the other job waits, for 10 s; later nobody waits.
    assert found.idle == 30.0
    assert found.worst == Spell(0.0, 10.0, 1.0, 1.0)


def test_runs_that_differ_by_their_seed_are_one_curve_with_a_range(runs, tmp_path):
    places = [
        made(tmp_path, f"easy_{seed}", [OK] * 4, parameters={"policy": "easy", "seed": seed})
        for seed in (1, 2)
    ]
    for k, place in enumerate(places):
        lines = (Path(place) / "jobs.csv").read_text().splitlines()
        moved = [line.replace(",30.0,", f",{30.0 + 10 * k},") for line in lines]
        (Path(place) / "jobs.csv").write_text("\n".join(moved) + "\n")
    first, second = curves_of(standings([*places, runs[0]]))[0].curves
    assert (first.name, first.runs, second.name) == ("easy (2 seeds)", 2, "calm")
    assert (first.low[-1], first.middle[-1], first.high[-1]) == (30.0, 35.0, 40.0)
    assert first.parts.tolist() == [0.25, 0.5, 0.75, 1.0]


def test_what_long_names_share_is_taken_out():
    names = [f"policy=easy_load=0.9_seed={seed}_made" for seed in (1, 12)]
    assert short_names(names) == ["1", "12"]
    assert short_names(["first-fit", "first-come"]) == ["first-fit", "first-come"]
    assert short_names(["a" * 40]) == ["a" * 40]
    names = [
        f"policy={policy}, load=1.0, seed={seed}" for policy in ("easy", "fcfs") for seed in "12"
    ]
    assert short_names(names) == ["easy, seed=1", "easy, seed=2", "fcfs, seed=1", "fcfs, seed=2"]


def test_of_many_runs_those_that_differ_by_their_seed_are_told_together(tmp_path):
    found = standings([
        made(tmp_path, f"{policy}, seed={seed}", [OK] * 4, waiting_s={"mean": wait + seed},
             policy=policy, parameters={"seed": seed})
        for policy, wait in (("easy", 10.0), ("fcfs", 50.0)) for seed in range(3)
    ])  # fmt: skip
    assert found.head() == (
        "The runs each end 4 of 4 jobs. Mean waiting: easy (3 seeds) 10 s to 12 s, fcfs (3 seeds) "
        "50 s to 52 s."
    )


def test_no_run_is_crowned(runs, tmp_path, capsys):
    table, page = tmp_path / "t.csv", tmp_path / "page.html"
    assert main(["compare", *runs, "-o", str(table), "--page", str(page)]) == 0
    for text in (capsys.readouterr().out, table.read_text(), page.read_text()):
        before = text.partition("<script>")[0]
        assert "best" not in re.sub("<style>.*?</style>", "", before, flags=re.DOTALL)
        assert not re.search(r"\d\*", before)


def test_equal_inputs_are_said_and_other_ones_listed(runs, tmp_path):
    assert standings(runs).inputs_text().startswith("All runs have equal inputs (p.xml, w.swf)")
    other = made(tmp_path, "other", [OK] * 4, inputs=[INPUTS[0], INPUTS[0]])
    found = standings([runs[0], other])
    assert found.inputs_text() == "Inputs differ."
    assert [line[0] for line in found.choices()] == ["input"]


def test_every_recorded_parameter_that_differs_is_listed(runs, tmp_path):
    alike = {"fairness": "none", "policy": "easy"}
    places = [
        made(tmp_path, name, [OK] * 4, parameters=alike | more)
        for name, more in (("idle", {"delay_power": "idle"}), ("busy", {"delay_power": "busy"}))
    ]
    assert standings(places).choices() == [("delay_power", "idle", "busy")]
    # What an earlier version made has not recorded them: only what both say is compared.
    assert standings([runs[0], places[0]]).choices() == []


def test_other_jobs_are_not_comparable(runs, tmp_path):
    found = standings([runs[0], made(tmp_path, "more", [OK] * 5)])
    assert found.apart == {"more": "other jobs"}


def test_two_runs_are_counted_three_by_three(runs, capsys):
    assert compare(runs[0], runs[2]).outcomes() == [
        ("ended", (1, 0, 2)), ("killed", (0, 0, 1)), ("not run", (0, 0, 0)),
    ]  # fmt: skip
    found = compare(*runs[:2])
    assert found.counts() == {"faster": 0, "slower": 1, "equal": 0, "did not end in both": 3}
    assert [pair.states for pair in found.pairs][:2] == ["ended", "ended → killed at walltime"]
    assert main(["compare", *runs[:2]]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^ended in a +1 +2 +0$", printed, re.MULTILINE)
    assert printed.count("mean waiting (min)") == 1


def test_changes_are_told_in_words():
    said = [change_text(NUMBER, 4.0, after) for after in (4.0, 5.0, 3.0, 10.0)]
    assert said == ["the same", "25 % more", "25 % less", "2.5 times"]
    assert change_text(COUNT, 99.0, 14.0) == "85 fewer"
    assert change_text(SHARE, 0.92, 0.955) == "3.5 points more"
    assert change_text(NUMBER, 0.0, 2.0) == "2 more"
    assert change_text(NUMBER, 275_890.0, 275_890.4) == "nearly the same"


def test_every_state_has_plain_words():
    states = set(STATE_NAMES.values()) | {"suspended", "starved"}
    states |= {
        execution.SUCCESS,
        execution.FAILED,
        execution.WALLTIME,
        execution.KILLED,
        execution.REJECTED,
    }
    states |= execution.NOT_OVER
    states |= {record.PENDING, record.RUNNING, record.SUSPENDED, record.COMPLETING}
    states |= {record.COMPLETED, record.FAILED, record.TIMEOUT, record.CANCELLED}
    states |= {record.PREEMPTED, record.NODE_FAIL, record.DEADLINE, record.REFUSED}
    assert {in_words(state) for state in states} <= set(WORDS)
    ended = {state for state in states if outcome_of(state) == "ended"}
    assert ended == {"completed", execution.SUCCESS, record.COMPLETED}


def test_allocations_are_told_in_the_order_of_their_contention_slowdown(tmp_path):
    runs = [made(tmp_path, "wide", [OK, OK, OK, CUT]), made(tmp_path, "narrow", [OK] * 4)]
    found = standings(runs)
    slow = {"wide": 3.0, "narrow": 1.5}
    for name, results in found.runs.items():
        tasks = [replace(task, slowdown=slow[name]) for task in results.tasks]
        found.runs[name] = replace(results, tasks=tasks)
    again = standings(list(found.runs.values())).sentences()
    assert again[1] == "Mean contention slowdown: narrow 1.5, wide 3."


def test_a_value_that_falls_to_nothing_falls_by_all_of_it():
    assert change_text("number", 20.0, 0.0) == "100 % less"
    assert change_text("number", 20.0, 19.9) == "0.5 % less"
    assert change_text("share", 0.5, 0.62) == "12 points more"
