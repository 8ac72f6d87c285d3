"""Random configurations of Slurm as sites have them, with rare settings on purpose, and jobs.

    python tests/slurm/live/random_cases.py KIND SEED DIR

KIND: one of SITES. A site is a set of menus; each choice is drawn with the case's seed.
"""

from __future__ import annotations

import csv
import io
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

Choices = Sequence[str | None]  # None: the key or option is not given
Menu = Mapping[str, Choices]
N_JOBS = 60
COLUMNS = ("id", "submit", "nodes", "cores", "limit", "run", "user", "partition", "depend",
           "begin", "extra")  # fmt: skip
USERS = ("u1", "u2", "u3", "u4", "u5", "u6")
RUNS_S = (19, 44, 58, 87, 146, 233, 391, 733, 1460, 2920)
LIMITS_S = (300, 600, 1800, 3600, 7200)
# Parts of a cluster of n nodes that partitions have, as first and last node.
PARTS = {"ALL": (0.0, 1.0), "low": (0.0, 0.5), "high": (0.5, 1.0), "mid": (0.25, 0.75)}


def rare(*values: str, times: int = 4) -> Choices:
    """A menu on which each of the values is one of several times that nothing is given."""
    return (*(None,) * ((times - 1) * len(values)), *values)


class Site(NamedTuple):
    """Menus of a kind of site.

    partitions: of each a menu; Nodes is one of PARTS. groups: how many NodeName lines, and what
    each has. jobs: options of sbatch. qos: limits of a QOS or an association; none: no accounts.
    """

    conf: Menu
    node: Menu
    partitions: Sequence[Menu]
    jobs: Menu
    groups: Sequence[int] = (1,)
    limits: Menu = MappingProxyType({})
    accounts: bool = False
    tree: bool = False


# Options of SchedulerParameters that all sites may have.
SCHEDULER: Menu = {
    "bf_interval": (None, None, "20", "60", "90"),
    "bf_resolution": rare("30", "120", "300"),
    "bf_window": rare("60", "2880", times=6),
    "bf_max_job_test": rare("5", "20", "1000"),
    "bf_max_job_user": rare("3", times=10),
    "bf_max_job_part": rare("4", times=12),
    "bf_max_job_user_part": rare("2", times=15),
    "bf_max_job_assoc": rare("3", times=20),
    "bf_max_job_start": rare("2", times=12),
    "bf_max_job_array_resv": rare("1", "3", times=10),
    "bf_node_space_size": rare("6", times=15),
    "bf_min_age_reserve": rare("120", times=12),
    "bf_min_prio_reserve": rare("500", times=15),
    "bf_job_part_count_reserve": rare("1", "2", times=8),
    "bf_window_linear": rare("120", times=12),
    "bf_continue": rare("", times=3),
    "bf_busy_nodes": rare("", times=8),
    "bf_running_job_reserve": rare("", times=15),
    "bf_one_resv_per_job": rare("", times=12),
    "default_queue_depth": rare("3", "1000", times=8),
    "partition_job_depth": rare("2", "10", times=8),
    "sched_interval": rare("30", "120", times=8),
    "sched_min_interval": rare("1000000", times=8),
    "batch_sched_delay": rare("0", "10", times=8),
    "sched_max_job_start": rare("2", times=12),
    "defer": rare("", times=6),
    "assoc_limit_stop": rare("", times=12),
    "pack_serial_at_end": rare("", times=10),
    "kill_invalid_depend": rare("", times=6),
    "reduce_completing_frag": rare("", times=12),
    "max_array_tasks": rare("3", times=20),
    "preempt_youngest_first": rare("", times=8),
    "preempt_strict_order": rare("", times=8),
    "preempt_reorder_count": rare("2", times=8),
    "max_switch_wait": rare("60", times=8),
    "bf_licenses": (),
}
EVERY: Menu = {
    "KillWait": rare("10", "60"),
    "OverTimeLimit": rare("2", "5"),
    "CompleteWait": rare("10", times=12),
    "EnforcePartLimits": (None, None, "ANY", "ALL", "NO"),
    "JobRequeue": rare("0", times=5),
    "MinJobAge": rare("60", times=6),
    "Epilog": rare("/bin/true", times=5),
    "EpilogMsgTime": rare("0", times=10),
    "FirstJobId": rare("1000", times=6),
    "MaxArraySize": rare("4", times=15),
    "MaxJobCount": rare("40", times=25),
    "InactiveLimit": rare("120", times=10),
    "KillOnBadExit": rare("1", times=10),
    "ResvOverRun": rare("5", times=20),
}
JOBS: Menu = {
    "-c": rare("2", "3", times=8),
    "--exclusive": rare("", times=12),
    "--ntasks-per-node": rare("2", "4", times=20),
    "--mincpus": rare("3", times=25),
    "--nice": rare("5", "100", times=8),
    "--begin": rare("now+60", "now+900", times=15),
    "--array": rare("0-3", "1-4%2", "0-8:2", times=20),
    "--hold": rare("", times=60),
    "--no-requeue": rare("", times=15),
    "--requeue": rare("", times=20),
    "--time-min": rare("1", "5", times=15),
    "--contiguous": rare("", times=30),
    "-x": rare("n1", "n[2-3]", times=20),
    "-w": rare("n2", "n[1,3]", times=25),
    "--oversubscribe": rare("", times=15),
    "--distribution": rare("block:block", "cyclic:cyclic", times=25),
    "--spread-job": rare("", times=50),
    "--priority": rare("900", times=60),
}
LINEAR: Menu = {"SelectType": ("select/linear",)}
WHOLE: Menu = dict.fromkeys(("-c", "--oversubscribe", "--distribution", "--mincpus"), ())
CORES: Menu = {
    "SelectType": ("select/cons_tres", "select/cons_tres", "select/cons_res"),
    "SelectTypeParameters": (
        *("CR_Core", "CR_Core", "CR_CPU", "CR_Socket", "CR_Core,CR_ONE_TASK_PER_CORE"),
        *("CR_Core,CR_CORE_DEFAULT_DIST_BLOCK", "CR_Core,CR_Pack_Nodes", "CR_CPU,CR_LLN"),
    ),
}
MEMORY: Menu = CORES | {
    "SelectTypeParameters": (
        "CR_Core_Memory",
        "CR_Core_Memory",
        "CR_CPU_Memory",
        "CR_Socket_Memory",
    ),
    "DefMemPerCPU": (None, "500", "1000"),
    "MaxMemPerCPU": rare("2000", times=6),
    "MaxMemPerNode": rare("12000", times=8),
}
BASIC: Menu = {"PriorityType": ("priority/basic", "priority/multifactor"),
               "PriorityWeightJobSize": ("1000",), "PriorityWeightPartition": (None, "500"),
               "PriorityFavorSmall": rare("YES")}  # fmt: skip
SHARES: Menu = {
    "PriorityType": ("priority/multifactor",),
    "PriorityWeightFairshare": ("10000", "1000", "100000"),
    "PriorityWeightAge": ("1000", "5000", None),
    "PriorityMaxAge": ("1-0", "1:00:00", "7-0"),
    "PriorityWeightJobSize": (None, "1000"),
    "PriorityWeightPartition": (None, "1000"),
    "PriorityWeightQOS": ("2000", None),
    "PriorityWeightAssoc": rare("500", times=5),
    "PriorityCalcPeriod": (None, "1", "3"),
    "PriorityDecayHalfLife": (None, "1:00:00", "1-0", "14-0"),
    "PriorityUsageResetPeriod": rare("DAILY", times=6),
    "PriorityFlags": (None, None, "NO_FAIR_TREE", "DEPTH_OBLIVIOUS", "ACCRUE_ALWAYS",
                      "SMALL_RELATIVE_TO_TIME", "CALCULATE_RUNNING", "INCR_ONLY", "MAX_TRES",
                      "NO_NORMAL_ALL"),
    "PriorityFavorSmall": rare("YES", times=5),
    "FairShareDampeningFactor": rare("3", times=6),
    "AccountingStorageType": ("accounting_storage/slurmdbd",),
    "AccountingStorageEnforce": ("limits,qos", "safe", "associations", "limits", "qos,safe"),
}  # fmt: skip
LIMITS: Menu = {
    "MaxJobsPerUser": rare("2", "4", times=3),
    "GrpJobs": rare("5", times=5),
    "MaxTRESPerUser": rare("cpu=20", "node=4", times=4),
    "GrpTRES": rare("cpu=40", "node=6", times=4),
    "MaxTRESPerJob": rare("cpu=24", "node=3", times=6),
    "MaxTRESPerNode": rare("cpu=6", times=12),
    "MaxTRESPerAccount": rare("cpu=30", times=8),
    "MaxJobsPerAccount": rare("4", times=8),
    "MaxSubmitJobsPerUser": rare("8", times=8),
    "MaxWall": rare("60", times=8),
    "GrpTRESRunMins": rare("cpu=3000", times=8),
    "MaxTRESMins": rare("cpu=600", times=10),
    "GrpSubmit": rare("20", times=12),
    "MinTRES": rare("cpu=2", times=12),
    "GrpTRESMins": rare("cpu=2500", times=15),
    "GrpWall": rare("400", times=20),
}
QUEUES: Sequence[Menu] = (
    {"Nodes": ("ALL", "low"), "MaxTime": (None, "60", "1-0"), "DefaultTime": rare("30"),
     "PriorityTier": (None, "2")},
    {"Nodes": ("ALL", "high", "mid"), "MaxTime": (None, "30", "UNLIMITED"),
     "PriorityTier": (None, "1", "5"), "PriorityJobFactor": (None, "10"),
     "MaxNodes": rare("2", "4"), "MinNodes": rare("2", times=8),
     "OverTimeLimit": rare("1", times=6)},
)  # fmt: skip
PLAIN: Menu = {"Sockets": ("1", "2"), "CoresPerSocket": ("4", "8"), "RealMemory": ("16000",)}
FEATURES: Menu = PLAIN | {
    "Feature": ("ib,intel", "eth,intel", "ib,amd,big", "eth,amd"),
    "Weight": (None, "1", "10", "50"),
}
PREEMPTING: Menu = {
    "PreemptMode": ("REQUEUE", "CANCEL"),
    "PreemptExemptTime": rare("2", times=5),
}
TIERED: Sequence[Menu] = (
    {"Nodes": ("ALL",), "PriorityTier": ("1",), "GraceTime": rare("60", "120"),
     "PreemptMode": rare("OFF", "CANCEL", "REQUEUE", times=3)},
    {"Nodes": ("ALL", "low"), "PriorityTier": ("10",), "PreemptMode": rare("OFF", times=3)},
    {"Nodes": ("high", "mid", "ALL"), "PriorityTier": ("20", "10")},
)  # fmt: skip
FORCED: Sequence[Menu] = tuple(menu | {"OverSubscribe": ("FORCE:1",)} for menu in (
    {"Nodes": ("ALL",), "PriorityTier": ("1",)},
    {"Nodes": ("ALL", "mid"), "PriorityTier": ("10",), "PreemptMode": rare("OFF", times=5)},
))  # fmt: skip
QOS_JOBS: Menu = {"--qos": (None, None, "high", "low")}

SITES: dict[str, Site] = {
    "classic": Site(LINEAR | BASIC | {"SchedulerType": (None, None, "sched/builtin")},
                    PLAIN | {"Weight": (None, "1", "5")}, QUEUES, JOBS | WHOLE, (1, 2, 3)),
    "univ": Site(MEMORY | SHARES, FEATURES | {"MemSpecLimit": rare("1000")},
                 (*QUEUES, {"Nodes": ("ALL",), "PriorityTier": ("1",), "AllowAccounts": ("a1,b",),
                            "DenyQos": rare("high")}),
                 JOBS | QOS_JOBS | {"--mem": (None, None, "2000", "6000", "0"),
                                    "--mem-per-cpu": rare("700", "3000")},
                 (2, 3), LIMITS, accounts=True),
    "fair": Site(CORES | SHARES, PLAIN, QUEUES[:1], JOBS | QOS_JOBS, accounts=True),
    "gpu": Site(MEMORY | BASIC | {"GresTypes": ("gpu",)},
                FEATURES | {"Gres": (None, "gpu:2", "gpu:4", "gpu:4")}, QUEUES,
                JOBS | {"--gres": (None, "gpu:1", "gpu:1", "gpu:2", "gpu:4"),
                        "--mem": (None, "2000", "5000"),
                        "--dependency": rare("singleton", times=6), "-J": ("x", "y")}, (2, 3, 4)),
    "features": Site(CORES | BASIC, FEATURES, QUEUES,
                     JOBS | {"-C": (None, None, "ib", "intel|amd", "ib&amd", "[ib|eth]", "[ib*1&eth*1]",
                                    "big", "(ib|eth)&intel", "ib*2", "intel&[ib|eth]")}, (3, 4)),
    "partqos": Site(CORES | SHARES | {"AccountingStorageEnforce": ("limits,qos", "safe")}, PLAIN,
                    tuple(menu | {"QOS": ("part", "high", None), "AllowQos": rare("normal,high")}
                          for menu in QUEUES), JOBS | QOS_JOBS, (1, 2), LIMITS, accounts=True),
    "preemptpart": Site(CORES | BASIC | PREEMPTING | {"PreemptType": ("preempt/partition_prio",)},
                        FEATURES, TIERED, JOBS | {"-C": rare("ib")}, (1, 2, 3)),
    "preemptqos": Site(CORES | SHARES | PREEMPTING | {"PreemptType": ("preempt/qos",),
                       "AccountingStorageEnforce": ("limits,qos", "qos")}, PLAIN, QUEUES,
                       JOBS | {"--qos": ("low", "low", "high", None)}, (1, 2),
                       {"GrpTRES": rare("cpu=40", times=5), "GraceTime": rare("60", times=3),
                        "MaxJobsPerUser": rare("4", times=4)}, accounts=True),
    "suspend": Site(CORES | BASIC | {"PreemptType": ("preempt/partition_prio",),
                                     "PreemptMode": ("SUSPEND,GANG",),
                                     "SchedulerTimeSlice": rare("60")},
                    PLAIN, FORCED, JOBS, (1, 2)),
    "tresw": Site(MEMORY | SHARES | {"PriorityWeightTRES": ("CPU=1000,Mem=500", "CPU=2000", "Mem=-500")},
                  PLAIN, tuple(menu | {"TRESBillingWeights": (None, "CPU=1.0,Mem=0.25G", "CPU=2,Node=4")}
                               for menu in QUEUES),
                  JOBS | QOS_JOBS | {"--mem": (None, "2000", "9000")}, accounts=True),
    "tree": Site(CORES | BASIC | {"TopologyParam": rare("TopoOptional", "Dragonfly")}, FEATURES, QUEUES,
                 JOBS | {"--switches": (None, None, "1", "1@2:00", "2@10:00")}, (1, 2), tree=True),
    "treelinear": Site(LINEAR | BASIC | {"TopologyParam": rare("TopoOptional")}, PLAIN, QUEUES,
                       JOBS | WHOLE | {"--switches": rare("1", "1@5:00")}, (1,), tree=True),
    "licence": Site(CORES | BASIC | {"Licenses": ("x:3,y:2", "x:4")}, PLAIN, QUEUES,
                    JOBS | {"-L": (None, "x:1", "x:2", "x:1")}, (1, 2)),
    "bflicence": Site(CORES | BASIC | {"Licenses": ("x:3", "x:4"), "bf_licenses": ("",)}, PLAIN, QUEUES,
                      JOBS | {"-L": (None, "x:1", "x:2", "x:3")}, (1,)),
    "hyper": Site(CORES | BASIC | {"SelectTypeParameters": ("CR_Core", "CR_CPU", "CR_Socket",
                                   "CR_Core,CR_ONE_TASK_PER_CORE", "CR_Core_Memory")},
                  FEATURES | {"ThreadsPerCore": ("2",), "CoreSpecCount": rare("1")}, QUEUES,
                  JOBS | {"--hint": rare("nomultithread", "multithread"), "--threads-per-core": rare("1"),
                          "-C": (None, None, "[ib|eth]", "ib")}, (2, 3)),
    "shared": Site(CORES | BASIC, PLAIN, (
                       {"Nodes": ("ALL",), "OverSubscribe": ("YES:2", "FORCE:2", "NO", "EXCLUSIVE"),
                        "MaxCPUsPerNode": rare("6", times=3), "LLN": rare("YES")},
                       {"Nodes": ("ALL", "mid"), "OverSubscribe": ("FORCE:3", "YES", "NO"),
                        "MaxCPUsPerNode": rare("4", "8", times=2), "PriorityTier": rare("2"),
                        "ExclusiveUser": rare("YES")}),
                   JOBS | {"--exclusive": rare("user", "", times=5), "-s": rare("", times=3)}, (1, 2)),
    "linmem": Site(LINEAR | BASIC | {"SelectTypeParameters": ("CR_Memory",), "DefMemPerNode": (None, "3000"),
                                     "MaxMemPerNode": rare("14000")},
                   PLAIN | {"Weight": (None, "1", "50"), "RealMemory": ("16000", "32000")},
                   tuple(menu | {"OverSubscribe": (None, "FORCE:2", "YES:2")} for menu in QUEUES),
                   JOBS | WHOLE | {"--mem": (None, "2000", "9000"), "--mem-per-cpu": rare("700", "1500")},
                   (1, 2)),
    "multipart": Site(CORES | BASIC, FEATURES, (*QUEUES, {
                          "Nodes": ("mid", "high"), "PriorityTier": (None, "3"),
                          "State": rare("DOWN", "DRAIN", times=5), "OverSubscribe": rare("EXCLUSIVE")}),
                      JOBS | {"-p": ("p0", "p1", "p0,p1", "p2,p0", "p0,p1,p2"),
                              "-w": rare("n2", "n[1,3]", times=10)}, (1, 2, 3)),
    "leadership": Site(LINEAR | SHARES, PLAIN | {"CoresPerSocket": ("8",)}, (
                           {"Nodes": ("ALL",), "MaxTime": ("1-0", None), "QOS": rare("part")},
                           {"Nodes": ("ALL", "low"), "MaxTime": ("30",), "PriorityTier": (None, "5"),
                            "MaxNodes": (None, "4")}),
                       JOBS | WHOLE | QOS_JOBS | {"-N": ("2", "4", "6", "2-5", "8")}, (1, 2), LIMITS,
                       accounts=True),
    "owners": Site(CORES | SHARES | PREEMPTING | {"PreemptType": ("preempt/partition_prio",)}, FEATURES, (
                       {"Nodes": ("ALL",), "PriorityTier": ("1",), "GraceTime": rare("60"),
                        "PreemptMode": (None, "REQUEUE", "CANCEL"), "QOS": rare("low")},
                       {"Nodes": ("low",), "PriorityTier": ("10",), "AllowAccounts": ("a1,a2,root",)},
                       {"Nodes": ("high",), "PriorityTier": ("10",), "AllowAccounts": ("b,root",)}),
                   JOBS | QOS_JOBS, (2, 3), LIMITS, accounts=True),
    "slices": Site(CORES | BASIC | {"SelectType": ("select/linear", "select/cons_tres"),
                                    "PreemptMode": ("GANG",), "SchedulerTimeSlice": ("30", "60")},
                   PLAIN, ({"Nodes": ("ALL",), "OverSubscribe": ("FORCE:2", "FORCE:3", "YES:2")},), JOBS),
    "through": Site(CORES | BASIC | {"defer": ("", None), "bf_max_job_test": ("20", None)}, PLAIN, QUEUES,
                    JOBS | {"--array": (None, None, "0-7", "1-6%2", "0-3"),
                            "--dependency": rare("singleton", times=8), "-J": ("x", "y", "z")}),
    "units": Site(MEMORY | BASIC, PLAIN | {"Boards": rare("1")},
                  tuple(menu | {"MaxMemPerCPU": rare("1500"), "DefMemPerNode": rare("4000"),
                                "MaxMemPerNode": rare("8000", times=6),
                                "SelectTypeParameters": rare("CR_Core", "CR_Socket", times=6)}
                        for menu in QUEUES),
                  JOBS | {"--mem": (None, "1000", "5000"), "--mem-per-cpu": rare("500", "2500")}, (1, 2)),
    "limits": Site(CORES | SHARES | {"AccountingStorageEnforce": ("limits,qos", "safe", "safe,qos")},
                   PLAIN, QUEUES, JOBS | QOS_JOBS, (1,), LIMITS, accounts=True),
}  # fmt: skip


def _given(draw: random.Random, menu: Menu) -> dict[str, str]:
    """What is drawn of a menu."""
    drawn = {key: draw.choice(choices) for key, choices in menu.items() if choices}
    return {key: value for key, value in drawn.items() if value is not None}


def _words(given: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" if value else key for key, value in given.items()]


def _node_lines(draw: random.Random, site: Site, units: str) -> tuple[int, int, list[str]]:
    """How many nodes and cores, and the lines of the nodes. units: SelectTypeParameters."""
    lines: list[str] = []
    nodes = cores = 0
    shape = {key: site.node[key] for key in ("Sockets", "CoresPerSocket")}
    alike = _given(draw, shape) if draw.random() < 0.7 else {}
    groups = draw.choice(site.groups)
    for _ in range(groups):
        count = draw.choice((3, 4, 6)) if groups > 1 else draw.choice((6, 8, 12))
        given = _given(draw, site.node) | alike
        if "Boards" in given:
            given["SocketsPerBoard"] = given.pop("Sockets")
        per_node = int(given.get("Sockets", given.get("SocketsPerBoard", "1")))
        per_node *= int(given["CoresPerSocket"])
        if "CR_Socket" in units:  # such a node would have no socket for jobs
            given.pop("CoreSpecCount", None)
        given["CPUs"] = str(per_node * int(given.get("ThreadsPerCore", "1")))
        lines.append(f"NodeName=n[{nodes + 1}-{nodes + count}] {' '.join(_words(given))}")
        nodes, cores = nodes + count, cores + count * per_node
    return nodes, cores, lines


def _partition_lines(draw: random.Random, site: Site, nodes: int) -> list[str]:
    lines = []
    for k, menu in enumerate(site.partitions):
        given = _given(draw, menu)
        first, last = PARTS[given["Nodes"]]
        if given["Nodes"] != "ALL":
            given["Nodes"] = f"n[{int(first * nodes) + 1}-{max(1, int(last * nodes))}]"
        default = " Default=YES" if k == 0 else ""
        lines.append(f"PartitionName=p{k} {' '.join(_words(given))}{default}")
    return lines


def _switch_lines(draw: random.Random, nodes: int) -> list[str]:
    lines, first = [], 1
    while first <= nodes:
        last = min(nodes, first + draw.choice((1, 2, 3)))
        lines.append(f"SwitchName=s{len(lines)} Nodes=n[{first}-{last}]")
        first = last + 1
    leaves = len(lines)
    if leaves > 3 and draw.random() < 0.5:
        half = leaves // 2
        lines.append(f"SwitchName=left Switches=s[0-{half - 1}]")
        lines.append(f"SwitchName=right Switches=s[{half}-{leaves - 1}]")
        return [*lines, "SwitchName=top Switches=left,right"]
    return [*lines, f"SwitchName=top Switches=s[0-{leaves - 1}]"]


def _account_lines(draw: random.Random, site: Site) -> list[str]:
    preempt = " Preempt=low" if "GraceTime" in site.limits else ""

    def limits(given: Mapping[str, str] | None = None) -> str:
        return " ".join(["", *_words(_given(draw, site.limits if given is None else given))])

    few = {key: site.limits[key] for key in ("GrpTRES", "GrpJobs") if key in site.limits}
    flags = draw.choice(("", "", " Flags=DenyOnLimit", " UsageFactor=2"))
    lines = [
        "add account a Fairshare=3" + limits(few),
        f"add account a1 parent=a Fairshare={draw.choice((1, 2))}",
        "add account a2 parent=a Fairshare=1" + limits(few),
        f"add account b Fairshare={draw.choice((1, 5))}",
        f"add qos low Priority=10{limits()}",
        f"add qos high Priority=100{limits()}{flags}{preempt}",
        f"add qos part Priority=0{limits()}",
    ]
    for user, account in zip(USERS, ("a1", "a1", "a2", "b", "b", "b"), strict=True):
        few = {key: site.limits[key] for key in ("MaxWall",) if key in site.limits}
        share = draw.choice(("1", "1", "2", "5", "parent"))
        jobs = draw.choice(("", "", "", " MaxJobs=3"))
        lines.append(
            f"add user {user} Account={account} Fairshare={share} QOS=normal,high,low "
            f"DefaultQOS=normal{jobs}{limits(few)}"
        )
    return lines


def _job(draw: random.Random, site: Site, k: int, cores: int) -> dict[str, str]:
    """A row of jobs.csv without its date; the cores it may take are left in `area`."""
    linear = site.jobs.get("-c") == ()
    run = draw.choice(RUNS_S)
    limit = max(60, int(run * draw.choice((0.6, 1, 1.2, 2, 4))))
    row = {"id": f"j{k}", "run": str(run), "user": draw.choice(USERS)}
    row["limit"] = str(draw.choice(LIMITS_S) if draw.random() < 0.3 else limit)
    options = _given(draw, site.jobs)
    if linear:
        row["nodes"] = options.pop("-N", None) or str(draw.choice((1, 1, 2, 2, 3, 4, 6)))
        options.pop("--ntasks-per-node", None)
        used = 8 * int(row["nodes"].split("-")[0])
    elif draw.random() < 0.65:
        row["cores"] = str(draw.choice((1, 1, 1, 2, 3, 4, 6, 8, 12, 20)))
        used = int(row["cores"])
    else:
        nodes = draw.choice((1, 2, 3))
        row["nodes"] = str(nodes) if draw.random() < 0.8 else f"{nodes}-{nodes + 2}"
        row["cores"] = str(nodes * draw.choice((1, 2, 3, 5)))
        used = int(row["cores"])
    if "--ntasks-per-node" in options:
        row.pop("cores", None)
        row.setdefault("nodes", "1")
    row["area"] = str(min(used * int(options.get("-c", "1")), cores) * run)
    row["partition"] = options.pop("-p", "")
    if not row["partition"] and len(site.partitions) > 1 and draw.random() < 0.6:
        row["partition"] = f"p{draw.randrange(len(site.partitions))}"
    if "--begin" in options:
        row["begin"] = options.pop("--begin").removeprefix("now+")
    if "--mem" in options:
        options.pop("--mem-per-cpu", None)
    if "--array" in options:
        options.pop("--hold", None)
    if k and draw.random() < 0.08:
        kind = draw.choice(("afterany", "afterok", "after", "afternotok"))
        row["depend"] = f"{kind}:j{draw.randrange(k)}"
    if "--dependency" in options:
        row["depend"] = options.pop("--dependency")
    row["extra"] = " ".join(
        f"{key} '{value}'" if len(key) == 2 and value else f"{key}='{value}'" if value else key
        for key, value in options.items()
    )
    return row


def case(kind: str, seed: int) -> dict[str, str]:
    """The texts of slurm.conf and jobs.csv, and of topology.conf and sacctmgr.txt if there are."""
    site, draw = SITES[kind], random.Random(f"{kind} {seed}")
    given = _given(draw, EVERY | site.conf)
    drawn = _given(draw, SCHEDULER | {key: site.conf[key] for key in SCHEDULER if key in site.conf})
    given = {key: value for key, value in given.items() if key not in SCHEDULER}
    lines = [*_words(given), f"SchedulerParameters={','.join(_words(drawn))}"]
    nodes, cores, node_lines = _node_lines(draw, site, given.get("SelectTypeParameters", ""))
    lines += [*node_lines, *_partition_lines(draw, site, nodes)]
    texts: dict[str, str] = {}
    if site.tree:
        lines.insert(0, "TopologyPlugin=topology/tree")
        texts["topology.conf"] = "\n".join([*_switch_lines(draw, nodes), ""])
    if site.accounts:
        texts["sacctmgr.txt"] = "\n".join([*_account_lines(draw, site), ""])
    texts["slurm.conf"] = "\n".join([*lines, ""])
    rows = [_job(draw, site, k, cores) for k in range(N_JOBS)]
    work = sum(float(row.pop("area")) for row in rows)
    span = min(work / cores / draw.choice((0.8, 1.2, 1.8)), 12 * 3600.0)
    dates = sorted(round(draw.random() * span) for _ in rows)
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for date, row in zip(dates, rows, strict=True):
        row["submit"] = str(date)
        if "begin" in row:
            row["begin"] = str(date + int(row["begin"]))
        if not site.accounts:
            row.pop("user")
        writer.writerow(row)
    texts["jobs.csv"] = table.getvalue()
    return texts


def write(kind: str, seed: int, place: Path) -> None:
    """Write the files of a case into the directory `place`."""
    place.mkdir(parents=True, exist_ok=True)
    for name, text in case(kind, seed).items():
        (place / name).write_text(text)


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
