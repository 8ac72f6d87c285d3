"""The association and the QOS of a job, and whether Slurm accepts its submission."""

from __future__ import annotations

from typing import NamedTuple

from ptaskmodel.slurm.accounts.facts import NORMAL, Accounts, Qos
from ptaskmodel.slurm.accounts.fair_share import ShareTree
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.jobs.request import JobRequest

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
        self._known: dict[tuple[str | None, str | None, str], int | None] = {}
        self._qos_known: dict[int, tuple[tuple[str, ...], str | None]] = {}
        users = [one for one in accounts.associations if one.user is not None]
        # The default account, or the first.
        homes = [*(one for one in users if one.default), *users]
        self._home = {one.user: one.account for one in reversed(homes)}

    def of(self, request: JobRequest, partition: Partition) -> Member | str:
        """Whose a job is in a partition, or the reason for which it is refused.

        Without accounting of associations jobs are nobody's. A user whom nobody knows is refused if
        AccountingStorageEnforce says so, else nobody.
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
        key = (request.user, request.account, partition)
        if key not in self._known:
            account = request.account or self._home.get(request.user or "")
            found = None
            if account is not None:
                found = self._tree.find(account, request.user, partition)
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
