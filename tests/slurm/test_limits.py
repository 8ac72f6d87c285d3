"""Limits of associations, QOSs, partitions and licences."""

from types import MappingProxyType, SimpleNamespace

import pytest
from slurm import small_clusters

from ptaskmodel.slurm.accounts.facts import Accounts, Association, Qos, plain_accounts
from ptaskmodel.slurm.accounts.facts import Limits as Given
from ptaskmodel.slurm.accounts.fair_share import (
    INVALID_ACCOUNT,
    INVALID_QOS,
    Member,
    Members,
    ShareTree,
)
from ptaskmodel.slurm.accounts.limits import Limits, not_simulated
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.controller.admission import Licences, Room, refused_by, waits_for
from ptaskmodel.slurm.jobs.needs import limit_min
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.workload.works import DelayWork

MAIN = Partition("main", max_time_min=100)


def world(qos=None, account=None, user=None, partition_qos=None, parent=None, flags=()):
    """Limits of a QOS, an account and a user in it, and what makes jobs of that user."""
    plain = plain_accounts()
    qoses = {
        **plain.qos,
        "q": Qos("q", limits=qos or Given(), flags=frozenset(flags)),
        "of_partition": Qos("of_partition", limits=partition_qos or Given()),
    }
    known = Accounts(
        MappingProxyType(qoses),
        (
            *plain.associations,
            Association("top", limits=parent or Given()),
            Association("a", parent="top", limits=account or Given()),
            Association("a", "ann", limits=user or Given(), qos=("q",)),
            Association("a", "bob"),
        ),
    )
    tree = ShareTree(known)
    conf = Conf((), (MAIN,), database=True, enforce=frozenset({"ASSOCIATIONS", "LIMITS"}))
    limits = Limits(conf, known, tree, 0)
    numbers = iter(range(100))

    def job(who="ann", **fields):
        request = JobRequest("j", 0.0, DelayWork(1.0), user=who, **fields)
        return SimpleNamespace(
            request=request,
            least_nodes=request.least_nodes,
            number=next(numbers),
            account=Member(tree.find("a", who), "q"),
            partition=MAIN,
        )

    return limits, job


def run(limits, job, cpus=4, nodes=(0,), end_s=6000, partition=MAIN):
    limits.submitted(job)
    limits.started(job, partition, {"cpu": cpus, "node": len(nodes)}, nodes, 0, end_s)


def cpus(limits, job, count, nodes=(9,), partition=MAIN):
    return limits.exceeds(job, partition, {"cpu": count, "node": len(nodes)}, nodes)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"qos": Given(max_jobs=1)}, "QOSMaxJobsPerUserLimit"),
        ({"qos": Given(grp_jobs=1)}, "QOSGrpJobsLimit"),
        ({"qos": Given(max_jobs_per_account=1)}, "QOSMaxJobsPerAccountLimit"),
        ({"account": Given(grp_jobs=1)}, "AssocGrpJobsLimit"),
        ({"parent": Given(grp_jobs=1)}, "AssocGrpJobsLimit"),
        ({"user": Given(max_jobs=1)}, "AssocMaxJobsLimit"),
        # single users have the limit of their account
        ({"account": Given(max_jobs=1)}, "AssocMaxJobsLimit"),
        # a QOS hides limits of associations
        ({"user": Given(max_jobs=1), "qos": Given(max_jobs=2)}, None),
    ],
)
def test_jobs_at_once(given, reason):
    limits, job = world(**given)
    first, second = job(), job()
    assert limits.blocks(first, MAIN) is None
    run(limits, first)
    assert limits.blocks(second, MAIN) == reason
    limits.ended(first, 0)
    limits.gone(first)
    assert limits.blocks(second, MAIN) is None


def test_limits_of_a_user_do_not_bind_others():
    limits, job = world(qos=Given(max_jobs=1), account=Given(max_jobs=1))
    run(limits, job())
    assert limits.blocks(job("bob"), MAIN) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"qos": Given(grp_tres={"cpu": 6})}, "QOSGrpCpuLimit"),
        ({"qos": Given(max_tres_per_user={"cpu": 6})}, "QOSMaxCpuPerUserLimit"),
        ({"qos": Given(max_tres_per_account={"cpu": 6})}, "QOSMaxCpuPerAccount"),
        ({"parent": Given(grp_tres={"cpu": 6})}, "AssocGrpCpuLimit"),
        ({"parent": Given(grp_tres={"cpu": 6}), "qos": Given(grp_tres={"cpu": 8})}, None),
        ({"partition_qos": Given(grp_tres={"cpu": 6}), "qos": Given(grp_tres={"cpu": 8})}, "P"),
    ],
)
def test_resources_at_once(given, reason):
    limits, job = world(**given)
    partition = Partition("main", max_time_min=100, qos="of_partition")
    run(limits, job(), partition=partition)
    waiting = job()
    assert cpus(limits, waiting, 2, partition=partition) is None
    expected = "QOSGrpCpuLimit" if reason == "P" else reason
    assert cpus(limits, waiting, 4, partition=partition) == expected


def test_a_qos_may_override_that_of_the_partition():
    given = {"partition_qos": Given(grp_jobs=1), "qos": Given(grp_jobs=2)}
    partition = Partition("main", qos="of_partition")
    for flags, reason in ((), "QOSGrpJobsLimit"), (("OVERPARTQOS",), None):
        limits, job = world(**given, flags=flags)
        run(limits, job(), partition=partition)
        assert limits.blocks(job(), partition) == reason


def test_shared_nodes_count_once():
    limits, job = world(qos=Given(grp_tres={"node": 2}))
    first = job()
    run(limits, first, nodes=(3, 4))
    assert cpus(limits, job(), 1, nodes=(4,)) is None
    assert cpus(limits, job(), 1, nodes=(4, 5)) == "QOSGrpNodeLimit"
    run(limits, job(), nodes=(4,))
    limits.ended(first, 0)
    assert cpus(limits, job(), 1, nodes=(5,)) is None
    assert cpus(limits, job(), 1, nodes=(5, 6)) == "QOSGrpNodeLimit"


def test_limits_of_single_jobs():
    limits, job = world(
        qos=Given(max_tres_mins_per_job={"cpu": 100}, min_tres_per_job={"cpu": 2}),
        user=Given(max_wall_min=50, max_tres_per_job={"cpu": 8}, max_tres_per_node={"cpu": 3}),
    )
    assert limits.blocks(job(limit_min=51), MAIN) == "AssocMaxWallDurationPerJobLimit"
    assert limits.blocks(job(limit_min=50), MAIN) is None
    assert cpus(limits, job(limit_min=50), 3) == "QOSMaxCpuMinutesPerJobLimit"
    assert cpus(limits, job(limit_min=50), 1) == "QOSMinCpuNotSatisfied"
    assert cpus(limits, job(limit_min=5), 9, nodes=(1, 2, 3)) == "AssocMaxCpuPerJobLimit"
    assert cpus(limits, job(limit_min=5), 4) == "AssocMaxCpuPerNode"
    assert cpus(limits, job(limit_min=5), 6, nodes=(1, 2)) is None


def test_minutes_that_running_jobs_may_still_use():
    limits, job = world(qos=Given(grp_tres_run_mins={"cpu": 400}))
    run(limits, job(), cpus=4, end_s=60 * 60)  # 240 minutes of CPUs
    waiting = job(limit_min=100)
    tres = {"cpu": 2, "node": 1}
    assert limits.exceeds(waiting, MAIN, tres, (1,)) == "QOSGrpCPURunMinutesLimit"
    limits.refresh(600)
    assert limits.exceeds(waiting, MAIN, tres, (1,)) is None


def test_submissions():
    limits, job = world(qos=Given(max_submit=2), user=Given(max_submit=1))
    first = job()
    assert limits.refuses(first) is None
    assert limits.refuses(first, count=3) == "QOSMaxSubmitJobPerUserLimit"
    limits.submitted(first)
    assert limits.refuses(job()) is None  # the QOS hides the limit of the association
    run(limits, job())
    assert limits.refuses(job()) == "QOSMaxSubmitJobPerUserLimit"
    limits.gone(first)
    assert limits.refuses(job()) is None


def test_what_can_never_run_is_refused_only_strictly():
    for flags, reason in ((), None), (("DENYONLIMIT",), "QOSMaxCpuPerJobLimit"):
        limits, job = world(qos=Given(max_tres_per_job={"cpu": 2}), flags=flags)
        assert limits.refuses(job(tasks=3)) == reason


def test_without_enforcement_nothing_is_limited():
    limits, job = world(qos=Given(grp_jobs=0))
    limits.enforced = False
    assert limits.blocks(job(), MAIN) is None


def test_limits_that_are_not_simulated_are_told():
    plain = plain_accounts()
    known = Accounts(
        MappingProxyType({"x": Qos("x", limits=Given(min_prio_threshold=3, max_jobs=2))}),
        (*plain.associations, Association("a", "ann", limits=Given(max_jobs_accrue=1))),
    )
    assert [line.split(" are")[0] for line in not_simulated(known)] == [
        "QOS x: min_prio_threshold",
        "user ann in a: max_jobs_accrue",
    ]


def test_whose_a_job_is():
    plain = plain_accounts()
    known = Accounts(
        MappingProxyType({**plain.qos, "high": Qos("high", 9)}),
        (
            *plain.associations,
            Association("a", qos=("normal", "high")),
            Association("b"),
            Association("b", "ann", default=True),
            Association("a", "ann", default_qos="high"),
        ),
    )
    tree = ShareTree(known)
    enforce = frozenset({"ASSOCIATIONS", "QOS"})
    members = Members(Conf((), (), database=True, enforce=enforce), known, tree)

    def of(**fields):
        return members.of(JobRequest("j", 0.0, DelayWork(1.0), **fields), MAIN)

    assert of(user="ann") == Member(tree.find("b", "ann"), "normal")
    assert of(user="ann", account="a") == Member(tree.find("a", "ann"), "high")
    assert of(user="ann", qos="high") == INVALID_QOS
    assert of(user="eve") == of(user="ann", account="c") == INVALID_ACCOUNT
    loose = Members(Conf((), (), database=True), known, tree)
    assert loose.of(JobRequest("j", 0.0, DelayWork(1.0), user="eve"), MAIN) == Member()
    closed = Partition("p", allow_accounts=frozenset({"a"}), deny_qos=frozenset({"high"}))
    assert members.refused(of(user="ann"), closed) == "AccountNotAllowed"
    assert members.refused(of(user="ann", account="a"), closed) == "QOSNotAllowed"


def request(**fields):
    return JobRequest("j", 0.0, DelayWork(1.0), **fields)


@pytest.mark.parametrize(
    ("asked", "of", "reason"),
    [
        ({"limit_min": 11}, {"max_time_min": 10}, "PartitionTimeLimit"),
        ({"limit_min": 11, "time_min_min": 9}, {"max_time_min": 10}, None),
        ({}, {"max_time_min": 10}, None),
        ({"min_nodes": 3}, {"max_nodes": 2}, "PartitionNodeLimit"),
        ({"min_nodes": 1, "max_nodes": 2}, {"min_nodes": 3}, "PartitionNodeLimit"),
        ({"min_nodes": 1}, {"min_nodes": 3}, "PartitionNodeLimit"),
        ({"min_nodes": 2, "max_nodes": 4}, {"max_nodes": 3}, "PartitionNodeLimit"),
        ({"min_nodes": 5, "tasks": 2}, {"max_nodes": 3}, None),
        ({"tasks": 4}, {"max_nodes": 3}, None),
        ({}, {"state": "DOWN"}, "PartitionDown"),
        ({}, {"state": "INACTIVE"}, "PartitionInactive"),
        ({}, {"state": "DRAIN"}, None),
    ],
)
def test_what_partitions_allow(asked, of, reason):
    assert waits_for(request(**asked), Partition("p", **of)) == reason


def test_a_job_asks_for_the_least_of_its_first_partition_at_least():
    large, larger = Partition("p", min_nodes=3), Partition("q", min_nodes=4)
    few = request(min_nodes=1, max_nodes=4)
    assert waits_for(few, large, min_nodes=3) is None
    assert waits_for(few, larger, min_nodes=3) == "PartitionNodeLimit"
    assert waits_for(request(min_nodes=2), large, min_nodes=3) == "PartitionNodeLimit"
    assert waits_for(request(tasks=1), large, min_nodes=3) is None


def test_what_a_partition_is_too_small_for():
    wide, small = Partition("p"), Room(nodes=4, cpus=32)
    assert waits_for(request(min_nodes=5), wide, None, small) == "PartitionNodeLimit"
    assert waits_for(request(tasks=33), wide, None, small) == "PartitionConfig"
    capped = Partition("p", max_cpus_per_node=2)
    assert waits_for(request(tasks=9), capped, None, small) == "PartitionConfig"
    assert waits_for(request(tasks=8), capped, None, small) is None


def test_enforced_limits_of_partitions():
    short, long = Partition("s", max_time_min=1), Partition("l", max_time_min=9)
    for enforced, refused in ("NO", (None, None)), ("ANY", (None, True)), ("ALL", (True, True)):
        conf = Conf((), (short, long), enforce_part_limits=enforced)
        found = (
            refused_by(conf, request(limit_min=5), (short, long)),
            refused_by(conf, request(limit_min=5), (short,)),
        )
        assert tuple(reason is not None or None for reason in found) == refused
    assert refused_by(Conf((), ()), request(), (Partition("d", state="DRAIN"),))


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"limit_min": 20, "time_min_min": 12}, True),  # more than any partition allows
        ({"limit_min": 20, "time_min_min": 9}, False),
        ({"limit_min": 5, "time_min_min": 6}, True),  # more than its own limit
        ({"time_min_min": 6}, False),
    ],
)
def test_least_times_that_no_partition_allows_are_refused(asked, refused):
    partitions = (Partition("s", max_time_min=1), Partition("l", max_time_min=9))
    found = refused_by(Conf((), partitions), request(**asked), partitions)
    assert (found is not None) == refused


def test_enforced_limits_count_the_whole_limit_and_the_nodes_asked_for():
    long = (Partition("l", max_time_min=9),)
    conf = Conf((), long, enforce_part_limits="ANY")
    assert refused_by(conf, request(limit_min=20, time_min_min=5), long) == "PartitionTimeLimit"
    assert refused_by(conf, request(), long, outside={"l"}) == "RequestedNodesNotInPartition"


def test_the_limit_of_a_job():
    of = Partition("p", max_time_min=9, default_time_min=5)
    assert limit_min(request(limit_min=3), of) == 3
    assert limit_min(request(), of) == 5
    assert limit_min(request(), Partition("p", max_time_min=9)) == 9
    assert limit_min(request(), Partition("p")) == float("inf")


def test_licences():
    licences = Licences({"x": 3})
    two, many, other = (request(licenses=of) for of in ({"x": 2}, {"x": 4}, {"y": 1}))
    assert licences.refuses(many)
    assert licences.refuses(other)
    licences.take(two)
    assert licences.missing(two)
    licences.give_back(two)
    assert not licences.missing(two)


def test_nobody_makes_way_for_a_job_that_its_limit_keeps_from_starting(tmp_path):
    conf = small_clusters.conf_of(
        tmp_path,
        f"""{small_clusters.LINEAR}PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=limits,qos
NodeName=n[1-4] CPUs=4
PartitionName=low Nodes=ALL Default=YES MaxTime=60
PartitionName=high Nodes=ALL PriorityTier=5 MaxTime=60
""",
    )
    (tmp_path / "accounts.txt").write_text(
        "add account lab\nadd user ann account=lab\nadd user bob account=lab\n"
        "modify qos normal set maxtresperuser=cpu=8\n"
    )
    asked = small_clusters.job
    low = asked("low", 0.5, 400, 20, nodes=2, user="bob", account="lab")
    large = asked("large", 40.5, 50, 10, nodes=3, user="ann", account="lab", partitions=("high",))
    small = asked("small", 50.5, 50, 10, nodes=1, user="ann", account="lab", partitions=("high",))
    accounts = read_accounts(tmp_path / "accounts.txt")
    _, records = small_clusters.run(conf, [low, large, small], accounts=accounts)
    # As a real Slurm 22.05.8 has it.
    assert small_clusters.starts(records) | {"large": 0} == {"low": 1, "large": 0, "small": 51}
    assert records["low"].restarts == 0
    assert (records["large"].state, records["large"].reason) == ("PENDING", "QOSMaxCpuPerUserLimit")


def test_a_job_that_waits_counts_with_the_nodes_that_it_would_get_of_an_empty_machine(tmp_path):
    """As in a real slurmctld 22.05.8: a limit, not nodes, keeps `-n 20` from starting."""
    (tmp_path / "accounts.txt").write_text(
        "add account lab GrpTRES=node=4\nadd user ann account=lab\n"
    )
    conf = small_clusters.CORES + "NodeName=n[1-6] CPUs=8\nPartitionName=p Nodes=ALL Default=YES\n"
    conf += "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=limits\n"
    conf += "SchedulerParameters=bf_interval=600\n"
    jobs = [
        small_clusters.job("a", 0, 300, 10, nodes=2, user="ann"),
        small_clusters.job("b", 0, 300, 10, nodes=2, user="bob"),
        small_clusters.job("c", 4, 60, 10, tasks=20, user="ann"),
        small_clusters.job("d", 5, 60, 10, tasks=1, user="bob"),
    ]
    accounts = read_accounts(tmp_path / "accounts.txt")
    conf = small_clusters.conf_of(tmp_path, conf)
    _, done = small_clusters.run(conf, jobs, accounts=accounts)
    assert done["d"].start_s < 10
    assert done["c"].start_s == 300


def test_backfill_gives_the_least_time_and_limits_count_that(tmp_path):
    """As in a real slurmctld 22.05.8: 8 CPUs for 60 minutes are too many, for 10 they are not."""
    text = "add account lab MaxTRESMins=cpu=100\nadd user ann account=lab\n"
    (tmp_path / "accounts.txt").write_text(text)
    conf = small_clusters.CORES + small_clusters.FOUR
    conf += "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=limits\n"
    jobs = [small_clusters.job("a", 1, 60, 60, tasks=8, user="ann", time_min_min=10)]
    accounts = read_accounts(tmp_path / "accounts.txt")
    conf = small_clusters.conf_of(tmp_path, conf)
    _, done = small_clusters.run(conf, jobs, accounts=accounts)
    assert (done["a"].by, done["a"].state) == ("backfill", "COMPLETED")
