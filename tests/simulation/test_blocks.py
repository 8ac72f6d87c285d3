"""Tasks added as arrays are those of as many parallel tasks."""

import pickle

import numpy as np
import pytest

from ptaskmodel import ParallelTask, Platform, Simulation, TaskBlock, WorkloadError
from ptaskmodel.workload.amounts import FieldError

HOSTS = 16
FIELDS = ("hosts", "id", "start_s", "after", "walltime_s", "weight", "profile", "competitors")


@pytest.fixture(scope="module")
def platform():
    build = Platform.build("p")
    build.cluster("c", HOSTS, speed="1Gf", bandwidth="1GBps", latency="1us", prefix="c")
    return build.finish()


def random_block(seed):
    random = np.random.default_rng(seed)
    ranks = random.integers(1, 6, 30)
    hosts = np.concatenate([random.choice(HOSTS, n, replace=False) for n in ranks])
    rings = [[(k, (k + 1) % n, 1e6 * (k + 1)) for k in range(n if n > 1 else 0)] for n in ranks]
    return TaskBlock(
        hosts,
        ranks,
        random.uniform(1e8, 1e9, len(hosts)),
        np.concatenate([ring for ring in rings if ring]),
        [len(ring) for ring in rings],
        [f"t{k}" for k in range(30)],
        random.uniform(0, 3, 30),
        np.where(random.random(30) < 0.5, np.inf, 1.0),
        random.uniform(0.5, 2.0, 30),
    )


def as_tasks(block, names):
    ends, last = np.cumsum(block.ranks), np.cumsum(block.flow_counts)
    for k, (n, f) in enumerate(zip(block.ranks, block.flow_counts, strict=True)):
        walltime = block.walltime_s[k]
        yield ParallelTask(
            [names[host] for host in block.hosts[ends[k] - n : ends[k]]],
            block.flops[ends[k] - n : ends[k]],
            flows=block.flows[last[k] - f : last[k]],
            id=block.ids[k],
            start_s=block.start_s[k],
            walltime_s=None if walltime == np.inf else walltime,
            weight=block.weight[k],
        )


@pytest.mark.parametrize("seed", range(3))
def test_a_block_is_as_many_tasks(platform, seed):
    block = random_block(seed)
    together, apart = Simulation(platform), Simulation(platform)
    refs = together.add_block(block)
    apart.add_all(as_tasks(block, [host.name for host in platform.hosts]))
    for simulation in (together, apart):
        simulation.run()
    assert together.frame().equals(apart.frame())
    assert [ref.id for ref in refs] == list(block.ids)


def test_a_block_of_computations_needs_no_ids_and_may_be_empty(platform):
    simulation = Simulation(platform)
    assert len(simulation.add_block(TaskBlock([], []))) == 0
    refs = simulation.add_block(TaskBlock([0, 1, 0], [2, 1], 1e9))
    simulation.run()
    assert [(ref.id, ref.task.hosts) for ref in refs] == [("0", ("c0", "c1")), ("1", ("c0",))]


def test_tasks_of_a_block_are_made_when_asked_for(platform):
    block = random_block(0)
    table = block.table([host.name for host in platform.hosts])
    apart = list(as_tasks(block, table.names))
    for task, made, again in zip(apart, table, map(table.__getitem__, range(30)), strict=True):
        for one in (made, again):
            assert [getattr(one, name) for name in FIELDS] == [
                getattr(task, name) for name in FIELDS
            ]
            assert one.work.demand(1)[0].tolist() == task.work.demand(1)[0].tolist()
            assert one.work.flow_bytes.tolist() == task.work.flow_bytes.tolist()
    assert [task.id for task in table[3:9:2]] == ["t3", "t5", "t7"]
    assert table[-1].id == "t29"
    with pytest.raises(IndexError):
        table[30]


def test_numbered_tasks_have_the_id_of_no_other(platform):
    simulation = Simulation(platform)
    simulation.add_block(TaskBlock([0, 1], [1, 1], 1.0))
    simulation.add_block(TaskBlock([0], [1], 1.0))
    assert simulation.task("2").index == 2
    for taken in ("1", "4"):  # the second is the number of the last of the new ones
        with pytest.raises(WorkloadError, match="another task has this id"):
            simulation.add_all([ParallelTask(["c0"], 1.0, id=taken), ParallelTask(["c0"], 1.0)])
        assert len(list(simulation.tasks())) == 3
    simulation.add(ParallelTask(["c0"], 1.0, id="4"))
    with pytest.raises(WorkloadError, match="'4': another task has this id"):
        simulation.add_block(TaskBlock([0], [1], 1.0))
    assert [ref.id for ref in simulation.tasks()] == ["0", "1", "2", "4"]


def test_a_fork_and_a_pickle_keep_the_tasks_of_a_block(platform):
    block = random_block(1)
    simulation, whole = Simulation(platform), Simulation(platform)
    for each in (simulation, whole):
        each.add_block(block)
    whole.run()
    simulation.advance_to(whole.makespan_s / 2)
    for twin in (simulation.fork(), pickle.loads(pickle.dumps(simulation))):
        twin.add(ParallelTask(["c0"], 0.0, id="more"))
        twin.run()
        assert [r.end_s for r in twin.records()][:30] == [r.end_s for r in whole.records()]


BAD = {
    "a host that is not there": ({"hosts": [0, HOSTS]}, "hosts", (1,)),
    "too few hosts": ({"ranks": [3]}, "hosts", ()),
    "a task without ranks": ({"ranks": [2, 0]}, "ranks", (1,)),
    "ranks that are not whole": ({"ranks": [2.0]}, "ranks", ()),
    "negative flops": ({"flops": [1.0, -1.0]}, "flops", (1,)),
    "flops for other ranks": ({"flops": [1.0]}, "flops", ()),
    "flows without counts": ({"flows": [(0, 1, 1.0)]}, "flow_counts", ()),
    "a flow to a rank that is not there": (
        {"flows": [(0, 2, 1.0)], "flow_counts": [1]},
        "flows",
        (0, 1),
    ),
    "ids for other tasks": ({"ids": ["a", "b"]}, "ids", ()),
    "an empty id": ({"ids": [""]}, "ids", (0,)),
    "dates for other tasks": ({"start_s": [0.0, 1.0]}, "start_s", ()),
    "no weight": ({"weight": 0.0}, "weight", ()),
    "a negative walltime": ({"walltime_s": [-1.0]}, "walltime_s", (0,)),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_array_is_refused_by_its_name(platform, case):
    changes, field, place = BAD[case]
    simulation = Simulation(platform)
    with pytest.raises(FieldError) as caught:
        simulation.add_block(TaskBlock(**({"hosts": [0, 1], "ranks": [2]} | changes)))
    assert (caught.value.field, caught.value.place) == (field, place)
    assert not list(simulation.tasks())


def test_an_id_that_is_taken_adds_nothing(platform):
    simulation = Simulation(platform)
    with pytest.raises(WorkloadError, match="another task has this id"):
        simulation.add_block(TaskBlock([0, 1], [1, 1], 1.0, ids=["a", "a"]))
    assert not list(simulation.tasks())
