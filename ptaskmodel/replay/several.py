"""How far several replays of one trace are, one after another."""

from __future__ import annotations

from ptaskmodel.replay.driver import Progress
from ptaskmodel.workload.ti_traces import Trace


class Several:
    """Tells ``progress`` of the actions of all of so many ``replays`` of a trace."""

    def __init__(self, replays: int, trace: Trace, progress: Progress | None) -> None:
        self._each, self._total, self._progress = len(trace), replays * len(trace), progress

    def replay(self, number: int) -> Progress | None:
        """What to tell of the replay with that number, from 0; None: nobody asks."""
        progress = self._progress
        if progress is None:
            return None

        def tell(now_s: float, actions: int, _: int) -> None:
            progress(now_s, number * self._each + actions, self._total)

        return tell
