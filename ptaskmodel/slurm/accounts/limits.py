"""Limits of associations and QOSs, and counts of the jobs that they limit.

The controller reports each submission, start and end. Limits apply with
AccountingStorageEnforce=limits. With safe, no job starts if its time limit would exceed what is
left of GrpTRESMins and GrpWall; without safe, jobs that exceed them are killed. Not simulated:
limits of jobs that gain age, MinPrioThreshold (see `not_simulated`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple, Protocol

from ptaskmodel.batch.machine.host_sets import Mask, of_hosts
from ptaskmodel.slurm.accounts import facts
from ptaskmodel.slurm.accounts.commands import limits_given
from ptaskmodel.slurm.accounts.facts import (
    GROUP_WALL,
    JOBS,
    QOS,
    WALL,
    Accounts,
    Amounts,
    Holder,
    Tests,
    TresTest,
    requested_by,
    tests_of,
)
from ptaskmodel.slurm.accounts.fair_share import Member, ShareTree
from ptaskmodel.slurm.accounts.usage import Spending
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.request import JobRequest

# Kinds of limits to what all jobs of a holder have now.
HELD = (record.GROUP, record.PER_USER, record.PER_ACCOUNT)
OF_MINUTES = (record.GROUP_MINUTES, record.GROUP_RUN_MINUTES, record.MINUTES_PER_JOB)
# Kinds of limits that say how many nodes a job may have, whoever else runs.
OF_NODES = (*HELD, record.PER_JOB)
UNREAD = (
    "grp_jobs_accrue",
    "max_jobs_accrue",
    "min_prio_threshold",
)


class Limited(Protocol):
    """What limits need of a job's record."""

    request: JobRequest
    number: int
    account: Member | None
    partition: Partition

    @property
    def least_nodes(self) -> int: ...


class _Held(NamedTuple):
    """What a running job counts for. nodes: their indices. end_s: when its limit ends.

    factor: by which its time counts.
    """

    tres: Amounts
    nodes: tuple[int, ...]
    start_s: int
    end_s: float
    factor: float


@dataclass(slots=True)
class _Used:
    """What a holder's jobs use now. nodes: how many of its jobs are on each."""

    jobs: int = 0
    submitted: int = 0
    tres: Counter[str] = field(default_factory=Counter)
    nodes: Counter[int] = field(default_factory=Counter)
    running: dict[int, _Held] = field(default_factory=dict)


class Limits:
    """Who is over which limit. Nothing is limited unless the configuration enforces limits.

    limit: whether limits are enforced, and there is one. blocking_qos: the QOS over whose limit
    `exceeds` found a job last; None: no QOS.
    began_s: when the controller started, Unix seconds. kills: whether jobs that run can be over a
    limit. spends: whether what was used matters.
    """

    def __init__(self, conf: Conf, accounts: Accounts, tree: ShareTree, began_s: int) -> None:
        self.enforced = conf.database and "LIMITS" in conf.enforce
        self._safe = "SAFE" in conf.enforce
        self.limit = self.enforced and _any_limit(accounts)
        self.kills = self.enforced and not self._safe and _of_minutes(accounts)
        self.blocking_qos: str | None = None
        self._spending = Spending(conf, accounts, tree, began_s)
        self.spends = self.enforced and self._spending.kept
        self._accounts, self._tree, self._conf = accounts, tree, conf
        self._tests: dict[tuple[Member, str | None], Tests] = {}
        self._used: dict[Holder, _Used] = {}
        self._in: dict[int, Tests] = {}  # of submitted jobs

    def refuses(self, job: Limited, count: int = 1) -> str | None:
        """Why ``count`` jobs like this (tasks of an array) may not be submitted; None: they may."""
        tests = self._of(job, job.partition)
        if tests is None:
            return None
        for test in tests.submit:
            if self._use(test.holder).submitted + count > test.most:
                return test.reason
        if not tests.strict:
            return None
        tres = requested_by(job, job.partition, self._conf)
        limit_min = job.request.limit_min
        for test in tests.before:
            if test.kind != JOBS and limit_min is not None and limit_min > test.most:
                return test.reason
        for of in tests.after:
            if of.kind in OF_MINUTES and limit_min is None:
                continue
            if self._over_alone(of, tres, limit_min or 0):
                return of.reason
        return None

    def submitted(self, job: Limited) -> None:
        """A job was taken in; it counts until it is `gone`."""
        tests = self._of(job, job.partition)
        if tests is not None:
            self._in[job.number] = tests
            for holder in tests.holders:
                self._use(holder).submitted += 1

    def blocks(self, job: Limited, partition: Partition) -> str | None:
        """Why a job may not start now whatever nodes it gets; None: it may."""
        tests = self._of(job, partition)
        self.blocking_qos = None
        if tests is None:
            return None
        minutes = _minutes(job.request, partition, tests.planned)
        for test in tests.before:
            if test.kind == JOBS:
                if self._use(test.holder).jobs >= test.most:
                    return test.reason
            elif test.kind == GROUP_WALL:
                if self._is_spent(test.holder, WALL, test.most, minutes if self._safe else 0):
                    return test.reason
            elif minutes > test.most:
                return test.reason
        return None

    def most_nodes(self, job: Limited, partition: Partition) -> tuple[int, str] | None:
        """How many nodes a job may have at all, and the reason of who needs more; None: any.

        The first association up the tree whose group limit is less than what is known by then is
        the last that is asked; the limit to each of its jobs holds where the QOS has none.
        """
        tests = self._of(job, partition)
        of_nodes = [
            test
            for test in (tests.after if tests is not None else ())
            if test.resource == "node" and test.kind in OF_NODES
        ]
        of_qos = [test for test in of_nodes if test.holder[0] == QOS]
        best = min(of_qos, key=attrgetter("most"), default=None)
        own = all(test.kind == record.GROUP for test in of_qos)
        last: Holder | None = None
        for test in of_nodes[len(of_qos) :]:
            if last is not None and test.holder != last:
                break
            if (test.kind == record.GROUP or own) and (best is None or test.most < best.most):
                best = test
                last = test.holder if test.kind == record.GROUP else last
        return None if best is None else (best.most, best.reason)

    def nodes_counted(self, job: Limited, partition: Partition) -> Mask:
        """The nodes on which limits to nodes count jobs already: one there costs nothing more.

        Of groups, one counts: the first of those of the QOSs and up the tree that has such a limit,
        hidden or not, and in which a job has ever run.
        """
        tests = self._of(job, partition)
        if tests is None:
            return 0
        holders = [each for each in tests.of_nodes if "node" in self._use(each).tres][:1]
        for test in tests.after:
            if test.resource == "node" and test.kind in HELD and test.kind != record.GROUP:
                holders.append(test.holder)
        return of_hosts(set().union(*(self._use(each).nodes for each in holders)))

    def exceeds(
        self,
        job: Limited,
        partition: Partition,
        tres: Amounts,
        nodes: tuple[int, ...],
        *,
        named: Mask = 0,
        least_time: bool = False,
    ) -> str | None:
        """Why a job may not start with what it would get; None: it may.

        nodes: the indices of its nodes, as far as they are known: a holder's limit to nodes counts
        each node once. named: otherwise those that it names, which count once, too. least_time:
        whether it gets no more time than it asks for at least.
        """
        tests = self._of(job, partition)
        if tests is None:
            return None
        least = job.request.time_min_min if least_time else None
        given = _minutes(job.request, partition, tests.planned)
        minutes = given if least is None else least * tests.planned
        self.blocking_qos = None
        for test in tests.after:
            if self._over(test, tres, nodes, named, minutes, tests.factor):
                whose, name = test.holder[:2]
                self.blocking_qos = name if whose == QOS else None
                return test.reason
        return None

    def _over(
        self,
        test: TresTest,
        tres: Amounts,
        nodes: tuple[int, ...],
        named: Mask,
        minutes: float,
        factor: float,
    ) -> bool:
        """Whether a job would be over one limit."""
        if test.kind == record.GROUP_MINUTES:
            return self._over_minutes(test, tres, minutes, factor)
        if self._over_alone(test, tres, minutes):
            return True
        asked = tres.get(test.resource, 0)
        if test.kind in HELD:
            used = self._use(test.holder)
            if test.resource == "node" and nodes:
                asked = sum(node not in used.nodes for node in nodes)
            elif test.resource == "node" and named:
                counted = (named & of_hosts(used.nodes)).bit_count()
                asked -= counted if counted <= asked else 0
            return bool(asked) and asked + used.tres[test.resource] > test.most
        if test.kind == record.GROUP_RUN_MINUTES:
            asked *= minutes
            return bool(asked) and asked + self._run_minutes(test) > test.most
        return False

    def started(
        self,
        job: Limited,
        partition: Partition,
        tres: Amounts,
        nodes: tuple[int, ...],
        now: int,
        end_s: float,
    ) -> None:
        """A job runs with these from now on. end_s: when its limit ends."""
        tests = self._of(job, partition)
        if tests is None:
            return
        self._moved(job.number, tests)
        held = _Held(tres, nodes, now, end_s, tests.factor)
        self._spending.started(job.number, tests.holders, tres, tests.factor, now)
        for holder in tests.holders:
            used = self._use(holder)
            used.jobs += 1
            used.nodes.update(nodes)
            used.tres.update(tres)
            used.tres["node"] = len(used.nodes)
            used.running[job.number] = held

    def ended(self, job: Limited, now: int) -> None:
        """A job runs no longer; unless it is also `gone`, it waits again."""
        self._spending.ended(job.number, now)
        tests = self._in.get(job.number)
        for holder in tests.holders if tests is not None else ():
            used = self._use(holder)
            held = used.running.pop(job.number, None)
            if held is None:
                continue
            used.jobs -= 1
            used.tres.subtract(held.tres)
            used.nodes.subtract(held.nodes)
            for node in held.nodes:
                if not used.nodes[node]:
                    del used.nodes[node]
            used.tres["node"] = len(used.nodes)

    def gone(self, job: Limited) -> None:
        """A job is over, or was cancelled."""
        tests = self._in.pop(job.number, None)
        for holder in tests.holders if tests is not None else ():
            self._use(holder).submitted -= 1

    def _moved(self, number: int, tests: Tests) -> None:
        """A job turns out to run where others' limits hold than at its submission."""
        before = self._in.get(number)
        if before is not tests:
            for holder in before.holders if before is not None else ():
                self._use(holder).submitted -= 1
            for holder in tests.holders:
                self._use(holder).submitted += 1
        self._in[number] = tests

    def _over_alone(self, test: TresTest, tres: Amounts, minutes: float) -> bool:
        """Whether a job is over a limit even if it is the only one."""
        asked = tres.get(test.resource, 0)
        if test.kind == record.LEAST:
            return asked < test.most
        if test.kind in OF_MINUTES:
            return asked > 0 and asked * minutes > test.most
        if test.kind == record.PER_NODE:
            asked = asked // max(1, int(tres.get("node", 1)))
        return asked > test.most

    def refresh(self, now: int) -> None:
        """Bring what was used up to date, with the priorities."""
        self._spending.refresh(now)

    def must_end(self, job: Limited, tres: Amounts, ran_s: float) -> bool:
        """Whether a running job is over a limit: its own of minutes, or its holders'."""
        tests = self._of(job, job.partition)
        if tests is None:
            return False
        for test in tests.before:
            if test.kind == GROUP_WALL and self._is_spent(test.holder, WALL, test.most, 0):
                return True
        minutes = int(ran_s // 60)
        for of in tests.after:
            has = tres.get(of.resource, 0)
            if of.kind == record.GROUP_MINUTES:
                if has and self._is_spent(of.holder, of.resource, of.most, 0):
                    return True
            elif of.kind == record.MINUTES_PER_JOB and has and minutes * has + 1 > of.most:
                return True
        return False

    def relieved_s(self, job: Limited, partition: Partition) -> float:
        """When what was used is little enough for a job, if nobody runs, Unix seconds.

        inf: that never is so; 0: it is so now.
        """
        tests = self._of(job, partition)
        found = 0.0
        if tests is None:
            return found
        minutes = _minutes(job.request, partition, tests.planned)
        for test in tests.before:
            if test.kind == GROUP_WALL:
                most = test.most - minutes if self._safe else test.most - 1
                found = max(found, self._spending.below_s(test.holder, WALL, most))
        tres = requested_by(job, partition, self._conf)
        for of in tests.after:
            asked = tres.get(of.resource, 0)
            if of.kind == record.GROUP_MINUTES and asked and tests.factor:
                most = of.most - minutes * asked if self._safe else of.most - 1
                found = max(found, self._spending.below_s(of.holder, of.resource, most))
        return found

    def _is_spent(self, holder: Holder, name: str, most: float, asked: float) -> bool:
        """Whether a holder has used what it may of a TRES (WALL: of time), or has too little left.

        asked: minutes that must be left.
        """
        used = self._spending.minutes(holder, name)
        return used >= most or used + asked > most

    def _over_minutes(self, test: TresTest, tres: Amounts, minutes: float, factor: float) -> bool:
        """Whether GrpTRESMins keeps a job from starting."""
        asked = tres.get(test.resource, 0) * minutes
        if not asked:
            return False
        left = asked + self._run_minutes(test) * (factor > 0) if self._safe else 0
        if factor <= 0:  # what others have used does not matter to who uses nothing
            return left > test.most
        return self._is_spent(test.holder, test.resource, test.most, left)

    def _run_minutes(self, test: TresTest) -> float:
        """What running jobs may still use of a TRES, minutes, as of the last refresh."""
        last_s, name = self._spending.last_s, test.resource
        running = self._use(test.holder).running.values()
        left = sum(
            held.factor * held.tres.get(name, 0) * max(0.0, held.end_s - max(held.start_s, last_s))
            for held in running
        )
        return left // 60

    def _use(self, holder: Holder) -> _Used:
        used = self._used.get(holder)
        if used is None:
            used = self._used[holder] = _Used()
        return used

    def _of(self, job: Limited, partition: Partition) -> Tests | None:
        member = job.account
        if not self.enforced or member is None or member.association is None:
            return None
        key = (member, partition.qos)
        if key not in self._tests:
            path = self._tree.paths[member.association]
            one = self._tree.associations[member.association]
            qos = self._accounts.qos
            self._tests[key] = tests_of(
                qos.get(member.qos or ""),
                qos.get(partition.qos or ""),
                one.user or "",
                one.account,
                [(k, self._tree.associations[k].limits) for k in path],
            )
        return self._tests[key]


def _minutes(request: JobRequest, partition: Partition, factor: float) -> float:
    """The limit of a job as it counts, minutes; inf: none."""
    given = request.limit_min if request.limit_min is not None else partition.max_time_min
    if given is None:
        return math.inf if factor > 0 else 0.0
    return given * factor


def _all_limits(accounts: Accounts) -> list[facts.Limits]:
    """The limits of all QOSs and associations."""
    of_qos = [qos.limits for qos in accounts.qos.values()]
    return of_qos + [one.limits for one in accounts.associations]


def _any_limit(accounts: Accounts) -> bool:
    """Whether anything is limited."""
    return any(limits != facts.Limits() for limits in _all_limits(accounts))


def _of_minutes(accounts: Accounts) -> bool:
    """Whether any limit is to minutes that were used."""
    return any(
        one.grp_tres_mins or one.max_tres_mins_per_job or one.grp_wall_min is not None
        for one in _all_limits(accounts)
    )


def not_simulated(accounts: Accounts) -> list[str]:
    """The limits that accounts have and that are not simulated, one sentence each."""
    found = []
    named = [(f"QOS {qos.name}", qos.limits) for qos in accounts.qos.values()]
    named += [
        (f"user {one.user} in {one.account}" if one.user else f"account {one.account}", one.limits)
        for one in accounts.associations
    ]
    for name, limits in named:
        unread = [limit for limit in limits_given(limits) if limit in UNREAD]
        if unread:
            found.append(f"{name}: {', '.join(unread)} are not simulated")
    return found
