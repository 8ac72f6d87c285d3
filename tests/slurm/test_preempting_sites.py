"""What is remembered and compiled where jobs preempt each other changes no decision."""

import random
from dataclasses import replace

import pytest
from slurm.small_clusters import conf_of, job

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.controller.victims import Victims
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.slurm.scheduling.shared_cycles import SharedCycles
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.plugin import Answers

SITE = """SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
PreemptType=preempt/{kind}
PreemptMode={mode}
PreemptExemptTime={exempt}
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=5000
PriorityWeightQOS=3000
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations,limits,qos
SchedulerParameters=bf_interval=30,default_queue_depth=20{options}
DefMemPerCPU=900
NodeName=n[1-5] Sockets=2 CoresPerSocket=4 RealMemory=8000
NodeName=g[1-3] Sockets=2 CoresPerSocket=6 RealMemory=16000 Gres=gpu:{gpus} Weight=5
PartitionName=main Nodes=ALL Default=YES MaxTime=1-0
PartitionName=gpu Nodes=g[1-3] MaxTime=1-0 PriorityTier=2
PartitionName=few Nodes=n[2-4] MaxTime=2:00:00 PriorityTier={tier}
"""
ACCOUNTS = """add account a fairshare=2
add account b fairshare=1
add qos free
add qos low
add qos high
add qos top
modify qos free set Priority=0 PreemptMode=requeue
modify qos low set Priority=10 Preempt=free PreemptMode=cancel GraceTime=40
modify qos high set Priority=50 Preempt=free,low
modify qos top set Priority=90 Preempt=free,low,normal GrpTRES=cpu=24
add user x account=a QOS=free,low,normal,high,top
add user y account=b QOS=free,low,normal,high,top
"""


def workload(draw, count):
    """Jobs of all QOSs, a third of them with GPUs."""
    jobs = []
    for k in range(count):
        gpus = draw.random() < 0.35
        options = {"tasks": draw.choice([1, 1, 2, 4, 8, 13])}
        if gpus:
            one = Gres("gpu", None, draw.choice([1, 1, 2]))
            options = {"tasks": draw.choice([1, 2]), draw.choice(["gres", "gpus"]): (one,)}
        where = (
            draw.choice([(), ("gpu",)])
            if gpus
            else draw.choice([(), (), ("few",), ("few", "main")])
        )
        run_s = draw.randint(20, 2500)
        jobs.append(
            job(
                f"j{k}",
                90 * k * draw.random(),
                run_s,
                run_s // 60 + draw.choice([1, 5, 30]),
                user=draw.choice("xy"),
                qos=draw.choice(["free", "free", "low", "normal", "normal", "high", "top"]),
                partitions=where,
                memory_per_cpu_MiB=draw.choice([None, None, 500, 1800]),
                requeue=draw.choice([None, None, False]),
                **options,
            )
        )
    return jobs


@pytest.mark.parametrize("seed", range(6))
def test_decisions_are_those_of_asking_each_time(tmp_path, seed, monkeypatch):
    draw = random.Random(seed)
    text = SITE.format(
        kind=["qos", "qos", "partition_prio"][seed % 3],
        mode=draw.choice(["REQUEUE", "CANCEL"]) + (",WITHIN" if seed == 4 else ""),
        exempt=draw.choice([0, 2, 7]),
        options=draw.choice(["", ",preempt_youngest_first", ",bf_max_job_test=15"]),
        gpus=draw.choice(["2", "v:2"]),
        tier=draw.choice([1, 5]),
    )
    (tmp_path / "accounts.txt").write_text(ACCOUNTS)
    accounts, jobs = read_accounts(tmp_path / "accounts.txt"), workload(draw, 70)
    found = []
    for anew in False, True:
        if anew:
            candidates = Victims.candidates

            def forgetful(victims, *arguments, of=candidates):
                victims._candidates.clear()
                victims._emptied.clear()
                return of(victims, *arguments)

            monkeypatch.setattr(Victims, "candidates", forgetful)
            monkeypatch.setattr(Consumable, "plain_for", lambda select, need: None)
            monkeypatch.setattr(Answers, "_known", lambda answers, kept, need, within, ask: ask())
        watch = Watch()
        run = simulate_slurm(conf_of(tmp_path, text), jobs, accounts=accounts, watch=watch)
        ended = [(one.start_s, one.state, one.restarts) for one in run.jobs]
        found.append((watch.reasons, watch.events, ended))
    assert found[0] == found[1]
    assert sum(one.restarts or one.state == "PREEMPTED" for one in run.jobs) > 2


@pytest.mark.parametrize("seed", range(8))
def test_compiled_cycles_are_those_of_python(tmp_path, seed, monkeypatch):
    draw = random.Random(300 + seed)
    text = SITE.format(
        kind=["qos", "qos", "partition_prio"][seed % 3],
        mode=draw.choice(["REQUEUE", "CANCEL"]),
        exempt=draw.choice([0, 2, 7]),
        options=draw.choice(["", ",preempt_youngest_first", ",bf_max_job_user=9", ",bf_window=30"]),
        gpus=draw.choice(["2", "v:2"]),
        tier=draw.choice([1, 5]),
    )
    (tmp_path / "accounts.txt").write_text(ACCOUNTS.replace(" GrpTRES=cpu=24", ""))
    accounts, jobs = read_accounts(tmp_path / "accounts.txt"), workload(draw, 90)
    jobs = [replace(one, partitions=one.partitions[:1]) for one in jobs]
    tested, run_cycle = [], SharedCycles.run

    def counted(cycles, date):
        tested.append(run_cycle(cycles, date))
        return tested[-1]

    monkeypatch.setattr(SharedCycles, "run", counted)
    found = []
    for compiled in False, True:
        watch = Watch()
        conf = conf_of(tmp_path, text)
        run = simulate_slurm(conf, jobs, accounts=accounts, watch=watch, compiled=compiled)
        ended = [(one.start_s, one.state, one.restarts, one.tested_cpus) for one in run.jobs]
        found.append((watch.reasons, watch.events, ended, run.loop.statistics))
    assert found[0] == found[1]
    assert None not in tested
    assert sum(tested) > 100
    assert sum(one.restarts or one.state == "PREEMPTED" for one in run.jobs) > 2
