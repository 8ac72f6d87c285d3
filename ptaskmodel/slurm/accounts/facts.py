"""QOSs, the tree of associations, their limits as plain records, and which limits apply to a job.

Trackable resources (TRES) have Slurm's names: cpu, mem (MiB), node, billing, gres/gpu, license/x.

Limits apply in the order of Slurm's tests. A limit of the partition's QOS hides the same limit of
the job's QOS; the flag OverPartQOS reverses this. Both hide the limit of the association,
separately for each TRES. An association without a limit on single jobs inherits it from the account
above.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from ptaskmodel.remarks import Remark
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.gpus import amounts
from ptaskmodel.slurm.jobs.record import of_resource
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


NO_LIMITS = Limits()


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
    limits: Limits = NO_LIMITS
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
    limits: Limits = NO_LIMITS
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
        cpus = request.cpus_on(nodes)
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


# Whose jobs count together: of a QOS all, those of a user, of an account; of an association.
Holder = tuple[str, ...]

QOS = "qos"  # how a holder begins that is one
JOBS, WALL, GROUP_WALL = "jobs", "wall", "group wall"
OVER_PARTITION, DENY, FACTOR_SAFE = "OVERPARTQOS", "DENYONLIMIT", "USAGEFACTORSAFE"
NO_RESERVE = "NORESERVE"
ORDER = {"cpu": 0, "mem": 1, "energy": 2, "node": 3, "billing": 4}


def qos_holder(name: str) -> Holder:
    """All jobs of a QOS."""
    return (QOS, name)


def association_holder(index: int) -> Holder:
    """All jobs of an association and those below it."""
    return ("association", str(index))


class CountTest(NamedTuple):
    """At most so many jobs of a holder.

    Of kind WALL: minutes of the job's limit; GROUP_WALL: minutes that the holder's jobs have run.
    """

    kind: str
    holder: Holder
    most: int
    reason: str


class TresTest(NamedTuple):
    """At most (LEAST: at least) so much of a TRES, by kind of limit; see `reasons`."""

    kind: str
    holder: Holder
    resource: str
    most: int
    reason: str


class Tests(NamedTuple):
    """holders: whose counts a job adds to. submit, before, after: at submission, before and after
    nodes were chosen. strict: whether what can never run is refused. factor: by which the use of
    time counts (UsageFactor); planned: the same for the limit of time. of_nodes: whose groups have
    a limit to nodes, though another may hide it.
    """

    holders: tuple[Holder, ...]
    submit: tuple[CountTest, ...]
    before: tuple[CountTest, ...]
    after: tuple[TresTest, ...]
    strict: bool
    factor: float = 1.0
    planned: float = 1.0
    of_nodes: tuple[Holder, ...] = ()


def tests_of(
    job_qos: Qos | None,
    partition_qos: Qos | None,
    user: str,
    account: str,
    chain: Sequence[tuple[int, Limits]],
) -> Tests:
    """The tests of a job. chain: its association and all above, itself first, with their limits."""
    order = [qos for qos in (partition_qos, job_qos) if qos is not None]
    if job_qos is not None and OVER_PARTITION in job_qos.flags:
        order.reverse()
    made = _Making()
    hidden = Limits()
    for qos in {qos.name: qos for qos in order}.values():
        made.of_qos(qos.name, _without(qos.limits, hidden), user, account)
        hidden = _over(hidden, qos.limits)
    if hidden.max_jobs_per_account is not None:
        hidden = replace(hidden, max_jobs=0)
    if hidden.max_submit_per_account is not None:
        hidden = replace(hidden, max_submit=0)
    inherited = Limits()
    for _, limits in chain:
        inherited = _over(inherited, limits)
    for level, (index, given) in enumerate(chain):
        limits = given
        if level == 0:
            groups = {name: getattr(given, name) for name in _GROUPS}
            limits = replace(inherited, **groups)
        made.of_association(index, _without(limits, hidden), own=level == 0)
    strict = not order or any(DENY in qos.flags for qos in order)
    factor = 1.0 if job_qos is None else job_qos.usage_factor
    planned = factor if job_qos is not None and FACTOR_SAFE in job_qos.flags else 1.0
    return Tests(
        tuple(made.holders),
        tuple(made.submit),
        tuple(made.before),
        tuple(made.after),
        strict,
        factor,
        planned,
        (
            *(qos_holder(qos.name) for qos in order if "node" in qos.limits.grp_tres),
            *(association_holder(k) for k, given in chain if "node" in given.grp_tres),
        ),
    )


class _Making:
    """The tests so far."""

    def __init__(self) -> None:
        self.holders: list[Holder] = []
        self.submit: list[CountTest] = []
        self.before: list[CountTest] = []
        self.after: list[TresTest] = []

    def of_qos(self, name: str, limits: Limits, user: str, account: str) -> None:
        whole = qos_holder(name)
        users: Holder = (QOS, name, "user", user)
        accounts: Holder = (QOS, name, "account", account)
        self.holders += [whole, users, accounts]
        self._count(self.submit, whole, limits.grp_submit, "QOSGrpSubmitJobsLimit")
        self._count(
            self.submit, accounts, limits.max_submit_per_account, "QOSMaxSubmitJobPerAccountLimit"
        )
        self._count(self.submit, users, limits.max_submit, "QOSMaxSubmitJobPerUserLimit")
        self._count(self.before, whole, limits.grp_jobs, "QOSGrpJobsLimit")
        self._wall(GROUP_WALL, whole, limits.grp_wall_min, "QOSGrpWallLimit")
        self._count(self.before, accounts, limits.max_jobs_per_account, "QOSMaxJobsPerAccountLimit")
        self._count(self.before, users, limits.max_jobs, "QOSMaxJobsPerUserLimit")
        self._wall(WALL, whole, limits.max_wall_min, "QOSMaxWallDurationPerJobLimit")
        self._tres("QOS", record.GROUP_MINUTES, whole, limits.grp_tres_mins)
        self._tres("QOS", record.GROUP, whole, limits.grp_tres)
        self._tres("QOS", record.GROUP_RUN_MINUTES, whole, limits.grp_tres_run_mins)
        self._of_job("QOS", whole, limits)
        self._tres("QOS", record.LEAST, whole, limits.min_tres_per_job)
        self._tres("QOS", record.PER_ACCOUNT, accounts, limits.max_tres_per_account)
        self._tres("QOS", record.PER_USER, users, limits.max_tres_per_user)

    def of_association(self, index: int, limits: Limits, own: bool) -> None:
        holder = association_holder(index)
        self.holders.append(holder)
        self._count(self.submit, holder, limits.grp_submit, "AssocGrpSubmitJobsLimit")
        self._count(self.before, holder, limits.grp_jobs, "AssocGrpJobsLimit")
        self._wall(GROUP_WALL, holder, limits.grp_wall_min, "AssocGrpWallLimit")
        self._tres("Assoc", record.GROUP_MINUTES, holder, limits.grp_tres_mins)
        self._tres("Assoc", record.GROUP, holder, limits.grp_tres)
        self._tres("Assoc", record.GROUP_RUN_MINUTES, holder, limits.grp_tres_run_mins)
        if own:
            self._count(self.submit, holder, limits.max_submit, "AssocMaxSubmitJobLimit")
            self._count(self.before, holder, limits.max_jobs, "AssocMaxJobsLimit")
            self._wall(WALL, holder, limits.max_wall_min, "AssocMaxWallDurationPerJobLimit")
            self._of_job("Assoc", holder, limits)

    def _of_job(self, whose: str, holder: Holder, limits: Limits) -> None:
        self._tres(whose, record.MINUTES_PER_JOB, holder, limits.max_tres_mins_per_job)
        self._tres(whose, record.PER_JOB, holder, limits.max_tres_per_job)
        self._tres(whose, record.PER_NODE, holder, limits.max_tres_per_node)

    def _count(self, into: list[CountTest], holder: Holder, most: int | None, why: str) -> None:
        if most is not None:
            into.append(CountTest(JOBS, holder, most, why))

    def _wall(self, kind: str, holder: Holder, most: int | None, why: str) -> None:
        if most is not None:
            self.before.append(CountTest(kind, holder, most, why))

    def _tres(self, whose: str, kind: str, holder: Holder, limits: Tres) -> None:
        for resource in sorted(limits, key=lambda name: (ORDER.get(name, len(ORDER)), name)):
            why = of_resource(whose, kind, resource)
            self.after.append(TresTest(kind, holder, resource, limits[resource], why))


_GROUPS = [one.name for one in fields(Limits) if one.name.startswith("grp_")]


def _over(first: Limits, second: Limits) -> Limits:
    """The limits of the first, and of the second those that the first has not."""
    return Limits(**{one.name: _joined(first, second, one.name) for one in fields(Limits)})


def _joined(first: Limits, second: Limits, name: str) -> Any:
    mine, other = getattr(first, name), getattr(second, name)
    if isinstance(mine, Mapping):
        return MappingProxyType({**other, **mine})
    return other if mine is None else mine


def _without(limits: Limits, hidden: Limits) -> Limits:
    """Some limits without those that others hide."""
    changes: dict[str, Any] = {}
    for one in fields(Limits):
        mine, other = getattr(limits, one.name), getattr(hidden, one.name)
        if isinstance(mine, Mapping):
            left = {name: value for name, value in mine.items() if name not in other}
            changes[one.name] = MappingProxyType(left)
        elif other is not None:
            changes[one.name] = None
    return replace(limits, **changes)
