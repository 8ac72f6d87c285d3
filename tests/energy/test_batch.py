"""Batches with energy: Batsim's worked case, who is charged, switches, mistakes of policies."""

from __future__ import annotations

import copy
import csv
import json
import random
from pathlib import Path

import numpy as np
import pytest
from energy_batches import (
    SLEEP,
    SPEEDS,
    WATTS,
    Script,
    delay_job,
    machine_platform,
    ptask_job,
    run,
    workload_of,
)

import ptaskmodel as pm
from ptaskmodel.batch import (
    BatchOptions,
    BatchSimulation,
    Fcfs,
    Job,
    PolicyFault,
    SetPower,
    Start,
    run_batch,
)
from ptaskmodel.batch.loop.power_states import Pstates
from ptaskmodel.batch.machine.machine import machine_of

WORKED = """
import ptaskmodel.batch as b

class Worked:
    steps = [(0.0, 3), (30.0, 0)]

    def decide(self, view):
        for job in view.queue:
            if job.id == "w0" or view.now >= 45:
                yield b.Start(job, [0, 1] if job.num_hosts == 2 else range(4))
        while self.steps and self.steps[0][0] <= view.now:
            yield b.SetPower([2, 3], self.steps[0][1])
            self.steps = self.steps[1:]
        if self.steps:
            yield b.Wake(self.steps[0][0])
"""


def lines(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def test_the_worked_case_of_batsim(tmp_path):
    file = tmp_path / "worked.py"
    file.write_text(WORKED)
    jobs = [delay_job("w0", 0.0, 2, 5.0), delay_job("w1", 0.0, 4, 3.0)]
    run = pm.batch_into(
        tmp_path / "out",
        machine_platform(),
        workload_of(*jobs),
        BatchOptions(policy=f"{file}:Worked", energy=True),
    )
    out = run.directory
    rows = lines(out / "consumed_energy.csv")
    assert sorted(rows, key=lambda row: (float(row[0]), row[2] != "s")) == [
        ["0", "0", "s", "400", "NA"],
        ["0", "0", "p", "400", "NA"],
        ["5", "2200", "e", "440", "440"],
        ["6", "2640", "p", "220", "440"],
        ["30", "7920", "p", "220", "220"],
        ["45", "14220", "s", "400", "NA"],
        ["45", "14220", "p", "400", "420"],
        ["48", "15420", "e", "400", "400"],
    ]
    assert [row[:3] for row in lines(out / "pstate_changes.csv")] == [
        ["0", "0-3", "0"],
        ["0", "2-3", "-2"],
        ["6", "2-3", "3"],
        ["30", "2-3", "-1"],
        ["45", "2-3", "0"],
    ]
    assert [[float(x) for x in row[:6]] for row in lines(out / "machine_states.csv")] == [
        [0, 0, 0, 2, 0, 2],
        [5, 0, 0, 2, 2, 0],
        [6, 2, 0, 0, 2, 0],
        [30, 0, 2, 0, 2, 0],
        [45, 0, 0, 0, 0, 4],
        [48, 0, 0, 0, 4, 0],
    ]
    schedule = json.loads((out / "schedule.json").read_text())
    assert schedule["consumed_joules"] == pytest.approx(15420, rel=1e-12)
    assert (schedule["nb_grouped_switches"], schedule["nb_machine_switches"]) == (2, 4)
    assert schedule["time_sleeping"] == 48
    assert schedule["time_switching_off"] == pytest.approx(12)
    assert schedule["time_switching_on"] == pytest.approx(30)
    assert schedule["time_computing"] == 22
    assert schedule["time_idle"] == pytest.approx(4 * 48 - 48 - 12 - 30 - 22)
    with (out / "jobs.csv").open(newline="") as jobs_file:
        found = {row["job_id"]: row["consumed_energy"] for row in csv.DictReader(jobs_file)}
    assert found == {"w0": "1000.000000", "w1": "1200.000000"}
    by_name = {(row[0], row[1]): float(row[2]) for row in lines(out / "energy.csv")}
    assert [by_name["host", f"h{k}"] for k in range(4)] == pytest.approx([4800, 4800, 2910, 2910])
    assert by_name["host", "master_host"] == 0
    assert run.summary["energy"]["consumed_J"] == pytest.approx(15420)


def test_jobs_of_parallel_tasks_are_charged_for_their_hosts_and_their_part():
    jobs = (ptask_job("a", 0.0, 2, 1e9, 1e8), ptask_job("b", 5.0, 1, 5e8, 0.0))
    schedule, energy = run(machine_platform(cores=2), Fcfs(), *jobs)
    a, b = schedule.attempts
    assert (a.end_s, b.end_s) == pytest.approx((10.0, 10.0))
    # Half of the cores are busy: 100 + 100 / 2 W each.
    assert energy.job_J == pytest.approx([2 * 10 * 150, 5 * 150])
    # The shares hold the links' part too: 2 of 30 W of the range of 2 W at load 0.1, both ways.
    links = energy.meter.charged_J[5:].sum()
    assert energy.share_J == pytest.approx([3000 + links, 750])
    assert energy.consumed_J == pytest.approx(10 * 400 + 2 * 10 * 50 + 5 * 50)


def test_jobs_that_share_a_host_are_each_charged_with_all_of_it():
    job = delay_job("x", 0.0, 1, 10.0)
    half = [Job(f"x{k}", 0.0, 1, job.profile, job.work, cores=1 + k) for k in range(2)]
    _, energy = run(machine_platform(hosts=1, cores=4), Fcfs(), *half)
    assert energy.job_J == pytest.approx([1000, 1000])
    assert energy.share_J == pytest.approx([1000 / 3, 2000 / 3])
    busy = run(machine_platform(hosts=1, cores=4), Fcfs(), *half, delay_power="busy")[1]
    assert busy.job_J == pytest.approx([1750, 1750])
    assert busy.share_J == pytest.approx([1750 / 3, 3500 / 3])


def naive_delays(schedule, hosts, idle, full, busy):
    """Joules of hosts by the definition, for whole hosts that only run delays."""
    end = schedule.now_s
    joules = np.full(hosts, idle * end)
    for attempt in schedule.attempts:
        for host in attempt.hosts:
            joules[host] += (full - idle) * (attempt.end_s - attempt.start_s) * busy
    return joules


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("busy", [False, True])
def test_delays_cost_the_closed_form(seed, busy):
    draw = random.Random(seed)
    jobs = [
        delay_job(str(k), draw.uniform(0, 50), draw.randint(1, 4), draw.uniform(0, 20))
        for k in range(20)
    ]
    jobs.sort(key=lambda job: job.submit_time_s)
    power = "busy" if busy else "idle"
    schedule, energy = run(machine_platform(), Fcfs(), *jobs, delay_power=power)
    found = energy.meter.hosts_J[1:]
    assert found == pytest.approx(naive_delays(schedule, 4, 100, 200, busy), rel=1e-12)
    each = [(a.end_s - a.start_s) * a.job.num_hosts * (200 if busy else 100) for a in
            schedule.attempts]  # fmt: skip
    assert energy.job_J == pytest.approx(each, rel=1e-9)
    assert energy.share_J == pytest.approx(each, rel=1e-9)


def test_a_killed_job_and_a_suspended_one():
    from ptaskmodel.batch import Kill, Resume, Suspend

    jobs = [delay_job("k", 0.0, 1, 100.0), delay_job("s", 0.0, 2, 10.0)]
    script = Script((4.0, [Suspend(jobs[1])]), (5.0, [Kill(jobs[0])]), (9.0, [Resume(jobs[1])]))
    schedule, energy = run(machine_platform(), script, *jobs)
    assert [a.end_s for a in schedule.attempts] == [5.0, 15.0]
    assert energy.job_J == pytest.approx([500, 2000])


def test_between_computing_pstates_a_change_is_at_once_also_under_a_job():
    job = ptask_job("a", 0.0, 1, 1e9, 0.0)
    script = Script((5.0, [SetPower([0], 1)]))
    schedule, energy = run(machine_platform(hosts=1), script, job)
    (attempt,) = schedule.attempts
    assert attempt.end_s == pytest.approx(15.0)
    assert energy.job_J == pytest.approx([5 * 200 + 10 * 170])
    assert [event for _, _, event, _ in energy.rows] == ["s", "p", "p", "e"]


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        ([(10.0, [SetPower([0], 6)])], "gives host 0 pstate 6: it has 0 to 5"),
        ([(10.0, [SetPower([0], 4)])], "gives host 0 pstate 4, through which it only passes"),
        ([(10.0, [SetPower([0], 3)]), (11.0, [SetPower([0], 0)])], "host 0, which is switching"),
        ([(10.0, [SetPower([0], 3)]), (17.0, [SetPower([0], 3)])], "host 0 to sleep, which sleeps"),
        ([(10.0, [SetPower([0], 3)]), (17.0, [SetPower([0], "on")])], "host 0, which sleeps"),
        ([(11.0, [SetPower([0], 3)])], "host 0 to sleep, on which a job runs"),
        ([(10.0, [SetPower([0], 3)]), (11.0, [Start(None, [0])])], "has no room"),
    ],
)
def test_mistakes_of_a_policy(steps, what):
    job = delay_job("late", 10.0, 2, 5.0)
    if what == "has no room":
        steps[1] = (11.0, [Start(job, [0, 1])])
        what = "2 free ones"
    with pytest.raises(PolicyFault, match=what):
        run(machine_platform(hosts=2), Script(*steps), job)


def test_without_a_platform_pstates_are_any_number():
    jobs = [delay_job("a", 0.0, 1, 5.0)]
    schedule = BatchSimulation(jobs, 2, Script((0.0, [SetPower([1], 17)]))).run()
    assert schedule.switches == ()
    assert [change.state for change in schedule.host_changes] == [17]


def test_a_host_that_begins_asleep_is_refused():
    build = pm.Platform.build("asleep")
    facts = {"wattage_per_state": WATTS, "sleep_pstates": SLEEP}
    build.host("h", SPEEDS, pstate=3, properties=facts)
    with pytest.raises(pm.SimulationError, match="begins in sleep pstate 3"):
        run_batch(build.finish(), workload_of(delay_job("a", 0.0, 1, 5.0)))


def test_no_energy_no_files(tmp_path):
    jobs = [delay_job("a", 0.0, 1, 5.0)]
    run = pm.batch_into(tmp_path / "out", machine_platform(), workload_of(*jobs))
    assert not {"energy.csv", "power.csv", "consumed_energy.csv"} & set(run.files)
    assert run.result.energy is None
    assert "energy" not in run.summary


def test_a_platform_without_watts_is_refused(tmp_path):
    build = pm.Platform.build("none")
    build.host("h", "1Gf")
    with pytest.raises(pm.PlatformError, match="no host or link has a power property"):
        run_batch(
            build.finish(), workload_of(delay_job("a", 0.0, 1, 5.0)), BatchOptions(energy=True)
        )


def test_energy_changes_no_schedule():
    jobs = [ptask_job(str(k), 3.0 * k, 1 + k % 3, 1e8 * (k + 1), 1e7 * k) for k in range(12)]
    workload = workload_of(*jobs)

    def dates(**options):
        schedule = run_batch(machine_platform(), workload, BatchOptions(**options)).schedule
        return [(a.start_s, a.end_s, a.hosts) for a in schedule.attempts]

    assert dates() == dates(energy=True)


def test_a_copy_has_pstates_of_its_own_and_shares_the_facts():
    pstates = Pstates(machine_of(machine_platform()).pstates())
    other = copy.deepcopy(pstates)
    other.now[0] = 1
    assert pstates.now == [0, 0, 0, 0]
    assert other.facts is pstates.facts
