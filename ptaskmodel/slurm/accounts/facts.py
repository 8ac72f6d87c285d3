"""QOSs, the tree of associations, and their limits, as plain records.

Trackable resources (TRES) have Slurm's names: cpu, mem (MiB), node, billing, gres/gpu, license/x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from ptaskmodel.remarks import Remark
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.jobs.gpus import amounts
from ptaskmodel.slurm.jobs.request import JobRequest

ROOT = "root"
NORMAL = "normal"
# Accounts made of the jobs, and the account there of those that name none.
AUTO, USERS = "auto", "users"
# Fairshare=parent: the users share what their account has, as if they were one.
PARENT = None
Tres = Mapping[str, int]  # amounts by name: cpu, mem (MiB), node, billing, gres/gpu, license/x
Amounts = Mapping[str, float]
OF_NODES = ("cpu", "mem", "node")


def _none() -> Mapping[str, int]:
    return MappingProxyType({})


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

    The account root and its user root, with 1 share, are always there. remarks: what was not used
    of the file that they were read from.
    """

    qos: Mapping[str, Qos]
    associations: tuple[Association, ...]
    origin: str = ""
    remarks: tuple[Remark, ...] = ()


def plain_accounts() -> Accounts:
    """What a new database holds: root, and the QOS normal."""
    root = (
        Association(ROOT, parent=None, qos=(NORMAL,)),
        Association(ROOT, user=ROOT, default=True),
    )
    return Accounts(MappingProxyType({NORMAL: Qos(NORMAL)}), root)


def accounts_of_jobs(requests: Iterable[JobRequest]) -> Accounts:
    """An account for each that jobs name, its users, and their QOSs; shares are equal.

    requests: the jobs. Those without a user are root's. Users without an account are in one of the
    name of USERS, but root in its own.
    """
    plain = plain_accounts()
    qos = dict(plain.qos)
    used: dict[tuple[str, str], dict[str, None]] = {}
    for request in requests:
        user = request.user or ROOT
        account = request.account or (ROOT if user == ROOT else USERS)
        names = used.setdefault((account, user), {NORMAL: None})
        if request.qos is not None:
            names.setdefault(request.qos)
            qos.setdefault(request.qos, Qos(request.qos))
    found = [Association(account) for account in dict.fromkeys(account for account, _ in used)]
    seen = {ROOT}
    for (account, user), names in used.items():
        if (account, user) != (ROOT, ROOT):
            default = user not in seen
            seen.add(user)
            found.append(Association(account, user, account, qos=tuple(names), default=default))
    found = [one for one in found if one.account != ROOT or one.user is not None]
    return Accounts(MappingProxyType(qos), (*plain.associations, *found), AUTO)


def commands_of(accounts: Accounts) -> str:
    """The script of sacctmgr that makes `accounts` as `accounts_of_jobs` gives them."""
    lines = [f"add qos {name}" for name in accounts.qos if name != NORMAL]
    for one in accounts.associations:
        if one.user is None and one.account != ROOT:
            lines.append(f"add account {one.account}")
        elif one.user is not None and (one.user, one.account) != (ROOT, ROOT):
            home = f" defaultaccount={one.account}" if one.default else ""
            lines.append(f"add user {one.user} account={one.account} qos={','.join(one.qos)}{home}")
    return "".join(f"{line}\n" for line in lines)


def requested(
    request: JobRequest,
    partition: Partition,
    conf: Conf,
    nodes: int | None = None,
    cpus: int | None = None,
) -> dict[str, int]:
    """What a job asked for, at least, before it is known which nodes it gets.

    Memory is that of the partition's or the cluster's default where the job asked for none.
    nodes, cpus: how many it is taken to get; None: as few as it asked for.
    """
    nodes = request.least_nodes if nodes is None else nodes
    if cpus is None:
        tasks = request.tasks
        if tasks is None:
            tasks = nodes * (request.tasks_per_node or 1)
        cpus = tasks * request.cpus_per_task
    memory = 0
    if request.memory_per_node_MiB is not None:
        memory = request.memory_per_node_MiB * nodes
    elif request.memory_per_cpu_MiB is not None:
        memory = request.memory_per_cpu_MiB * cpus
    else:
        defaults = (
            (partition.def_mem_per_cpu_MiB, cpus),
            (partition.def_mem_per_node_MiB, nodes),
            (conf.def_mem_per_cpu_MiB, cpus),
            (conf.def_mem_per_node_MiB, nodes),
        )
        memory = next((each * count for each, count in defaults if each is not None), 0)
    found = {"cpu": cpus, "mem": memory, "node": nodes}
    for gres in amounts(request, nodes):
        for name in gres_names(gres.name, gres.type):
            found[name] = found.get(name, 0) + gres.count
    for name, count in request.licenses.items():
        found[f"license/{name}"] = count
    return found


def cpus_requested(request: JobRequest) -> int:
    """The CPUs that a `request` asks for, at least: those of `requested`."""
    tasks = request.tasks
    if tasks is None:
        tasks = request.least_nodes * (request.tasks_per_node or 1)
    return tasks * request.cpus_per_task


class Asking(Protocol):
    """A job of which it is asked what it wants. least_nodes: raised to MinNodes, if that may be."""

    request: JobRequest

    @property
    def least_nodes(self) -> int: ...


def requested_by(job: Asking, partition: Partition, conf: Conf) -> dict[str, int]:
    """What a `job` asked for in a `partition` of `conf`, on as many nodes as MinNodes says.

    More nodes have more memory and resources, but a job has no more CPUs for them.
    """
    tres = requested(job.request, partition, conf)
    if job.least_nodes <= job.request.least_nodes:
        return tres
    return requested(job.request, partition, conf, job.least_nodes, tres["cpu"])


def gres_names(name: str, kind: str | None) -> tuple[str, ...]:
    """The names under which generic resources are counted: gres/gpu, and gres/gpu:type."""
    return (f"gres/{name}",) if kind is None else (f"gres/{name}", f"gres/{name}:{kind}")


def billed(tres: Amounts, partition: Partition, conf: Conf) -> float:
    """What a job is billed for a second in a partition: its CPUs, unless there are weights."""
    if not partition.billing_weights:
        return float(tres.get("cpu", 0))
    largest = "MAX_TRES" in conf.priority.flags
    return billing(tres, partition.billing_weights, largest)


def billing(tres: Amounts, weights: Mapping[str, float], largest: bool) -> float:
    """What a job is billed for a second; ``largest``: of what nodes have, the largest counts."""
    of_nodes = everywhere = 0.0
    for name, weight in weights.items():
        value = tres.get(name, 0) * weight
        if largest and (name in OF_NODES or name.startswith("gres/")):
            of_nodes = max(of_nodes, value)
        else:
            everywhere += value
    return of_nodes + everywhere
