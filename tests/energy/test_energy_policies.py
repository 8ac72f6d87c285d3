"""Policies that save energy: hosts sleep and come back, the cap is kept, nobody is forgotten."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from energy_batches import delay_job, machine_platform, ptask_job, run, workload_of

import ptaskmodel as pm
from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Easy,
    Fcfs,
    PowerCap,
    SleepIdle,
    check_policy,
    check_schedule,
    run_batch,
)
from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.cli import main


def random_jobs(seed: int, ptasks: bool = False):
    draw = random.Random(seed)
    date, jobs = 0.0, []
    for k in range(25):
        date += draw.choice([0.0, 1.0, draw.uniform(0, 60)])
        hosts = draw.randint(1, 4)
        if ptasks and draw.random() < 0.5:
            jobs.append(ptask_job(str(k), date, hosts, draw.uniform(1e8, 2e9), 1e7))
        else:
            walltime = {"walltime_s": 40.0} if draw.random() < 0.5 else {}
            jobs.append(delay_job(str(k), date, hosts, draw.uniform(1, 30), **walltime))
    return jobs


def test_hosts_sleep_after_the_timeout_and_wake_for_the_queue():
    jobs = [delay_job("a", 0.0, 2, 5.0), delay_job("b", 100.0, 3, 5.0)]
    schedule, energy = run(machine_platform(), SleepIdle(timeout=20.0), *jobs)
    asked = [(s.asked_s, members(s.hosts), s.pstate, s.done_s) for s in schedule.switches]
    assert asked == [
        (20.0, [2, 3], 3, 26.0),
        (25.0, [0, 1], 3, 31.0),
        (100.0, [0, 1, 2], 0, 115.0),
    ]
    assert [a.start_s for a in schedule.attempts] == [0.0, 115.0]
    # idle, falling asleep (120 W), asleep (10 W), coming back (110 W), idle again
    late = 20 * 100 + 6 * 120
    expected = [
        25 * 100 + 6 * 120 + 69 * 10 + 15 * 110 + 5 * 100,
        25 * 100 + 6 * 120 + 69 * 10 + 15 * 110 + 5 * 100,
        late + 74 * 10 + 15 * 110 + 5 * 100,
        late + 94 * 10,
    ]
    assert energy.meter.hosts_J[1:] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("under", ["fcfs", "easy"])
@pytest.mark.parametrize("seed", range(15))
def test_nobody_is_forgotten_and_nothing_shared(seed, under):
    jobs = random_jobs(seed, ptasks=seed % 3 == 0)
    policy = SleepIdle(timeout=float(seed % 4) * 5, spare=seed % 2, under=under)
    schedule, energy = run(machine_platform(), policy, *jobs)
    check_schedule(schedule, jobs)
    assert all(attempt.state == "COMPLETED_SUCCESSFULLY" for attempt in schedule.final)
    for attempt in schedule.attempts:
        for switch in schedule.switches:
            if attempt.hosts & switch.hosts:
                assert attempt.end_s <= switch.asked_s or attempt.start_s >= switch.done_s
    assert energy.meter.hosts_J.sum() > 0


def test_a_timeout_that_never_comes_is_the_policy_under_it():
    jobs = random_jobs(3)

    def dates(policy):
        return [(a.start_s, a.hosts) for a in run(machine_platform(), policy, *jobs)[0].attempts]

    assert dates(SleepIdle(timeout=1e6)) == dates(Easy())
    assert dates(SleepIdle(timeout=1e6, under="fcfs")) == dates(Fcfs())
    assert dates(PowerCap(cap=1e6)) == dates(Easy())
    assert dates(PowerCap(cap=1e6, by="pstates", under="fcfs")) == dates(Fcfs())


def test_hosts_without_a_sleep_pstate_are_turned_off():
    check_policy(SleepIdle, workloads=10)
    jobs = [delay_job("a", 0.0, 1, 5.0), delay_job("b", 100.0, 2, 5.0)]
    schedule = BatchSimulation(jobs, 2, SleepIdle(timeout=10.0)).run()
    assert [(c.date_s, c.state) for c in schedule.host_changes] == [
        (10.0, "off"),
        (15.0, "off"),
        (100.0, "on"),
    ]
    assert schedule.final[1].start_s == 100.0


@pytest.mark.parametrize("by", ["wait", "pstates"])
@pytest.mark.parametrize("seed", range(12))
def test_the_cap_is_kept_at_every_date(seed, by, tmp_path):
    cap = (400.0, 510.0, 600.0, 690.0)[seed % 4]
    jobs = random_jobs(seed, ptasks=True)
    options = BatchOptions(
        policy="power-cap",
        policy_options={"cap": cap, "by": by, "under": ("easy", "fcfs")[seed % 2]},
        energy=True,
        delay_power="busy",
    )
    rows: list[np.ndarray] = []
    result = run_batch(machine_platform(), workload_of(*jobs), options, power=rows.append)
    assert np.concatenate(rows)["hosts_W"].max() <= cap * (1 + 1e-9)
    for attempt in result.schedule.final:
        assert attempt.state in ("COMPLETED_SUCCESSFULLY", "REJECTED")
        if attempt.state == "REJECTED":
            assert f"above the cap of {cap:g} W" in attempt.reason


def test_by_pstates_more_starts_at_once_and_takes_longer():
    jobs = [ptask_job(str(k), 0.0, 2, 1e9, 0.0) for k in range(2)]
    wait, _ = run(machine_platform(), PowerCap(cap=700.0), *jobs)
    slow, _ = run(machine_platform(), PowerCap(cap=700.0, by="pstates"), *jobs)
    assert [a.start_s for a in wait.attempts] == pytest.approx([0.0, 10.0])
    assert [a.start_s for a in slow.attempts] == [0.0, 0.0]
    assert [a.end_s for a in slow.attempts] == pytest.approx([10.0, 50.0])


@pytest.mark.parametrize(
    ("policy", "options", "what"),
    [
        ("power-cap", [], "power-cap needs --policy-option cap=NUMBER"),
        ("power-cap", ["cap=nan"], "cap=nan is not a number of W"),
        ("power-cap", ["cap=-1"], "cap=-1 is not a number of W"),
        ("power-cap", ["cap=x"], "power-cap needs --policy-option cap=NUMBER"),
        ("power-cap", ["cap=399"], "is below the 400 W that the hosts draw idle"),
        ("power-cap", ["cap=500", "by=luck"], "option by is 'luck'; use wait or pstates"),
        ("power-cap", ["cap=500", "under=x"], "option under is 'x'; use easy or fcfs"),
        ("sleep-idle", ["timeout=-1"], "are to be >= 0"),
        ("sleep-idle", ["timeout=nan"], "are to be >= 0"),
        ("sleep-idle", ["spare=-1"], "are to be >= 0"),
        ("sleep-idle", ["spare=1.5"], "sleep-idle needs --policy-option spare=NUMBER"),
        ("sleep-idle", ["when=1"], "has no option 'when'"),
    ],
)
def test_bad_options_are_one_line(policy, options, what, tmp_path, capsys):
    platform, workload = tmp_path / "p.xml", tmp_path / "w.json"
    platform.write_text(machine_platform().to_xml())
    jobs = [{"id": 1, "subtime": 0, "res": 2, "profile": "d", "walltime": 9}]
    profiles = {"d": {"type": "delay", "delay": 5}}
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    words = [word for option in options for word in ("--policy-option", option)]
    status = main(["batch", str(platform), str(workload), "--policy", policy, *words])
    said = capsys.readouterr().err.strip()
    assert status == 2
    assert what in said
    assert len(said.splitlines()) == 1


def test_a_cap_needs_power(tmp_path):
    build = pm.Platform.build("none")
    build.host("h", "1Gf")
    options = BatchOptions(policy="power-cap", policy_options={"cap": 500.0})
    with pytest.raises(pm.SimulationError, match="host 0 has no power"):
        run_batch(build.finish(), workload_of(delay_job("a", 0.0, 1, 5.0)), options)


def test_the_command_writes_it_all(tmp_path, capsys):
    platform, workload, out = tmp_path / "p.xml", tmp_path / "w.json", tmp_path / "out"
    platform.write_text(machine_platform().to_xml())
    jobs = [
        {"id": k, "subtime": 50 * k, "res": 1 + k % 3, "profile": "d", "walltime": 90}
        for k in range(6)
    ]
    profiles = {"d": {"type": "delay", "delay": 30}}
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    words = ["--policy", "sleep-idle", "--policy-option", "timeout=10", "--energy", "--plots"]
    words += ["--delay-power", "busy", "-o", str(out)]
    assert main(["batch", str(platform), str(workload), *words]) == 0
    said = capsys.readouterr().out
    assert "energy" in said
    written = {path.name for path in out.iterdir()}
    assert written >= {"consumed_energy.csv", "energy.csv", "power.csv", "pstate_changes.csv"}
    assert written >= {"gantt.png", "load.png", "power.png"}
    files = json.loads((out / "summary.json").read_text())["files"]
    assert sorted(files) == sorted(written)
