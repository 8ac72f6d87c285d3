"""The keys of slurm.conf that affect schedules: the field of each and its reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from ptaskmodel.slurm.conf import facts, values
from ptaskmodel.slurm.conf.facts import CANCEL, GANG, OFF, REQUEUE, SUSPEND, WITHIN
from ptaskmodel.slurm.conf.versions import NEW_DEFAULTS, REFERENCE

Reader = Callable[[str], Any]
Table = dict[str, tuple[str, Reader]]
_ENFORCED = ("ASSOCIATIONS", "LIMITS", "NOJOBS", "NOSTEPS", "QOS", "SAFE", "WCKEYS")
_PLUGIN = {
    "schedulertype": (facts.BACKFILL, facts.BUILTIN),
    "selecttype": (facts.LINEAR, facts.CONS_TRES, facts.CONS_RES),
    "prioritytype": (facts.BASIC, facts.MULTIFACTOR),
    "preempttype": ("preempt/none", "preempt/partition_prio", "preempt/qos"),
}
# Units of which jobs on shared nodes have some.
CORE_UNITS = {*facts.PARTITION_UNITS, "CR_CPU", "CR_CPU_MEMORY"}
# The words that mean something here, of keys that are lists of words.
WORDS = {
    "selecttypeparameters": {
        *CORE_UNITS,
        *("CR_MEMORY", "CR_ONE_TASK_PER_CORE", "CR_CORE_DEFAULT_DIST_BLOCK"),
        *("CR_PACK_NODES", "CR_LLN", "NONE"),
    },
    "priorityflags": {
        *("ACCRUE_ALWAYS", "CALCULATE_RUNNING", "DEPTH_OBLIVIOUS", "NO_FAIR_TREE", "FAIR_TREE"),
        *("INCR_ONLY", "MAX_TRES", "NO_NORMAL_ALL", "NO_NORMAL_ASSOC", "NO_NORMAL_PART"),
        *("NO_NORMAL_QOS", "NO_NORMAL_TRES", "SMALL_RELATIVE_TO_TIME", "NONE"),
    },
}
SWITCHES = (
    "defer",
    "assoc_limit_stop",
    "reduce_completing_frag",
    "preempt_youngest_first",
    "preempt_strict_order",
    "bf_one_resv_per_job",
    "bf_continue",
    "bf_busy_nodes",
    "bf_running_job_reserve",
    "bf_licenses",
    "pack_serial_at_end",
    "kill_invalid_depend",
)
# Keys of Slurm's that decide nothing here and look like others that do.
LOOKALIKES = {
    *("accountingstoragehost", "accountingstorageloc", "accountingstoragepass"),
    *("accountingstorageport", "accountingstoragetres", "accountingstorageuser"),
    *("slurmctldtimeout", "max_rpc_count"),
}
ALIKE = 0.85
# Keys as Slurm's manual spells them; options are written in lower case there too.
_KEYS = """
AccountingStorageEnforce AccountingStorageType ClusterName CompleteWait DefCpuPerGPU DefMemPerCPU
DefMemPerGPU DefMemPerNode EnforcePartLimits Epilog EpilogMsgTime FirstJobId InactiveLimit
JobRequeue KillOnBadExit KillWait Licenses MaxArraySize MaxJobCount MaxMemPerCPU MaxMemPerNode
MessageTimeout MinJobAge OverTimeLimit PreemptExemptTime PreemptMode PreemptType PriorityType
ResvOverRun ReturnToService SchedulerTimeSlice SchedulerType SelectType SelectTypeParameters
SlurmdTimeout TaskPlugin TopologyParam TopologyPlugin FairShareDampeningFactor
PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge
PrioritySiteFactorParameters PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc
PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
PriorityWeightTRES SchedulerParameters NodeName PartitionName NodeSet DownNodes Boards
CoreSpecCount CoresPerSocket CPUs Feature Features Gres MemSpecLimit Procs RealMemory Sockets
SocketsPerBoard State ThreadsPerCore Weight AllowAccounts AllowGroups AllowQos Default
DefaultTime DenyAccounts DenyQos ExclusiveUser GraceTime LLN MaxCPUsPerNode MaxNodes MaxTime
MinNodes Nodes OverSubscribe Priority PriorityJobFactor PriorityTier QOS Shared
TRESBillingWeights
"""


_DIGITS = re.compile(r"\d+", re.ASCII)


def _at_least(least: int, most: int = values.MOST) -> Reader:
    return lambda text: values.whole(text, least, most)


def preempt_modes(text: str) -> frozenset[str]:
    """PreemptMode: at most one of OFF, CANCEL, REQUEUE and SUSPEND, with GANG and WITHIN."""
    found = values.words(text)
    unknown = found - {OFF, CANCEL, REQUEUE, SUSPEND, GANG, WITHIN}
    if unknown or len(found & {OFF, CANCEL, REQUEUE, SUSPEND}) > 1:
        raise ValueError("give one of OFF, CANCEL, REQUEUE, SUSPEND, with ,GANG or ,WITHIN")
    return found


def _cluster_modes(text: str) -> frozenset[str]:
    found = preempt_modes(text)
    if SUSPEND in found and GANG not in found:
        raise ValueError("give SUSPEND,GANG: suspended jobs are resumed by the gang scheduler")
    return found


def over_time(text: str) -> float:
    """Minutes beyond a limit; inf for UNLIMITED."""
    value = values.whole_or_none(text)
    return float("inf") if value is None else value


def _seconds_of_minutes(text: str) -> int:
    return values.finite_minutes(text) * 60


def _part_limits(text: str) -> str:
    return {"YES": "ALL", "1": "ALL", "0": "NO"}.get(text.upper(), text.upper())


def memory(text: str) -> int | None:
    """MiB; 0 stands for no such limit or default."""
    return None if text == "0" else values.mebibytes(text)


def _enforce(text: str) -> frozenset[str]:
    """AccountingStorageEnforce, with what its words imply."""
    found = set(values.words(text))
    unknown = found - {*_ENFORCED, "ALL", "NONE", "0"}
    if unknown:
        raise ValueError(f"give some of {', '.join(_ENFORCED).lower()}")
    if "ALL" in found:
        found |= {"ASSOCIATIONS", "LIMITS", "QOS", "SAFE"}
    if "SAFE" in found:
        found.add("LIMITS")
    if found & {"LIMITS", "QOS", "WCKEYS"}:
        found.add("ASSOCIATIONS")
    return frozenset(found & set(_ENFORCED))


def _flags(text: str) -> frozenset[str]:
    """PriorityFlags, with what NO_NORMAL_ALL stands for."""
    found = values.words(text)
    every = {f"NO_NORMAL_{what}" for what in ("ASSOC", "PART", "QOS", "TRES")}
    return found | every if "NO_NORMAL_ALL" in found else found


def _plugin(key: str) -> Reader:
    read = values.one_of(*_PLUGIN[key])
    kind = _PLUGIN[key][0].split("/")[0]
    return lambda text: read(text if "/" in text else f"{kind}/{text}")


def _topology(text: str) -> str:
    plugin = text if "/" in text else f"topology/{text}"
    known = {"topology/flat": facts.FLAT, "topology/default": facts.FLAT}
    found = known.get(plugin.lower(), plugin.lower())
    if found == "topology/block":
        raise ValueError(
            f"blocks came with Slurm 23.11 and are not simulated, since only {REFERENCE} could be "
            f"compared; give {facts.FLAT} or {facts.TREE}"
        )
    if found not in (facts.FLAT, facts.TREE):
        raise ValueError(f"give {facts.FLAT} or {facts.TREE}: no other is simulated")
    return found


SCALARS: Table = {
    "clustername": ("cluster_name", str),
    "schedulertype": ("scheduler_type", _plugin("schedulertype")),
    "selecttype": ("select_type", _plugin("selecttype")),
    "selecttypeparameters": ("select_parameters", values.words),
    "topologyplugin": ("topology_plugin", _topology),
    "topologyparam": ("topology_parameters", values.words),
    "prioritytype": ("priority_type", _plugin("prioritytype")),
    "preempttype": ("preempt_type", _plugin("preempttype")),
    "preemptmode": ("preempt_mode", _cluster_modes),
    "preemptexempttime": ("preempt_exempt_time_min", values.finite_minutes),
    "schedulertimeslice": ("scheduler_time_slice_s", _at_least(5, 65533)),
    "overtimelimit": ("over_time_limit_min", over_time),
    "killwait": ("kill_wait_s", _at_least(0, 65533)),
    "killonbadexit": ("kill_on_bad_exit", values.yes_no),
    "inactivelimit": ("inactive_limit_s", _at_least(0, 65533)),
    "completewait": ("complete_wait_s", _at_least(0, 65535)),
    "minjobage": ("min_job_age_s", _at_least(0)),
    "maxjobcount": ("max_job_count", _at_least(1)),
    "maxarraysize": ("max_array_size", _at_least(0, 4_000_001)),
    "firstjobid": ("first_job_id", _at_least(1, 2**26)),
    "enforcepartlimits": (
        "enforce_part_limits",
        lambda text: values.one_of("NO", "ANY", "ALL")(_part_limits(text)),
    ),
    "jobrequeue": ("job_requeue", values.yes_no),
    "epilog": ("epilog", lambda text: text.lower() not in ("", "(null)", "none")),
    "epilogmsgtime": ("epilog_msg_time_us", _at_least(0)),
    "messagetimeout": ("message_timeout_s", _at_least(1)),
    "slurmdtimeout": ("slurmd_timeout_s", _at_least(0, 65533)),
    "returntoservice": ("return_to_service", _at_least(0, 2)),
    "licenses": ("licenses", values.licenses),
    "resvoverrun": ("resv_over_run_min", over_time),
    "defmempercpu": ("def_mem_per_cpu_MiB", memory),
    "defmempernode": ("def_mem_per_node_MiB", memory),
    "defcpupergpu": ("def_cpus_per_gpu", values.whole),
    "defmempergpu": ("def_mem_per_gpu_MiB", memory),
    "maxmempercpu": ("max_mem_per_cpu_MiB", memory),
    "maxmempernode": ("max_mem_per_node_MiB", memory),
    "taskplugin": ("task_plugin", str.lower),
    "accountingstoragetype": (
        "database",
        lambda text: text.lower().removeprefix("accounting_storage/") == "slurmdbd",
    ),
    "accountingstorageenforce": ("enforce", _enforce),
}

PRIORITY: Table = {
    "priorityweightage": ("weight_age", _at_least(0, 2**32 - 1)),
    "priorityweightassoc": ("weight_assoc", _at_least(0, 2**32 - 1)),
    "priorityweightfairshare": ("weight_fairshare", _at_least(0, 2**32 - 1)),
    "priorityweightjobsize": ("weight_job_size", _at_least(0, 2**32 - 1)),
    "priorityweightpartition": ("weight_partition", _at_least(0, 2**32 - 1)),
    "priorityweightqos": ("weight_qos", _at_least(0, 2**32 - 1)),
    "priorityweighttres": ("weight_tres", values.weights),
    "prioritymaxage": ("max_age_s", _seconds_of_minutes),
    "prioritycalcperiod": ("calc_period_s", _seconds_of_minutes),
    "prioritydecayhalflife": ("decay_half_life_s", _seconds_of_minutes),
    "priorityusageresetperiod": (
        "usage_reset_period",
        values.one_of("NONE", "NOW", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY"),
    ),
    "priorityfavorsmall": ("favor_small", values.yes_no),
    "priorityflags": ("flags", _flags),
    "fairsharedampeningfactor": ("fair_share_dampening_factor", _at_least(1, 65535)),
    "prioritysitefactorparameters": ("site_parameters", str),
}


class Option(NamedTuple):
    """A number in SchedulerParameters.

    off: whether -1 switches it off. begins: whether what follows the digits counts for nothing.
    """

    field: str
    least: int
    most: int = values.MOST
    off: bool = False
    begins: bool = False

    def read(self, text: str) -> int:
        digits = _DIGITS.match(text) if self.begins else None
        return values.whole(text if digits is None else digits[0], self.least, self.most)


OPTIONS: dict[str, Option] = {
    "default_queue_depth": Option("default_queue_depth", 0),
    "partition_job_depth": Option("partition_job_depth", 0),
    "sched_interval": Option("sched_interval_s", 1, off=True),
    "sched_min_interval": Option("sched_min_interval_us", 0),
    "batch_sched_delay": Option("batch_sched_delay_s", 0),
    "max_sched_time": Option("max_sched_time_s", 1),
    "sched_max_job_start": Option("sched_max_job_start", 0),
    "build_queue_timeout": Option("build_queue_timeout_us", 100),
    "max_rpc_cnt": Option("max_rpc_cnt", 0),
    "preempt_reorder_count": Option("preempt_reorder_count", 0),
    "bf_interval": Option("bf_interval_s", 1, 10800, off=True),
    "bf_max_time": Option("bf_max_time_s", 1, 3600),
    "bf_window": Option("bf_window_min", 1, 43200),
    "bf_resolution": Option("bf_resolution_s", 1, 3600),
    "bf_max_job_test": Option("bf_max_job_test", 1, 1_000_000),
    "bf_max_job_user": Option("bf_max_job_user", 0),
    "bf_max_job_part": Option("bf_max_job_part", 0),
    "bf_max_job_user_part": Option("bf_max_job_user_part", 0),
    "bf_max_job_assoc": Option("bf_max_job_assoc", 0),
    "bf_max_job_start": Option("bf_max_job_start", 0, 10000),
    "bf_max_job_array_resv": Option("bf_max_job_array_resv", 0, 1000),
    "bf_node_space_size": Option("bf_node_space_size", 2, 2_000_000),
    "bf_min_age_reserve": Option("bf_min_age_reserve_s", 0, 2592000),
    "bf_min_prio_reserve": Option("bf_min_prio_reserve", 0, 2**32 - 1),
    "bf_job_part_count_reserve": Option("bf_job_part_count_reserve", 0, 100000),
    "bf_yield_interval": Option("bf_yield_interval_us", 1, 10_000_000),
    "bf_yield_sleep": Option("bf_yield_sleep_us", 1, 10_000_000),
    "bf_window_linear": Option("bf_window_linear_s", 0),
    "max_switch_wait": Option("max_switch_wait_s", 0, begins=True),
    "max_array_tasks": Option("max_array_tasks", 0),
}


_SPELLED = {word.lower(): word for word in _KEYS.split()}


def spelled(key: str) -> str:
    """A key in the manual's spelling."""
    return _SPELLED.get(key, key)


def meant(key: str, known: Iterable[str]) -> str:
    """The known key that an unknown one looks like a misspelling of, as Slurm spells it; or ""."""
    word = key.lower()
    near = [] if word in LOOKALIKES else get_close_matches(word, known, 1, ALIKE)
    return spelled(near[0]) if near else ""


def units_refused(scalars: Mapping[str, Any]) -> str | None:
    """Return why slurmctld does not start with such units of SelectTypeParameters, if so.

    scalars: fields of a configuration, by name.
    """
    words = scalars.get("select_parameters", frozenset()) - {"NONE"}
    cores = sorted(words & CORE_UNITS)
    linear = scalars.get("select_type", facts.LINEAR) == facts.LINEAR
    if not words or linear == (not cores):
        return None
    if linear and "select_type" not in scalars:
        return (
            f"Slurm before {NEW_DEFAULTS} does not start with {cores[0]} and its default, "
            f"select/linear; add SelectType=select/cons_tres, or give --slurm-version "
            f"{NEW_DEFAULTS}, whose default that is"
        )
    if linear:
        return f"Slurm does not start with {cores[0]} and select/linear; take one of both out"
    return "Slurm does not start without CR_Core, CR_CPU or CR_Socket on shared nodes; add one"
