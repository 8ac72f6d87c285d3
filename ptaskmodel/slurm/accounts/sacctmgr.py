"""Read accounts, users and QOSs from commands and output of sacctmgr.

The file may contain commands (``add user ...``, ``modify qos ...``) and scripts of them,
``sacctmgr dump``, and the tables of ``sacctmgr show assoc -P``, ``sacctmgr show qos -P`` and
``sshare -a -P``, one after another. `options` has the option of each field, `commands` the words of
a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.accounts.commands import (
    ACCOUNT,
    ADD,
    CLUSTER,
    MODIFY,
    QOS,
    USER,
    Call,
    Command,
    Options,
    PassedOver,
    calls_of,
    changed,
    key_of,
    meaning,
    with_option,
)
from ptaskmodel.slurm.accounts.facts import (
    NORMAL,
    ROOT,
    Accounts,
    Association,
    Qos,
    plain_accounts,
)
from ptaskmodel.slurm.accounts.fair_share import ShareTree
from ptaskmodel.slurm.accounts.scripts import Variables, joined_lines, unrolled
from ptaskmodel.slurm.conf import values

MAX_BYTES = 2**28
_DUMP = re.compile(r"(Cluster|Parent|Account|User)\s+-\s+'?([^':]*)'?(?::(.*))?")
_DUMPED = re.compile(r"([A-Za-z]+)=(?:'([^']*)'|([^:]*))(?::|$)")
_IDLE = {"cluster", "organization", "description", "org", "desc", "adminlevel", "id", "names"}
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
_CALLED = re.compile(r"(?:^|[\s/;&|\"'=])sacctmgr[\s\"')]")
# Names above lines, as sacctmgr prints them without -P.
_RULED = re.compile(r"[\w %]+\r?\n[- ]*---[- ]*\r?\n")
# Options of add that say what is added, and where.
_WHOSE = ("name", "account", "user", "defaultaccount")
# What users and accounts are chosen by, besides their names.
_TESTED = ("account", "partition", "parent", "defaultaccount")
_CONDITIONS = {
    QOS: {"name"},
    ACCOUNT: {"name", "cluster", "parent"},
    USER: {"name", "cluster", "account", "partition", "defaultaccount"},
}


@reader(SlurmError)
def read_accounts(path: AnyPath, account: Account) -> Accounts:
    """The accounts of the file at `path`. Raises SlurmError with all lines that cannot be read.

    account: of the file.
    """
    text = read_text(path, most=MAX_BYTES, error=SlurmError, told=account.taken)
    if _RULED.match(text):
        raise SlurmError(
            f"{account.file}:1: is a table without | between its columns; print it with "
            "sacctmgr -P (--parsable2), or give what sacctmgr dump writes"
        )
    reading = _Reading(account, in_script=_CALLED.search(text) is not None)
    lines = joined_lines(text)
    if reading.in_script:
        lines = unrolled(lines, reading.variables, account.file)
    for number, line in lines:
        if line.strip():
            with account.problems(number):
                reading.line(line, number)
        else:
            reading.header = None
    account.check()
    return reading.accounts()


class _NotThereError(ValueError):
    """No line before adds what a line names; if one that was refused names it, too, that is why."""

    def __init__(self, kind: str, name: str, remedy: str = "add") -> None:
        what = f"the {kind} {shown(name)} does not exist"
        super().__init__(f"{what}; {remedy} it in an earlier line")
        self.name = name


class _Reading:
    """What the lines read so far have said. header: the columns of the table that goes on."""

    def __init__(self, account: Account, in_script: bool) -> None:
        plain = plain_accounts()
        self.account, self.in_script = account, in_script
        self.variables = Variables()
        self.qos: dict[str, Qos] = dict(plain.qos)
        self.found: dict[tuple[str, str | None, str | None], Association] = {
            (one.account, one.user, one.partition): one for one in plain.associations
        }
        self.header: list[str] | None = None
        self.parent = ROOT
        self.users: dict[str, str] = {ROOT: ROOT}  # default accounts
        self.refused: list[str] = []  # lines

    def line(self, line: str, number: int) -> None:
        where = f"{self.account.file}:{number}"
        if self.in_script:
            line = self.variables.line(line)
        dumped = _DUMP.fullmatch(line.strip())
        try:
            if dumped is not None:
                self._dumped(dumped[1], dumped[2], dumped[3] or "", where)
            elif self._is_row(line):
                self._row(line, where)
            else:
                for call in self._calls(line):
                    self._command(meaning(call, self.in_script), number)
        except _NotThereError as fault:
            is_consequence = any(fault.name in one for one in self.refused)
            self.refused.append(line)
            if not is_consequence:
                raise SlurmError(str(fault)) from None
        except ValueError as fault:
            self.refused.append(line)
            raise SlurmError(str(fault)) from None

    def _is_row(self, line: str) -> bool:
        """Whether a line is one of a table, not a pipe of a shell."""
        if "|" not in line or _CALLED.search(line):
            return False
        return not self.in_script or self.header is not None or _is_header(_names(line))

    def _calls(self, line: str) -> list[Call]:
        """The calls in a line; of a script, other commands may have quotes over several lines."""
        try:
            return list(calls_of(line))
        except ValueError:
            if not self.in_script or _CALLED.search(line):
                raise
            return [Call((line.split()[0],), False)]

    def accounts(self) -> Accounts:
        for name, qos in self.qos.items():
            stray = sorted(other for other in qos.preempt if other not in self.qos)
            with self.account.problems():
                if stray:
                    raise SlurmError(
                        f"{qos.where}: QOS {name} preempts {shown(stray[0])}, which is not "
                        "defined; define it, or remove it from Preempt"
                    )
        associations = list(map(self._ended, self.found.values()))
        for one in associations:
            for qos_name in (*one.qos, *filter(None, [one.default_qos])):
                if self.qos.setdefault(qos_name, made := Qos(qos_name)) is made:
                    self.account.assumed(f"no line adds QOS {shown(qos_name)}: it has no limits")
        found = Accounts(MappingProxyType(self.qos), tuple(associations), self.account.file)
        ShareTree(found)  # whose accounts are a tree
        return found

    def _ended(self, one: Association) -> Association:
        """An association with its QOSs, and whether it is the default of its user, at the end."""
        default = self.users.get(one.user or "") == one.account
        if _are_changes(one.qos):
            one = replace(one, qos=self._qos_of(one))
        return one if one.default == default else replace(one, default=default)

    def _qos_of(self, one: Association, depth: int = 0) -> tuple[str, ...]:
        """The QOSs of an association: its own, or those from above after its changes."""
        if one.qos and not _are_changes(one.qos):
            return one.qos
        home = one.parent if one.user is None else one.account
        above = self.found.get((home or ROOT, None, None))
        if above is None or above is one or depth > len(self.found):  # of a circle: told later
            return changed((NORMAL,), one.qos) if one.qos else (NORMAL,)
        inherited = self._qos_of(above, depth + 1)
        return changed(inherited, one.qos) if one.qos else inherited

    # Setting

    def _set(self, of: Qos | Association, options: Iterable[tuple[str, str]], where: str) -> None:
        for name, text in options:
            if key_of(name) in _IDLE:
                continue
            try:
                changed = with_option(of, name, text)
            except ValueError as fault:
                raise ValueError(f"{name}={shown(text)}: {fault}") from None
            if changed is None:
                raise ValueError(f"{shown(name)} is not a known option; remove it")
            of = changed
        of = of if of.where == where else replace(of, where=where)
        if isinstance(of, Qos):
            self.qos[of.name] = of
        else:
            self.found[of.account, of.user, of.partition] = of

    def _user(self, name: str, account: str, partition: str | None, where: str) -> Association:
        if (account, None, None) not in self.found:
            raise _NotThereError(ACCOUNT, account)
        default = self.users.setdefault(name, account) == account
        known = self.found.get((account, name, partition))
        return known or Association(account, name, account, partition, default=default, where=where)

    # Commands

    def _command(self, command: Command | PassedOver, number: int) -> None:
        if isinstance(command, PassedOver):
            if command.told:
                self.account.unused(command.text, number)
            return
        verb, kind, where = command.verb, command.kind, f"{self.account.file}:{number}"
        if kind == CLUSTER:  # there is one: this one
            return
        if verb == ADD:
            self._add(kind, command, where)
        elif verb == MODIFY:
            self._modify(kind, command, number)
        else:
            self._remove(kind, command, number)

    def _add(self, kind: str, command: Command, where: str) -> None:
        given = _given(command.options)
        names = command.names or values.names(given.get("name", given.get(kind, "")))
        if not names:
            raise ValueError(f"the {kind} has no name; give one")
        options = [pair for pair in command.options if key_of(pair[0]) not in _WHOSE]
        for name in names:  # what is refused of them is there for the lines that follow
            if kind == QOS:
                self._set(self.qos.setdefault(name, Qos(name)), options, where)
            elif kind == ACCOUNT:
                key = name, None, None
                self._set(self.found.setdefault(key, Association(name)), options, where)
            else:
                self._add_user(name, given, options, where)

    def _add_user(self, name: str, given: dict[str, str], options: Options, where: str) -> None:
        accounts = values.names(given.get("account", given.get("defaultaccount", "")))
        if not accounts:
            accounts = tuple(account for account, user, _ in self.found if user == name)
        if not accounts:
            raise ValueError(f"user {shown(name)} has no account; write account=NAME")
        if "defaultaccount" in given:
            self.users[name] = given["defaultaccount"]
        for account in accounts:
            key = account, name, given.get("partition")
            self.found.setdefault(key, Association(account, name, account, key[2]))
            user = self._user(name, account, given.get("partition"), where)
            self._set(user, options, where)

    def _modify(self, kind: str, command: Command, number: int) -> None:
        where, given = f"{self.account.file}:{number}", _given(command.options)
        found = self._chosen(kind, command, number)
        for one in found:
            options = [pair for pair in command.options if key_of(pair[0]) != "defaultaccount"]
            if isinstance(one, Association) and one.user is None and one.account == ROOT:
                options = [pair for pair in options if key_of(pair[0]) not in _NOT_OF_ROOT]
            elif isinstance(one, Association) and one.user and "defaultaccount" in given:
                self.users[one.user] = given["defaultaccount"]
            self._set(one, options, where)

    def _remove(self, kind: str, command: Command, number: int) -> None:
        if not command.names and not command.conditions:
            raise ValueError(f"no {kind} is named; name those to remove")
        for one in self._chosen(kind, command, number):
            if isinstance(one, Qos):
                del self.qos[one.name]
                self._forget_qos(one.name)
            elif one.user is None:
                self._remove_account(one.account)
            else:
                self.found.pop((one.account, one.user, one.partition))
                if self.users.get(one.user) == one.account:
                    del self.users[one.user]

    def _forget_qos(self, name: str) -> None:
        """Nobody may use or preempt a QOS any more."""
        self.qos = {
            each: replace(qos, preempt=qos.preempt - {name}) for each, qos in self.qos.items()
        }
        for key, one in self.found.items():
            if {name, f"+{name}", f"-{name}"} & {*one.qos, one.default_qos}:
                default = None if name == one.default_qos else one.default_qos
                left = tuple(each for each in one.qos if each.lstrip("+-") != name)
                self.found[key] = replace(one, qos=left, default_qos=default)

    def _remove_account(self, name: str) -> None:
        """An account goes with its users and the accounts below it."""
        if name == ROOT:
            raise ValueError("the account root cannot be removed; drop this command")
        below = [one.account for one in self.found.values() if not one.user and one.parent == name]
        self.found = {key: one for key, one in self.found.items() if one.account != name}
        self.users = {user: home for user, home in self.users.items() if home != name}
        for account in below:
            self._remove_account(account)

    def _chosen(self, kind: str, command: Command, number: int) -> list[Qos] | list[Association]:
        """The QOSs or associations that a command means; without conditions all of them."""
        conditions = {key: values.names(text) for key, text in _given(command.conditions).items()}
        names = command.names or conditions.pop("name", conditions.pop(kind, ()))
        for key in conditions:
            if key not in _CONDITIONS[kind]:
                raise ValueError(
                    f"{shown(key)} is not a known condition; use one of "
                    f"{', '.join(sorted(_CONDITIONS[kind]))}"
                )
        strange = next((name for name in names if not self._is_there(kind, name)), None)
        if strange is not None and command.verb == MODIFY:
            raise _NotThereError(kind, strange)
        found: list[Any]
        if kind == QOS:
            found = [one for name, one in self.qos.items() if not names or name in names]
        else:
            found = [
                one
                for one in self.found.values()
                if (one.user is not None) == (kind == USER)
                and (not names or (one.user or one.account) in names)
                and (names or one.user != ROOT)
                and all(self._fits(one, key, conditions.get(key)) for key in _TESTED)
            ]
        if not found:
            self.account.unused(
                f"{command.verb} {kind}: nothing matches the conditions, and nothing changes",
                number,
            )
        return found

    def _fits(self, one: Association, key: str, wanted: tuple[str, ...] | None) -> bool:
        own = {
            "account": one.account,
            "partition": one.partition,
            "parent": one.parent,
            "defaultaccount": self.users.get(one.user or ""),
        }
        return wanted is None or own[key] in wanted

    def _is_there(self, kind: str, name: str) -> bool:
        """Whether there is something that may be modified."""
        if kind == QOS:
            return name in self.qos
        if kind == ACCOUNT:
            return (name, None, None) in self.found
        return any(user == name for _, user, _ in self.found)

    # sacctmgr dump

    def _dumped(self, kind: str, name: str, rest: str, where: str) -> None:
        found = list(_DUMPED.finditer(rest))
        options = [(m[1], m[2] if m[3] is None else m[3]) for m in found]
        is_whole = sum(m.end() - m.start() for m in found) == len(rest)
        if not is_whole and (beside := _DUMPED.sub("", rest).strip(": ")):
            raise ValueError(f"{shown(beside)} is no option; write Key=Value, with : between them")
        for m in found:  # texts such as Description may hold quotes
            if m[3] and "'" in m[3] and key_of(m[1]) not in _IDLE:
                text = shown(m[0].removesuffix(":"))
                raise ValueError(f"{text} has text beside its quotes; write Key='Value'")
        given = {key_of(key): text for key, text in options}
        if kind == "Parent":
            if (name, None, None) not in self.found:
                raise _NotThereError(ACCOUNT, name, "define")
            self.parent = name
        elif kind == "Cluster":
            root = self.found[ROOT, None, None]
            self._set(root, [pair for pair in options if key_of(pair[0]) != "fairshare"], where)
        elif kind == "Account":
            self._set(Association(name, parent=self.parent, where=where), options, where)
        else:
            if "defaultaccount" in given:
                self.users[name] = given["defaultaccount"]
            idle = ("defaultaccount", "wckeys", "defaultwckey", "coordinator")
            options = [pair for pair in options if key_of(pair[0]) not in idle]
            user = self._user(name, self.parent, given.get("partition"), where)
            self._set(user, options, where)

    # Tables

    def _row(self, line: str, where: str) -> None:
        cells = [cell.strip() for cell in line.rstrip("|").split("|")]
        if _is_header(_names(line)):
            self.header = cells
        elif self.header is None:
            self.header = []
            raise ValueError("the table has no header; print it with -P and without -n")
        elif not self.header:  # that was told
            return
        elif len(cells) > len(self.header):
            raise ValueError(
                f"has {len(cells)} fields instead of {len(self.header)}; print the table with -P"
            )
        else:
            cells += [""] * (len(self.header) - len(cells))
            self._cells(dict(zip(map(key_of, self.header), cells, strict=True)), where)

    def _cells(self, row: dict[str, str], where: str) -> None:
        if "account" not in row:
            name = row.pop("name")
            if not name:
                raise ValueError("the QOS has no name; give one")
            options = [(key, text) for key, text in row.items() if key in _OF_QOS and text]
            self._set(self.qos.get(name, Qos(name)), options, where)
            return
        account, user = row.pop("account"), row.pop("user", "") or None
        if "rawusage" in row:  # sshare: what it calls FairShare is the factor
            row.pop("fairshare", None)
        partition = row.get("partition") or None
        if not account:
            raise ValueError("the association has no account; give one")
        options = [(key, text) for key, text in row.items() if key in _OF_ASSOCIATION and text]
        if user is not None:
            self._set(self._user(user, account, partition, where), options, where)
            return
        known = self.found.get((account, None, None)) or Association(account)
        if account == ROOT:
            options = [pair for pair in options if pair[0] not in _NOT_OF_ROOT]
        elif "rawusage" in row:  # an account's is that of its users
            options = [pair for pair in options if pair[0] != "rawusage"]
        self._set(known, options, where)


def _are_changes(names: tuple[str, ...]) -> bool:
    """Whether a list of QOSs says how that from above is changed."""
    return bool(names) and all(name[0] in "+-" for name in names)


def _given(options: Options) -> dict[str, str]:
    """Options by their keys: those that name something in the singular."""
    found = {key_of(name): text for name, text in options}
    for key in _WHOSE:
        if f"{key}s" in found:
            found[key] = found.pop(f"{key}s")
    return found


def _names(line: str) -> set[str]:
    """The columns that a line names, if it is the header of a table."""
    return {key_of(cell.strip()) for cell in line.split("|")}


def _is_header(names: set[str]) -> bool:
    return {"account", "user"} <= names or {"name", "priority"} <= names
