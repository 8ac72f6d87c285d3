"""Who may preempt others waits before them, as far as Slurm's way to sort finds it."""

from types import SimpleNamespace

import pytest
from slurm.small_clusters import FOUR, LINEAR, conf_of, job

from ptaskmodel.slurm.accounts.fair_share import Member
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.controller.preemption import Precedence, Preemption
from ptaskmodel.slurm.controller.queue import Queue
from ptaskmodel.slurm.jobs.record import JobRecord

BY_QOS = f"{LINEAR}PreemptType=preempt/qos\nPreemptMode=REQUEUE\n{FOUR}"
HIGH_AND_LOW = "add qos low\nadd qos high preempt=low\n"


def order(preemption, records, listed=lambda record: record.number):
    """The ids of jobs in the order in which a queue has them."""
    queue = Queue(order=Precedence(preemption, listed).order)
    for record in records:
        queue.add(record)
    return " ".join(entry.job.id for entry in queue.build(100))


def by_qos(tmp_path, accounts, jobs, conf=BY_QOS, **options):
    """The order of jobs given as "QOS priority", in the order of the list of all jobs."""
    (tmp_path / "accounts.txt").write_text(accounts)
    conf = conf_of(tmp_path, conf)
    records = []
    for number, text in enumerate(jobs, 1):
        qos, priority = text.split()
        record = JobRecord(job(text[0] + priority, 0, 60, nodes=1), number, 0, conf.partitions)
        record.account, record.priorities = Member(0, qos), [int(priority)]
        records.append(record)
    return order(Preemption(conf, read_accounts(tmp_path / "accounts.txt")), records, **options)


def test_qos_that_preempts_all_below_it_comes_first(tmp_path):
    accounts = "add qos low\nadd qos mid preempt=low\nadd qos high preempt=low,mid\n"
    assert by_qos(tmp_path, accounts, ["low 9", "mid 5", "high 1", "low 8"]) == "h1 m5 l9 l8"


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (["low 3", "normal 2", "high 1"], "l3 n2 h1"),
        (["normal 2", "low 3", "high 1"], "n2 h1 l3"),
        (["low 3", "high 1"], "h1 l3"),
    ],
)
def test_qos_that_preempts_some_comes_where_merging_halves_puts_it(tmp_path, jobs, expected):
    assert by_qos(tmp_path, HIGH_AND_LOW, jobs) == expected


def test_qos_that_preempt_each_other_are_compared_as_they_come(tmp_path):
    accounts = "add qos a\nadd qos b preempt=a\nmodify qos a set preempt=b\n"
    assert by_qos(tmp_path, accounts, ["a 1", "b 2"]) == "a1 b2"
    assert by_qos(tmp_path, accounts, ["b 1", "a 2"]) == "b1 a2"


def test_tasks_of_an_array_stay_together(tmp_path):
    jobs = ["low 5", "normal 3", "low 4", "high 1"]
    assert by_qos(tmp_path, HIGH_AND_LOW, jobs) == "h1 l5 l4 n3"
    places = {1: 2, 2: 1, 3: 2, 4: 3}  # both of low are one record, behind that of normal
    of_array = {"listed": lambda record: places[record.number]}
    assert by_qos(tmp_path, HIGH_AND_LOW, jobs, **of_array) == "n3 h1 l5 l4"


def test_preemption_within_a_qos_puts_priority_before_tiers(tmp_path):
    text = f"{LINEAR}PreemptType=preempt/qos\nPreemptMode=REQUEUE,WITHIN\n{FOUR}"
    conf = conf_of(tmp_path, f"{text}PartitionName=over Nodes=ALL PriorityTier=9\n")
    (tmp_path / "accounts.txt").write_text("add qos low\n")
    preemption = Preemption(conf, read_accounts(tmp_path / "accounts.txt"))
    records = [
        JobRecord(job(partition.name, 0, 60, nodes=1), number, 0, [partition])
        for number, partition in enumerate(conf.partitions)
    ]
    for record, priority in zip(records, (7, 3), strict=True):
        record.account, record.priorities = Member(0, "low"), [priority]
    assert order(preemption, records) == "p over"
    assert order(Preemption(conf), records) == "over p"


def test_higher_tier_that_overlaps_comes_before_a_reservation(tmp_path):
    text = f"""{LINEAR}PreemptType=preempt/partition_prio
        PreemptMode=REQUEUE
        NodeName=n[1-4] CPUs=8
        PartitionName=low Nodes=n[1-3] Default=YES
        PartitionName=over Nodes=n3 PriorityTier=9
        PartitionName=apart Nodes=n4 PriorityTier=9
        """
    conf = conf_of(tmp_path, text)
    records = [
        JobRecord(job(partition.name, 0, 60, nodes=1), number, 0, [partition])
        for number, partition in enumerate(conf.partitions)
    ]
    records[0].reservation = SimpleNamespace(is_open=lambda now: True)
    assert order(Preemption(conf), records) == "over low apart"
