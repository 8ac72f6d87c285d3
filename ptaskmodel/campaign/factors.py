"""Factors of a campaign: what it varies, and which combinations it runs.

A factor has levels (a list, a range, or the files that match a pattern), or is drawn from an
interval. The points are all combinations of levels, times the points drawn from the intervals (at
random, or as a Latin hypercube; McKay, Beckman and Conover 1979). Constraints leave out points:
they are expressions in a small language, which Python's grammar parses and this module evaluates.
"""

from __future__ import annotations

import ast
import glob
import itertools
import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.errors import CampaignError, shown

Value = bool | int | float | str
METHODS = ("random", "latin-hypercube")
SCALES = ("linear", "log")
MOST_LEVELS = 100_000
MOST_POINTS = 10_000_000
_LIST = "a list of values"
_RANGE = "{from = .., to = .., step = ..}"
_FILES = '{files = "PATTERN"}'
_DRAWN = '{least = .., most = .., scale = "linear"|"log"}'
HOW = f"{_LIST}, {_RANGE}, {_FILES} or {_DRAWN}"
LONGEST = 1000
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_COUNT: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_WHAT = "conditions compare parameters, numbers and texts with ==, <, in, and, or, not, + - * / %"


@dataclass(frozen=True, slots=True)
class Interval:
    """A factor that is drawn: between two numbers, evenly or so in its logarithm."""

    least: float
    most: float
    scale: str = "linear"
    whole: bool = False

    def at(self, part: float) -> float | int:
        """The value at a part, 0 to below 1, of the interval; a whole number between two such."""
        if self.whole:
            return int(self.least) + int(part * (self.most - self.least + 1.0))
        if self.scale == "log":
            return math.exp(math.log(self.least) * (1.0 - part) + math.log(self.most) * part)
        return self.least * (1.0 - part) + self.most * part


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many points are drawn, how, from which seed."""

    count: int
    method: str = "latin-hypercube"
    seed: int = 0


def read_factor(name: str, given: object, folder: Path) -> tuple[Value, ...] | Interval:
    """The levels of a factor, or the interval it is drawn from.

    folder: what patterns of files are relative to. Raises CampaignError.
    """
    if isinstance(given, list):
        return _levels(name, given)
    if not isinstance(given, dict):
        raise CampaignError(f"factors.{name}: {shown(given)} is not {HOW}")
    keys = set(given)
    if keys == {"files"}:
        return _files(name, given["files"], folder)
    if "from" in keys and keys <= {"from", "to", "step"}:
        return _range(name, given)
    if {"least", "most"} <= keys <= {"least", "most", "scale"}:
        return _interval(name, given)
    raise CampaignError(f"factors.{name}: {', '.join(sorted(keys)) or 'nothing'} is not {HOW}")


def _levels(name: str, given: Sequence[object]) -> tuple[Value, ...]:
    if not given:
        raise CampaignError(f"factors.{name}: is empty; give at least one value")
    levels: list[Value] = []
    for value in given:
        if not isinstance(value, bool | int | float | str):
            raise CampaignError(
                f"factors.{name}: {shown(value)} is not a number, string or boolean; give one"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise CampaignError(f"factors.{name}: {value} is not finite; give a number")
        if any(value == other and type(value) is type(other) for other in levels):
            raise CampaignError(f"factors.{name}: {shown(value)} occurs twice; give it once")
        levels.append(value)
    return tuple(levels)


def _number(name: str, key: str, value: object) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise CampaignError(
            f"factors.{name}.{key}: {shown(value)} is not a finite number; give one"
        )
    return value


def _range(name: str, given: Mapping[str, object]) -> tuple[Value, ...]:
    if "to" not in given:
        raise CampaignError(f"factors.{name}: a range without an end; write {_RANGE}")
    first = _number(name, "from", given["from"])
    last = _number(name, "to", given["to"])
    step = _number(name, "step", given.get("step", 1))
    if step <= 0 or last < first:
        raise CampaignError(
            f"factors.{name}: from {first} to {last} by {step} is not an increasing range; "
            "correct it"
        )
    steps = (last - first) / step
    if steps >= MOST_LEVELS:
        raise CampaignError(f"factors.{name}: more than {MOST_LEVELS:,} levels; take a larger step")
    # The end is meant where rounding alone misses it.
    count = math.floor(steps * (1.0 + 1e-12) + 1e-9) + 1
    whole = all(isinstance(number, int) for number in (first, step))
    values = [first + k * step for k in range(count)]
    return tuple(values if whole else [float(f"{value:.12g}") for value in values])


def _files(name: str, pattern: object, folder: Path) -> tuple[Value, ...]:
    if not isinstance(pattern, str) or not pattern:
        raise CampaignError(
            f"factors.{name}.files: {shown(pattern)} is not a file pattern; give one"
        )
    found = sorted(glob.glob(pattern, root_dir=folder, recursive=True))
    if not found:
        raise CampaignError(
            f"factors.{name}.files: no file matches {shown(pattern)} in {folder}; correct it"
        )
    return tuple(found)


def _interval(name: str, given: Mapping[str, object]) -> Interval:
    least = _number(name, "least", given["least"])
    most = _number(name, "most", given["most"])
    scale = given.get("scale", "linear")
    if scale not in SCALES:
        raise CampaignError(
            f"factors.{name}.scale: {shown(scale)} is unknown; use one of {', '.join(SCALES)}"
        )
    if not least < most or (scale == "log" and least <= 0):
        raise CampaignError(
            f"factors.{name}: there is nothing to draw between {least} and {most}; correct them"
        )
    whole = isinstance(least, int) and isinstance(most, int)
    return Interval(float(least), float(most), str(scale), whole and scale == "linear")


def points(
    factors: Mapping[str, tuple[Value, ...] | Interval],
    sampling: Sampling | None,
    repetitions: int = 1,
) -> Iterator[dict[str, Value]]:
    """Every combination of levels with every point drawn, the last factor varying fastest.

    Raises CampaignError if something is to be drawn and `sampling` is None, or the reverse, or if
    there are too many, repetitions counted.
    """
    levels = {name: one for name, one in factors.items() if not isinstance(one, Interval)}
    drawn = {name: one for name, one in factors.items() if isinstance(one, Interval)}
    if drawn and sampling is None:
        raise CampaignError(
            f"factors.{next(iter(drawn))}: is sampled; set the number of samples: [sample] "
            "count = .."
        )
    if sampling is not None and not drawn:
        raise CampaignError(f"sample: no factor is sampled; give one as {_DRAWN}")
    total = math.prod(len(one) for one in levels.values()) * (sampling.count if sampling else 1)
    if total > MOST_POINTS:
        raise CampaignError(
            f"factors: {total:,} combinations, more than {MOST_POINTS:,}; use fewer levels"
        )
    if total * repetitions > MOST_POINTS:
        raise CampaignError(
            f"repetitions: {repetitions:,} of {total:,} combinations are too many runs; "
            f"at most {MOST_POINTS:,} in total"
        )
    parts = _parts(len(drawn), sampling) if sampling else np.zeros((1, 0))
    for combination in itertools.product(*levels.values()):
        fixed = dict(zip(levels, combination, strict=True))
        for row in parts.tolist():
            one = {name: drawn[name].at(part) for name, part in zip(drawn, row, strict=True)}
            yield {name: fixed[name] if name in fixed else one[name] for name in factors}


def _parts(dimensions: int, sampling: Sampling) -> np.ndarray:
    """Points of the unit cube, a row each."""
    rng = np.random.default_rng(sampling.seed)
    parts = rng.random((sampling.count, dimensions))
    if sampling.method == "latin-hypercube":  # one point in each of as many slices of each side
        slices = [rng.permutation(sampling.count) for _ in range(dimensions)]
        parts = (parts + np.stack(slices, axis=1)) / sampling.count
    return parts


class Condition:
    """A condition such as ``load < 0.9 or allocation != 'random'``.

    Names are parameters; one with a dot in it is written as it is. Raises CampaignError if the text
    is no such condition or names something else.
    """

    def __init__(self, text: str, names: Collection[str]) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise CampaignError(
                f"constraints: {len(text)} characters are too many; write at most {LONGEST}"
            )
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise CampaignError(f"constraints: {shown(text)} is not a condition; {_WHAT}") from None
        self._check(self._tree, names)

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Whether it holds for these parameters. Raises CampaignError if they do not compare."""
        try:
            return bool(self._value(self._tree, parameters))
        except (TypeError, ZeroDivisionError, OverflowError) as fault:
            raise CampaignError(
                f"constraints: {shown(self.text)} cannot be evaluated: {fault}"
            ) from None

    def _check(self, node: ast.AST, names: Collection[str]) -> None:
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                parts: list[ast.AST] = []
            case ast.Name() | ast.Attribute():
                name = _dotted(node)
                if name not in names:
                    raise CampaignError(
                        f"constraints: {shown(self.text)} uses {shown(name)}, which is not a "
                        f"parameter: use one of {', '.join(sorted(names))}"
                    )
                parts = []
            case ast.BoolOp(values=values):
                parts = list(values)
            case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
                parts = [operand]
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _COMPARE for op in ops
            ):
                parts = [left, *others]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _COUNT:
                parts = [left, right]
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                parts = list(elements)
            case _:
                raise CampaignError(f"constraints: {shown(self.text)} is not a condition; {_WHAT}")
        for part in parts:
            self._check(part, names)

    def _value(self, node: ast.AST, given: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.BoolOp(op=ast.And(), values=values):
                return all(self._value(value, given) for value in values)
            case ast.BoolOp(values=values):
                return any(self._value(value, given) for value in values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand, given)
            case ast.UnaryOp(operand=operand):
                return -self._value(operand, given)
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [self._value(one, given) for one in (left, *others)]
                pairs = zip(ops, values[:-1], values[1:], strict=True)
                return all(_COMPARE[type(op)](a, b) for op, a, b in pairs)
            case ast.BinOp(left=left, op=op, right=right):
                return _COUNT[type(op)](self._value(left, given), self._value(right, given))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return [self._value(element, given) for element in elements]
        return given.get(_dotted(node))


def _dotted(node: ast.AST) -> str:
    """``a.b`` of an attribute of a name."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
