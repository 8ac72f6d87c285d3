"""What a slurm.conf means to one version of Slurm or another: defaults, new keys, what is gone.

Jobs are scheduled as by 22.05, the version that runs were compared with. Of later versions this
module knows what a slurm.conf tells. It imports nothing heavy: ``--help`` names the versions.

Source: the release notes and read_config.c of Slurm 22.05.8, 23.02.7, 23.11.10, 24.05.5, 24.11.5
and 25.05.1.
"""

from __future__ import annotations

from typing import NamedTuple

VERSIONS = ("22.05", "23.02", "23.11", "24.05", "24.11", "25.05")
REFERENCE = VERSIONS[0]

# Keys with another default from a version on.
NEW_DEFAULTS = "23.11"
_DEFAULTS = {
    NEW_DEFAULTS: {"SelectType": "select/cons_tres", "PriorityType": "priority/multifactor"},
}
# The version in which a key or an option of SchedulerParameters appeared, in lower case.
SINCE = {
    **dict.fromkeys(("preemptparameters", "maxbatchrequeue", "suspendexcstates"), "23.02"),
    **dict.fromkeys(("maxcpuspersocket", "powerdownonidle", "defer_batch"), "23.02"),
    **dict.fromkeys(("time_min_as_soft_limit",), "23.11"),
    **dict.fromkeys(("hashplugin", "tlstype", "tlsparameters", "exclusivetopo"), "24.05"),
    **dict.fromkeys(("restrictedcorespergpu",), "24.05"),
    **dict.fromkeys(("certmgrtype", "certmgrparameters", "dataparserparameters"), "24.11"),
    **dict.fromkeys(("bf_allow_magnetic_slot", "bf_topopt_enable"), "24.11"),
    **dict.fromkeys(("bf_topopt_iterations",), "24.11"),
    **dict.fromkeys(("certgentype", "certgenparameters", "epilogtimeout"), "25.05"),
    **dict.fromkeys(("prologtimeout", "topology", "bf_yield_rpc_cnt"), "25.05"),
}
# From this version on, select/linear knows no trees of switches.
NO_LINEAR_TREE = "24.05"
# Keys that change which job starts where, in ways that no run here could be compared with.
_REFUSED = ("maxcpuspersocket", "exclusivetopo", "restrictedcorespergpu", "topology")


class Gone(NamedTuple):
    """A value, without its kind/, that a version no longer takes. remedy: what to write instead."""

    key: str
    value: str
    since: str
    remedy: str


_GONE = (Gone("selecttype", "cons_res", "23.11", "write SelectType=select/cons_tres"),)


def since(key: str) -> str:
    """The version in which a key or an option (the last word of `key`) appeared.

    That is 22.05 for all that is older, or that no version has.
    """
    return SINCE.get(key.lower().split()[-1], REFERENCE)


def reaches(version: str, other: str) -> bool:
    """Whether `version` is `other`, or a later one."""
    return VERSIONS.index(version) >= VERSIONS.index(other)


def defaults_of(version: str) -> dict[str, str]:
    """Keys for which `version` has another default than 22.05 has, with it, as in a slurm.conf."""
    found: dict[str, str] = {}
    for since, defaults in _DEFAULTS.items():
        if reaches(version, since):
            found |= defaults
    return found


def refusal(key: str, value: str, version: str) -> str | None:
    """Why a key with its value, in lower case, is refused for `version`, with a remedy; or None."""
    for gone in _GONE:
        if (key, value.rpartition("/")[2]) == (gone.key, gone.value) and reaches(
            version, gone.since
        ):
            return f"Slurm {gone.since} dropped it; {gone.remedy}"
    if key in _REFUSED and reaches(version, SINCE[key]):
        return (
            f"it came with Slurm {SINCE[key]} and is not simulated, since only {REFERENCE} could "
            "be compared; take it out"
        )
    return None
