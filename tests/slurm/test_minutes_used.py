"""Limits to what was used: GrpTRESMins, GrpWall, MaxTRESMins, as a real Slurm holds them."""

import math
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from slurm.recorded_runs import rows

from ptaskmodel.slurm.accounts.facts import WALL, Accounts, Limits, Qos, plain_accounts, qos_holder
from ptaskmodel.slurm.accounts.fair_share import ShareTree
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.accounts.usage import Spending
from ptaskmodel.slurm.conf.facts import Conf, Partition, PriorityParameters
from ptaskmodel.slurm.conf.phases import read_phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm

REFERENCE = Path(__file__).parent / "reference" / "minutes"
HOLDER, DAY_S = qos_holder("q"), 86_400
CONF = Conf((), (Partition("main"),), database=True, priority_type="priority/multifactor")


def simulated(name):
    place = REFERENCE / name
    conf = read_conf(place / "slurm.conf")
    return simulate_slurm(
        conf,
        read_submissions(place / "jobs.csv", conf).jobs,
        accounts=read_accounts(place / "sacctmgr.txt"),
        phases=read_phases(place / "run1.meta.json", conf),
    )


@pytest.mark.parametrize("name", ["killed", "safe", "wall", "refused"])
def test_who_starts_waits_and_is_killed_as_in_a_real_slurm(name):
    run = simulated(name)
    t0 = run.phases.t0

    def told(job):
        if job.allocation is None:
            return ("", "", job.state, job.reason if job.state == "PENDING" else "")
        return (str(job.start_s - t0), str(int(job.end_s) - t0), job.state, "")

    real = {
        row["id"]: (row["start"], row["end"], row["state"], row["reason"])
        for row in rows(REFERENCE / name / "run1.csv")
    }
    assert {job.id: told(job) for job in run.jobs} == real


def spending(half_life_s=DAY_S, flags=(), period="NONE"):
    plain = plain_accounts()
    limits = Limits(grp_wall_min=10, grp_tres_mins={"cpu": 100})
    known = replace(plain, qos={**plain.qos, "q": Qos("q", limits=limits, flags=frozenset(flags))})
    of = PriorityParameters(decay_half_life_s=half_life_s, usage_reset_period=period)
    return Spending(replace(CONF, priority=of), known, ShareTree(known), 0)


def test_usage_counts_when_a_job_ends_and_at_each_refresh():
    found = spending(half_life_s=0)
    found.started(1, [HOLDER], {"cpu": 4}, 0.5, 60)
    assert found.minutes(HOLDER, "cpu") == 0
    found.refresh(300)
    assert (found.minutes(HOLDER, "cpu"), found.minutes(HOLDER, WALL)) == (8, 2)
    found.ended(1, 540)
    assert (found.minutes(HOLDER, "cpu"), found.minutes(HOLDER, WALL)) == (16, 4)
    found.refresh(6000)
    assert found.minutes(HOLDER, "cpu") == 16


@pytest.mark.parametrize(("flags", "left"), [((), 0.5), (("NODECAY",), 1.0)])
def test_usage_is_halved_in_a_half_life_unless_its_qos_forbids_it(flags, left):
    found = spending(flags=flags)
    found.started(1, [HOLDER], {"cpu": 1000}, 1.0, 0)
    found.ended(1, 600)
    before = found.minutes(HOLDER, "cpu")
    for k in range(1, DAY_S // 300 + 1):
        found.refresh(300 * k)
    assert found.minutes(HOLDER, "cpu") == pytest.approx(before * left, rel=1e-2)


def test_when_usage_is_little_enough():
    found = spending()
    found.started(1, [HOLDER], {"cpu": 100}, 1.0, 0)
    found.ended(1, 600)
    date = found.below_s(HOLDER, "cpu", 99)
    assert date == pytest.approx(DAY_S * math.log2(1000 / 100), rel=1e-2)
    assert found.below_s(HOLDER, "cpu", -1) == math.inf
    assert found.below_s(HOLDER, "cpu", 2000) == 0
    found.refresh(math.ceil(date))
    assert found.minutes(HOLDER, "cpu") <= 99
    assert spending(flags=["NODECAY"]).below_s(HOLDER, "cpu", 0) == 0
    kept = spending(flags=["NODECAY"], period="DAILY")
    kept.started(1, [HOLDER], {"cpu": 100}, 1.0, 0)
    kept.ended(1, 600)
    assert kept.below_s(HOLDER, "cpu", 99) == DAY_S
    kept.refresh(DAY_S)
    assert kept.minutes(HOLDER, "cpu") == 0


def test_nobody_is_given_up_who_waits_for_usage_to_be_forgotten(tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/linear\nPriorityType=priority/multifactor\n"
        "PriorityDecayHalfLife=1:00:00\nAccountingStorageType=accounting_storage/slurmdbd\n"
        "AccountingStorageEnforce=limits\nNodeName=n[1-2] CPUs=4\n"
        "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE\n"
    )
    (tmp_path / "accounts.txt").write_text(
        "add account a GrpTRESMins=cpu=60\nadd user ann account=a\n"
    )
    (tmp_path / "jobs.csv").write_text(
        "id,submit,nodes,limit,run,user\nfirst,0,2,36000,7000,ann\nsecond,60,1,600,50,ann\n"
    )
    conf = read_conf(tmp_path / "slurm.conf")
    run = simulate_slurm(
        conf,
        read_submissions(tmp_path / "jobs.csv", conf).jobs,
        accounts=read_accounts(tmp_path / "accounts.txt"),
    )
    first, second = run.jobs
    assert (first.state, second.state) == ("TIMEOUT", "COMPLETED")
    # Eight CPUs use 60 minutes in 450 s, which a refresh finds; what is over decays.
    assert second.start_s > first.end_s + 300


def test_accounts_without_such_limits_keep_nothing():
    plain = plain_accounts()
    known = Accounts(MappingProxyType(dict(plain.qos)), plain.associations)
    assert not Spending(CONF, known, ShareTree(known), 0).kept


def test_nobody_is_said_to_block_whom_a_limit_keeps():
    place = REFERENCE / "killed"
    conf = read_conf(place / "slurm.conf")
    watch = Watch(["q1", "a4", "m2"])
    simulate_slurm(
        conf,
        read_submissions(place / "jobs.csv", conf).jobs,
        accounts=read_accounts(place / "sacctmgr.txt"),
        watch=watch,
    )
    for job, limit in (("q1", "AssocMaxCpuMinutes"), ("a4", "AssocGrpCPUMinutes")):
        assert any(f"waits for {limit}" in line for line in watch.stories[job])
    assert not any("blocked by" in line for story in watch.stories.values() for line in story)
