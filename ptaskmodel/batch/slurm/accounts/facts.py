"""Who may use how much: QOSs and the tree of associations, as facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

ROOT = "root"
NORMAL = "normal"
# Fairshare=parent: the users share what their account has, as if they were one.
PARENT = None


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


Tres = Mapping[str, int]  # amounts by name: cpu, mem (MiB), node, billing, gres/gpu, license/x


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a QOS or an association; None, and TRES that are not there: no limit.

    max_jobs, max_submit: of a user in an association, or under a QOS of each user; _per_account:
    of a QOS, of each account. max_wall_min: of a job.
    """

    grp_jobs: int | None = None
    grp_submit: int | None = None
    grp_wall_min: int | None = None
    grp_tres: Tres = field(default_factory=_none)
    grp_tres_mins: Tres = field(default_factory=_none)
    grp_tres_run_mins: Tres = field(default_factory=_none)
    grp_jobs_accrue: int | None = None
    max_jobs: int | None = None
    max_submit: int | None = None
    max_jobs_accrue: int | None = None
    max_jobs_per_account: int | None = None
    max_submit_per_account: int | None = None
    max_wall_min: int | None = None
    max_tres_per_job: Tres = field(default_factory=_none)
    max_tres_per_node: Tres = field(default_factory=_none)
    max_tres_per_user: Tres = field(default_factory=_none)
    max_tres_per_account: Tres = field(default_factory=_none)
    max_tres_mins_per_job: Tres = field(default_factory=_none)
    min_tres_per_job: Tres = field(default_factory=_none)
    min_prio_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Qos:
    """A QOS. preempt: the QOSs whose jobs its jobs may preempt. flags: in upper case.

    where: file and line of what was said of it last.
    """

    name: str
    priority: int = 0
    preempt: frozenset[str] = frozenset()
    preempt_mode: frozenset[str] | None = None
    grace_time_s: int = 0
    usage_factor: float = 1.0
    flags: frozenset[str] = frozenset()
    limits: Limits = Limits()
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Association:
    """An account (user None) or a user in one. parent: its account's parent, or its account.

    shares: PARENT (None) for Fairshare=parent. qos: those allowed; none: those of its parent.
    usage_s: its own raw usage (billing seconds) at date 0, without that of its children.
    where: file and line of what was said of it last.
    """

    account: str
    user: str | None = None
    parent: str | None = ROOT
    partition: str | None = None
    shares: int | None = 1
    priority: int = 0
    qos: tuple[str, ...] = ()
    default_qos: str | None = None
    default: bool = False
    usage_s: float = 0.0
    limits: Limits = Limits()
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Accounts:
    """QOSs by name, and the associations in the order in which they were created, root first.

    The account root and its user root, with 1 share, are always there.
    """

    qos: Mapping[str, Qos]
    associations: tuple[Association, ...]
    origin: str = ""


def plain_accounts() -> Accounts:
    """What a new database holds: root, and the QOS normal."""
    root = (
        Association(ROOT, parent=None, qos=(NORMAL,)),
        Association(ROOT, user=ROOT, default=True),
    )
    return Accounts(MappingProxyType({NORMAL: Qos(NORMAL)}), root)
