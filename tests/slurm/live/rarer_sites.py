"""Kinds of sites with settings that those of `sites` seldom have, as menus for `random_cases`."""

from __future__ import annotations

from slurm.live.menus import (
    BASIC,
    CORES,
    FEATURES,
    FORCED,
    JOBS,
    LIMITS,
    LINEAR,
    MEMORY,
    PLAIN,
    QOS_JOBS,
    QUEUES,
    SHARES,
    WHOLE,
    Menu,
    Site,
    rare,
)

ENFORCED: Menu = {"AccountingStorageEnforce": ("limits,qos", "safe,qos", "limits")}
SUBMITTED: Menu = {
    "MaxSubmitJobsPerUser": rare("6", "10", times=2),
    "GrpSubmit": rare("15", "25", times=2),
    "MaxSubmitJobsPerAccount": rare("8", "14", times=2),
    "MaxJobsPerAccount": rare("3", "6", times=2),
    "GrpJobs": rare("4", "8", times=2),
    "MaxJobsPerUser": rare("2", "3", times=2),
    "MinTRES": rare("cpu=2", "node=2", times=3),
    "MaxWall": rare("30", "60", times=3),
}
BACKFILL: Menu = {
    "bf_max_job_user": rare("2", "5", times=2),
    "bf_max_job_part": rare("3", "6", times=2),
    "bf_max_job_user_part": rare("1", "3", times=2),
    "bf_max_job_assoc": rare("2", "4", times=2),
    "bf_max_job_start": rare("1", "3", times=2),
    "bf_min_age_reserve": rare("60", "600", times=2),
    "bf_min_prio_reserve": rare("300", "3000", times=2),
    "bf_job_part_count_reserve": rare("1", "3", times=2),
    "bf_one_resv_per_job": rare("", times=2),
    "bf_node_space_size": rare("4", "10", times=2),
    "bf_window_linear": rare("60", "600", times=2),
    "max_array_tasks": rare("3", times=2),
    "bf_max_job_array_resv": rare("0", "2", times=2),
    "bf_max_job_test": rare("4", "10", times=2),
    "bf_running_job_reserve": rare("", times=2),
}
PASSES: Menu = {
    "SchedulerType": (None, None, "sched/builtin"),
    "default_queue_depth": ("2", "5", "20", None),
    "partition_job_depth": (None, "1", "3"),
    "sched_interval": (None, "15", "45", "300"),
    "sched_min_interval": (None, "0", "3000000", "500000"),
    "batch_sched_delay": (None, "0", "1", "20"),
    "sched_max_job_start": (None, "1", "3"),
    "defer": rare("", times=3),
    "pack_serial_at_end": rare("", times=2),
    "reduce_completing_frag": rare("", times=2),
    "CompleteWait": rare("5", "32", times=2),
}
WEIGHTS: Menu = {
    "PriorityWeightAge": ("5000",),
    "PriorityMaxAge": ("30", "1:00:00", "0-2"),
    "PriorityWeightJobSize": ("3000", "1000"),
    "PriorityWeightPartition": ("1000",),
    "PriorityWeightQOS": ("2000",),
    "PriorityWeightAssoc": ("500",),
    "PriorityWeightTRES": (
        *(None, "CPU=1000,Mem=1000", "CPU=-800,Mem=3000,Node=500", "Billing=2000"),
    ),
    "PriorityCalcPeriod": ("1", "2"),
    "PriorityDecayHalfLife": ("30", "2:00:00", "1-0"),
    "PriorityFlags": (
        *("SMALL_RELATIVE_TO_TIME,ACCRUE_ALWAYS", "NO_FAIR_TREE,CALCULATE_RUNNING"),
        *("DEPTH_OBLIVIOUS,NO_NORMAL_PART,NO_NORMAL_QOS", "NO_NORMAL_ASSOC,MAX_TRES"),
        *("NO_NORMAL_TRES,INCR_ONLY", "CALCULATE_RUNNING,ACCRUE_ALWAYS,NO_FAIR_TREE", None),
    ),
    "PriorityFavorSmall": ("YES", None, None),
}
ARRAYS: Menu = {"--array": rare("0-3", "1-4%2", times=6)}

RARER: dict[str, Site] = {
    "deps": Site(
        CORES | BASIC | {"kill_invalid_depend": rare("", times=2)},
        PLAIN,
        QUEUES,
        JOBS
        | {
            # {j}: a job before.
            "--dependency": (
                *(None, "afterok:{j}", "afterany:{j}:{j}", "afternotok:{j}", "after:{j}+2"),
                *("afterok:{j}?afternotok:{j}", "afterany:{j},singleton", "singleton"),
                *("aftercorr:{j}", "after:{j}", None, None),
            ),
            "-J": ("x", "y", "z", None),
            "--array": rare("0-3", "1-4%2", times=4),
        },
    ),
    "qosflags": Site(
        CORES | SHARES | ENFORCED,
        PLAIN,
        tuple(menu | {"QOS": (None, "part", "high")} for menu in QUEUES),
        JOBS | QOS_JOBS,
        (1, 2),
        LIMITS
        | {
            "Flags": (
                *(None, "DenyOnLimit", "OverPartQOS", "PartitionMaxNodes,PartitionMinNodes"),
                *("PartitionTimeLimit", "NoReserve", "NoReserve", "NoDecay", "UsageFactorSafe"),
            ),
            "UsageFactor": rare("0.5", "2", times=2),
        },
        accounts=True,
    ),
    "submits": Site(
        CORES
        | SHARES
        | ENFORCED
        | {"MaxJobCount": rare("25", times=3), "MaxArraySize": rare("5", times=3)},
        PLAIN,
        QUEUES,
        JOBS | QOS_JOBS | {"--array": rare("0-3", "1-4%2", "0-8:2", times=3)},
        limits=SUBMITTED,
        accounts=True,
    ),
    "bflimits": Site(
        CORES | SHARES | BACKFILL,
        PLAIN,
        QUEUES,
        JOBS | QOS_JOBS | {"-p": (None, "p0,p1", "p1,p0", "p1")} | ARRAYS,
        (1, 2),
        LIMITS,
        accounts=True,
    ),
    "passes": Site(CORES | BASIC | PASSES, FEATURES, QUEUES, JOBS | ARRAYS, (1, 2, 3)),
    "weights": Site(
        MEMORY | SHARES | WEIGHTS,
        PLAIN,
        tuple(
            menu
            | {
                "PriorityJobFactor": ("1", "5", "20"),
                "TRESBillingWeights": (None, "CPU=1.0,Mem=0.5G", "CPU=0.5,Node=3"),
            }
            for menu in QUEUES
        ),
        JOBS
        | QOS_JOBS
        | {"--mem": (None, "2000", "6000"), "--nice": (None, "50", "-200", "1000")}
        | ARRAYS,
        (1, 2),
        accounts=True,
    ),
    "gpulimits": Site(
        MEMORY
        | SHARES
        | {
            "SelectType": ("select/cons_tres",),
            "GresTypes": ("gpu",),
            "AccountingStorageTRES": ("gres/gpu",),
        }
        | ENFORCED
        | {"PriorityWeightTRES": rare("GRES/gpu=2000", "CPU=500,GRES/gpu=1000", times=2)},
        PLAIN | {"Gres": ("gpu:2", "gpu:4")},
        tuple(
            menu | {"TRESBillingWeights": (None, "CPU=1.0,GRES/gpu=4", "GRES/gpu=1")}
            for menu in QUEUES
        ),
        JOBS
        | QOS_JOBS
        | {
            "": (
                *(None, "--gres=gpu:1", "--gpus=1", "--gpus=3", "--gpus-per-node=2"),
                *("--gres=gpu:2", "--gpus-per-task=1"),
            ),
            "--mem": (None, "2000"),
        },
        (1, 2),
        {
            "MaxTRESPerUser": rare("gres/gpu=3", "gres/gpu=2,cpu=12", times=2),
            "GrpTRES": rare("gres/gpu=6", "gres/gpu=4", times=2),
            "MaxTRESPerJob": rare("gres/gpu=2", times=4),
            "GrpTRESRunMins": rare("gres/gpu=200", times=4),
            "GrpJobs": rare("8", times=6),
            "MaxTRESPerNode": rare("gres/gpu=2", times=6),
            "MinTRES": rare("gres/gpu=1", times=8),
            "MaxTRESMins": rare("gres/gpu=60", times=6),
        },
        accounts=True,
    ),
    "liclimits": Site(
        CORES
        | SHARES
        | {"Licenses": ("x:6,y:3", "x:5"), "AccountingStorageTRES": ("license/x",)}
        | ENFORCED
        | {"bf_licenses": (None, "")},
        PLAIN,
        QUEUES,
        JOBS | QOS_JOBS | {"-L": (None, "x:1", "x:2", "x:1", "x:3")},
        (1, 2),
        {
            "MaxTRESPerUser": rare("license/x=2", "license/x=3,cpu=20", times=2),
            "GrpTRES": rare("license/x=4", "license/x=3", times=2),
            "MaxTRESPerJob": rare("license/x=2", times=4),
            "GrpJobs": rare("8", times=6),
        },
        accounts=True,
    ),
    "asks": Site(
        CORES | BASIC,
        FEATURES,
        QUEUES,
        JOBS
        | {
            "-c": (None, None, "2", "3", "5"),
            "--ntasks-per-node": rare("1", "2", "3", times=3),
            "--mincpus": rare("3", "6", times=3),
            "--time-min": rare("1", "5", "20", times=2),
            "--contiguous": rare("", times=5),
            "-x": rare("n1", "n[2-3]", times=3),
            "-w": rare("n2", "n[1,3]", "n[2-4]", times=4),
            "--oversubscribe": rare("", times=4),
            "--distribution": rare("block:block", "cyclic:cyclic", "plane=2", times=3),
            "--spread-job": rare("", times=8),
            "--exclusive": rare("", times=6),
            "-C": rare("ib", "intel&ib", "eth|amd", times=3),
            "--priority": rare("900", "0", times=20),
        },
        (1, 2, 3),
    ),
    "suspendlinear": Site(
        LINEAR
        | BASIC
        | {
            "SelectTypeParameters": (None, "CR_Memory"),
            "PreemptType": ("preempt/partition_prio",),
            "PreemptMode": ("SUSPEND,GANG",),
            "SchedulerTimeSlice": rare("60"),
            "DefMemPerNode": ("2000", "4000"),
        },
        PLAIN,
        tuple(menu | {"OverSubscribe": ("FORCE:1", "FORCE:1", "FORCE:2", "NO")} for menu in FORCED),
        JOBS | WHOLE | {"--oversubscribe": rare("", times=3), "--mem": (None, None, "3000")},
        (1, 2),
    ),
}
