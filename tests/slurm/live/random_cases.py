"""Random configurations of Slurm and jobs for them, of what most users meet.

    python tests/slurm/live/random_cases.py KIND SEED DIR
    ptaskmodel slurm-live DIR/slurm.conf DIR/jobs.csv [--accounts DIR/sacctmgr.txt] --compare

KIND: words that are looked for: linear or cores; consres, memory, gres, weights, tiers, preempt,
qos, tree, features, owners, capped, required, least.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

COLUMNS = ("id", "submit", "nodes", "cores", "limit", "run", "user", "qos", "nice", "partition",
           "exclusive", "mem", "depend", "begin", "extra")  # fmt: skip
USERS = ("root", "daemon", "bin", "games")
FEATURES = ("ib", "eth", "ib,big", "eth,big")
CONSTRAINTS = (
    *("[ib|eth]", "ib", "eth|big", "big&ib", "[ib*1&eth*1]", "(ib|eth)&big", "ib*1"),
    "[big|eth]",
)


def node_lines(draw: random.Random, kind: str) -> tuple[int, list[str]]:
    """How many nodes, and their lines."""
    count = draw.choice([4, 6, 8])
    sockets, cores = (1, 8) if "linear" in kind else draw.choice([(1, 8), (2, 4), (2, 2)])
    threads = 1 if "linear" in kind else draw.choice([1, 1, 1, 2])
    gres = " Gres=gpu:4" if "gres" in kind else ""
    found, first = [], 1
    while first <= count:
        cut = "weights" in kind or "features" in kind
        size = min(count - first + 1, draw.choice([1, 2, 3])) if cut else count
        weight = f" Weight={draw.choice([1, 5, 10])}" if "weights" in kind else ""
        feature = f" Feature={draw.choice(FEATURES)}" if "features" in kind else ""
        found.append(
            f"NodeName=n[{first}-{first + size - 1}] Sockets={sockets} CoresPerSocket={cores} "
            f"ThreadsPerCore={threads} CPUs={sockets * cores * threads} RealMemory=8000"
            f"{weight}{gres}{feature}"
        )
        first += size
    return count, found


def partition_lines(draw: random.Random, kind: str, count: int) -> list[str]:
    all_nodes = f"n[1-{count}]"
    if "preempt" in kind and "qos" not in kind:
        return [
            "PartitionName=main Nodes=ALL Default=YES PriorityTier=10",
            "PartitionName=other Nodes=ALL PriorityTier=30",
        ]
    if "capped" in kind:
        sharing = draw.choice(["", "", " OverSubscribe=FORCE:2", " OverSubscribe=YES:2"])
        return [
            "PartitionName=main Nodes=ALL Default=YES",
            f"PartitionName=other Nodes=ALL MaxCPUsPerNode={draw.choice([2, 4, 6])}{sharing}",
        ]
    if "owners" in kind:
        owned = draw.choice(["", " ExclusiveUser=YES"])
        return ["PartitionName=main Nodes=ALL Default=YES", f"PartitionName=other Nodes=ALL{owned}"]
    if "tiers" not in kind:
        return ["PartitionName=main Nodes=ALL Default=YES", "PartitionName=other Nodes=ALL"]
    part = draw.choice([f"n[1-{count // 2}]", f"n[{count // 2}-{count}]", all_nodes])
    sharing = draw.choice(["", "", " OverSubscribe=EXCLUSIVE", " MaxTime=20", " MaxNodes=2"])
    return [
        "PartitionName=main Nodes=ALL Default=YES",
        f"PartitionName=other Nodes={part} PriorityTier={draw.choice([1, 5])} "
        f"PriorityJobFactor={draw.choice([1, 10])}{sharing}",
    ]


def conf_text(draw: random.Random, kind: str) -> tuple[int, str]:
    count, nodes = node_lines(draw, kind)
    lines = ["SchedulerType=sched/backfill"]
    if "linear" in kind:
        lines.append("SelectType=select/linear")
        if "memory" in kind:
            lines.append("SelectTypeParameters=CR_Memory")
    else:
        unit = draw.choice(["CR_Core", "CR_Core", "CR_CPU", "CR_Socket"])
        memory = "_Memory" if "memory" in kind else ""
        plugin = "cons_res" if "consres" in kind else "cons_tres"
        lines += [f"SelectType=select/{plugin}", f"SelectTypeParameters={unit}{memory}"]
        if memory:
            lines.append(draw.choice(["DefMemPerCPU=500", "DefMemPerNode=1500"]))
    if "memory" in kind and "linear" in kind:
        lines.append("DefMemPerNode=3000")
    if "gres" in kind:
        lines.append("GresTypes=gpu")
    if "tree" in kind:
        lines.append("TopologyPlugin=topology/tree")
    lines.append("PriorityType=priority/" + draw.choice(["basic", "multifactor"]))
    if lines[-1].endswith("multifactor"):
        lines += ["PriorityWeightJobSize=1000", f"PriorityWeightPartition={draw.choice([0, 500])}"]
    if "qos" in kind:
        lines += ["AccountingStorageType=accounting_storage/slurmdbd",
                  "AccountingStorageEnforce=limits,qos", "PriorityWeightAge=1000",
                  "PriorityMaxAge=1:00:00", "PriorityWeightFairshare=2000",
                  "PriorityWeightQOS=700", "PriorityCalcPeriod=5"]  # fmt: skip
    if "preempt" in kind:
        lines += [
            "PreemptType=preempt/" + ("qos" if "qos" in kind else "partition_prio"),
            "PreemptMode=" + draw.choice(["REQUEUE", "CANCEL"]),
        ]
    options = [f"bf_interval={draw.choice([20, 30])}"]
    options += [f"bf_max_job_test={draw.choice([5, 10])}"] if draw.random() < 0.2 else []
    options += ["bf_resolution=30"] if draw.random() < 0.2 else []
    lines.append("SchedulerParameters=" + ",".join(options))
    return count, "\n".join([*lines, *nodes, *partition_lines(draw, kind, count)]) + "\n"


def accounts_text(draw: random.Random, kind: str) -> str:
    limits = ("MaxJobsPerUser=2", "GrpJobs=4", "MaxTRESPerUser=cpu=12", "GrpTRES=cpu=20", "")
    preempt = " Preempt=low" if "preempt" in kind else ""
    lines = ["add account a Fairshare=3", "add account b Fairshare=1"]
    high = f"add qos high Priority=100 {draw.choice(limits)}{preempt}"
    lines += [f"add qos low Priority=10 {draw.choice(limits)}", high]
    for user, account, share in zip(USERS, "aabb", (1, 2, 1, 3), strict=True):
        more = draw.choice(("MaxJobs=3", "", ""))
        lines.append(f"add user {user} Account={account} Fairshare={share} "
                     f"QOS=normal,high,low DefaultQOS=normal {more}".strip())  # fmt: skip
    return "\n".join(lines) + "\n"


def job(draw: random.Random, kind: str, k: int, date: int, count: int) -> dict[str, str]:
    run = draw.choice([19, 44, 58, 87, 146, 233, 391])
    row = {"id": f"j{k}", "submit": str(date), "run": str(run)}
    row["limit"] = str(max(60, int(run * draw.choice([1, 1.2, 2, 4, 0.6]))))
    if "linear" in kind:
        row["nodes"] = str(min(draw.choice([1, 1, 2, 2, 3, count]), count))
    else:
        shape = draw.random()
        if shape < 0.55:
            row["cores"] = str(draw.choice([1, 1, 2, 3, 4, 6, 8, 12]))
        elif shape < 0.75:
            nodes = draw.choice([1, 2, 3])
            row["nodes"], row["cores"] = str(nodes), str(nodes * draw.choice([1, 2, 3]))
        elif shape < 0.85:
            row["nodes"] = str(draw.choice([1, 2]))
        else:
            row["cores"], row["extra"] = str(draw.choice([2, 4])), "-c2"
        row["exclusive"] = "1" if draw.random() < 0.1 else ""
        if "gres" in kind and draw.random() < 0.5:
            row["extra"] = f"{row.get('extra', '')} --gres=gpu:{draw.choice([1, 1, 2, 4])}".strip()
    if "memory" in kind and draw.random() < 0.4:
        row["mem"] = draw.choice(["500", "1500", "3500"])
    if draw.random() < 0.1 and k:
        row["depend"] = draw.choice(["afterany", "afterok", "after"]) + f":j{draw.randrange(k)}"
    if draw.random() < 0.08:
        row["begin"] = str(date + draw.choice([30, 100, 300]))
    if draw.random() < 0.08:
        array = f"--array=0-{draw.choice([2, 4])}" + draw.choice(["", "%2"])
        row["extra"] = f"{row.get('extra', '')} {array}".strip()
    if draw.random() < 0.1:
        row["nice"] = str(draw.choice([5, 50, 200]))
    extra = []
    if "features" in kind and draw.random() < 0.5:
        extra.append(f"-C '{draw.choice(CONSTRAINTS)}'")
    if "owners" in kind:
        row["user"] = draw.choice(USERS)
        if draw.random() < 0.3 and not row.get("exclusive"):
            extra.append("--exclusive=user")
    if "required" in kind and draw.random() < 0.3:
        extra.append(f"-w n{draw.randint(1, count)}")
    if "least" in kind and draw.random() < 0.4:
        extra.append(f"--time-min={draw.choice([1, 2, 5])}")
    if extra:
        row["extra"] = " ".join(filter(None, [row.get("extra", ""), *extra]))
    row["partition"] = draw.choice(["", "other", "main"])
    if "qos" in kind:
        row["user"], row["qos"] = draw.choice(USERS), draw.choice(["", "", "high", "low"])
    return row


def switch_lines(draw: random.Random, count: int) -> str:
    lines, first = [], 1
    while first <= count:
        last = min(count, first + draw.choice([1, 2]))
        lines.append(f"SwitchName=s{len(lines)} Nodes=n[{first}-{last}]\n")
        first = last + 1
    return "".join([*lines, f"SwitchName=top Switches=s[0-{len(lines) - 1}]\n"])


def write(kind: str, seed: int, place: Path) -> None:
    """Write slurm.conf, jobs.csv, and what else there is."""
    draw = random.Random(f"{kind} {seed}")
    place.mkdir(parents=True, exist_ok=True)
    count, conf = conf_text(draw, kind)
    (place / "slurm.conf").write_text(conf)
    if "tree" in kind:
        (place / "topology.conf").write_text(switch_lines(draw, count))
    if "qos" in kind:
        (place / "sacctmgr.txt").write_text(accounts_text(draw, kind))
    span, date = draw.choice([8, 15, 25]), 0
    with (place / "jobs.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, restval="")
        table.writeheader()
        for k in range(30):
            date += round(draw.expovariate(1 / span))
            table.writerow(job(draw, kind, k, date, count))


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
