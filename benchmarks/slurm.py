"""What a simulated Slurm costs: a month of a large cluster, its priorities and backfill cycles.

    python benchmarks/slurm.py [--jobs 100000] [--days 30] [--nodes 1000] [--load 0.9]
                               [--shared | --preempt | --gpus | --site]
                               [--log FILE --first-day DAY]
                               [--count-tests] [--against REVISION]

Prints JSON. Whole nodes, shares of 100 users in 10 accounts, priority/multifactor, backfill every
30 s with 500 tests. Sizes are powers of 2 drawn from 1 to 256 nodes, run times are log-normal and
scaled to the load, limits 1.1 to 5 times as long, submissions uniform. --shared: nodes are shared
by jobs of so many cores (select/cons_tres), 32 a node. --preempt: so they are, memory counts, and a
tenth of the jobs are in a partition that requeues those of the other. --gpus: nodes have 48 cores
and 4 GPUs; jobs ask for 1 to 8 GPUs in the ways of GPU_ASKS. --site: a fifth as many nodes with
GPUs stand beside nodes without, in a partition of their own; jobs are of five QOSs, which requeue
or cancel jobs of those below, and a quarter ask for GPUs. --log: the jobs of an
SWF log (.gz) from a day on, for --days, each with as many cores as it had processors; nodes are
shared.
--count-tests: jobs that can no longer start in a cycle are tested, too.
--against: then the same with an older revision (1dc2338 knows
neither --log nor --cores), from a temporary directory, with its own kernels.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.conf.phases import Costs
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest
from ptaskmodel.slurm.run import SlurmRun, simulate_slurm
from ptaskmodel.slurm.scheduling.vectorised_backfill import prepare_kernels
from ptaskmodel.workload.works import DelayWork

DAY_S = 86_400
CONF = """SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30,bf_max_job_test=500,bf_window=4320,bf_continue
SelectType=select/{select}
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=1000
PriorityWeightQOS=2000
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations
MaxJobCount=1000000
NodeName=n[1-{nodes}] CPUs={cores} Sockets=2 CoresPerSocket={half}{memory}
PartitionName=main Nodes=ALL Default=YES MaxTime=30-0
"""
PREEMPT = """DefMemPerCPU=2000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=high Nodes=ALL MaxTime=3-0 PriorityTier=10
"""
GPUS = """DefMemPerCPU=4000
GresTypes=gpu
"""
SITE = """DefMemPerCPU=2000
GresTypes=gpu
PreemptType=preempt/qos
PreemptMode=REQUEUE
PreemptExemptTime=00:10:00
NodeName=g[1-{few}] Sockets=2 CoresPerSocket=24 RealMemory=384000 Gres=gpu:4
PartitionName=gpu Nodes=g[1-{few}] MaxTime=30-0
"""
# Of the QOSs of a site: what sacctmgr is told, and how many jobs of 100 are of each.
QOSS = {
    "free": ("Priority=0 PreemptMode=requeue", 20),
    "low": ("Priority=10 Preempt=free PreemptMode=requeue", 20),
    "normal": ("Priority=100 Preempt=free", 40),
    "high": ("Priority=200 Preempt=free,low PreemptMode=cancel", 15),
    "owner": ("Priority=400 Preempt=free,low,normal", 5),
}
GPU_PART = 4
HIGH = 0.1
USERS, ACCOUNTS = 100, 10
CORES = 32
GPU_CORES, GPUS_A_NODE = 48, 4
GPU_ASKS = (
    *("gres", "gres of two nodes", "tasks", "tasks of two nodes", "of tasks", "of tasks with CPUs"),
    *("in all", "in all, with CPUs", "in all, with memory", "in all, with CPUs and memory"),
)


def workload(
    count: int, days: float, nodes: int, load: float, shared: bool = False
) -> list[JobRequest]:
    """Jobs that ask for so much of the nodes' time, or of the cores' if they are shared."""
    draw = random.Random(1)
    span_s = days * DAY_S
    room = nodes * CORES if shared else nodes
    sizes = [min(room // 2, int(2 ** draw.uniform(0, 8))) for _ in range(count)]
    runs_s = [min(max(draw.lognormvariate(7.5, 1.5), 30.0), 2.0 * DAY_S) for _ in range(count)]
    asked = sum(size * run_s for size, run_s in zip(sizes, runs_s, strict=True))
    factor = load * room * span_s / asked
    dates = sorted(draw.uniform(0, span_s) for _ in range(count))
    jobs = []
    for k in range(count):
        run_s = min(max(runs_s[k] * factor, 10.0), 2.9 * DAY_S)
        limit = min(3 * 1440, int(run_s / 60 * draw.choice([1.1, 1.5, 3, 5])) + 1)
        jobs.append(
            JobRequest(
                f"j{k}",
                dates[k],
                DelayWork(run_s),
                user=f"u{draw.randrange(USERS)}",
                min_nodes=None if shared else sizes[k],
                max_nodes=None if shared else sizes[k],
                tasks=sizes[k] if shared else None,
                limit_min=limit,
                exclusive=None if shared else WHOLE_NODES,
            )
        )
    return jobs


def from_log(path: Path, first_day: float, days: float) -> list[JobRequest]:
    """Jobs of a log, from a day on; what users asked for is their limit, or how long they ran."""
    jobs = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            if not line.strip() or line.startswith(";"):
                continue
            fields = [float(each) for each in line.split()]
            date_s, run_s, cores, asked_s = (
                fields[1],
                max(fields[3], 1.0),
                int(fields[4]),
                fields[8],
            )
            limit_s = asked_s if asked_s > 0 else run_s
            if 0 <= date_s - first_day * DAY_S < days * DAY_S and cores > 0:
                jobs.append(
                    JobRequest(
                        f"j{int(fields[0])}",
                        date_s - first_day * DAY_S,
                        DelayWork(min(run_s, limit_s)),
                        user=f"u{int(fields[11]) % USERS}",
                        tasks=cores,
                        limit_min=int(-(-limit_s // 60)),
                    )
                )
    return jobs


def with_gpus(count: int, days: float, nodes: int, load: float, seed: int = 1) -> list[JobRequest]:
    """Jobs that ask for so much of the time of the nodes' GPUs."""
    draw = random.Random(seed)
    span_s = days * DAY_S
    asked = [_asked(draw) for _ in range(count)]
    runs_s = [min(max(draw.lognormvariate(7.5, 1.5), 30.0), 2.0 * DAY_S) for _ in range(count)]
    work_s = sum(gpus * run_s for (gpus, _), run_s in zip(asked, runs_s, strict=True))
    factor = load * nodes * GPUS_A_NODE * span_s / work_s
    dates = sorted(draw.uniform(0, span_s) for _ in range(count))
    jobs = []
    for k, (date_s, (_, options)) in enumerate(zip(dates, asked, strict=True)):
        run_s = max(runs_s[k] * factor, 10.0)
        limit = int(run_s / 60 * draw.choice([1.1, 1.5, 3, 5])) + 1
        options |= {"user": f"u{draw.randrange(USERS)}", "limit_min": min(limit, 30 * 1440)}
        jobs.append(JobRequest(f"j{k}", date_s, DelayWork(run_s), **options))
    return jobs


def _asked(draw: random.Random) -> tuple[int, dict[str, Any]]:
    """How many GPUs a job asks for, and how: in one of the ways of GPU_ASKS."""
    way, of_node = draw.choice(GPU_ASKS), draw.choice([1, 1, 1, 2, 2, 4])
    gpus, cpus = draw.choice([1, 1, 2, 2, 3, 4, 6, 8]), draw.choice([2, 4, 6, 8, 12])
    of_each = (Gres("gpu", None, of_node),)
    of_task = {"cpus_per_task": cpus, "cpus_are_given": True}
    two = {"min_nodes": 2, "max_nodes": 2}
    options: dict[str, Any] = {"gpus": (Gres("gpu", None, gpus),)}
    match way:
        case "gres":
            return of_node, {"gres": of_each, "tasks": 1, **of_task}
        case "gres of two nodes":
            return 2 * of_node, {"gres": of_each, **two}
        case "tasks of two nodes":
            of_task["cpus_per_task"] = min(cpus, 8)
            return 2 * of_node, {"gres": of_each, "tasks_per_node": of_node, **two, **of_task}
        case "tasks":
            one = {"min_nodes": 1, "max_nodes": 1}
            return of_node, {"gres": of_each, "tasks": cpus, **one}
        case "of tasks" | "of tasks with CPUs":
            options = {"gpus_per_task": (Gres("gpu", None, 1),), "tasks": gpus}
            return gpus, options | (of_task if way == "of tasks with CPUs" else {})
    if "CPUs" in way:
        options["cpus_per_gpu"] = cpus
    if "memory" in way:
        options["memory_per_gpu_MiB"] = 1000 * draw.choice([8, 16, 32, 48])
    return gpus, options


def prior(jobs: list[JobRequest]) -> list[JobRequest]:
    """The same jobs, some of them in the partition that preempts."""
    draw = random.Random(5)
    return [replace(job, partitions=("high",) if draw.random() < HIGH else ()) for job in jobs]


def of_site(count: int, days: float, nodes: int, load: float, seed: int) -> list[JobRequest]:
    """Jobs of all QOSs, some of which ask for GPUs, by their dates."""
    draw, gpus = random.Random(seed), count // GPU_PART
    parts = {
        "main": workload(count - gpus, days, nodes, load, shared=True),
        "gpu": with_gpus(gpus, days, nodes // 5, load, seed),
    }
    names, weights = [*QOSS], [weight for _, weight in QOSS.values()]
    jobs = []
    for name, some in parts.items():
        for job in some:
            qos = draw.choices(names, weights)[0]
            jobs.append(replace(job, id=f"{name}-{job.id}", partitions=(name,), qos=qos))
    return sorted(jobs, key=lambda job: job.submit_s)


def simulated(
    jobs: list[JobRequest],
    nodes: int,
    shared: bool = False,
    preempt: bool = False,
    cores: int = CORES,
    counts: bool = True,
    gpus: bool = False,
    site: bool = False,
) -> tuple[SlurmRun, float]:
    """A run, and its seconds on a processor."""
    with tempfile.TemporaryDirectory() as place:
        conf_file, accounts_file = Path(place, "slurm.conf"), Path(place, "accounts.txt")
        unit = "CR_Core_Memory" if preempt or gpus or site else "CR_Core"
        select = f"cons_tres\nSelectTypeParameters={unit}" if shared else "linear"
        memory = " RealMemory=96000" if preempt or site else ""
        if gpus:
            memory, cores = f" RealMemory=384000 Gres=gpu:{GPUS_A_NODE}", GPU_CORES
        text = CONF.format(nodes=nodes, select=select, memory=memory, half=cores // 2, cores=cores)
        if site:
            text = text.replace("Nodes=ALL", f"Nodes=n[1-{nodes}]").replace("=assoc", "=qos,assoc")
            text += SITE.format(few=nodes // 5)
        conf_file.write_text((GPUS if gpus else "") + text + (PREEMPT if preempt else ""))
        names = [*QOSS] if site else ["normal"]
        lines = [f"add qos {name}" for name in names if name != "normal"]
        lines += [f"modify qos {name} set {QOSS[name][0]}" for name in names if site]
        lines += [f"add account a{k}" for k in range(ACCOUNTS)]
        qoss = ",".join(names)
        lines += [f"add user u{k} account=a{k % ACCOUNTS} QOS={qoss}" for k in range(USERS)]
        accounts_file.write_text("\n".join(lines) + "\n")
        conf, accounts = read_conf(conf_file), read_accounts(accounts_file)
    began = time.process_time()
    costs = Costs(counts_all=counts)
    run = simulate_slurm(conf, jobs, accounts=accounts, compiled=True, costs=costs)
    return run, time.process_time() - began


def of_revision(revision: str, arguments: list[str]) -> dict:
    """The figures of a revision of this program, with its own package and kernels."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(__file__).parent.parent
        archive = subprocess.run(
            ["git", "archive", revision], cwd=root, check=True, stdout=subprocess.PIPE
        ).stdout
        subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)
        environment = {**os.environ, "PYTHONPATH": place}
        if Path(place, "ptaskmodel/kernels/__main__.py").exists():
            build = [sys.executable, "-m", "ptaskmodel.kernels"]
            subprocess.run(build, cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
        command = [sys.executable, "benchmarks/slurm.py", *arguments]
        ran = subprocess.run(
            command, cwd=place, env=environment, check=True, stdout=subprocess.PIPE
        )
    return json.loads(ran.stdout)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--preempt", action="store_true")
    parser.add_argument("--gpus", action="store_true")
    parser.add_argument("--site", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--first-day", type=float, default=0.0)
    parser.add_argument("--cores", type=int, default=CORES)
    parser.add_argument("--count-tests", action="store_true")
    parser.add_argument("--against")
    given = parser.parse_args()
    prepare_kernels()
    shared = given.shared or given.preempt or given.gpus or given.site or given.log is not None
    if given.site:
        jobs = of_site(given.jobs, given.days, given.nodes, given.load, given.seed)
    elif given.gpus:
        jobs = with_gpus(given.jobs, given.days, given.nodes, given.load, given.seed)
    elif given.log is None:
        jobs = workload(given.jobs, given.days, given.nodes, given.load, shared)
    else:
        jobs = from_log(given.log, given.first_day, given.days)[: given.jobs]
    if given.preempt:
        jobs = prior(jobs)
    kinds = {"preempt": given.preempt, "gpus": given.gpus, "site": given.site}
    run, seconds = simulated(
        jobs, given.nodes, shared, cores=given.cores, counts=given.count_tests, **kinds
    )
    waits_s = [job.start_s - job.submit_s for job in run.jobs if job.attempt is not None]
    counts = run.loop.statistics
    starts = repr([(job.id, job.start_s, job.by) for job in run.jobs]).encode()
    facts = {
        "processor_s": round(seconds, 1),
        "simulated_days_an_hour": round(given.days * 3600 / seconds),
        "jobs_a_second": round(len(jobs) / seconds),
        "cycles": counts.cycles,
        "tested_a_cycle": round(counts.tested / counts.cycles, 1),
        "most_tested": counts.most_tested,
        "requeued": sum(job.restarts for job in run.jobs),
        "mean_wait_s": round(sum(waits_s) / len(waits_s)),
        "memory_MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "starts": hashlib.sha256(starts).hexdigest()[:12],
    }
    if given.against is None:
        print(json.dumps(facts, indent=1))
        return
    arguments = sys.argv[1:]
    place = arguments.index("--against")
    older = of_revision(given.against, arguments[:place] + arguments[place + 2 :])
    gained = round(older["processor_s"] / seconds, 2)
    print(json.dumps({"now": facts, given.against: older, "times_as_fast": gained}, indent=1))


if __name__ == "__main__":
    main()
