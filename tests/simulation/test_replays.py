"""Applications beside other tasks: ranks contend, begin, end, fail and are stopped like them."""

from __future__ import annotations

import pickle

import engine_runner
import pytest
import scenarios
from replay_polls import polling_case

import ptaskmodel as pm
from ptaskmodel.errors import SimulationError
from ptaskmodel.mpi import read_trace, replay
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.recording.attribution import Neighbours
from ptaskmodel.recording.intervals import Recorder

SEND = 1000016 / 125e6 + 100e-6  # of a megabyte and its envelope


def platform(hosts=4):
    build = Platform.build("p")
    build.cluster("c", hosts, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    return build.finish()


@pytest.fixture
def traces(tmp_path):
    def make(*ranks, name="t"):
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(f"{r} {line}\n" for r, own in enumerate(ranks) for line in own))
        return read_trace(path)

    return make


PAIR = ["compute 1e9", "send 1 0 1e6"], ["recv 0 0 1e6", "compute 5e8"]


def test_alone_ranks_end_as_in_a_replay(traces):
    trace = traces(*PAIR)
    alone = replay(platform(), trace, ["n0", "n1"], model="L07", solver="bmf")
    simulation = pm.Simulation(platform())
    task = simulation.add_replay(trace, ["n0", "n1"], start_s=2.0)
    simulation.run()
    assert task.start_s == 2.0
    assert task.end_s == pytest.approx(2.0 + alone.makespan_s, rel=1e-12)
    assert task.end_s == pytest.approx(3.5 + SEND, rel=1e-9)
    assert task.state == "completed"


@pytest.mark.parametrize("seed", [1, 8, 12, 14, 19, 23])  # with walltimes, events, cancellations
@pytest.mark.parametrize("solver", ["bmf", "fairbottleneck", "maxmin"])
def test_tasks_have_the_same_dates_where_ranks_wait_beside_them(traces, seed, solver):
    scenario = scenarios.random_scenario(seed)
    alone, beside = (engine_runner.prepare(scenario, solver=solver) for _ in range(2))
    expected = engine_runner.finish(scenario, alone)
    trace, host = traces(["compute 1"]), beside.platform.hosts[0].name
    later = beside.add_replay(trace, [host], start_s=alone.now + 1.0)
    found = engine_runner.finish(scenario, beside)
    del found[later.id]
    assert found == expected


SIZES = (100, 700, 2000, 30_000, 65_535, 65_537, 1_000_000)


@pytest.mark.parametrize("model", ["SMPI", "LV08", "CM02"])
def test_messages_travel_as_in_a_replay_by_that_model(traces, model):
    sends = [f"send 1 0 {size}" for size in SIZES]
    receives = [f"recv 0 0 {size}" for size in SIZES]
    trace = traces(["compute 1e8", *sends], receives)
    alone = replay(platform(), trace, ["n0", "n1"], model=model)
    simulation = pm.Simulation(platform(), network_model=model)
    task = simulation.add_replay(trace, ["n0", "n1"])
    simulation.run()
    assert simulation.network_model.name == model
    assert task.end_s == alone.makespan_s


@pytest.mark.parametrize("seed", [3, 528])  # of 528 some ranks compute and sleep up to one date
def test_alone_ranks_that_poll_go_on_in_the_order_of_a_replay(seed, tmp_path):
    text, hosts, files = polling_case(seed)
    (tmp_path / "p.xml").write_text(text)
    for k, lines in enumerate(files):
        (tmp_path / f"{k}.txt").write_text(lines)
    (tmp_path / "traces.txt").write_text("".join(f"{k}.txt\n" for k in range(len(files))))
    model, trace = load_platform(tmp_path / "p.xml"), read_trace(tmp_path / "traces.txt")
    simulation = pm.Simulation(model, network_model="SMPI")
    task = simulation.add_replay(trace, hosts)
    simulation.run()
    assert task.end_s == replay(model, trace, hosts).makespan_s


def test_under_the_model_of_smpi_messages_share_links_with_flows(traces):
    trace = traces(["send 1 0 1e8"], ["recv 0 0 1e8"])
    simulation = pm.Simulation(platform(), network_model="SMPI")
    sent = simulation.add_replay(trace, ["n0", "n1"])
    simulation.add(pm.Flow("n0", "n2", 1e12))
    simulation.run_until_change()
    assert sent.end_s == pytest.approx(2 * 1e8 / (0.940694 * 125e6), rel=1e-2)
    simulation.add(pm.ParallelTask(["n0", "n1"], 1e9, flows=[(0, 1, 1e6), (1, 0, 1e6)]))
    with pytest.raises(SimulationError, match="use L07 for parallel tasks"):
        simulation.run()


def test_collectives_are_done_as_the_platform_says(traces):
    trace = traces(*([["alltoall 70000 70000"]] * 5))
    build = Platform.build("p", config={"smpi/alltoall": "ring"})
    build.cluster("c", 5, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    ring, hosts = build.finish(), [f"n{k}" for k in range(5)]
    ends = []
    for model in (ring, platform(5)):
        simulation = pm.Simulation(model, network_model="SMPI")
        task = simulation.add_replay(trace, hosts)
        simulation.run()
        assert task.end_s == replay(model, trace, hosts).makespan_s
        ends.append(task.end_s)
    assert ends[0] != ends[1]
    other = Platform.build("p", config={"smpi/alltoall": "recursive_doubling"})
    other.cluster("c", 5, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    simulation = pm.Simulation(other.finish())
    simulation.add_replay(trace, hosts, id="ranks")
    with pytest.raises(SimulationError, match="task 'ranks': alltoall: "):
        simulation.run()


def test_ranks_contend_with_tasks_and_with_each_other(traces):
    simulation = pm.Simulation(platform())
    two = simulation.add_replay(traces(["compute 1e9"], ["compute 1e9"]), ["n0", "n0"])
    third = simulation.add(pm.Execution("n0", 1e9))
    simulation.run()
    assert two.end_s == third.end_s == pytest.approx(3.0)
    simulation = pm.Simulation(platform())
    sent = simulation.add_replay(traces(["send 1 0 1e6"], ["recv 0 0 1e6"]), ["n0", "n1"])
    simulation.add(pm.Flow("n0", "n2", 1e9))
    simulation.run()
    assert sent.end_s == pytest.approx(2 * 1000016 / 125e6 + 100e-6)


def test_followers_wait_for_the_last_rank_and_stages_may_be_traces(traces):
    simulation = pm.Simulation(platform())
    trace = traces(*PAIR)
    simulation.add_replay(trace, ["n0", "n1"], id="first")
    after = simulation.add(pm.Execution("n1", 1e9, after=["first"]))
    work = pm.SequenceWork((pm.TraceWork(trace), pm.HomogeneousWork(1e9, 0.0)), 2)
    both = simulation.add(pm.Task(("n2", "n3"), work))
    simulation.run()
    assert after.start_s == pytest.approx(1.5 + SEND, rel=1e-9)
    assert both.end_s == pytest.approx(2 * (2.5 + SEND), rel=1e-9)


def test_a_walltime_and_a_cancellation_stop_the_ranks(traces):
    endless = ["compute 1e9", "isend 1 0 1e9", "waitall"], ["sleep 5", "recv 0 0 1e9"]
    simulation = pm.Simulation(platform())
    work = pm.TraceWork(traces(*endless))
    first = simulation.add(pm.Task(("n0", "n1"), work, walltime_s=0.5))
    other = simulation.add(pm.Execution("n0", 1e9, start_s=0.5))
    simulation.run()
    assert (first.state, first.end_s) == ("walltime", 0.5)
    assert other.end_s == pytest.approx(1.5)
    simulation = pm.Simulation(platform())
    tasks = [simulation.add(pm.Task(("n0", "n1"), work)) for _ in range(2)]
    simulation.run(7.0)
    simulation.cancel(tasks[0])
    simulation.run()
    assert tasks[0].end_s == 7.0
    assert tasks[1].end_s < 5 + 17


def test_a_host_that_fails_ends_the_application(traces):
    simulation = pm.Simulation(platform())
    task = simulation.add_replay(traces(*PAIR), ["n0", "n1"])
    other = simulation.add_replay(traces(*PAIR), ["n2", "n3"])
    simulation.run(0.5)
    simulation.fail("n1")
    simulation.run()
    assert (task.state, task.end_s) == ("failed", 0.5)
    assert other.state == "completed"


def test_steps_observers_copies_and_pickles(traces):
    class Ends(pm.Observer):
        def __init__(self):
            self.seen = []

        def task_ended(self, task):
            self.seen.append((task.id, task.end_s))

    def simulation():
        made = pm.Simulation(platform())
        made.add_replay(traces(*PAIR), ["n0", "n1"], id="ranks")
        made.add(pm.Execution("n0", 2e9, id="task"))
        return made

    whole = simulation().run()
    stepped = simulation()
    observer = Ends()
    stepped.observe(observer)
    while stepped.step():
        pass
    assert [task.end_s for task in stepped.tasks()] == [task.end_s for task in whole.tasks()]
    assert dict(observer.seen)["ranks"] == whole.task("ranks").end_s
    begun = simulation().run(1.0)
    for twin in (begun.fork(), pickle.loads(pickle.dumps(begun)), begun):
        assert twin.run().task("ranks").end_s == whole.task("ranks").end_s


def test_ranks_are_not_suspended(traces):
    simulation = pm.Simulation(platform())
    task = simulation.add_replay(traces(*PAIR), ["n0", "n1"])
    simulation.run(0.5)
    with pytest.raises(
        SimulationError, match="replays a trace, which cannot be suspended; choose another"
    ):
        simulation.suspend(task)


def test_places_of_applications_are_given_again(traces):
    simulation = pm.Simulation(platform())
    trace = traces(["sendRecv 10 1 10 1 6 6"], ["sendRecv 10 0 10 0 6 6"])
    tasks = [simulation.add_replay(trace, ["n0", "n1"], start_s=float(k)) for k in range(50)]
    simulation.run()
    assert {task.state for task in tasks} == {"completed"}
    assert len({round(task.end_s - task.start_s, 9) for task in tasks}) == 1


def test_neighbours_are_charged_for_what_ranks_do(traces):
    simulation = pm.Simulation(platform(6))
    watch = Neighbours(simulation)
    sends, receives = ["send 1 0 1e6"] * 5, ["recv 0 0 1e6"] * 5
    for k, hosts in enumerate((["n0", "n2"], ["n1", "n2"], ["n3", "n4"])):
        simulation.add_replay(traces(sends, receives, name=f"t{k}"), hosts)
    simulation.run()
    both, alone = simulation.tasks(), 5 * SEND
    lost = [task.end_s - alone for task in list(both)[:2]]
    # The link to n2 is halved as long as both send, and half of that time is the neighbour's.
    assert lost == pytest.approx([5e6 / 125e6] * 2, rel=1e-3)
    assert watch.charges == {
        (0, 1): pytest.approx(lost[0], rel=1e-3),
        (1, 0): pytest.approx(lost[1], rel=1e-3),
    }


def test_a_task_and_an_application_charge_each_other(traces):
    simulation = pm.Simulation(platform(4))
    simulation.add(pm.Flow("n0", "n2", 1e7))
    simulation.add_replay(traces(["send 1 0 1e7"], ["recv 0 0 1e7"]), ["n1", "n2"])
    watch = Neighbours(simulation)
    simulation.run()
    assert set(watch.charges) == {(0, 1), (1, 0)}


class Amounts:
    """What each task took of each resource, by names."""

    def __init__(self):
        self.found = {}

    def begin(self, recorder):
        self.names = recorder.names

    def changes(self, events): ...

    def phases(self, phases): ...

    def end(self): ...

    def uses(self, uses):
        amounts = uses.rate * (uses.end - uses.start)
        for resource, task, amount in zip(uses.resource, uses.task, amounts, strict=True):
            key = self.names.tasks()[task], self.names.resources[resource]
            self.found[key] = self.found.get(key, 0.0) + amount


def test_what_ranks_use_is_recorded_as_their_tasks(traces):
    simulation = pm.Simulation(platform(6))
    sends = ["compute 1e8", "isend 1 0 1e6", "isend 1 1 1e6", "waitall", "send 1 2 10"]
    receives = ["recv 0 0 1e6", "compute 5e7", "recv 0 1 1e6", "recv 0 2 10"]
    for k in range(4):
        trace = traces(sends * (k + 1), receives * (k + 1), name=f"t{k}")
        simulation.add_replay(trace, [f"n{k}", f"n{k % 2 + 4}"], start_s=0.01 * k, id=f"a{k}")
    simulation.add(pm.ParallelTask(["n0", "n1"], 1e8, flows=[(0, 1, 1e6)], id="task"))
    amounts = Amounts()
    with Recorder(simulation, [amounts]):
        simulation.run()
    sent = 2 * (1e6 + 16) + 26
    for k in range(4):
        done = [
            amounts.found[f"a{k}", f"n{k}"] / 1e8,
            amounts.found[f"a{k}", f"n{k % 2 + 4}"] / 5e7,
            amounts.found[f"a{k}", f"c_link_{k}_UP"] / sent,
        ]
        assert done == pytest.approx([k + 1] * 3)
    assert amounts.found["task", "n0"] == pytest.approx(1e8)


def test_what_ranks_do_when_the_recording_ends_counts_until_then(traces):
    simulation = pm.Simulation(platform())
    simulation.add_replay(traces(["compute 1e9"], ["compute 1e7"]), ["n0", "n1"], id="a")
    simulation.advance_to(0.25)
    amounts = Amounts()
    with Recorder(simulation, [amounts]):
        simulation.advance_to(0.5)
        simulation.set_speed("n0", 0.5)
        simulation.advance_to(0.75)
    assert amounts.found == {("a", "n0"): pytest.approx(0.125e9)}  # from its change of rate on


def test_listening_to_ranks_changes_nothing_and_does_not_follow_copies(traces):
    def made(listens):
        simulation = pm.Simulation(platform(6))
        trace = traces(["compute 1e8", "send 1 0 1e6"] * 3, ["recv 0 0 1e6", "compute 5e7"] * 3)
        for k in range(4):
            simulation.add_replay(trace, [f"n{k}", "n5"], start_s=0.01 * k)
        if listens:
            Neighbours(simulation)
        return simulation

    quiet, heard = made(False), made(True)
    quiet.run()
    heard.advance_to(0.15)
    copies = [heard.fork(), pickle.loads(pickle.dumps(heard))]
    for simulation in (heard, *copies):
        simulation.run()
        assert [t.end_s for t in simulation.tasks()] == [t.end_s for t in quiet.tasks()]
