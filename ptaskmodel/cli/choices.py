"""Names to choose from on the command line; what is nearly right is answered with the nearest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click


class Choice(click.Choice):
    """One of some names; a wrong one is answered with the nearest.

    others: what may be given besides, as it is named to who gave something wrong.
    """

    others: tuple[str, ...] = ()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            hint = did_you_mean(str(value), self.choices)
            known = ", ".join([*self.choices, *self.others])
            self.fail(f"{_name(param)} '{value}' is unknown: use one of {known}{hint}", param, ctx)
        return value


def did_you_mean(value: str, choices: Iterable[str]) -> str:
    """The end of a message on a wrong name: the nearest one, whatever the case."""
    import difflib

    known = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(value.lower(), known, 1)
    return f"; did you mean '{known[near[0]]}'?" if near else ""


def _name(param: click.Parameter | None) -> str:
    return (param.name or "name").replace("_", " ") if param is not None else "name"
