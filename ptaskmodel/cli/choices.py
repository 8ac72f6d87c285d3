"""Names to choose from on the command line; what is nearly right is answered with the nearest."""

from __future__ import annotations

import difflib
from typing import Any

import click


class Choice(click.Choice):
    """One of some names; a wrong one is answered with the nearest.

    others: what may be given besides, as it is named to who gave something wrong.
    """

    others: tuple[str, ...] = ()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value not in self.choices:
            near = difflib.get_close_matches(str(value), self.choices, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            known = ", ".join([*self.choices, *self.others])
            self.fail(f"{_name(param)} '{value}' is unknown: use one of {known}{hint}", param, ctx)
        return value


def _name(param: click.Parameter | None) -> str:
    return (param.name or "name").replace("_", " ") if param is not None else "name"
