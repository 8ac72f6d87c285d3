"""Several controllers whose jobs share one platform: their loops in step, on one execution."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ptaskmodel.batch.execution import Execution
from ptaskmodel.batch.slurm.loop import Loop, Progress
from ptaskmodel.memory import collector_at_rest

# Events between two calls that say how far it is.
PROGRESS_EVERY = 256


def run_together(
    loops: Sequence[Loop], execution: Execution, progress: Progress | None = None
) -> None:
    """Go on until the jobs of every loop are over, or nothing will ever happen again.

    Of events at one date those of the first loop come first; jobs that end come before all. The
    numbers of attempts are unique among the loops. progress: as in `Loop.run`, of all jobs.
    """
    coming = {loop: event for loop in loops if (event := loop.next_event()) is not None}
    steps = 0
    with collector_at_rest():
        while coming:
            first = min(coming, key=lambda loop: coming[loop][0])
            date = coming[first][0]
            now, ended = execution.advance(date)
            if not ended and date == inf:
                return
            changed = [loop for loop in loops if loop.take_ends(now, ended)]
            if not ended:
                first.do(coming[first])
                changed = [first]
            for loop in changed:
                event = loop.next_event()
                if event is None:
                    coming.pop(loop, None)
                else:
                    coming[loop] = event
            steps += 1
            if progress is not None and steps % PROGRESS_EVERY == 0:
                over = sum(loop.controller.over for loop in loops)
                progress(now, over, sum(len(loop.controller.queue.jobs) for loop in loops))
