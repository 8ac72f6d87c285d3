"""Parse lines of scripts that call sacctmgr: what is added, modified and removed, by which options.

`sacctmgr.read_accounts` does what they say. Source: Slurm's manual of sacctmgr.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from ptaskmodel.errors import shown
from ptaskmodel.slurm.accounts.facts import NO_LIMITS, PARENT, Association, Limits, Qos
from ptaskmodel.slurm.conf import values

Options = list[tuple[str, str]]
ADD, MODIFY, REMOVE = "add", "modify", "remove"
QOS, ACCOUNT, USER, CLUSTER = "qos", "account", "user", "cluster"
KINDS = (QOS, ACCOUNT, USER, CLUSTER)
_VERBS = {
    "add": ADD, "create": ADD, "modify": MODIFY, "update": MODIFY, "delete": REMOVE,
    "remove": REMOVE,
}  # fmt: skip
# What changes nothing of accounts, and what changes nothing that is simulated.
_LISTING = ("list", "show", "dump", "ping", "help", "version", "exit", "quit", "reconfigure")
_OTHERS = ("archive", "clear", "load", "shutdown", "verify")
_NOT_HERE = (
    *("coordinator", "wckey", "tres", "resource", "federation", "event", "job", "transaction"),
    *("reservation", "runawayjob", "stat", "problem", "config", "association", "instance"),
)
# A word of a command may be cut to so many letters.
_SHORT = 3
_REDIRECTED = re.compile(r"""(?<![^\s])\d?>{1,2}\s*(?:&\d|[^\s'"]+)|&>\s*\S+|<<-?\s*\S+""")
# A line of a shell whose words are those between its blanks.
_PLAIN = re.compile(r"[\w\s./,:=+@%-]*", re.ASCII)
_OF_SHELL = "uses shell variables; write their values, or give what sacctmgr dump writes"
_QUOTED = re.compile(r"(?:^|[\s/])sacctmgr\s")
_CALLED = re.compile(r"(?:.*/)?sacctmgr")


class Command(NamedTuple):
    """What a command adds, modifies or removes.

    verb: ADD, MODIFY or REMOVE. kind: one of `KINDS`. names: of what it is said. conditions: what
    stands before ``set`` or after ``where``; options: what is set. Both as (option, text).
    """

    verb: str
    kind: str
    names: tuple[str, ...]
    conditions: Options
    options: Options


class PassedOver(NamedTuple):
    """Words that change nothing here; told: whether that may surprise."""

    text: str
    told: bool


class _Words(shlex.shlex):
    """The words of a line of a shell; marks between commands are words of their own."""

    def __init__(self, line: str) -> None:
        super().__init__(line, posix=True, punctuation_chars=";&|")
        self.whitespace_split = True


class Call(NamedTuple):
    """One call of sacctmgr in a line: its words without those before the verb, and options.

    named: whether it calls sacctmgr by its name.
    """

    words: tuple[str, ...]
    named: bool


def calls_of(line: str) -> Iterator[Call]:
    """The calls in a line, by any path, with sudo and several times.

    Raises ValueError with the remedy.
    """
    if _PLAIN.fullmatch(line):
        words = line.split()
    else:
        try:
            words = list(_Words(_REDIRECTED.sub(" ", line)))
        except ValueError:
            raise ValueError("close the quote") from None
    begin = 0
    for place, word in enumerate([*words, ";"]):
        if word and not set(word) - set(";&|"):
            some = words[begin:place]
            for one in some:
                if _QUOTED.search(one):  # of bash -c
                    yield from calls_of(one)
            called = next((k for k, one in enumerate(some) if _CALLED.fullmatch(one)), -1)
            rest = tuple(one for one in some[called + 1 :] if not one.startswith("-"))
            if rest:
                yield Call(rest, called >= 0)
            begin = place + 1


def meaning(call: Call, in_script: bool) -> Command | PassedOver:
    """What a call does. in_script: whether calls are named, so that others are those of a shell.

    Raises ValueError with the remedy.
    """
    text, words = shown(" ".join(call.words)), call.words
    verb = _meant(words[0], (*_VERBS, *_LISTING, *_OTHERS))
    if verb is None:
        if in_script and not call.named:
            if words[0].startswith("$") and _meant(" ".join(words[1:2]), (*_VERBS,)) is not None:
                raise ValueError(f"{text}: {_OF_SHELL}")
            return PassedOver(f"{text} is not a call of sacctmgr", True)
        raise ValueError(
            f"{text}: is not a command of sacctmgr; begin it with add, modify or remove"
        )
    if verb in _LISTING or verb in _OTHERS:
        return PassedOver(f"{text} has no effect here", verb in _OTHERS)
    if any("$" in word for word in words):
        raise ValueError(f"{text}: {_OF_SHELL}")
    kind = _meant(words[1].removesuffix("s"), (*KINDS, *_NOT_HERE)) if len(words) > 1 else None
    if kind is None or (len(words) < 3 and kind in KINDS):
        raise ValueError(
            f"{text}: is incomplete; write a command such as add user ann account=physics "
            f"fairshare=2, for {', '.join(KINDS[:2])} or {KINDS[2]}"
        )
    if kind in _NOT_HERE:
        return PassedOver(f"{text}: a {kind} has no effect here", True)
    return _split(_VERBS[verb], kind, words[2:])


def _meant(word: str, known: tuple[str, ...]) -> str | None:
    """The word that another, perhaps cut, stands for."""
    word = word.lower()
    least = min(_SHORT, len(word)) if word in ("qo", "q") else _SHORT
    return next((one for one in known if one.startswith(word) and len(word) >= least), None)


def _split(verb: str, kind: str, words: tuple[str, ...]) -> Command:
    names: list[str] = []
    options: Options = []
    conditions: Options = []
    into = options if verb == ADD else conditions
    for word in words:
        key, mark, text = word.partition("=")
        if word.lower() in ("set", "where"):
            into = options if word.lower() == "set" else conditions
        elif mark:
            into.append(_changing(key, text))
        else:
            names += values.names(word)
    if verb == MODIFY and not options:
        raise ValueError("nothing is changed; write set OPTION=VALUE")
    return Command(verb, kind, tuple(names), conditions, options)


def _changing(key: str, text: str) -> tuple[str, str]:
    """``qos+=a,b`` as qos and what it says then: ``+a,+b``."""
    sign = key[-1:]
    if sign not in ("+", "-"):
        return key, text
    if key_of(key[:-1]) not in (*LISTS, "qoslevel"):
        raise ValueError(f"{shown(key)}=: only {' and '.join(LISTS)} take {sign}=; write =")
    return key[:-1], ",".join(sign + name for name in values.names(text))


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


@functools.lru_cache(1024)
def key_of(name: str) -> str:
    """An option's name without what does not matter: case, blanks, what says which job."""
    return name.lower().replace(" ", "").replace("_", "")


def with_option(of: Qos | Association, name: str, text: str) -> Any | None:
    """A QOS or association like `of` with the option `name` set to `text`; None: it has none.

    Raises ValueError with the remedy.
    """
    key, text = key_of(name), text.strip()
    own = _QOS if isinstance(of, Qos) else _ASSOCIATION
    if key in own:
        field, read = own[key]
        value = read(text)
        if field in LISTS:
            inherits = isinstance(of, Association)
            value = type(value)(changed(getattr(of, field), values.names(text), inherits))
        return of if value == getattr(of, field) else replace(of, **{field: value})
    if of.limits is NO_LIMITS:
        limits = _only_limit(key, text)
    else:
        limits = _with_limit(of.limits, key, text)
    return None if limits is None else replace(of, limits=limits)


def _with_limit(limits: Limits, key: str, text: str) -> Limits | None:
    """Limits after one more; None: there is none with this key."""
    if key in _OF_ONE:
        field, resource = _OF_ONE[key]
        text = f"{resource}={text}" if text else ""
        read: Reader = values.tres
    elif key in _LIMITS:
        field, read = _LIMITS[key]
    else:
        return None
    value = read(text)
    if isinstance(value, Mapping):
        joined = {**getattr(limits, field), **value}
        value = MappingProxyType({name: most for name, most in joined.items() if most is not None})
    return replace(limits, **{field: value})


@functools.lru_cache(1024)
def _only_limit(key: str, text: str) -> Limits | None:
    """The same of no limits: many users of a dump have one limit, and it is the same."""
    return _with_limit(NO_LIMITS, key, text)


def changed(old: Iterable[str], new: tuple[str, ...], inherits: bool = False) -> tuple[str, ...]:
    """A list of names, of `old` ones, after ``a,b``, or after ``+a,-b``, which change it.

    new: the names. inherits: whether a list that is empty is another's, which it may change; it
    has the changes then, with their signs, until they are applied to that.
    """
    signs = [name[0] in "+-" for name in new]
    if not any(signs):
        return new
    if not all(signs) or any(len(name) == 1 for name in new):
        raise ValueError("give a list such as a,b, or changes such as +a,-b")
    found = dict.fromkeys(sorted(old) if isinstance(old, frozenset) else old)
    are_changes = inherits and all(name[0] in "+-" for name in found)
    for name in new:
        if are_changes:
            found.pop({"+": "-", "-": "+"}[name[0]] + name[1:], None)
            found[name] = None
        elif name[0] == "+":
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
