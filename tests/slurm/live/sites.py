"""Kinds of sites that have a Slurm, as menus from which `random_cases` draws.

Rare settings are there on purpose: `test_random_configuration` says which none reaches.
"""

from __future__ import annotations

from slurm.live.menus import (
    ACCELERATED,
    BASIC,
    CORES,
    FEATURES,
    FORCED,
    GPUS,
    JOBS,
    LIMITS,
    LINEAR,
    MEMORY,
    PARTED,
    PLAIN,
    PREEMPTING,
    QOS_JOBS,
    QUEUES,
    SHARES,
    TIERED,
    WHOLE,
    Site,
    rare,
)

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
    "tasks": Site(
        CORES
        | BASIC
        | {
            "SelectTypeParameters": (
                *("CR_Core", "CR_Core", "CR_CPU", "CR_Socket", "CR_Core_Memory"),
                *("CR_Core,CR_ONE_TASK_PER_CORE", "CR_Core,CR_CORE_DEFAULT_DIST_BLOCK"),
            )
        },
        FEATURES | {"ThreadsPerCore": (None, "2", "2", "4")},
        QUEUES,
        JOBS | PARTED | {"--ntasks-per-core": rare("1", "2", times=3)},
        (2, 3),
    ),
    "taskslinear": Site(
        LINEAR | BASIC | {"SelectTypeParameters": rare("CR_Memory", times=2)},
        FEATURES | {"ThreadsPerCore": (None, "2")},
        QUEUES,
        JOBS | PARTED | WHOLE,
        (2, 3),
    ),
    "gpuasks": Site(
        MEMORY | BASIC | {"SelectType": ("select/cons_tres",), "GresTypes": ("gpu",)} | ACCELERATED,
        PLAIN | {"Gres": (None, "gpu:2", "gpu:4", "gpu:4"), "ThreadsPerCore": rare("2")},
        (QUEUES[0] | ACCELERATED, *QUEUES[1:]),
        JOBS | {"": GPUS, "--mem": (None, None, "3000"), "--prefer": rare("ib", times=10)},
        (2, 3),
    ),
    "gputypes": Site(
        CORES | BASIC | {"SelectType": ("select/cons_tres",), "GresTypes": ("gpu",)} | ACCELERATED,
        FEATURES | {"Gres": (None, "gpu:a:2", "gpu:a:4", "gpu:b:2,gpu:a:2", "gpu:b:4")},
        QUEUES,
        JOBS
        | {
            "": (
                *GPUS,
                *("--gpus=a:1", "--gpus=b:3", "--gpus-per-node=a:2", "--gres=gpu:b:1"),
                *("--gpus-per-task=a:1", "--gpus=a:1,b:1", "--gpus=a:2 --cpus-per-gpu=2"),
            )
        },
        (2, 3, 4),
    ),
}
