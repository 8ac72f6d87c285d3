"""What schedulers of others need of a batch: shared hosts, other works, hosts that drain, dates."""

from __future__ import annotations

import pytest

from ptaskmodel import load_platform
from ptaskmodel.batch.jobs.execution import DelayExecution, Progress, progress_of_delays
from ptaskmodel.batch.jobs.parallel_tasks import PtaskExecution
from ptaskmodel.batch.loop.decisions import Drain, Kill, Reject, Start
from ptaskmodel.batch.loop.loop import BatchSimulation
from ptaskmodel.batch.machine.machine import machine_of
from ptaskmodel.batch.schedule_metrics import unavailable_hosts
from ptaskmodel.errors import SimulationError
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.batch_works import PlacedWork
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork, ParallelWork, SequenceWork


class Scripted:
    """Decides what it is told to, by date."""

    def __init__(self, script):
        self.script = script
        self.messages = []

    def decide(self, view):
        self.messages += [(view.now, message) for message in view.messages]
        yield from self.script.get(view.now, ())


def job(name, num_hosts=1, lasts=10.0, at=0.0, **more):
    return Job(name, at, num_hosts, "d", DelayWork(lasts), **more)


def run(jobs, script, hosts=2, messages=(), **options):
    simulation = BatchSimulation(jobs, hosts, Scripted(script), shared=True, **options)
    for date in messages:
        simulation.send("look", date)
    while simulation.step():
        pass
    return simulation


def test_jobs_share_hosts_if_the_policy_says_so():
    one, two = job("1", 2), job("2", 2, lasts=4.0)
    simulation = run([one, two], {0.0: [Start(one, 0b11), Start(two, 0b11)]})
    assert [attempt.end_s for attempt in simulation.schedule().final] == [10.0, 4.0]
    assert simulation.view.free == 2


def test_a_shared_host_is_free_when_its_last_job_ends():
    one, two = job("1"), job("2", lasts=4.0)
    simulation = BatchSimulation(
        [one, two], 2, Scripted({0.0: [Start(one, 0b01), Start(two, 0b01)]}), shared=True
    )
    free = []
    while simulation.step():
        free.append((simulation.now, simulation.view.free))
    assert free == [(0.0, 1), (4.0, 1), (10.0, 2)]


def test_another_work_runs_on_any_number_of_hosts():
    one = job("1", 1)
    simulation = run([one], {0.0: [Start(one, 0b11, work=DelayWork(3.0))]})
    (attempt,) = simulation.schedule().final
    assert (attempt.end_s, attempt.use) == (3.0, 2)


def test_a_job_that_is_too_large_is_for_the_policy_to_reject():
    large = job("1", 5)
    simulation = run([large], {0.0: [Reject(large)]}, admit_larger=True)
    assert simulation.schedule().final[0].state == "REJECTED"
    with pytest.raises(SimulationError, match="asks for 5 hosts"):
        BatchSimulation([large], 2, Scripted({}))


def test_messages_have_dates():
    simulation = run([], {}, messages=(3.0, 1.0))
    assert simulation.policy.messages == [(1.0, "look"), (3.0, "look")]
    with pytest.raises(SimulationError, match="it is 3 s now"):
        simulation.send("look", 2.0)


def test_jobs_go_on_where_hosts_drain_and_nothing_starts_there():
    one, two = job("1", 2), job("2", 1)
    script = {
        0.0: [Start(one, 0b011)],
        2.0: [Drain([0, 2])],
        12.0: [Drain([0], over=True), Start(two, 0b001)],
    }
    simulation = run([one, two], script, hosts=3, messages=(2.0, 12.0))
    schedule = simulation.schedule()
    assert [attempt.end_s for attempt in schedule.final] == [10.0, 22.0]
    assert unavailable_hosts(schedule) == [(2.0, 1), (10.0, 2), (12.0, 1)]
    with pytest.raises(SimulationError, match="not 1 free ones"):
        run([two], {0.0: [Drain([0]), Start(two, 0b001)]})


def test_a_host_that_drains_no_more_is_not_free_while_its_job_runs():
    one, two = job("1"), job("2")
    script = {0.0: [Start(one, 0b01)], 1.0: [Drain([0])], 2.0: [Drain([0], over=True)]}
    script[3.0] = [Start(two, 0b01)]
    simulation = BatchSimulation([one, two], 2, Scripted(script))
    for date in (1.0, 2.0, 3.0):
        simulation.send("look", date)
    with pytest.raises(SimulationError, match="not 1 free ones"):
        simulation.run()


def test_a_policy_that_speaks_for_others_says_its_faults_itself():
    class Speaking(Scripted):
        def fault(self, what):
            return SimulationError(f"they said: {what}")

    one = job("1")
    simulation = BatchSimulation([one], 1, Speaking({0.0: [Kill(one)]}))
    with pytest.raises(SimulationError, match=r"^they said: kills job '1'"):
        simulation.run()


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [(0, (0, 0.0)), (1, (0, 0.5)), (2, (1, 0.0)), (8.5, (3, 0.125)), (12, (4, 0.0))],
)
def test_how_far_a_sequence_of_delays_is(elapsed, expected):
    work = SequenceWork((DelayWork(2.0), DelayWork(4.0)), 2)
    assert progress_of_delays(work, elapsed) == Progress(*expected)


def test_how_far_a_job_of_delays_is():
    one = job("1")
    execution = DelayExecution()
    simulation = BatchSimulation([one], 1, Scripted({0.0: [one]}), execution=execution)
    simulation.advance_to(4.0)
    assert execution.progress(simulation.view.attempt(one), 4.0) == (0, 0.4)


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-2" speed="1f" bw="1GBps" lat="0"/>
</platform>
"""


def test_how_far_a_sequence_of_parallel_tasks_is_on_hosts_named_beforehand(tmp_path):
    (tmp_path / "p.xml").write_text(PLATFORM)
    machine = machine_of(load_platform(tmp_path / "p.xml"))
    stages = (ParallelWork.of(2, [2.0, 2.0]), ParallelWork.of(2, [4.0, 4.0]))
    one = Job("1", 0.0, 2, "s", SequenceWork(stages, 2))
    work = PlacedWork(("n2", "n2"), one.work)  # two ranks on a host: half as fast
    execution = PtaskExecution(machine, Simulation(machine.platform))
    policy = Scripted({0.0: [Start(one, 0b100, work=work)]})
    simulation = BatchSimulation([one], 3, policy, execution=execution)
    simulation.advance_to(18.0)
    assert execution.progress(simulation.view.attempt(one), 18.0) == pytest.approx((3, 0.25))
    simulation.run()
    assert simulation.schedule().final[0].end_s == pytest.approx(24.0)
