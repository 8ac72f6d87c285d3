"""Which nodes and cores a job gets, as a real Slurm confirmed them."""

from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slurm.small_clusters import CORES, LINEAR, conf_of, cores_of, job, nodes_of, run

from ptaskmodel.batch.machine.host_sets import members, of_hosts
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.conf.facts import nodes_of as all_nodes
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.jobs.needs import need_of
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.select import consumable
from ptaskmodel.slurm.select.cores import cyclic
from ptaskmodel.slurm.select.fitting import dealt
from ptaskmodel.slurm.select.linear import Linear
from ptaskmodel.slurm.select.plugin import Answers, select_of

THREE = "NodeName=n[1-3] CPUs=8 Sockets=2 CoresPerSocket=4\nPartitionName=p Nodes=ALL Default=YES\n"
EIGHT = "NodeName=n[1-8] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"


def placed(conf, tasks):
    """The nodes and cores of jobs of so many tasks that start one after another."""
    jobs = [job(f"{k}", 5.0 * k, 1000, 60, tasks=count) for k, count in enumerate(tasks)]
    found, done = run(conf, jobs)
    return [(nodes_of(found, done[each.id]), cores_of(done[each.id])) for each in jobs]


def test_small_jobs_pack_and_cores_alternate_between_sockets(tmp_path):
    assert placed(conf_of(tmp_path, CORES + THREE), [3, 6, 5, 4, 6]) == [
        ([1], [{0, 4, 1}]),
        ([2], [{0, 4, 1, 5, 2, 6}]),
        ([1], [{2, 3, 5, 6, 7}]),
        ([3], [{0, 4, 1, 5}]),
        ([2, 3], [{3, 7}, {2, 3, 6, 7}]),
    ]


def test_cores_by_blocks(tmp_path):
    text = CORES.replace("CR_Core", "CR_Core,CR_CORE_DEFAULT_DIST_BLOCK") + THREE
    assert placed(conf_of(tmp_path, text), [3, 6, 5]) == [
        ([1], [{0, 1, 2}]),
        ([2], [{0, 1, 2, 3, 4, 5}]),
        ([1], [{4, 5, 6, 7, 3}]),
    ]


def test_the_least_loaded_node_first(tmp_path):
    text = CORES.replace("CR_Core", "CR_Core,CR_LLN") + THREE
    assert [nodes for nodes, _ in placed(conf_of(tmp_path, text), [3, 6, 5, 4])] == [
        [1],
        [2],
        [3],
        [1],
    ]


def test_a_socket_has_one_job(tmp_path):
    text = CORES.replace("CR_Core", "CR_Socket") + THREE
    assert placed(conf_of(tmp_path, text), [2, 1, 1]) == [
        ([1], [set(range(8))]),
        ([2], [{0, 1, 2, 3}]),
        ([2], [{4, 5, 6, 7}]),
    ]


@pytest.mark.parametrize(
    ("options", "cpus"),
    [
        ({"nodes": 2, "tasks": 6}, [5, 1]),
        ({"nodes": 3, "tasks": 12}, [8, 3, 1]),
        ({"nodes": 4, "tasks": 5}, [2, 1, 1, 1]),
        ({"nodes": 2, "tasks": 12}, [8, 4]),
        ({"tasks": 10}, [8, 2]),
        ({"nodes": 2, "tasks": 6, "tasks_per_node": 3}, [3, 3]),
        ({"tasks": 6, "spread": True}, [3, 1, 1, 1]),
        ({"tasks": 10, "exclusive": "nodes"}, [8, 8]),
        ({"nodes": (2, 4), "tasks": 6}, [3, 1, 1, 1]),
        ({"nodes": 2, "tasks": 1}, [1]),
        ({"tasks": 3, "cpus_per_task": 3}, [6, 3]),
    ],
)
def test_cpus_are_dealt_among_nodes(tmp_path, options, cpus):
    text = CORES + THREE.replace("n[1-3]", "n[1-4]")
    _, done = run(conf_of(tmp_path, text), [job("a", 0.5, 10, 5, **options)])
    assert list(done["a"].allocation.cpus) == cpus


@pytest.mark.parametrize(
    ("count", "chosen"), [(2, [7, 8]), (1, [5]), (3, [1, 2, 3]), (4, [1, 2, 3, 5])]
)
@pytest.mark.parametrize("text", [LINEAR, CORES], ids=["linear", "cores"])
def test_the_tightest_run_of_nodes_is_taken(tmp_path, text, count, chosen):
    conf = conf_of(tmp_path, text + EIGHT)
    jobs = [job(f"b{k}", 0.1, 1000, 60, nodes=1, nodelist=(f"n{k}",)) for k in (4, 6)]
    found, done = run(conf, [*jobs, job("a", 10.0, 10, 5, nodes=count)])
    assert nodes_of(found, done["a"]) == chosen


def test_sets_of_nodes_join_by_weight(tmp_path):
    text = """NodeName=n[1-2] CPUs=4 Weight=10
NodeName=n[3-5] CPUs=4 Weight=1
NodeName=n6 CPUs=4 Weight=5
PartitionName=p Nodes=ALL Default=YES
"""
    found, done = run(conf_of(tmp_path, LINEAR + text), [job("a", 0.5, 10, 5, nodes=5)])
    assert nodes_of(found, done["a"]) == [1, 2, 3, 4, 5]
    found, done = run(conf_of(tmp_path, CORES + text), [job("a", 0.5, 10, 5, nodes=5)])
    assert nodes_of(found, done["a"]) == [1, 3, 4, 5, 6]


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory):
    return conf_of(tmp_path_factory.mktemp("conf"), LINEAR + EIGHT.replace("n[1-8]", "n[1-16]"))


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 15), min_size=1), st.integers(1, 16), st.integers(0, 40))
def test_whole_nodes_by_masks_are_those_by_offers(sixteen, free, nodes, tasks):
    fleet = all_nodes(sixteen)
    asks = job("a", 0, 1, nodes=nodes, tasks=tasks or None)
    need = need_of(asks, sixteen.partitions[0], sixteen, fleet)
    usable = of_hosts(free)
    linear = Linear(fleet)
    found = linear.place(need, usable)
    slow = linear.by_offers(need, usable) if len(free) >= need.least else None
    assert (None if found is None else members(found.nodes)) == (
        None if slow is None else members(slow)
    )


def _dealt_one_by_one(cpus, step, offered, threads):
    """The rule of `dealt` without tasks per node, a task after the other."""
    count = len(offered)
    left, given = max(max(cpus, count) // step, 1), [0] * count
    for node in range(count):
        if left:
            left -= 1
            given[node] = min(step, offered[node])
    for node in range(count):
        for _ in range(given[node] % threads[node] // step):
            if left and offered[node] - given[node] >= step:
                left -= 1
                given[node] += step
    while left:
        before = left
        for node in range(count):
            for _ in range(max(threads[node] // step, 1)):
                if left and offered[node] - given[node] >= step:
                    left -= 1
                    given[node] += step
        if left == before:
            break
    return given


@given(
    st.integers(1, 4),
    st.sampled_from([1, 2, 4]),
    st.lists(st.integers(1, 40), min_size=1, max_size=6),
    st.floats(0.05, 1.0),
)
def test_cpus_are_dealt_round_after_round(step, threads, nodes, part):
    offered = [each * 4 for each in nodes]
    need = SimpleNamespace(
        cpus_per_task=step,
        tasks_per_node=None,
        cpus=max(1, int(part * sum(each // step * step for each in offered))),
        cpus_per_node=1,
        asks=(),
    )
    found = dealt(need, offered, [threads] * len(nodes))
    assert found == _dealt_one_by_one(need.cpus, step, offered, [threads] * len(nodes))


@given(st.lists(st.integers(0, 2**12 - 1), min_size=1, max_size=4), st.integers(0, 50))
def test_cores_are_taken_from_sockets_in_turn(frees, count):
    sockets = [free << 12 * k for k, free in enumerate(frees)]
    left, expected = list(sockets), 0
    while expected.bit_count() < count and any(left):
        for k, free in enumerate(left):
            if free and expected.bit_count() < count:
                expected |= free & -free
                left[k] &= free - 1
    assert cyclic(sockets, count) == expected


MIXED = """NodeName=a[1-3] CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=6000
NodeName=b[1-3] CPUs=8 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=4000 Weight=3
PartitionName=low Nodes=ALL Default=YES PriorityTier=1
PartitionName=high Nodes=ALL PriorityTier=5
"""


@pytest.mark.parametrize("mode", ["REQUEUE", "SUSPEND,GANG"])
@pytest.mark.parametrize("options", ["CR_Core_Memory", "CR_Core,CR_LLN", "CR_Socket_Memory"])
def test_who_finds_room_beside_others_need_not_be_tried_on_free_nodes(
    tmp_path, monkeypatch, mode, options
):
    text = CORES.replace("CR_Core", options) + "DefMemPerCPU=500\n" + MIXED
    conf = conf_of(tmp_path, f"PreemptType=preempt/partition_prio\nPreemptMode={mode}\n{text}")
    draw = Random(f"{mode} {options}")
    jobs = [
        job(
            f"{k}",
            20.0 * k,
            draw.choice([30, 200, 500]),
            draw.choice([60, 600, 1200]),
            tasks=draw.choice([1, 2, 3, 7, 12, 20]),
            cpus_per_task=draw.choice([1, 1, 2, 3]),
            partitions=(draw.choice(["low", "low", "high"]),),
        )
        for k in range(40)
    ]
    seen = []
    for shortcut in (True, False):
        if not shortcut:
            monkeypatch.setattr(consumable, "takes_any", lambda need: False)
        found, _ = run(conf, jobs)
        seen.append([(each.id, each.start_s, each.by, each.allocation) for each in found.jobs])
    assert seen[0] == seen[1]
    assert sum(each[3] is not None for each in seen[0]) > 20


@pytest.mark.parametrize("seed", range(3))
def test_kept_answers_note_gpus_as_those_asked_anew_do(tmp_path, seed):
    text = CORES.replace("CR_Core", "CR_Core_Memory") + "GresTypes=gpu\nDefMemPerCPU=500\n"
    text += "NodeName=a[1-4] CPUs=8 RealMemory=8000 Gres=gpu:k:2,gpu:v:2\n"
    text += "NodeName=b[1-3] CPUs=16 RealMemory=9000 Gres=gpu:v:4\n"
    text += "NodeName=c[1-2] CPUs=8 Weight=2\n"
    conf = conf_of(tmp_path, text + "PartitionName=p Nodes=ALL Default=YES\n")
    nodes, partition, draw = all_nodes(conf), conf.partitions[0], Random(seed)
    select = select_of(conf, nodes)
    select.follow_favours(bytearray(len(nodes)))
    kept, needs, changes = Answers(select, conf), [], 0
    for number in range(12):
        one = Gres("gpu", draw.choice([None, "v"]), draw.choice([1, 2, 4]))
        asked = draw.choice([{"gres": (one,)}, {"gpus": (one,)}, {}])
        asked |= {"tasks": draw.choice([1, 2, 4, 9]), "cpus_per_task": draw.choice([1, 1, 2])}
        needs.append(need_of(job(f"{number}", 0.0, 60, **asked), partition, conf, nodes))
    for number in range(200):
        need = draw.choice(needs)
        within = draw.choice([0b111111111, 0b111101101])
        if draw.random() < 0.1:
            select.forget_favours(within)
        ask = draw.choice(["place", "start"])
        before = bytes(select.favours)
        found = getattr(kept, ask)(need, within, leaves=None)
        noted = bytes(select.favours)
        select.favours[:] = before
        again = getattr(select, ask)(need, within, leaves=None)
        assert (found, noted) == (again, bytes(select.favours)), number
        changes += noted != before
        if found is not None and draw.random() < 0.1:
            record = JobRecord(job(f"{number}", 0.0, 60), number, 0, [partition])
            record.set_needs([need])
            record.start(partition, found, 0, "", limit_s=60, longest_s=1, listed=number)
            select.add(record)
            kept.forget()
    assert changes > 20


def test_a_job_shares_the_nodes_of_another_only_if_they_are_those_it_names(tmp_path):
    forced = "NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL Default=YES OverSubscribe=FORCE:2\n"
    first = [job("a", 0, 600, 60, nodes=1), job("b", 0, 600, 60, nodes=1)]
    named = job("c", 5, 60, 10, nodes=1, nodelist=("n2",))
    found, records = run(conf_of(tmp_path, LINEAR + forced), [*first, named])
    assert nodes_of(found, records["c"]) == [2]


@pytest.mark.parametrize(("unit", "suspended_s"), [("CR_Core", 892), ("CR_CPU", 0)])
def test_what_a_higher_tier_leaves_of_a_node_is_a_whole_node_below_it(tmp_path, unit, suspended_s):
    """As a real slurmctld 22.05.8 placed them: w beside h, as l keeps it from n2.

    Where cores are shared the gang holds w until h is over, for w counts as the whole node.
    """
    text = (
        CORES.replace("CR_Core", unit)
        + "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n"
    )
    text += "NodeName=n[1-2] CPUs=8\nPartitionName=DEFAULT Nodes=ALL OverSubscribe=FORCE:1\n"
    text += "PartitionName=low PriorityTier=1 Default=YES\nPartitionName=high PriorityTier=10\n"
    jobs = [
        job("h", 0.5, 900, 20, tasks=2, partitions=("high",)),
        job("l", 4.5, 900, 20, tasks=4, nodelist=("n2",)),
        job("w", 8.5, 60, 20, nodes=1),
    ]
    found, done = run(conf_of(tmp_path, text), jobs)
    assert done["w"].start_s < 15
    assert nodes_of(found, done["w"]) == [1]
    assert cores_of(done["w"]) == [set(range(2, 8))]
    assert done["w"].allocation.cpus == (8,)
    assert done["w"].end_s == done["w"].start_s + 60 + suspended_s


def test_no_job_is_put_over_one_that_has_whole_nodes_where_others_share_by_time_slices(tmp_path):
    """As a real slurmctld 22.05.8 placed them, with PreemptMode=GANG."""
    text = f"{CORES}PreemptMode=GANG\nNodeName=n[1-2] CPUs=8\n"
    text += "PartitionName=p Nodes=ALL Default=YES OverSubscribe=YES:2\n"
    jobs = [
        job("a", 0, 300, 20, nodes=1),
        job("b", 4, 300, 20, tasks=8),
        job("c", 8, 60, 20, tasks=4),
    ]
    found, done = run(conf_of(tmp_path, text), jobs)
    assert [nodes_of(found, done[name]) for name in "abc"] == [[1], [2], [2]]
    assert done["c"].start_s < 15


@pytest.mark.parametrize("others", ["", "NodeName=c1 CPUs=8\n"])
def test_gpus_of_an_empty_machine_are_noted_after_it_was_found_to_suffice(tmp_path, others):
    text = CORES + "GresTypes=gpu\nNodeName=a1 CPUs=8 Gres=gpu:4\nNodeName=b1 CPUs=8 Gres=gpu:2\n"
    conf = conf_of(tmp_path, text + others + "PartitionName=p Nodes=ALL Default=YES\n")
    nodes = all_nodes(conf)
    select, rules = select_of(conf, nodes), Rules(conf, nodes, 0)
    select.follow_favours(bytearray(len(nodes)))
    asked = job("j", 0.0, 60, gpus=(Gres("gpu", None, 3),), tasks=1)
    need = need_of(asked, conf.partitions[0], conf, nodes)
    assert rules.could_ever(need)
    rules.note_gpus(need, select)
    assert select.favours[:2] == bytes([3, 2])
