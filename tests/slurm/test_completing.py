"""Nodes of jobs that are over but not gone yet: who waits for them, and for how long."""

import pytest
from slurm.small_clusters import CORES, FOUR, LINEAR, conf_of, job, nodes_of, run, starts

from ptaskmodel.slurm.conf.phases import (
    BACKFILL_CYCLE,
    DEFAULT_DEPTH,
    FULL,
    Phases,
    Recorded,
    late_cleaning,
)

SLOW = Phases(boot_s=-45.0, clean_s=20.0)


def test_a_completing_node_is_free_for_plans_but_nobody_starts_there(tmp_path):
    # a ends at 31; b, first, is planned for the next second on all nodes, so c, which would end
    # long after, may not pass it at the cycle of 45. Both start when a's nodes are clean.
    jobs = [
        job("a", 0.5, 30, 10, nodes=3),
        job("b", 2.5, 60, 10, nodes=4),
        job("c", 3.5, 600, 60, nodes=1),
    ]
    _, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs, phases=SLOW)
    assert (done["a"].end_s, done["b"].start_s) == (31, 51)
    assert done["c"].start_s >= done["b"].end_s + 20


def test_with_complete_wait_nothing_starts_while_somebody_completes(tmp_path):
    mine = {"nodelist": ("n3", "n4")}
    jobs = [job("a", 0.5, 30, 10, nodes=2, **mine), job("b", 32.5, 60, 10, nodes=1)]
    soon = run(conf_of(tmp_path, LINEAR + FOUR), jobs, phases=SLOW)[1]
    assert soon["b"].start_s <= 34
    waits = run(conf_of(tmp_path, "CompleteWait=60\n" + LINEAR + FOUR), jobs, phases=SLOW)[1]
    assert waits["b"].start_s == 51
    # It waits no longer than this for nodes that take long.
    waits = run(conf_of(tmp_path, "CompleteWait=8\n" + LINEAR + FOUR), jobs, phases=SLOW)[1]
    assert waits["b"].start_s == 45


def test_only_partitions_of_completing_jobs_wait_with_reduce_completing_frag(tmp_path):
    text = (
        "CompleteWait=60\nSchedulerParameters=reduce_completing_frag\n"
        + LINEAR
        + "NodeName=n[1-4]\nPartitionName=p Nodes=n[1-2] Default=YES\n"
        "PartitionName=q Nodes=n[3-4]\nPartitionName=over Nodes=n[2-3]\n"
    )
    jobs = [
        job("a", 0.5, 30, 10, nodes=1),
        job("b", 32.5, 60, 10, nodes=1),
        job("c", 32.6, 60, 10, nodes=1, partitions=("q",)),
        job("d", 32.7, 60, 10, nodes=1, partitions=("over",)),
    ]
    found, done = run(conf_of(tmp_path, text), jobs, phases=SLOW)
    assert starts(done)["c"] <= 35
    assert (done["b"].start_s, done["d"].start_s) == (51, 51)
    assert nodes_of(found, done["d"]) in ([2], [3])


def test_a_recorded_run_without_the_pass_that_an_end_asks_for_had_nodes_that_took_long():
    cycles = ((0.0, FULL), (31.0, DEFAULT_DEPTH), (40.0, BACKFILL_CYCLE), (60.0, FULL))
    ends = {"soon": 30.2, "late": 33.0, "last": 61.0}
    assert late_cleaning(Recorded(cycles, {}, ends), 3) == {"late": 60.0}


def test_of_jobs_killed_together_only_the_nodes_of_their_scripts_are_not_clean_at_once(tmp_path):
    """As a real slurmctld 22.05.8 did: a's end makes a pass, which finds b on its first node."""
    jobs = [
        job("a", 0.5, 900, 1, nodes=1),
        job("b", 0.6, 900, 1, nodes=3),
        job("c", 2.5, 60, 10, nodes=3),
    ]
    found, done = run(conf_of(tmp_path, LINEAR + FOUR), jobs)
    assert done["a"].end_s == done["b"].end_s == done["c"].start_s == 75
    assert nodes_of(found, done["c"]) == [1, 3, 4]


@pytest.mark.parametrize(("select", "start_s"), [(LINEAR, 75), (CORES, 84)])
def test_with_whole_nodes_a_job_may_name_those_that_are_not_clean_yet(tmp_path, select, start_s):
    """As a real slurmctld 22.05.8 did in the pass of the turn in which it killed the other job."""
    jobs = [job("a", 0.5, 900, 1, nodes=4), job("b", 2.5, 60, 10, nodes=1, nodelist=("n2",))]
    slow = Phases(boot_s=-45.0, clean_s=9.0)
    _, done = run(conf_of(tmp_path, select + FOUR), jobs, phases=slow)
    assert (done["a"].end_s, done["b"].start_s) == (75, start_s)
