"""The limits that apply to a job of an association and a QOS, in the order of Slurm's tests.

A limit of the partition's QOS hides the same limit of the job's QOS; the flag OverPartQOS reverses
this. Both hide the limit of the association, separately for each TRES. An association without a
limit on single jobs inherits it from the account above.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from ptaskmodel.slurm.accounts.facts import Limits, Qos, Tres
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.record import of_resource

# Whose jobs count together: of a QOS all, those of a user, of an account; of an association.
Holder = tuple[str, ...]

QOS = "qos"  # how a holder begins that is one
JOBS, WALL, GROUP_WALL = "jobs", "wall", "group wall"
OVER_PARTITION, DENY, FACTOR_SAFE = "OVERPARTQOS", "DENYONLIMIT", "USAGEFACTORSAFE"
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
    time counts (UsageFactor); planned: the same for the limit of time.
    """

    holders: tuple[Holder, ...]
    submit: tuple[CountTest, ...]
    before: tuple[CountTest, ...]
    after: tuple[TresTest, ...]
    strict: bool
    factor: float = 1.0
    planned: float = 1.0


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
