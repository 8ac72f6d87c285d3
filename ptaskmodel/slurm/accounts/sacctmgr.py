"""Read accounts, users and QOSs from commands and output of sacctmgr.

The file may contain commands (``add user ...``, ``modify qos ...``), ``sacctmgr dump``, and the
tables of ``sacctmgr show assoc -P``, ``sacctmgr show qos -P`` and ``sshare -a -P``, one after
another. A table in this module maps each option of sacctmgr to its field.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path
from ptaskmodel.slurm.accounts.facts import (
    PARENT,
    ROOT,
    Accounts,
    Association,
    Limits,
    Qos,
    plain_accounts,
)
from ptaskmodel.slurm.accounts.fair_share import ShareTree
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
MAX_BYTES = 2**28
_DUMP = re.compile(r"(Cluster|Parent|Account|User)\s+-\s+'?([^':]*)'?(?::(.*))?")
_DUMPED = re.compile(r"([A-Za-z]+)=(?:'([^']*)'|([^:]*))(?::|$)")
_IDLE = {"cluster", "organization", "description", "org", "desc", "adminlevel", "id", "names"}
Options = list[tuple[str, str]]
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
    """The same with one option set; None if there is no such option.

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
