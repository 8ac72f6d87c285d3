"""Accounts, users and QOSs from what sacctmgr reads and prints.

Known are its commands (``add user ...``, ``modify qos ...``), ``sacctmgr dump``, and the tables of
``sacctmgr show assoc -P``, ``sacctmgr show qos -P`` and ``sshare -a -P``, one after another.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType

from ptaskmodel.batch.slurm import values
from ptaskmodel.batch.slurm.accounts.facts import ROOT, Accounts, Association, Qos, plain_accounts
from ptaskmodel.batch.slurm.accounts.fair_share import ShareTree
from ptaskmodel.batch.slurm.accounts.options import LISTS, key_of, with_option
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path

MAX_BYTES = 2**28

_DUMP = re.compile(r"(Cluster|Parent|Account|User)\s+-\s+'?([^':]*)'?(?::(.*))?")
_DUMPED = re.compile(r"([A-Za-z]+)=(?:'([^']*)'|([^:]*))(?::|$)")
_IDLE = {"cluster", "organization", "description", "org", "desc", "adminlevel", "id", "names"}

Options = list[tuple[str, str]]


def read_accounts(path: AnyPath) -> Accounts:
    """The accounts of a file. Raises SlurmError with file and line."""
    reading = _Reading(shown_path(path))
    lines = read_text(path, most=MAX_BYTES, error=SlurmError).split("\n")
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            reading.line(line.rstrip("\r"), f"{reading.origin}:{number}")
        else:
            reading.header = None
    return reading.accounts()


class _Reading:
    """What the lines read so far have said. header: the columns of the table that goes on."""

    def __init__(self, origin: str) -> None:
        plain = plain_accounts()
        self.origin = origin
        self.qos: dict[str, Qos] = dict(plain.qos)
        self.found: dict[tuple[str, str | None, str | None], Association] = {
            (one.account, one.user, one.partition): one for one in plain.associations
        }
        self.header: list[str] | None = None
        self.parent = ROOT
        self.users: dict[str, str] = {ROOT: ROOT}  # default accounts

    def line(self, line: str, where: str) -> None:
        dumped = _DUMP.fullmatch(line.strip())
        try:
            if dumped is not None:
                self._dumped(dumped[1], dumped[2], dumped[3] or "", where)
            elif "|" in line:
                self._row(line, where)
            else:
                self._command(shlex.split(line, comments=True), where)
        except ValueError as fault:
            raise SlurmError(f"{where}: {fault}") from None

    def accounts(self) -> Accounts:
        for name, qos in self.qos.items():
            stray = sorted(other for other in qos.preempt if other not in self.qos)
            if stray:
                raise SlurmError(
                    f"{qos.where}: QOS {name} preempts {shown(stray[0])}: there is no such QOS; "
                    "add it, or take it out"
                )
        associations = [
            replace(one, default=self.users.get(one.user or "") == one.account)
            for one in self.found.values()
        ]
        for one in associations:
            for qos_name in (*one.qos, *filter(None, [one.default_qos])):
                self.qos.setdefault(qos_name, Qos(qos_name))
        found = Accounts(MappingProxyType(self.qos), tuple(associations), self.origin)
        ShareTree(found)  # whose accounts are a tree
        return found

    # Setting

    def _set(self, of: Qos | Association, options: Iterable[tuple[str, str]], where: str) -> None:
        for name, text in options:
            if key_of(name) in _IDLE:
                continue
            try:
                changed = with_option(of, name, text)
            except ValueError as fault:
                raise SlurmError(f"{where}: {name}={shown(text)}: {fault}") from None
            if changed is None:
                raise SlurmError(f"{where}: {shown(name)} is no option that is known; take it out")
            of = changed
        of = replace(of, where=where)
        if isinstance(of, Qos):
            self.qos[of.name] = of
        else:
            self.found[of.account, of.user, of.partition] = of

    def _user(self, name: str, account: str, partition: str | None) -> Association:
        if (account, None, None) not in self.found:
            raise ValueError(f"there is no account {shown(account)}; add it before")
        self.users.setdefault(name, account)
        known = self.found.get((account, name, partition))
        return known or Association(account, name, account, partition)

    # Commands

    def _command(self, words: list[str], where: str) -> None:
        words = [word for word in words if word not in ("-i", "sacctmgr", "--immediate")]
        if len(words) < 3:
            raise ValueError("give a command such as add user ann account=physics fairshare=2")
        verb, kind = words[0].lower(), words[1].lower().removesuffix("s")
        kind = "qos" if kind == "qo" else kind
        if verb not in ("add", "create", "modify") or kind not in _MAKERS:
            raise ValueError(f"{shown(' '.join(words[:2]))}: only add and modify of {_KINDS}")
        names, options, where_to = _split(words[2:])
        options = [(name, text) for name, text in options if key_of(name) != "cluster"]
        given = {key_of(name): text for name, text in [*where_to, *options]}
        names = names or list(values.names(given.get("name", given.get(kind, ""))))
        options = [pair for pair in options if key_of(pair[0]) not in ("name", "account", "user")]
        if not names:
            raise ValueError(f"give the {kind} a name")
        for name in names:
            if verb == "modify" and not self._is_there(kind, name):
                raise ValueError(f"there is no {kind} {shown(name)}; add it before")
            _MAKERS[kind](self, name, given, options, where)

    def _is_there(self, kind: str, name: str) -> bool:
        """Whether there is something that may be modified."""
        if kind == "qos":
            return name in self.qos
        if kind == "account":
            return (name, None, None) in self.found
        return kind != "user" or any(user == name for _, user, _ in self.found)

    def _add_cluster(self, name: str, given: dict, options: Options, where: str) -> None:
        """There is one cluster: this one."""

    def _add_qos(self, name: str, given: dict, options: Options, where: str) -> None:
        self._set(self.qos.get(name, Qos(name)), options, where)

    def _add_account(self, name: str, given: dict, options: Options, where: str) -> None:
        known = self.found.get((name, None, None))
        self._set(known or Association(name), options, where)

    def _add_user(self, name: str, given: dict, options: Options, where: str) -> None:
        accounts = values.names(given.get("account", given.get("defaultaccount", "")))
        if not accounts:
            accounts = tuple(account for account, user, _ in self.found if user == name)
        if not accounts:
            raise ValueError(f"give user {shown(name)} an account=")
        if "defaultaccount" in given:
            self.users[name] = given["defaultaccount"]
        options = [pair for pair in options if key_of(pair[0]) != "defaultaccount"]
        for account in accounts:
            self._set(self._user(name, account, given.get("partition")), options, where)

    # sacctmgr dump

    def _dumped(self, kind: str, name: str, rest: str, where: str) -> None:
        options = [(m[1], m[2] if m[3] is None else m[3]) for m in _DUMPED.finditer(rest)]
        given = {key_of(key): text for key, text in options}
        if kind == "Parent":
            if (name, None, None) not in self.found:
                raise ValueError(f"there is no account {shown(name)}; give it before")
            self.parent = name
        elif kind == "Cluster":
            root = self.found[ROOT, None, None]
            self._set(root, [pair for pair in options if key_of(pair[0]) != "fairshare"], where)
        elif kind == "Account":
            self._set(Association(name, parent=self.parent), options, where)
        else:
            if "defaultaccount" in given:
                self.users[name] = given["defaultaccount"]
            idle = ("defaultaccount", "wckeys", "defaultwckey", "coordinator")
            options = [pair for pair in options if key_of(pair[0]) not in idle]
            self._set(self._user(name, self.parent, given.get("partition")), options, where)

    # Tables

    def _row(self, line: str, where: str) -> None:
        cells = [cell.strip() for cell in line.rstrip("|").split("|")]
        names = [key_of(cell) for cell in cells]
        if {"account", "user"} <= set(names) or {"name", "priority"} <= set(names):
            self.header = cells
        elif self.header is None:
            raise ValueError("the table has no header: print it with -P and without -n")
        elif len(cells) > len(self.header):
            raise ValueError(f"has {len(cells)} fields instead of {len(self.header)}")
        else:
            cells += [""] * (len(self.header) - len(cells))
            self._cells(dict(zip(map(key_of, self.header), cells, strict=True)), where)

    def _cells(self, row: dict[str, str], where: str) -> None:
        if "account" not in row:
            name = row.pop("name")
            if not name:
                raise ValueError("the QOS has no name")
            options = [(key, text) for key, text in row.items() if key in _OF_QOS and text]
            self._set(self.qos.get(name, Qos(name)), options, where)
            return
        account, user = row.pop("account"), row.pop("user", "") or None
        if "rawusage" in row:  # sshare: what it calls FairShare is the factor
            row.pop("fairshare", None)
        partition = row.get("partition") or None
        if not account:
            raise ValueError("the association has no account")
        options = [(key, text) for key, text in row.items() if key in _OF_ASSOCIATION and text]
        if user is not None:
            self._set(self._user(user, account, partition), options, where)
            return
        known = self.found.get((account, None, None)) or Association(account)
        if account == ROOT:
            options = [pair for pair in options if pair[0] not in _NOT_OF_ROOT]
        elif "rawusage" in row:  # an account's is that of its users
            options = [pair for pair in options if pair[0] != "rawusage"]
        self._set(known, options, where)


def _changing(key: str, text: str) -> tuple[str, str]:
    """``qos+=a,b`` as qos and what it says then: ``+a,+b``."""
    sign = key[-1:]
    if sign not in ("+", "-"):
        return key, text
    if key_of(key[:-1]) not in (*LISTS, "qoslevel"):
        raise ValueError(f"{shown(key)}=: only {' and '.join(LISTS)} have {sign}=; write =")
    return key[:-1], ",".join(sign + name for name in values.names(text))


def _split(words: list[str]) -> tuple[list[str], Options, Options]:
    """Names, options, and the conditions after ``where``, of the words of a command."""
    names: list[str] = []
    options: Options = []
    conditions: Options = []
    into = options
    for word in words:
        key, mark, text = word.partition("=")
        if word.lower() in ("set", "where"):
            into = options if word.lower() == "set" else conditions
        elif mark:
            into.append(_changing(key, text))
        else:
            names += values.names(word)
    return names, options, conditions


_MAKERS: dict[str, Callable[[_Reading, str, dict, Options, str], None]] = {
    "cluster": _Reading._add_cluster,
    "qos": _Reading._add_qos,
    "account": _Reading._add_account,
    "user": _Reading._add_user,
}
_KINDS = "qos, account and user"
_NOT_OF_ROOT = ("parent", "parentname", "parname", "share", "rawshares", "fairshare", "rawusage")
_TRES_LIMITS = {"grptres", "grptresmins", "grptresrunmins", "grpjobs", "grpsubmit", "grpwall"}
_OF_ASSOCIATION = _TRES_LIMITS | {
    "share", "rawshares", "fairshare", "priority", "maxjobs", "maxtres", "maxtrespernode",
    "maxsubmit", "maxwall", "maxtresmins", "qos", "defqos", "defaultqos", "rawusage", "partition",
    "parentname", "parname", "grpjobsaccrue", "maxjobsaccrue",
}  # fmt: skip
_OF_QOS = _TRES_LIMITS | {
    "priority", "gracetime", "preempt", "preemptmode", "flags", "usagefactor", "maxtres",
    "maxtrespernode", "maxtresmins", "maxwall", "maxtrespu", "maxjobspu", "maxsubmitpu",
    "maxtrespa", "maxjobspa", "maxsubmitpa", "mintres", "maxjobsaccruepu", "grpjobsaccrue",
}  # fmt: skip
