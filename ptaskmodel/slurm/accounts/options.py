"""Options of sacctmgr: the field of a QOS or an association that each sets, and its reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from ptaskmodel.slurm.accounts.facts import PARENT, Association, Limits, Qos
from ptaskmodel.slurm.conf import values

Reader = Callable[[str], Any]
# The fields that are lists of names, to which names may be added.
LISTS = ("qos", "preempt")
# Old names of limits to one TRES: the field, the TRES.
_OF_ONE = {
    "grpcpus": ("grp_tres", "cpu"),
    "grpnodes": ("grp_tres", "node"),
    "grpmem": ("grp_tres", "mem"),
    "grpcpumins": ("grp_tres_mins", "cpu"),
    "grpcpurunmins": ("grp_tres_run_mins", "cpu"),
    "maxcpus": ("max_tres_per_job", "cpu"),
    "maxcpusperjob": ("max_tres_per_job", "cpu"),
    "maxnodes": ("max_tres_per_job", "node"),
    "maxnodesperjob": ("max_tres_per_job", "node"),
    "maxcpumins": ("max_tres_mins_per_job", "cpu"),
    "maxcpusperuser": ("max_tres_per_user", "cpu"),
    "maxnodesperuser": ("max_tres_per_user", "node"),
}


def _count(text: str) -> int | None:
    return None if text.upper() in values.NONE else values.whole(text)


def _wall(text: str) -> int | None:
    return None if text.upper() in values.NONE else values.minutes(text)


def _shares(text: str) -> int | None:
    return PARENT if text.lower() == "parent" else values.whole(text, 0, 2**31 - 1)


def _qos_flags(text: str) -> frozenset[str]:
    return values.words(text.replace(" ", ","))


def _modes(text: str) -> frozenset[str] | None:
    found = values.words(text)
    return None if found <= {"CLUSTER"} else found


def _factor(text: str) -> float:
    return values.number(text) if text else 1.0


_LIMITS: dict[str, tuple[str, Reader]] = {
    "grpjobs": ("grp_jobs", _count),
    "grpsubmit": ("grp_submit", _count),
    "grpsubmitjobs": ("grp_submit", _count),
    "grpwall": ("grp_wall_min", _wall),
    "grptres": ("grp_tres", values.tres),
    "grptresmins": ("grp_tres_mins", values.tres),
    "grptresrunmins": ("grp_tres_run_mins", values.tres),
    "grpjobsaccrue": ("grp_jobs_accrue", _count),
    "maxjobs": ("max_jobs", _count),
    "maxjobsperuser": ("max_jobs", _count),
    "maxjobspu": ("max_jobs", _count),
    "maxsubmit": ("max_submit", _count),
    "maxsubmitjobs": ("max_submit", _count),
    "maxsubmitjobsperuser": ("max_submit", _count),
    "maxsubmitpu": ("max_submit", _count),
    "maxjobsaccrue": ("max_jobs_accrue", _count),
    "maxjobsaccrueperuser": ("max_jobs_accrue", _count),
    "maxjobsaccruepu": ("max_jobs_accrue", _count),
    "maxjobsperaccount": ("max_jobs_per_account", _count),
    "maxjobspa": ("max_jobs_per_account", _count),
    "maxsubmitjobsperaccount": ("max_submit_per_account", _count),
    "maxsubmitpa": ("max_submit_per_account", _count),
    "maxwall": ("max_wall_min", _wall),
    "maxwalldurationperjob": ("max_wall_min", _wall),
    "maxtres": ("max_tres_per_job", values.tres),
    "maxtresperjob": ("max_tres_per_job", values.tres),
    "maxtrespernode": ("max_tres_per_node", values.tres),
    "maxtresperuser": ("max_tres_per_user", values.tres),
    "maxtrespu": ("max_tres_per_user", values.tres),
    "maxtresperaccount": ("max_tres_per_account", values.tres),
    "maxtrespa": ("max_tres_per_account", values.tres),
    "maxtresmins": ("max_tres_mins_per_job", values.tres),
    "maxtresminsperjob": ("max_tres_mins_per_job", values.tres),
    "mintres": ("min_tres_per_job", values.tres),
    "mintresperjob": ("min_tres_per_job", values.tres),
    "minpriothreshold": ("min_prio_threshold", _count),
    "minpriothresh": ("min_prio_threshold", _count),
}
_QOS: dict[str, tuple[str, Reader]] = {
    "priority": ("priority", lambda text: values.whole(text) if text else 0),
    "preempt": ("preempt", lambda text: frozenset(values.names(text))),
    "preemptmode": ("preempt_mode", _modes),
    "gracetime": ("grace_time_s", lambda text: _of_grace(text)),
    "usagefactor": ("usage_factor", _factor),
    "flags": ("flags", _qos_flags),
}
_ASSOCIATION: dict[str, tuple[str, Reader]] = {
    "fairshare": ("shares", _shares),
    "share": ("shares", _shares),
    "shares": ("shares", _shares),
    "rawshares": ("shares", _shares),
    "priority": ("priority", lambda text: values.whole(text) if text else 0),
    "qos": ("qos", values.names),
    "qoslevel": ("qos", values.names),
    "defaultqos": ("default_qos", lambda text: text or None),
    "defqos": ("default_qos", lambda text: text or None),
    "parent": ("parent", str),
    "parentname": ("parent", str),
    "parname": ("parent", str),
    "partition": ("partition", lambda text: text or None),
    "rawusage": ("usage_s", lambda text: values.number(text) if text else 0.0),
}


def _of_grace(text: str) -> int:
    """Seconds, or hours:minutes:seconds."""
    return (values.seconds(text) or 0) if ":" in text else values.whole(text or "0")


def key_of(name: str) -> str:
    """An option's name without what does not matter: case, blanks, what says which job."""
    return name.lower().replace(" ", "").replace("_", "")


def with_option(of: Qos | Association, name: str, text: str) -> Any | None:
    """A QOS or association like `of` with the option `name` set to `text`; None: it has none.

    Raises ValueError with the remedy.
    """
    key, text = key_of(name), text.strip()
    own = _QOS if isinstance(of, Qos) else _ASSOCIATION
    if key in own:
        field, read = own[key]
        value = read(text)
        if field in LISTS:
            value = type(value)(_changed(getattr(of, field), values.names(text)))
        return replace(of, **{field: value})
    if key in _OF_ONE:
        field, resource = _OF_ONE[key]
        text = f"{resource}={text}" if text else ""
        read = values.tres
    elif key in _LIMITS:
        field, read = _LIMITS[key]
    else:
        return None
    value = read(text)
    if isinstance(value, Mapping):
        joined = {**getattr(of.limits, field), **value}
        value = MappingProxyType({name: most for name, most in joined.items() if most is not None})
    return replace(of, limits=replace(of.limits, **{field: value}))


def _changed(old: Iterable[str], new: tuple[str, ...]) -> tuple[str, ...]:
    """A list of names after ``a,b``, or after ``+a,-b``, which change it."""
    signs = [name[0] in "+-" for name in new]
    if not any(signs):
        return new
    if not all(signs) or any(len(name) == 1 for name in new):
        raise ValueError("give a list such as a,b, or changes such as +a,-b")
    found = dict.fromkeys(sorted(old) if isinstance(old, frozenset) else old)
    for name in new:
        if name[0] == "+":
            found[name[1:]] = None
        else:
            found.pop(name[1:], None)
    return tuple(found)


def limits_given(limits: Limits) -> list[str]:
    """The names of the limits that are set."""
    nothing = Limits()
    return [
        field.name
        for field in fields(limits)
        if getattr(limits, field.name) != getattr(nothing, field.name)
    ]
