"""Jobs that no partition will ever take: refused at once, or left alone however many there are."""

import pytest
from slurm.small_clusters import CORES, FOUR, LINEAR, conf_of, job, nodes_of, run, starts

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.jobs.sbatch import options

MIXED = """GresTypes=gpu
NodeName=n[1-2] CPUs=8 Sockets=2 CoresPerSocket=4
NodeName=n[3-4] CPUs=8 Sockets=2 CoresPerSocket=4 Gres=gpu:4
PartitionName=down Nodes=n[3-4] State=DOWN
PartitionName=short Nodes=n[3-4] MaxTime=10
PartitionName=p Nodes=ALL Default=YES
"""


@pytest.mark.parametrize(
    ("partition", "gpus", "becomes"),
    [
        ("down", 4, ("PENDING", "PartitionDown")),
        ("down", 5, ("REFUSED", "BadConstraints")),
        ("short", 5, ("PENDING", "PartitionTimeLimit")),
        ("p", 4, ("COMPLETED", "None")),
        ("p", 5, ("REFUSED", "BadConstraints")),
    ],
)
def test_who_asks_for_more_gpus_than_there_are(tmp_path, partition, gpus, becomes):
    """As a real slurmctld 22.05.8 answered."""
    one = job("a", 0, 60, 60, tasks=1, partitions=(partition,), gres=(Gres("gpu", None, gpus),))
    _, jobs = run(conf_of(tmp_path, CORES + MIXED), [one])
    assert (jobs["a"].state, jobs["a"].reason) == becomes


def test_types_of_gpus_are_given_to_all_or_to_none():
    assert len(options("--gres=gpu:a100:1,gpu:v100:1,ssd:1")["gres"]) == 3
    with pytest.raises(ValueError, match="give a type to each or to none"):
        options("--gres=gpu:a100:1,gpu:4")


@pytest.mark.parametrize("select", [LINEAR, CORES])
def test_who_waits_for_ever_is_in_nobodys_way_and_keeps_the_reason(tmp_path, select):
    conf = conf_of(tmp_path, select + FOUR.replace("Default", "MaxTime=10 Default"))
    plain = [job(f"j{k}", 5 * k, 100, 10, nodes=2) for k in range(8)]
    long = [job(f"x{k}", 5 * k + 1, 100, 60, nodes=2) for k in range(8)]
    found, jobs = run(conf, plain + long)
    assert {jobs[one.id].state for one in plain} == {"COMPLETED"}
    assert {jobs[one.id].reason for one in long} == {"PartitionTimeLimit"}
    assert not found.loop.controller.queue.entries
    assert len(found.loop.controller.queue) == len(long)


PICKY = FOUR + "PartitionName=q Nodes=ALL AllowAccounts=lab DenyQos=low\n"


@pytest.mark.parametrize(
    ("enforced", "partitions", "becomes"),
    [
        ("NO", ("q",), ("PENDING", "AccountNotAllowed")),
        ("ANY", ("q",), ("REFUSED", "AccountNotAllowed")),
        ("ALL", ("p", "q"), ("REFUSED", "AccountNotAllowed")),
        ("ANY", ("q", "p"), ("COMPLETED", "None")),
    ],
)
def test_accounts_that_a_partition_does_not_take(tmp_path, enforced, partitions, becomes):
    """They wait for ever, and nobody behind them does."""
    conf = conf_of(tmp_path, f"{CORES}{PICKY}EnforcePartLimits={enforced}\n")
    strange = job("a", 0, 60, 60, tasks=1, partitions=partitions)
    _, jobs = run(conf, [strange, job("b", 1, 60, 60, tasks=32)])
    assert (jobs["a"].state, jobs["a"].reason) == becomes
    assert jobs["b"].state == "COMPLETED"


@pytest.mark.parametrize(
    ("asked", "nodes"),
    [
        ({"tasks": 1}, [1]),  # sbatch names no more nodes than there are tasks
        ({"tasks": 5}, [1, 3]),
        ({"tasks": 5, "nodes": 3}, [1, 2, 3]),
        ({"tasks": 5, "nodes": 1}, None),
        ({"nodes": 1}, None),
    ],
)
def test_named_nodes_are_asked_for(tmp_path, asked, nodes):
    named = job("a", 0, 60, 60, nodelist=("n3", "n1"), **asked)
    found, jobs = run(conf_of(tmp_path, CORES + FOUR), [named])
    if nodes is None:
        assert (jobs["a"].state, jobs["a"].reason) == ("REFUSED", "InvalidNodeCount")
    else:
        assert nodes_of(found, jobs["a"]) == nodes


def test_named_nodes_may_not_be_excluded(tmp_path):
    one = job("a", 0, 60, 60, tasks=2, nodelist=("n1", "n2"), exclude=("n2",), hold=True)
    _, jobs = run(conf_of(tmp_path, CORES + FOUR), [one])
    assert (jobs["a"].state, jobs["a"].reason) == ("REFUSED", "InvalidNodeName")


def test_partitions_that_take_no_jobs_are_left_out_of_several(tmp_path):
    drained = FOUR + "PartitionName=d Nodes=ALL State=DRAIN\n"
    asked = {name: {"tasks": 1, "partitions": names} for name, names in
             {"a": ("d", "p"), "b": ("d",)}.items()}  # fmt: skip
    _, jobs = run(
        conf_of(tmp_path, CORES + drained), [job(n, 0, 60, 60, **asked[n]) for n in asked]
    )
    assert (jobs["a"].state, jobs["b"].state) == ("COMPLETED", "REFUSED")


def test_backfill_plans_for_an_account_that_a_partition_does_not_take_but_for_no_such_qos(tmp_path):
    (tmp_path / "accounts.txt").write_text(
        "add qos low\nadd account lab\nadd account other\n"
        "add user ann account=other qos=normal,low\nadd user bob account=lab\n"
    )
    conf = f"{CORES}{PICKY}AccountingStorageType=accounting_storage/slurmdbd\n"
    conf = conf_of(tmp_path, conf + "AccountingStorageEnforce=limits,qos\n")
    accounts = read_accounts(tmp_path / "accounts.txt")
    begins = {}
    for qos in ("normal", "low"):
        jobs = [
            job("a", 0, 600, 10, tasks=24, user="bob"),
            job("b", 1, 600, 60, tasks=32, user="bob"),
            job("c", 2, 600, 5, tasks=8, user="ann", qos=qos, partitions=("q",)),
            job("d", 3, 60, 5, tasks=8, user="bob", partitions=("q",)),
        ]
        begins[qos] = starts(run(conf, jobs, accounts=accounts)[1])["d"]
    assert begins["low"] < 40 < begins["normal"]


def test_who_names_nodes_that_others_wait_for_stops_nobody(tmp_path):
    """As in a real slurmctld 22.05.8: b waits for the nodes of high, c for b, d for no job."""
    conf = CORES + FOUR.replace("1-4", "1-6") + "PartitionName=high Nodes=n[3-4] PriorityTier=2\n"
    jobs = [
        job("a", 0, 300, 10, tasks=8, nodelist=("n3",)),
        job("b", 1, 60, 10, nodes=2, partitions=("high",)),
        job("c", 2, 60, 10, nodes=3, nodelist=("n1", "n3")),
        job("d", 3, 60, 10, tasks=1),
    ]
    found, done = run(conf_of(tmp_path, conf + "SchedulerParameters=bf_interval=600\n"), jobs)
    assert starts(done)["d"] < 10
    assert nodes_of(found, done["d"]) == [1]
