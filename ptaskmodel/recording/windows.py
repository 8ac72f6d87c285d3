"""The routes whose TCP window holds tasks back, numbered as limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.core.patterns.windows import Window, narrowest_window
from ptaskmodel.core.state import LIMIT_WINDOW

if TYPE_CHECKING:
    from ptaskmodel.core.driver import Core

# In recordings LIMIT_WINDOW gives way to the number of a route, below those of cores.
FIRST_ROUTE = -(1 << 40)


class Windows:
    """The routes whose TCP window limited something, numbered as limits from FIRST_ROUTE down."""

    def __init__(self) -> None:
        self.routes: list[Window] = []
        self._numbers: dict[Window, int] = {}
        self._of: dict[tuple[int, float], int] = {}

    def name(self, records: np.ndarray, core: Core) -> None:
        """Say in RATE events that a window limits which route's it is; patterns are as they run."""
        held = np.flatnonzero(records["limit"] == LIMIT_WINDOW)
        patterns = records["pattern"][held]
        products = core.state.patterns["latency_bytes"][patterns]
        records["limit"][held] = [
            self._number(core, *pair)
            for pair in zip(patterns.tolist(), products.tolist(), strict=True)
        ]

    def _number(self, core: Core, pattern: int, latency_bytes: float) -> int:
        number = self._of.get((pattern, latency_bytes))
        if number is None:
            window = narrowest_window(core.router, core.patterns.shape(pattern), latency_bytes)
            number = self._numbers.setdefault(window, FIRST_ROUTE - len(self.routes))
            if number == FIRST_ROUTE - len(self.routes):
                self.routes.append(window)
            self._of[pattern, latency_bytes] = number
        return number

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        gone = set(patterns)
        self._of = {key: number for key, number in self._of.items() if key[0] not in gone}

    def route(self, limit: int) -> Window | None:
        """The route of a limit, None if it is another one."""
        return self.routes[FIRST_ROUTE - limit] if limit <= FIRST_ROUTE else None
