"""Whole schedules that a real Slurm confirmed: passes, backfill, limits, suspension, requeue."""

import pytest
from slurm.small_clusters import CORES, FOUR, LINEAR, conf_of, job, nodes_of, run, starts

from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.conf.reservations import Reservation, Reserved
from ptaskmodel.slurm.jobs.record import CANCELLED, PREEMPTED, REFUSED, TIMEOUT
from ptaskmodel.slurm.jobs.request import ArrayTask, Command

TIERS = """SelectType=select/linear
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode={mode}
NodeName=n[1-4] CPUs=8
PartitionName=DEFAULT Nodes=ALL OverSubscribe={share}
PartitionName=low Default=YES PriorityTier=10
PartitionName=high PriorityTier=30
"""


def test_a_submission_is_seen_at_the_first_turn_three_seconds_after_the_last_pass(tmp_path):
    jobs = [
        job("A", 0.2, 100, 10, nodes=2),
        job("B", 0.4, 50, 10, nodes=2),
        job("C", 2.0, 30, 10, nodes=1),
    ]
    found, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs, phases=Phases(boot_s=-50.0))
    assert starts(done) == {"A": 1, "B": 1, "C": 51}
    assert [nodes_of(found, done[name]) for name in "ABC"] == [[1, 2], [3, 4], [3]]


def test_backfill_reserves_on_the_grid_and_fills_the_hole(tmp_path):
    jobs = [
        job("A", 0.5, 400, 10, nodes=3),
        job("B", 2.5, 120, 5, nodes=4),
        job("C", 3.2, 290, 5, nodes=1),
        job("D", 3.6, 60, 15, nodes=1),
    ]
    found, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs)
    assert starts(done) == {"A": 1, "B": 401, "C": 15, "D": 521}
    assert [done[name].by for name in "ABCD"] == ["main", "main", "backfill", "main"]
    assert nodes_of(found, done["D"]) == [1]
    jobs[3] = job("D", 3.6, 60, 4, nodes=1)
    _, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs)
    assert starts(done)["D"] == 315


def test_without_backfill_nobody_overtakes(tmp_path):
    jobs = [job("A", 0.5, 100, 10, nodes=3), job("B", 2.5, 10, 5, nodes=4)]
    jobs += [job(f"C{k}", 3 + k, 10, 5, nodes=1) for k in range(5)]
    _, done = run(conf_of(tmp_path, "SchedulerType=sched/builtin\n" + LINEAR + FOUR), jobs)
    order = sorted(done.values(), key=lambda record: (record.start_s, record.number))
    assert [record.number for record in order] == list(range(1, 8))


def test_limits_are_checked_every_thirty_seconds(tmp_path):
    jobs = [job("A", 0.5, 1000, 2, nodes=1), job("B", 0.5, 100, 2, nodes=1)]
    _, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs)
    # Checks stand at 15 + 30 k; the job started at 1.
    assert (done["A"].state, done["A"].end_s) == (TIMEOUT, 135)
    assert (done["B"].state, done["B"].end_s) == ("COMPLETED", 101)


def test_a_high_tier_suspends_and_victims_outlive_only_their_old_limit(tmp_path):
    conf = conf_of(tmp_path, TIERS.format(mode="SUSPEND,GANG", share="FORCE:1"))
    jobs = [
        job("L1", 0.2, 600, 15, nodes=2, exclusive=None),
        job("L2", 0.4, 600, 15, nodes=2, exclusive=None),
        job("H", 10.3, 100, 5, nodes=3, exclusive=None, partitions=("high",)),
        job("L3", 20.5, 60, 5, nodes=1, exclusive=None),
    ]
    found, done = run(conf, jobs)
    assert starts(done) == {"L1": 1, "L2": 1, "H": 11, "L3": 701}
    assert nodes_of(found, done["H"]) == [1, 2, 3]
    assert done["L1"].suspensions == done["L2"].suspensions == [[11.0, 111.0]]
    assert done["L1"].end_s == done["L2"].end_s == 701
    jobs[0] = job("L1", 0.2, 600, 11, nodes=2, exclusive=None)
    _, done = run(conf, jobs)
    assert (done["L1"].state, done["L1"].end_s) == (PREEMPTED, 675)


def test_requeued_victims_wait_121_seconds_and_begin_anew(tmp_path):
    conf = conf_of(tmp_path, TIERS.format(mode="REQUEUE", share="NO"))
    jobs = [
        job("L1", 0.2, 600, 15, nodes=2),
        job("L2", 0.4, 600, 15, nodes=2),
        job("H", 10.3, 100, 5, nodes=3, partitions=("high",)),
    ]
    _, done = run(conf, jobs)
    assert starts(done)["H"] == 11
    assert [done[name].restarts for name in ("L1", "L2")] == [1, 1]
    assert all(done[name].start_s >= 132 for name in ("L1", "L2"))
    assert done["L1"].end_s == done["L1"].start_s + 600


def test_the_tasks_of_an_array_keep_to_their_limit(tmp_path):
    jobs = [
        job(f"a_{k}", 0.5, 50, 5, nodes=1, array=ArrayTask("a", k, at_most=2)) for k in range(4)
    ]
    _, done = run(conf_of(tmp_path, LINEAR + FOUR), [*jobs, job("b", 0.6, 50, 5, nodes=1)])
    dates = starts(done)
    assert dates["a_0"] == dates["a_1"] == dates["b"] == 1
    assert dates["a_2"] == dates["a_3"] > 50


def test_licences_are_never_lent_twice_and_block_nobody(tmp_path):
    conf = conf_of(tmp_path, "Licenses=x:2\n" + LINEAR + FOUR)
    jobs = [job(f"j{k}", 0.5, 100, 5, nodes=1, licenses={"x": 1}) for k in range(3)]
    _, done = run(conf, [*jobs, job("free", 0.6, 10, 5, nodes=1)])
    dates = starts(done)
    assert dates["j0"] == dates["j1"] == dates["free"] == 1
    assert dates["j2"] >= 101


def test_nothing_runs_into_maintenance(tmp_path):
    conf = conf_of(tmp_path, LINEAR + FOUR)
    window = Reservation("m", 600, 1200, 0b1111)
    jobs = [job("long", 0.5, 100, 15, nodes=1), job("short", 0.6, 100, 5, nodes=1)]
    _, done = run(conf, jobs, reserved=Reserved([window]))
    assert starts(done)["short"] == 1
    assert starts(done)["long"] >= 1200


def test_commands_cancel_hold_and_release(tmp_path):
    commands = (Command(0.7, "hold"), Command(30.0, "release"))
    jobs = [
        job("A", 0.5, 1000, 30, nodes=4, commands=(Command(50.0, "cancel"),)),
        job("B", 0.6, 10, 5, nodes=1, commands=(Command(20.0, "cancel"),)),
        job("C", 0.6, 10, 5, nodes=1, commands=commands),
    ]
    _, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs)
    assert (done["A"].state, done["A"].end_s) == (CANCELLED, 50)
    assert (done["B"].state, done["B"].allocation) == (CANCELLED, None)
    assert 50 <= done["C"].start_s <= 51


def test_what_no_node_has_is_refused_and_what_the_partition_has_not_waits(tmp_path):
    conf = conf_of(tmp_path, CORES + FOUR + "PartitionName=q Nodes=n[1-2]\n")
    jobs = [
        job("A", 0.5, 10, 5, tasks=33),
        job("B", 0.5, 10, 5, nodes=5),
        job("C", 0.5, 10, 5, nodes=5, partitions=("p", "q")),
        job("D", 0.5, 10, 5, tasks=1, cpus_per_task=9),
        job("E", 0.5, 10, 5, tasks=1, constraint="large"),
        job("F", 0.5, 10, 5, nodes=1, tasks=4, tasks_per_node=3),
    ]
    _, done = run(conf, jobs)
    assert [done[name].reason for name in "AB"] == ["PartitionConfig", "PartitionNodeLimit"]
    assert {done[name].state for name in "CDEF"} == {REFUSED}


@pytest.mark.parametrize("text", [LINEAR, CORES], ids=["linear", "cores"])
def test_planned_starts_are_those_of_the_plugin(tmp_path, text):
    jobs = [
        job("A1", 0.1, 590, 10, nodes=2),
        job("A2", 39.1, 590, 10, nodes=2),
        job("B", 45.0, 10, 5, nodes=2),
    ]
    planned = []

    class Watch:
        looks_at_plans = True

        def note(self, date, what, job):
            pass

        def turned(self, controller, turn):
            planned.extend((job.id, job.planned_s) for job in controller.reservations.planned)

    run(conf_of(tmp_path, text + FOUR), jobs, watch=Watch())
    # Whole nodes of cons_tres are planned after groups of ends that lie within windows of 30 s.
    assert planned[0] == ("B", 601 if text is LINEAR else 640)


def test_the_same_input_gives_the_same_schedule(tmp_path):
    jobs = [job(f"j{k}", 7.3 * k, 40 + 13 * k % 90, 3, tasks=1 + 5 * k % 13) for k in range(40)]
    conf = conf_of(tmp_path, CORES + FOUR)
    first, second = (starts(run(conf, jobs)[1]) for _ in range(2))
    assert first == second


def test_a_start_among_sets_of_nodes_waits_for_the_nodes_it_wants(tmp_path):
    nodes = "NodeName=n[1-3]\nNodeName=n[4-6]\nPartitionName=p Nodes=ALL Default=YES\n"
    jobs = [
        job("A", 0.5, 60, 5, nodes=1),
        job("B", 0.6, 60, 5, nodes=(2, 4)),
        job("C", 100.5, 60, 5, nodes=2, nodelist=("n5",)),
    ]
    found, done = run(conf_of(tmp_path, LINEAR + nodes), jobs)
    # The first set has two nodes free, the least of B, but it wants four.
    assert nodes_of(found, done["B"]) == [2, 3, 4, 5]
    # Whoever names a node has it beside the first set that suffices.
    assert nodes_of(found, done["C"]) == [1, 5]


def test_tasks_of_an_array_have_one_priority(tmp_path):
    tasks = [job(f"a_{k}", 0.5, 10, 5, nodes=4, array=ArrayTask("a", k, None)) for k in range(4)]
    # Its nice puts b behind three jobs: the array is one.
    jobs = [job("b", 0.4, 10, 5, nodes=4, nice=3), *tasks, job("c", 0.6, 10, 5, nodes=4)]
    _, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs)
    order = sorted(done, key=lambda name: done[name].start_s)
    assert order == ["a_0", "a_1", "a_2", "a_3", "c", "b"]


def test_who_cannot_meet_his_deadline_waits_no_longer(tmp_path):
    jobs = [
        job("a", 0.5, 600, 20, nodes=4),
        job("b", 10.5, 100, 10, nodes=1, deadline_s=700.0),
        job("c", 20.5, 100, 1, nodes=1, deadline_s=2000.0),
        job("d", 650.5, 590, 10, nodes=1, deadline_s=1200.0),
        job("e", 200.5, 10, 10, nodes=1, dependency="afterok:b"),
        job("f", 651.5, 10, 10, nodes=1, dependency="afterok:b"),
    ]
    _, records = run(conf_of(tmp_path, LINEAR + FOUR), jobs, phases=Phases(boot_s=-50.0))
    # As a real Slurm 22.05.8 has it: the pass that looks when it is too late cancels.
    ends = {name: (record.state, record.end_s) for name, record in records.items()}
    assert ends["b"] == ("DEADLINE", 130)
    assert ends["d"] == ("DEADLINE", 651)
    assert ends["c"][0] == "TIMEOUT"
    assert (records["e"].state, records["e"].reason) == ("PENDING", "DependencyNeverSatisfied")
    assert records["f"].state == "COMPLETED"  # nobody knows of b any more


def test_a_job_refused_when_it_was_tried_has_taken_a_priority(tmp_path):
    conf = conf_of(tmp_path, CORES + FOUR)
    jobs = [
        job("a", 0, 10, 5, tasks=1),
        job("b", 1, 10, 5, tasks=1, cpus_per_task=9),
        job("c", 2, 10, 5, tasks=1),
    ]
    _, found = run(conf, jobs)
    assert found["b"].state == "REFUSED"
    assert found["a"].priorities[0] - found["c"].priorities[0] == 2


def test_who_waits_for_victims_of_backfill_keeps_their_nodes(tmp_path):
    # The real one: "planned start failed", and then it reserves from now on.
    conf = conf_of(
        tmp_path,
        "SelectType=select/linear\nPriorityType=priority/basic\n"
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPreemptExemptTime=00:05:00\n"
        "NodeName=n[1-2] CPUs=8\nPartitionName=low Nodes=ALL Default=YES PriorityTier=1\n"
        "PartitionName=high Nodes=ALL PriorityTier=2\n",
    )
    jobs = [
        job("victim", 30.5, 1000, 20, nodes=1, partitions=("low",)),
        job("wide", 40.5, 50, 10, nodes=2, partitions=("high",)),
        job("long", 50.5, 1000, 60, nodes=1, partitions=("low",)),
    ]
    _, records = run(conf, jobs)
    wide, long = records["wide"], records["long"]
    assert 331 <= wide.start_s <= 350
    assert records["victim"].restarts == 1
    assert long.start_s >= wide.end_s


def test_a_partition_of_whole_nodes_makes_a_job_exclusive_everywhere(tmp_path):
    conf = conf_of(
        tmp_path,
        CORES + "NodeName=n[1-2] CPUs=8 Sockets=1 CoresPerSocket=8\n"
        "PartitionName=main Nodes=n1 Default=YES\n"
        "PartitionName=whole Nodes=n2 OverSubscribe=EXCLUSIVE\n",
    )
    jobs = [
        job("long", 0.5, 1000, 20, tasks=4),
        job("short", 0.5, 100, 20, tasks=4),
        job("other", 0.5, 2000, 60, tasks=1, partitions=("whole",)),
        job("either", 10.5, 10, 20, tasks=2, partitions=("main", "whole")),
        job("beside", 200.5, 10, 10, tasks=2),
    ]
    _, records = run(conf, jobs)
    # It was tried in the second one, too, and wants a node for itself from then on.
    assert records["either"].start_s >= records["long"].end_s
    assert records["beside"].start_s < 260
