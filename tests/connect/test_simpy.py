"""SimPy processes that wait for parallel tasks."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

import ptaskmodel as pm
from ptaskmodel.errors import SimulationError

simpy = pytest.importorskip("simpy")

from ptaskmodel.connect.simpy import (  # noqa: E402
    SimPyBridge,
    TaskNotCompletedError,
    delay_to,
)

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def sim() -> pm.Simulation:
    """Two hosts of 100 flop/s, a link of 100 B/s."""
    return pm.Simulation(pm.load_platform(ROOT / "platforms" / "worked_example.xml"))


@pytest.fixture
def env() -> simpy.Environment:
    return simpy.Environment()


@pytest.fixture
def bridge(env: simpy.Environment, sim: pm.Simulation) -> SimPyBridge:
    return SimPyBridge(env, sim)


def test_a_process_gets_the_record_at_the_end_of_its_task(env, bridge):
    def process():
        yield env.timeout(1.5)
        record = yield bridge.run(pm.Execution("a", 250, id="x"))
        return env.now, record.task_id, record.start_s, record.end_s

    assert env.run(env.process(process())) == (4.0, "x", 1.5, 4.0)


def test_tasks_of_several_processes_share(env, bridge):
    ends = []

    def process(start_s, flops):
        yield env.timeout(start_s)
        yield bridge.run(pm.Execution("a", flops))
        ends.append(env.now)

    env.process(process(0, 1000))
    env.process(process(4, 300))
    env.run()
    assert ends == pytest.approx([10.0, 13.0], rel=1e-12)


def test_the_same_bits_as_without_simpy(env, bridge, sim):
    rng = random.Random(5)
    tasks = [
        pm.ParallelTask(
            ["a", "b"],
            flops=[rng.uniform(0, 500), rng.uniform(0, 500)],
            flows=[(0, 1, rng.uniform(0, 500))],
            start_s=rng.uniform(0, 60),
        )
        for _ in range(40)
    ]
    alone = pm.Simulation(sim.platform)
    alone.add_all(tasks)
    alone.run()
    seen = {}

    def process(k, task):
        # A task that starts later waits inside the simulation: SimPy adds up delays.
        record = yield bridge.run(task)
        seen[k] = (env.now, record.end_s)

    for k, task in enumerate(tasks):
        env.process(process(k, task))
    env.run()
    finish = [record.end_s for record in alone.records()]
    assert [seen[k] for k in range(len(tasks))] == [(date, date) for date in finish]


def test_parallel_tasks_come_first_at_a_date(env, bridge):
    said = []

    def ticker():
        for _ in range(3):
            yield env.timeout(1.0)
            said.append(("tick", env.now, job.triggered))

    env.process(ticker())
    job = bridge.run(pm.Execution("a", 200))
    env.run()
    assert said == [("tick", 1.0, False), ("tick", 2.0, True), ("tick", 3.0, True)]


def test_interrupted_process_cancels_its_task(env, bridge):
    def worker():
        job = bridge.run(pm.Execution("a", 1000))
        try:
            yield job
        except simpy.Interrupt:
            progress = bridge.task(job).progress
            bridge.cancel(job)
            bridge.cancel(job)
            return env.now, progress, bridge.task(job).state

    def other():
        record = yield bridge.run(pm.Execution("a", 400))
        return record.end_s

    def boss(victim):
        yield env.timeout(4.0)
        victim.interrupt()

    process, second = env.process(worker()), env.process(other())
    env.process(boss(process))
    env.run()
    assert process.value == (4.0, pytest.approx(0.2), "cancelled")
    assert second.value == 6.0


def test_suspend_and_resume(env, bridge):
    def worker():
        job = bridge.run(pm.Execution("a", 1000))
        yield env.timeout(4.0)
        bridge.suspend(job)
        yield env.timeout(5.0)
        assert bridge.task(job).state == "suspended"
        bridge.resume(job)
        record = yield job
        return record.end_s

    assert env.run(env.process(worker())) == pytest.approx(15.0, rel=1e-12)


def test_changes_of_the_platform(env, bridge):
    def worker():
        job = bridge.run(pm.Flow("a", "b", 1000))
        yield env.timeout(5.0)
        bridge.sync().set_bandwidth("l", 50.0)
        record = yield job
        return record.end_s

    assert env.run(env.process(worker())) == pytest.approx(15.0, rel=1e-12)


def test_a_task_that_fails_throws_into_the_process(env, bridge):
    def worker():
        try:
            yield bridge.run(pm.Execution("a", 1000, id="x", walltime_s=3.0))
        except TaskNotCompletedError as error:
            return env.now, str(error), error.record.end_s

    result = env.run(env.process(worker()))
    assert result == (3.0, "task 'x' did not complete: walltime", 3.0)


def test_a_failure_that_nobody_waits_for_ends_the_run(env, bridge):
    bridge.run(pm.Execution("a", 1000, walltime_s=3.0))
    with pytest.raises(TaskNotCompletedError):
        env.run()


def test_any_and_all_of(env, bridge):
    def worker():
        short, long = (bridge.run(pm.Execution(h, x)) for h, x in (("a", 100), ("b", 300)))
        yield short | long
        first = env.now
        yield short & long
        return first, env.now

    assert env.run(env.process(worker())) == (1.0, 3.0)


def test_task_without_work_ends_at_once(env, bridge):
    def worker():
        yield env.timeout(2.0)
        for _ in range(3):
            yield bridge.run(pm.Delay(0.0))
        return env.now

    assert env.run(env.process(worker())) == 2.0


def test_run_until_a_date_leaves_both_clocks_there(env, bridge):
    job = bridge.run(pm.Execution("a", 1000))
    env.run(until=2.5)
    assert bridge.task(job).progress == 0.25
    assert bridge.sync().now == env.now == 2.5


def test_an_environment_that_is_behind_is_refused(env, sim):
    sim.advance_to(5.0)
    with pytest.raises(SimulationError, match=r"the simulation is at 5\.0 s"):
        SimPyBridge(env, sim)
    assert SimPyBridge(simpy.Environment(7), sim).sync().now == 7.0


def test_two_delays_lead_to_any_date():
    rng = random.Random(1)
    for _ in range(100_000):
        now = rng.uniform(0, 1) * 10.0 ** rng.randint(-18, 3)
        date = now + rng.uniform(0, 1) * 10.0 ** rng.randint(-18, 6)
        between = now + delay_to(date, now)
        assert now <= between <= date
        assert between + delay_to(date, between) == date


def test_the_example_runs():
    done = subprocess.run(
        [sys.executable, "-W", "error", "experiments/simpy_bridge/example.py"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "HOME": str(Path.home())},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "  6.00 s  job 1 is stopped at 75%: its user has seen enough\n" in done.stdout
    assert done.stdout.endswith(" 14.00 s  job 2 is done after 8.00 s\n")
