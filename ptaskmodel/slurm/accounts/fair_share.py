"""Fair share: decayed usage, and the factors of Fair Tree and of the classic algorithm.

`Members` finds the association and the QOS of a job, and whether Slurm accepts its submission.
Usage is kept in extended precision, as in Slurm, because ties between levels decide ranks. Source:
Slurm 22.05's documentation (Fair Tree; Multifactor Priority) and behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.remarks import Account
from ptaskmodel.slurm.accounts.facts import NORMAL, ROOT, Accounts, Association, Qos, plain_accounts
from ptaskmodel.slurm.accounts.priority_kernel import rank
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.jobs.request import JobRequest

LN2 = 0.693  # as Slurm rounds it
STEEPNESS = 5.0  # of depth-oblivious shares: how soon a parent far from its share counts for all
UNKNOWN = -1.0
ACCOUNT_OF_PARENT = 2.0**32 - 2  # the level of an account that passes its parent's share on
DEEPEST = 64

Key = tuple[str, str | None, str | None]


class ShareTree:
    """The associations of a cluster with their usage; an association is its index here.

    associations: in order of creation, root first. usage: raw usage with that of all below, billing
    seconds. Raises SlurmError for associations whose accounts are not there, or are no tree.
    """

    def __init__(self, accounts: Accounts) -> None:
        self.associations = accounts.associations
        count = len(self.associations)
        self._index = _indexed(accounts)
        problems = Account(accounts.origin, SlurmError)
        self.above = [-1] * count
        for k, one in enumerate(self.associations):
            with problems.problems():
                self.above[k] = self._account(one, accounts.origin)
        problems.check()
        self.paths: list[tuple[int, ...]] = []
        for k in range(count):
            with problems.problems():
                self.paths.append(self._path(k))
        problems.check()
        # From whom it has its share: the next above that does not pass its parent's on.
        self._from = [self._giver(k) for k in range(count)]
        # Siblings of equal level are visited in this order: the account created last comes first.
        self._below: list[list[int]] = [[] for _ in range(count)]
        for k in reversed(range(1, count)):
            self._below[self._from[k]].append(k)
        self._levels = [
            sum(self.associations[k].shares or 0 for k in children) for children in self._below
        ]
        self._is_user = np.array([one.user is not None for one in self.associations])
        self._shares = np.array([self._share(k) for k in range(count)], dtype=np.longdouble)
        self._giver_of = np.array(self._from)
        # The paths, of equal lengths: where nothing is above, there is a place behind all others.
        deepest = max(map(len, self.paths), default=0)
        self._paths = np.array([[*path, *[count] * (deepest - len(path))] for path in self.paths])
        # What levels and ranks are made of and never changes: users come before accounts of equal
        # level, and then the last that is listed.
        self._fixed = np.array([self._fixed_level(k) for k in range(count)])
        self._ties = np.where(self._is_user, 0, count) - np.arange(count)
        family = np.where(np.arange(count) > 0, self._giver_of, -1)
        self._order = np.lexsort((self._ties, family))[1:]
        self.users = int(self._is_user.sum())
        # Where each family begins among all but root, in the order of families, and the last ends.
        self._families = np.searchsorted(np.sort(family[1:]), np.arange(count + 1))
        self._stack = np.zeros((count, 3), dtype=np.int64)
        self._sums: NDArray[np.longdouble] = np.zeros(count + 1, dtype=np.longdouble)
        self.usage = self._sums[:count]
        # The normal usage that each had when its effective usage was computed last, which is what
        # its siblings see.
        self._last_used: NDArray[np.longdouble] = np.zeros(count, dtype=np.longdouble)
        for k, one in enumerate(self.associations):
            self.add(k, one.usage_s)

    def find(self, account: str, user: str | None, partition: str | None = None) -> int | None:
        """The association of a user in an account, that for a partition first."""
        if partition is not None and (account, user, partition) in self._index:
            return self._index[account, user, partition]
        return self._index.get((account, user, None))

    def add(self, association: int, amount: float) -> None:
        """Add usage to an association and all above it."""
        for k in self.paths[association]:
            self.usage[k] += amount

    def add_all(self, associations: NDArray[np.integer], amounts: NDArray[np.float64]) -> None:
        """Add usage to associations, in their order, and to all above each."""
        above = self._paths.take(associations, axis=0)
        added = amounts.astype(np.longdouble).repeat(above.shape[1])
        np.add.at(self._sums, above.ravel(), added)

    def decay(self, factor: float) -> None:
        """Multiply all usage by a factor."""
        self._sums *= factor

    def reset(self) -> None:
        """Forget all usage."""
        self._sums[:] = 0

    def fair_tree(self) -> NDArray[np.float64]:
        """The factor of each user's association, by its rank; 0 for accounts.

        Users are ranked in the order of the tree: siblings by level (share over usage among
        siblings: above 1, it has used less than its share), users before accounts, equal accounts
        as they are listed. Who equals the sibling before shares its rank, and so does the first
        below an account that does.
        """
        factors = np.zeros(len(self.associations))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            levels = self._shares / (self.usage / self.usage[self._giver_of])
            high = levels.astype(np.float64)
            low = (levels - high).astype(np.float64)
        rank(
            *(high, low, self._fixed, self._ties, self._order, self._families),
            *(self._is_user, self.users, self._stack, factors),
        )
        return factors

    def _fixed_level(self, k: int) -> float:
        """The level of an association that does not depend on usage; nan: it does."""
        one = self.associations[k]
        if one.shares is None:
            return ACCOUNT_OF_PARENT if one.user is None else math.inf
        return math.nan if self._share(k) else 0.0

    def _share(self, k: int) -> float:
        """Its share of what all siblings may have."""
        level = self._levels[self._from[k]]
        shares = self.associations[k].shares
        return (shares or 0) / level if level else 0.0

    # The classic algorithm

    def normal_share(self, k: int) -> float:
        """The product of shares from root down to an association."""
        found = 1.0
        for place in self.paths[k]:
            if self.above[place] >= 0 and self.associations[place].shares is not None:
                found *= self._share(place)
        return found

    def effective_accounts(self, oblivious: bool) -> NDArray[np.longdouble]:
        """The effective usage of accounts, root's is 1; UNKNOWN for users, see `effective`."""
        found = np.full(len(self.associations), UNKNOWN, dtype=np.longdouble)
        found[0] = 1.0
        stack = [0]
        while stack:
            place = stack.pop()
            for k in self._below[place]:
                if self.associations[k].user is None:
                    found[k] = self.effective(k, found, oblivious)
                    stack.append(k)
        return found

    def effective(self, k: int, known: NDArray[np.longdouble], oblivious: bool) -> np.longdouble:
        """The effective usage of an association, given that of the accounts above."""
        used, giver = self._normal_usage(k), self._from[k]
        self._last_used[k] = used
        one = self.associations[k]
        if giver == 0:
            return used
        if one.shares is None:
            return np.longdouble(known[giver])
        if oblivious:
            return self._oblivious(k, used, known)
        level = self._levels[giver]
        if not level:
            return np.longdouble(known[giver])
        return used + (known[giver] - used) * (one.shares / np.longdouble(level))

    def _oblivious(
        self, k: int, used: np.longdouble, known: NDArray[np.longdouble]
    ) -> np.longdouble:
        giver = self._from[k]
        share, above = self.normal_share(k), self.normal_share(giver)
        if not (share and above and known[giver] and used):
            return used
        ratio = known[giver] / np.longdouble(above)
        siblings = [s for s in self._below[giver] if self.associations[s].shares is not None]
        among = sum(self._last_used[siblings], np.longdouble(0)) / above
        level = used / np.longdouble(share) / among
        power = np.longdouble(1)
        if ratio and level and np.log(ratio) * np.log(level) < 0:
            power = 1 / (1 + (STEEPNESS * np.log(ratio)) ** 2)
        return np.longdouble(ratio * float(level) ** float(power) * share)

    def _normal_usage(self, k: int) -> np.longdouble:
        """Its share of all usage, at most 1."""
        if not self.usage[0]:
            return np.longdouble(0)
        return min(self.usage[k] / self.usage[0], np.longdouble(1))

    # The tree

    def giver(self, k: int) -> int:
        """Whose usage and share count for an association: itself, or where it has them from."""
        return k if self.associations[k].shares is not None else self._from[k]

    def _account(self, one: Association, origin: str) -> int:
        """Where the account is that one is in; -1 for root."""
        name = one.parent if one.user is None else one.account
        if name is None:
            return -1
        found = self._index.get((name, None, None))
        if found is None:
            raise SlurmError(
                f"{one.where or origin}: the account {shown(name)} does not exist; add it"
            )
        return found

    def _path(self, k: int) -> tuple[int, ...]:
        """An association and all above it."""
        path = [k]
        while (place := self.above[path[-1]]) >= 0:
            path.append(place)
            if len(path) > DEEPEST:
                one = self.associations[k]
                raise SlurmError(
                    f"{one.where}: the account {shown(one.account)} is its own ancestor, or "
                    f"more than {DEEPEST} levels deep; correct its parent"
                )
        return tuple(path)

    def _giver(self, k: int) -> int:
        place = max(0, self.above[k])
        while place > 0 and self.associations[place].shares is None:
            place = self.above[place]
        return place


def _indexed(accounts: Accounts) -> Mapping[Key, int]:
    found: dict[Key, int] = {}
    for k, one in enumerate(accounts.associations):
        key = (one.account, one.user, one.partition)
        if found.setdefault(key, k) != k:
            name = one.account if one.user is None else f"{one.user} in {one.account}"
            raise SlurmError(f"{one.where or accounts.origin}: '{name}' occurs twice; remove one")
    return found


def decay_factor(half_life_s: float) -> float:
    """What remains of usage after one second; half of it after the half life (0: all of it)."""
    return 1 - LN2 / half_life_s if half_life_s > 0 else 1.0


INVALID_ACCOUNT, INVALID_QOS = "InvalidAccount", "InvalidQOS"
ACCOUNT_NOT_ALLOWED, QOS_NOT_ALLOWED = "AccountNotAllowed", "QOSNotAllowed"


class Member(NamedTuple):
    """Whose a job is. association: in the tree of shares; None: nobody's. qos: its name."""

    association: int | None = None
    qos: str | None = None


class Members:
    """The associations that jobs belong to."""

    def __init__(self, conf: Conf, accounts: Accounts, tree: ShareTree) -> None:
        self._conf, self._accounts, self._tree = conf, accounts, tree
        self._known: dict[tuple[str, str | None, str], int | None] = {}
        self._qos_known: dict[int, tuple[tuple[str, ...], str | None]] = {}
        users = [one for one in accounts.associations if one.user is not None]
        # The default account, or the first.
        homes = [*(one for one in users if one.default), *users]
        self._home = {one.user: one.account for one in reversed(homes)}

    def of(self, request: JobRequest, partition: Partition) -> Member | str:
        """Whose a job is in a partition, or the reason for which it is refused.

        Without accounting of associations jobs are nobody's. A job that names no user is root's, as
        if root had submitted it. A user whom nobody knows is refused if AccountingStorageEnforce
        says so, else nobody.
        """
        if not self._conf.database:
            return Member()
        association = self._association(request, partition.name)
        if association is None:
            refused = "ASSOCIATIONS" in self._conf.enforce
            return INVALID_ACCOUNT if refused else Member(None, self._any_qos(request.qos))
        allowed, default = self._qos_of(association)
        name = request.qos or default or NORMAL
        enforced = "QOS" in self._conf.enforce
        if name not in self._accounts.qos or (enforced and name not in allowed):
            if enforced:
                return INVALID_QOS
            return Member(association, self._any_qos(name))
        return Member(association, name)

    def refused(self, member: Member, partition: Partition) -> str | None:
        """Why a partition takes no jobs of this account or QOS; None: it does.

        The account of a job that belongs to no association is not known, whatever it names.
        """
        account = self.account(member)
        if partition.allow_accounts is not None and account not in partition.allow_accounts:
            return ACCOUNT_NOT_ALLOWED
        if partition.allow_accounts is None and account in partition.deny_accounts:
            return ACCOUNT_NOT_ALLOWED
        return self.qos_refused(member, partition)

    def qos_refused(self, member: Member, partition: Partition) -> str | None:
        """Why a `partition` takes no jobs of the QOS of a `member`; None: it does."""
        qos = member.qos
        if partition.allow_qos is not None and qos not in partition.allow_qos:
            return QOS_NOT_ALLOWED
        if partition.allow_qos is None and qos in partition.deny_qos:
            return QOS_NOT_ALLOWED
        return None

    def account(self, member: Member) -> str | None:
        """The name of the account."""
        if member.association is None:
            return None
        return self._tree.associations[member.association].account

    def accounts(self, job_account: str | None, member: Member) -> frozenset[str]:
        """The names of the account of a job and of those above it."""
        if member.association is None:
            return frozenset(() if job_account is None else (job_account,))
        chain = self._tree.paths[member.association]
        return frozenset(self._tree.associations[k].account for k in chain)

    def qos(self, member: Member) -> Qos | None:
        """The QOS of a job."""
        return self._accounts.qos.get(member.qos or "")

    def _any_qos(self, name: str | None) -> str | None:
        return name if name in self._accounts.qos else None

    def _association(self, request: JobRequest, partition: str) -> int | None:
        user = request.user or ROOT
        key = (user, request.account, partition)
        if key not in self._known:
            account = request.account or self._home.get(user)
            found = None
            if account is not None:
                found = self._tree.find(account, user, partition)
            self._known[key] = found
        return self._known[key]

    def _qos_of(self, association: int) -> tuple[tuple[str, ...], str | None]:
        """The QOSs that an association may use and its default, from above if it has none."""
        if association not in self._qos_known:
            self._qos_known[association] = self._qos_found(association)
        return self._qos_known[association]

    def _qos_found(self, association: int) -> tuple[tuple[str, ...], str | None]:
        chain = [self._tree.associations[k] for k in self._tree.paths[association]]
        allowed = next((one.qos for one in chain if one.qos), (NORMAL,))
        default = next((one.default_qos for one in chain if one.default_qos), None)
        if default is None and NORMAL not in allowed and len(allowed) == 1:
            default = allowed[0]
        return allowed, default


def prepare_kernels() -> None:
    """Use the kernel as it is used (see `kernels.building`)."""
    ShareTree(plain_accounts()).fair_tree()
