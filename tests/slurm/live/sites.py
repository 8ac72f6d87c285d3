"""Kinds of sites that have a Slurm, as menus from which `random_cases` draws.

Rare settings are there on purpose: `test_random_configuration` says which none reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

Choices = Sequence[str | None]  # None: the key or option is not given
Menu = Mapping[str, Choices]
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
BASIC: Menu = {
    "PriorityType": ("priority/basic", "priority/multifactor"),
    "PriorityWeightJobSize": ("1000",),
    "PriorityWeightPartition": (None, "500"),
    "PriorityFavorSmall": rare("YES"),
}
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
    "PriorityFlags": (
        None,
        None,
        "NO_FAIR_TREE",
        "DEPTH_OBLIVIOUS",
        "ACCRUE_ALWAYS",
        "SMALL_RELATIVE_TO_TIME",
        "CALCULATE_RUNNING",
        "INCR_ONLY",
        "MAX_TRES",
        "NO_NORMAL_ALL",
    ),
    "PriorityFavorSmall": rare("YES", times=5),
    "FairShareDampeningFactor": rare("3", times=6),
    "AccountingStorageType": ("accounting_storage/slurmdbd",),
    "AccountingStorageEnforce": ("limits,qos", "safe", "associations", "limits", "qos,safe"),
}
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
    {
        "Nodes": ("ALL", "low"),
        "MaxTime": (None, "60", "1-0"),
        "DefaultTime": rare("30"),
        "PriorityTier": (None, "2"),
    },
    {
        "Nodes": ("ALL", "high", "mid"),
        "MaxTime": (None, "30", "UNLIMITED"),
        "PriorityTier": (None, "1", "5"),
        "PriorityJobFactor": (None, "10"),
        "MaxNodes": rare("2", "4"),
        "MinNodes": rare("2", times=8),
        "OverTimeLimit": rare("1", times=6),
    },
)
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
    {
        "Nodes": ("ALL",),
        "PriorityTier": ("1",),
        "GraceTime": rare("60", "120"),
        "PreemptMode": rare("OFF", "CANCEL", "REQUEUE", times=3),
    },
    {"Nodes": ("ALL", "low"), "PriorityTier": ("10",), "PreemptMode": rare("OFF", times=3)},
    {"Nodes": ("high", "mid", "ALL"), "PriorityTier": ("20", "10")},
)
FORCED: Sequence[Menu] = tuple(
    menu | {"OverSubscribe": ("FORCE:1",)}
    for menu in (
        {"Nodes": ("ALL",), "PriorityTier": ("1",)},
        {"Nodes": ("ALL", "mid"), "PriorityTier": ("10",), "PreemptMode": rare("OFF", times=5)},
    )
)
QOS_JOBS: Menu = {"--qos": (None, None, "high", "low")}

SITES: dict[str, Site] = {
    "classic": Site(
        LINEAR | BASIC | {"SchedulerType": (None, None, "sched/builtin")},
        PLAIN | {"Weight": (None, "1", "5")},
        QUEUES,
        JOBS | WHOLE,
        (1, 2, 3),
    ),
    "univ": Site(
        MEMORY | SHARES,
        FEATURES | {"MemSpecLimit": rare("1000")},
        (
            *QUEUES,
            {
                "Nodes": ("ALL",),
                "PriorityTier": ("1",),
                "AllowAccounts": ("a1,b",),
                "DenyQos": rare("high"),
            },
        ),
        JOBS
        | QOS_JOBS
        | {"--mem": (None, None, "2000", "6000", "0"), "--mem-per-cpu": rare("700", "3000")},
        (2, 3),
        LIMITS,
        accounts=True,
    ),
    "fair": Site(CORES | SHARES, PLAIN, QUEUES[:1], JOBS | QOS_JOBS, accounts=True),
    "gpu": Site(
        MEMORY | BASIC | {"GresTypes": ("gpu",)},
        FEATURES | {"Gres": (None, "gpu:2", "gpu:4", "gpu:4")},
        QUEUES,
        JOBS
        | {
            "--gres": (None, "gpu:1", "gpu:1", "gpu:2", "gpu:4"),
            "--mem": (None, "2000", "5000"),
            "--dependency": rare("singleton", times=6),
            "-J": ("x", "y"),
        },
        (2, 3, 4),
    ),
    "features": Site(
        CORES | BASIC,
        FEATURES,
        QUEUES,
        JOBS
        | {
            "-C": (
                None,
                None,
                "ib",
                "intel|amd",
                "ib&amd",
                "[ib|eth]",
                "[ib*1&eth*1]",
                "big",
                "(ib|eth)&intel",
                "ib*2",
                "intel&[ib|eth]",
            )
        },
        (3, 4),
    ),
    "partqos": Site(
        CORES | SHARES | {"AccountingStorageEnforce": ("limits,qos", "safe")},
        PLAIN,
        tuple(
            menu | {"QOS": ("part", "high", None), "AllowQos": rare("normal,high")}
            for menu in QUEUES
        ),
        JOBS | QOS_JOBS,
        (1, 2),
        LIMITS,
        accounts=True,
    ),
    "preemptpart": Site(
        CORES | BASIC | PREEMPTING | {"PreemptType": ("preempt/partition_prio",)},
        FEATURES,
        TIERED,
        JOBS | {"-C": rare("ib")},
        (1, 2, 3),
    ),
    "preemptqos": Site(
        CORES
        | SHARES
        | PREEMPTING
        | {"PreemptType": ("preempt/qos",), "AccountingStorageEnforce": ("limits,qos", "qos")},
        PLAIN,
        QUEUES,
        JOBS | {"--qos": ("low", "low", "high", None)},
        (1, 2),
        {
            "GrpTRES": rare("cpu=40", times=5),
            "GraceTime": rare("60", times=3),
            "MaxJobsPerUser": rare("4", times=4),
        },
        accounts=True,
    ),
    "suspend": Site(
        CORES
        | BASIC
        | {
            "PreemptType": ("preempt/partition_prio",),
            "PreemptMode": ("SUSPEND,GANG",),
            "SchedulerTimeSlice": rare("60"),
        },
        PLAIN,
        FORCED,
        JOBS,
        (1, 2),
    ),
    "tresw": Site(
        MEMORY | SHARES | {"PriorityWeightTRES": ("CPU=1000,Mem=500", "CPU=2000", "Mem=-500")},
        PLAIN,
        tuple(
            menu | {"TRESBillingWeights": (None, "CPU=1.0,Mem=0.25G", "CPU=2,Node=4")}
            for menu in QUEUES
        ),
        JOBS | QOS_JOBS | {"--mem": (None, "2000", "9000")},
        accounts=True,
    ),
    "tree": Site(
        CORES | BASIC | {"TopologyParam": rare("TopoOptional", "Dragonfly")},
        FEATURES,
        QUEUES,
        JOBS | {"--switches": (None, None, "1", "1@2:00", "2@10:00")},
        (1, 2),
        tree=True,
    ),
    "treelinear": Site(
        LINEAR | BASIC | {"TopologyParam": rare("TopoOptional")},
        PLAIN,
        QUEUES,
        JOBS | WHOLE | {"--switches": rare("1", "1@5:00")},
        (1,),
        tree=True,
    ),
    "licence": Site(
        CORES | BASIC | {"Licenses": ("x:3,y:2", "x:4")},
        PLAIN,
        QUEUES,
        JOBS | {"-L": (None, "x:1", "x:2", "x:1")},
        (1, 2),
    ),
    "bflicence": Site(
        CORES | BASIC | {"Licenses": ("x:3", "x:4"), "bf_licenses": ("",)},
        PLAIN,
        QUEUES,
        JOBS | {"-L": (None, "x:1", "x:2", "x:3")},
        (1,),
    ),
    "hyper": Site(
        CORES
        | BASIC
        | {
            "SelectTypeParameters": (
                "CR_Core",
                "CR_CPU",
                "CR_Socket",
                "CR_Core,CR_ONE_TASK_PER_CORE",
                "CR_Core_Memory",
            )
        },
        FEATURES | {"ThreadsPerCore": ("2",), "CoreSpecCount": rare("1")},
        QUEUES,
        JOBS
        | {
            "--hint": rare("nomultithread", "multithread"),
            "--threads-per-core": rare("1"),
            "-C": (None, None, "[ib|eth]", "ib"),
        },
        (2, 3),
    ),
    "shared": Site(
        CORES | BASIC,
        PLAIN,
        (
            {
                "Nodes": ("ALL",),
                "OverSubscribe": ("YES:2", "FORCE:2", "NO", "EXCLUSIVE"),
                "MaxCPUsPerNode": rare("6", times=3),
                "LLN": rare("YES"),
            },
            {
                "Nodes": ("ALL", "mid"),
                "OverSubscribe": ("FORCE:3", "YES", "NO"),
                "MaxCPUsPerNode": rare("4", "8", times=2),
                "PriorityTier": rare("2"),
                "ExclusiveUser": rare("YES"),
            },
        ),
        JOBS | {"--exclusive": rare("user", "", times=5), "-s": rare("", times=3)},
        (1, 2),
    ),
    "linmem": Site(
        LINEAR
        | BASIC
        | {
            "SelectTypeParameters": ("CR_Memory",),
            "DefMemPerNode": (None, "3000"),
            "MaxMemPerNode": rare("14000"),
        },
        PLAIN | {"Weight": (None, "1", "50"), "RealMemory": ("16000", "32000")},
        tuple(menu | {"OverSubscribe": (None, "FORCE:2", "YES:2")} for menu in QUEUES),
        JOBS | WHOLE | {"--mem": (None, "2000", "9000"), "--mem-per-cpu": rare("700", "1500")},
        (1, 2),
    ),
    "multipart": Site(
        CORES | BASIC,
        FEATURES,
        (
            *QUEUES,
            {
                "Nodes": ("mid", "high"),
                "PriorityTier": (None, "3"),
                "State": rare("DOWN", "DRAIN", times=5),
                "OverSubscribe": rare("EXCLUSIVE"),
            },
        ),
        JOBS
        | {"-p": ("p0", "p1", "p0,p1", "p2,p0", "p0,p1,p2"), "-w": rare("n2", "n[1,3]", times=10)},
        (1, 2, 3),
    ),
    "leadership": Site(
        LINEAR | SHARES,
        PLAIN | {"CoresPerSocket": ("8",)},
        (
            {"Nodes": ("ALL",), "MaxTime": ("1-0", None), "QOS": rare("part")},
            {
                "Nodes": ("ALL", "low"),
                "MaxTime": ("30",),
                "PriorityTier": (None, "5"),
                "MaxNodes": (None, "4"),
            },
        ),
        JOBS | WHOLE | QOS_JOBS | {"-N": ("2", "4", "6", "2-5", "8")},
        (1, 2),
        LIMITS,
        accounts=True,
    ),
    "owners": Site(
        CORES | SHARES | PREEMPTING | {"PreemptType": ("preempt/partition_prio",)},
        FEATURES,
        (
            {
                "Nodes": ("ALL",),
                "PriorityTier": ("1",),
                "GraceTime": rare("60"),
                "PreemptMode": (None, "REQUEUE", "CANCEL"),
                "QOS": rare("low"),
            },
            {"Nodes": ("low",), "PriorityTier": ("10",), "AllowAccounts": ("a1,a2,root",)},
            {"Nodes": ("high",), "PriorityTier": ("10",), "AllowAccounts": ("b,root",)},
        ),
        JOBS | QOS_JOBS,
        (2, 3),
        LIMITS,
        accounts=True,
    ),
    "slices": Site(
        CORES
        | BASIC
        | {
            "SelectType": ("select/linear", "select/cons_tres"),
            "PreemptMode": ("GANG",),
            "SchedulerTimeSlice": ("30", "60"),
        },
        PLAIN,
        ({"Nodes": ("ALL",), "OverSubscribe": ("FORCE:2", "FORCE:3", "YES:2")},),
        JOBS,
    ),
    "through": Site(
        CORES | BASIC | {"defer": ("", None), "bf_max_job_test": ("20", None)},
        PLAIN,
        QUEUES,
        JOBS
        | {
            "--array": (None, None, "0-7", "1-6%2", "0-3"),
            "--dependency": rare("singleton", times=8),
            "-J": ("x", "y", "z"),
        },
    ),
    "units": Site(
        MEMORY | BASIC,
        PLAIN | {"Boards": rare("1")},
        tuple(
            menu
            | {
                "MaxMemPerCPU": rare("1500"),
                "DefMemPerNode": rare("4000"),
                "MaxMemPerNode": rare("8000", times=6),
                "SelectTypeParameters": rare("CR_Core", "CR_Socket", times=6),
            }
            for menu in QUEUES
        ),
        JOBS | {"--mem": (None, "1000", "5000"), "--mem-per-cpu": rare("500", "2500")},
        (1, 2),
    ),
    "limits": Site(
        CORES | SHARES | {"AccountingStorageEnforce": ("limits,qos", "safe", "safe,qos")},
        PLAIN,
        QUEUES,
        JOBS | QOS_JOBS,
        (1,),
        LIMITS,
        accounts=True,
    ),
    "old": Site(
        CORES | SHARES,
        PLAIN,
        (
            {"Nodes": ("ALL",), "Shared": ("NO", "YES:2"), "Priority": ("10", "100")},
            {"Nodes": ("mid",), "DenyAccounts": ("a1", "b"), "Priority": ("5", "50")},
        ),
        JOBS | QOS_JOBS,
        accounts=True,
    ),
}
