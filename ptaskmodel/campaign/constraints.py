"""Conditions on the parameters of a run: a small language, read by Python's grammar, run by us."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ptaskmodel.errors import CampaignError, shown

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


class Condition:
    """A condition such as ``load < 0.9 or allocation != 'random'``.

    Names are parameters; one with a dot in it is written as it is. Raises CampaignError if the text
    is no such condition or names something else.
    """

    def __init__(self, text: str, names: Collection[str]) -> None:
        self.text = text
        if len(text) > LONGEST:
            raise CampaignError(
                f"constraints: {len(text)} characters are too many; write {LONGEST}"
            )
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise CampaignError(f"constraints: {shown(text)} is no condition; {_WHAT}") from None
        self._check(self._tree, names)

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Whether it holds for these parameters. Raises CampaignError if they do not compare."""
        try:
            return bool(self._value(self._tree, parameters))
        except (TypeError, ZeroDivisionError, OverflowError) as fault:
            raise CampaignError(
                f"constraints: {shown(self.text)} cannot be decided: {fault}"
            ) from None

    def _check(self, node: ast.AST, names: Collection[str]) -> None:
        match node:
            case ast.Constant(value=bool() | int() | float() | str()):
                parts: list[ast.AST] = []
            case ast.Name() | ast.Attribute():
                name = _dotted(node)
                if name not in names:
                    raise CampaignError(
                        f"constraints: {shown(self.text)} names {shown(name)}, which is no "
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
                raise CampaignError(f"constraints: {shown(self.text)} is no condition; {_WHAT}")
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
