"""Why a job waits or is refused, in Slurm's words."""

from __future__ import annotations

ACCOUNT_LIMITS = ("QOS", "Assoc")

GROUP, GROUP_MINUTES = "Grp{}", "Grp{}Minutes"
GROUP_RUN_MINUTES = "Grp{}RunMinutes"
PER_JOB, MINUTES_PER_JOB = "Max{}PerJob", "Max{}MinutesPerJob"
PER_NODE, PER_USER, PER_ACCOUNT = "Max{}PerNode", "Max{}PerUser", "Max{}PerAccount"
LEAST = "Min{}"

_LABELS = {"cpu": "Cpu", "node": "Node", "billing": "Billing", "energy": "Energy"}
_KINDS = {"gres": "GRES", "license": "License", "bb": "BB"}
# The oldest reasons, by (kind, resource), have names of their own.
_OLD = {
    (GROUP, "cpu"): "GrpCpuLimit",
    (GROUP_MINUTES, "cpu"): "GrpCPUMinutesLimit",
    (GROUP_RUN_MINUTES, "cpu"): "GrpCPURunMinutesLimit",
    (GROUP, "mem"): "GrpMemLimit",
    (GROUP, "node"): "GrpNodeLimit",
    (PER_JOB, "cpu"): "MaxCpuPerJobLimit",
    (MINUTES_PER_JOB, "cpu"): "MaxCpuMinutesPerJobLimit",
    (PER_JOB, "node"): "MaxNodePerJobLimit",
    (PER_USER, "cpu"): "MaxCpuPerUserLimit",
    (PER_USER, "node"): "MaxNodePerUserLimit",
    (LEAST, "cpu"): "MinCpuNotSatisfied",
}


def of_resource(whose: str, kind: str, resource: str) -> str:
    """The reason of a limit to a TRES. whose: QOS or Assoc. kind: GROUP, PER_JOB, ..."""
    old = _OLD.get((kind, resource))
    if old is not None:
        return whose + old
    if resource == "mem":
        label = "Memory" if whose == "QOS" else "Mem"
    else:
        label = _LABELS.get(resource) or _KINDS.get(resource.partition("/")[0], "Unknown")
    return whose + kind.format(label)


def is_account_limit(reason: str) -> bool:
    """Whether a reason names a limit of a QOS or an association."""
    return reason.startswith(ACCOUNT_LIMITS)
