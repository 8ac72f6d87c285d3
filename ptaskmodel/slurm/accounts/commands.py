"""Parse lines of scripts that call sacctmgr: what is added, modified and removed.

`sacctmgr.read_accounts` does what they say. Source: Slurm's manual of sacctmgr.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from ptaskmodel.errors import shown
from ptaskmodel.slurm.accounts.options import LISTS, key_of
from ptaskmodel.slurm.conf import values

Options = list[tuple[str, str]]
ADD, MODIFY, REMOVE = "add", "modify", "remove"
QOS, ACCOUNT, USER, CLUSTER = "qos", "account", "user", "cluster"
KINDS = (QOS, ACCOUNT, USER, CLUSTER)
_VERBS = {"add": ADD, "create": ADD, "modify": MODIFY, "delete": REMOVE, "remove": REMOVE}
# What changes nothing of accounts, and what changes nothing that is simulated.
_LISTING = ("list", "show", "dump", "ping", "help", "version", "exit", "quit", "reconfigure")
_OTHERS = ("archive", "clear", "load", "shutdown", "verify")
_NOT_HERE = (
    *("coordinator", "wckey", "tres", "resource", "federation", "event", "job", "transaction"),
    *("reservation", "runawayjob", "stat", "problem", "config", "association", "instance"),
)
# A word of a command may be cut to so many letters.
_SHORT = 3
_REDIRECTED = re.compile(r"""(?<![^\s])\d?>{1,2}\s*(?:&\d|[^\s'"]+)|&>\s*\S+""")
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


def joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the `text` of a script, those that end in a backslash with what continues them.

    Each comes with the number of its first; comments are empty lines.
    """
    begun, before = 0, ""
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        begun = begun or number
        line = "" if not before and raw.lstrip().startswith("#") else before + raw
        if line.endswith("\\"):
            before = line[:-1]
            continue
        yield begun, line
        begun, before = 0, ""
    if before:
        yield begun, before


def calls_of(line: str) -> Iterator[Call]:
    """The calls in a line, by any path, with sudo and several times.

    Raises ValueError with the remedy.
    """
    try:
        words = list(_Words(_REDIRECTED.sub(" ", line)))
    except ValueError:
        raise ValueError("close the quote") from None
    begin = 0
    for place, word in enumerate([*words, ";"]):
        if word and not set(word) - set(";&|"):
            some = words[begin:place]
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
            return PassedOver(f"{text} is not a call of sacctmgr", True)
        raise ValueError(
            f"{text}: is not a command of sacctmgr; begin it with add, modify or remove"
        )
    if verb in _LISTING or verb in _OTHERS:
        return PassedOver(f"{text} has no effect here", verb in _OTHERS)
    if any("$" in word for word in words):
        raise ValueError(f"{text}: uses shell variables; write their values")
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
