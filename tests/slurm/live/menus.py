"""Menus that several kinds of sites have: of the configuration, of nodes, partitions and jobs."""

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
# Options of jobs that take cores by parts of nodes, and like some nodes more than others.
PARTED: Menu = {
    "-c": rare("2", "4", times=3),
    "--ntasks-per-socket": rare("1", "2", "3", times=2),
    "--sockets-per-node": rare("1", "2", times=8),
    "--cores-per-socket": rare("2", times=12),
    "--threads-per-core": rare("1", times=6),
    "--prefer": rare("ib", "intel", "eth|amd", "ib&amd", "gone", times=3),
    "-C": rare("ib", "intel|amd", times=5),
    "--deadline": rare("600", "4000", times=8),
}
# What jobs ask for of GPUs: counts, by node, task or socket, with CPUs, memory and tasks.
GPUS: Choices = (
    *(None, None, "--gpus=1", "--gpus=3", "--gpus=6", "--gpus-per-node=1", "--gpus-per-node=2"),
    *("--gpus-per-task=1", "--gpus-per-task=2", "--gpus=4 --gpus-per-node=2", "--gres=gpu:1"),
    *("--gpus=2 --cpus-per-gpu=2", "--gpus-per-node=2 --cpus-per-gpu=1", "--cpus-per-gpu=3"),
    *("--gpus-per-task=1 --cpus-per-gpu=2", "--gres=gpu:2 --cpus-per-gpu=2"),
    *("--gpus=2 --mem-per-gpu=2000", "--gpus-per-node=1 --mem-per-gpu=3000"),
    *("--gpus=2 --ntasks-per-gpu=2", "--gpus=3 --ntasks-per-gpu=1"),
    *("--gpus-per-node=2 --ntasks-per-gpu=1", "--gpus=4 --ntasks-per-gpu=1 --mem-per-gpu=500"),
    *("--sockets-per-node=1 --gpus-per-socket=2", "--sockets-per-node=2 --gpus-per-socket=1"),
    *("--gpus=2 --gres-flags=enforce-binding", "--gres=gpu:2 --gres-flags=enforce-binding"),
)
ACCELERATED: Menu = {
    "DefCpuPerGPU": rare("1", "2", times=3),
    "DefMemPerGPU": rare("1000", times=3),
}
