"""A ``--constraint`` on nodes: features joined by & and |, read from left to right.

``[a|b]``: all nodes of one kind, the first kind that suffices. ``a*2``, ``[a*1&b*2]``: numbers of
nodes with a feature; in brackets, different nodes for each.
Source: sbatch's manual, and `build_feature_list` and `valid_feature_counts` of Slurm 22.05.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TOKEN = re.compile(r"\s*([][()&|]|\*\d+|[^][()&|*]+)")


class Feature(NamedTuple):
    """A feature, or features in parentheses; after an operator, & if it is the first."""

    operator: str
    name: str = ""
    group: tuple[Feature, ...] = ()


class Portion(NamedTuple):
    """So many nodes with a feature. apart: not those of the portions before."""

    feature: Feature
    nodes: int
    apart: bool


@dataclass(frozen=True, slots=True)
class Constraint:
    """What is asked: of all nodes, then one of some ways, or so many nodes with each feature."""

    of_all: tuple[Feature, ...] = ()
    ways: tuple[Feature, ...] = ()
    portions: tuple[Portion, ...] = ()

    @property
    def names(self) -> set[str]:
        """The features that it names."""
        asked = [*self.of_all, *self.ways, *(portion.feature for portion in self.portions)]
        return {each.name for one in asked for each in (one.group or (one,))}


NOTHING = Constraint()


def has_all(asked: Collection[Feature], features: Collection[str]) -> bool:
    """Whether `features` fulfil what is asked, from left to right."""
    found = True
    for one in asked:
        has = has_all(one.group, features) if one.group else one.name in features
        found = found and has if one.operator == "&" else found or has
    return found


@functools.lru_cache(4096)
def parsed(text: str | None) -> Constraint:
    """What the `text` of a constraint says. Raises ValueError if Slurm does not take it."""
    if text is None:
        return NOTHING
    tokens = _tokens(text.replace(",", "&"))
    terms = list(_terms(tokens))
    inside = [term for term in terms if term.bracket]
    if len(inside) == 1:
        terms, inside = [term._replace(bracket=False) for term in terms], []
    if any(term.nodes for term in terms):
        if any(term.bracket and (term.joined == "|" or not term.nodes) for term in terms):
            raise ValueError("give each feature in brackets a number of nodes, joined by &")
        return Constraint(
            portions=tuple(
                Portion(term.feature, term.nodes, term.bracket) for term in terms if term.nodes
            )
        )
    if any(term.joined == "&" for term in inside):
        raise ValueError("give each feature in brackets a number of nodes, such as [a*1&b*2]")
    return Constraint(
        tuple(term.feature for term in terms if not term.bracket),
        tuple(term.feature for term in inside),
    )


class _Term(NamedTuple):
    """A feature. bracket: whether in brackets; joined: there, by what with its neighbours."""

    feature: Feature
    nodes: int
    bracket: bool
    joined: str


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    while place < len(text.rstrip()):
        token = _TOKEN.match(text, place)
        if token is None:
            raise ValueError(f"{text[place:]!r} is not understood")
        found.append(token[1].strip())
        place = token.end()
    return found[::-1]


def _terms(left: list[str]) -> Iterator[_Term]:
    """The terms of tokens, which are taken from the end of a list."""
    operator, bracket, brackets = "&", False, 0
    while True:
        if left and left[-1] == "[" and not bracket and not brackets:
            left.pop()
            bracket, brackets = True, 1
        opened = operator
        feature, count = _feature(left, operator)
        closes = bool(left) and left[-1] == "]"
        within, bracket = bracket, bracket and not closes
        if closes:
            if not within:
                raise ValueError("brackets do not match")
            left.pop()
        operator = left.pop() if left else ""
        if operator not in ("&", "|", ""):
            raise ValueError(f"{operator!r} stands where & or | may")
        joined = operator if within and not closes else opened if within else ""
        yield _Term(feature, count, within, joined)
        if not operator:
            break
    if bracket:
        raise ValueError("brackets do not match")


def _feature(left: list[str], operator: str) -> tuple[Feature, int]:
    """A feature or a group, and how many nodes of it are asked for; 0: not told."""
    word = left.pop() if left else ""
    if word == "(":
        members = [_named(left, "&")]
        while left and left[-1] in "&|":
            members.append(_named(left, left.pop()))
        if not left or left.pop() != ")":
            raise ValueError("parentheses do not match")
        feature = Feature(operator, group=tuple(members))
    else:
        left.append(word)
        feature = _named(left, operator)
    if left and left[-1].startswith("*"):
        count = int(left.pop()[1:])
        if not count:
            raise ValueError("give a number of nodes above 0")
        return feature, count
    return feature, 0


def _named(left: list[str], operator: str) -> Feature:
    word = left.pop() if left else ""
    if not word or word[0] in "[]()&|*":
        raise ValueError("a feature is missing")
    return Feature(operator, word)
