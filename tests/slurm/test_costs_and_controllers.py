"""What scheduling costs, and several controllers: cycles that last, nodes and jobs dealt out."""

import pytest
from slurm.small_clusters import FOUR, LINEAR, conf_of, job, run, starts

from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.conf.phases import CHANGED, DEPTH, QUEUE, TIME, Costs
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.run import parts_of

TWO = """NodeName=n[1-8] CPUs=8
PartitionName=a Nodes=n[1-6] Default=YES
PartitionName=b Nodes=n[7-8]
"""


def with_options(options):
    return f"{LINEAR}SchedulerParameters={options}\n{FOUR}"


def behind_a_wall(count):
    """One node is idle until 3,600 s; who wants all four blocks those who would fit there."""
    jobs = [job("runs", 0.5, 3600, 60, nodes=3), job("wall", 2.5, 60, 10, nodes=4)]
    long = [job(f"long{k}", 4.5, 60, 120, nodes=1) for k in range(count)]
    return [*jobs, *long, job("short", 4.7, 60, 10, nodes=1)]


def test_a_free_cycle_looks_at_everybody_at_one_date(tmp_path):
    watch = Watch()
    run(conf_of(tmp_path, with_options("bf_interval=30")), behind_a_wall(8), watch=watch)
    first = next(line for line in watch.cycles if line.tested)
    assert (first.tested, first.lasted_s, first.end, first.started) == (10, 0.0, QUEUE, 1)


def test_a_cycle_lasts_its_tests_and_its_pauses(tmp_path):
    # 10 tests of 1 s: after each 2 s a pause of half a second, four of them before the last test.
    watch = Watch()
    options = "bf_interval=30,bf_continue"
    conf = conf_of(tmp_path, with_options(options))
    run(conf, behind_a_wall(8), watch=watch, costs=Costs(1.0))
    first = next(line for line in watch.cycles if line.tested)
    assert (first.tested, first.lasted_s, first.end) == (10, 12.5, QUEUE)


def test_a_cycle_that_is_over_at_its_limit_never_sees_who_is_behind(tmp_path):
    conf = conf_of(tmp_path, with_options("bf_interval=30,bf_max_time=5,bf_continue"))
    watch = Watch()
    _, free = run(conf, behind_a_wall(8))
    found, slow = run(conf, behind_a_wall(8), watch=watch, costs=Costs(1.0))
    first = next(line for line in watch.cycles if line.tested)
    # 2 + 2 tests and two pauses: 5 s.
    assert (first.tested, first.lasted_s, first.end) == (4, 5.0, TIME)
    assert free["short"].start_s < 60 < slow["short"].start_s
    assert slow["short"].by == "main"
    assert found.loop.statistics.at_limit > 0


def test_a_change_in_a_pause_ends_the_cycle_unless_it_may_continue(tmp_path):
    late = job("late", 21.2, 60, 10, nodes=1)
    ends = []
    for options in ("bf_interval=15", "bf_interval=15,bf_continue"):
        watch = Watch()
        conf = conf_of(tmp_path, with_options(options))
        run(conf, [*behind_a_wall(20), late], watch=watch, costs=Costs(1.0))
        ends.append(next(line.end for line in watch.cycles if line.tested))
    assert ends == [CHANGED, TIME]


def test_the_main_scheduler_waits_while_a_cycle_holds_the_controller(tmp_path):
    # The cycle begins at 15 s and needs 8 s for its test; the node is free at 16 s, and 3 s after
    # the full pass of 15 s there is another, unless the cycle holds the controller.
    conf = conf_of(tmp_path, with_options("bf_interval=30"))
    jobs = [job("a", 0.5, 15, 10, nodes=4), job("b", 5.5, 60, 10, nodes=4)]
    _, free = run(conf, jobs)
    _, slow = run(conf, jobs, costs=Costs(8.0))
    assert (free["b"].start_s, slow["b"].start_s) == (18, 23)


def test_negative_costs_are_refused():
    with pytest.raises(SlurmError, match="give 0 or more"):
        Costs(-1.0)


def test_depth_is_told(tmp_path):
    watch = Watch()
    conf = conf_of(tmp_path, with_options("bf_max_job_test=3,bf_node_space_size=99"))
    run(conf, behind_a_wall(8), watch=watch)
    assert DEPTH in {line.end for line in watch.cycles}


def test_partitions_without_common_nodes_get_a_controller_each(tmp_path):
    conf = conf_of(tmp_path, LINEAR + TWO)
    jobs = [job("x", 1, 10, 1, nodes=1), job("y", 2, 10, 1, nodes=1, partitions=("b",))]
    parts, notes = parts_of(conf, jobs, 2)
    assert [[p.name for p in part.conf.partitions] for part in parts] == [["a"], ["b"]]
    assert [[one.id for one in part.jobs] for part in parts] == [["x"], ["y"]]
    assert "2 controllers of 6, 2 nodes" in notes[0]


def test_nodes_of_one_partition_are_cut_and_jobs_drawn_by_their_number(tmp_path):
    conf = conf_of(tmp_path, LINEAR + "NodeName=n[1-9] CPUs=8\nPartitionName=p Nodes=ALL\n")
    jobs = [job(f"j{k}", k, 10, 1, nodes=1) for k in range(3000)] + [job("big", 1, 1, 1, nodes=5)]
    parts, _ = parts_of(conf, jobs, 2, seed=1)
    names = [[n for line in part.conf.nodes for n in line.names] for part in parts]
    assert names == [["n1", "n2", "n3", "n4"], ["n5", "n6", "n7", "n8", "n9"]]
    assert sum(len(part.jobs) for part in parts) == len(jobs)
    assert len(parts[0].jobs) / len(jobs) == pytest.approx(4 / 9, abs=0.03)
    assert "big" in {one.id for one in parts[1].jobs}
    assert parts_of(conf, jobs, 2, seed=1)[0] == parts


def test_one_controller_changes_nothing_and_too_many_are_refused(tmp_path):
    conf = conf_of(tmp_path, LINEAR + FOUR)
    jobs = [job("x", 1, 10, 1, nodes=1)]
    assert parts_of(conf, jobs, 1)[0][0].conf is conf
    with pytest.raises(SlurmError, match="--controllers 5"):
        parts_of(conf, jobs, 5)


def test_without_costs_disjoint_partitions_do_as_well_under_one_controller(tmp_path):
    """Nothing but the depth of cycles couples them: the published gain is one of costs."""
    conf = conf_of(tmp_path, LINEAR + TWO)
    jobs = [
        job(f"j{k}", 3 * k + 0.5, 40 + 37 * k % 300, 10, nodes=1 + k % 2, partitions=("ab"[k % 2],))
        for k in range(40)
    ]
    _, together = run(conf, jobs)
    apart = {}
    for part in parts_of(conf, jobs, 2)[0]:
        apart |= starts(run(part.conf, part.jobs)[1])
    late = [apart[name] - start for name, start in starts(together).items()]
    assert max(map(abs, late)) <= 30
