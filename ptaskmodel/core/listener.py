"""Who is told of what happens on a core."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Listener(Protocol):
    """Takes the stream of events, in order of date, in arrays of `state.EVENT` not to be changed.

    Rates are constant between two RATE events of an owner.
    """

    def take(self, events: np.ndarray) -> None: ...

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns: the last moment to ask for their uses.

        All events on them have been taken.
        """
        ...
