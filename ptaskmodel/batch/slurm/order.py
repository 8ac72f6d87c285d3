"""What happens in the loop of a Slurm simulation, by what comes first at one date."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ptaskmodel.batch.slurm import phases
from ptaskmodel.batch.slurm.phases import Recorded

LIMITS_S = 30
(
    CLEAN,
    SUBMIT,
    COMMAND,
    NODES,
    TURN,
    REFRESH,
    SLICE,
    CYCLE,
    END,
    CHECK,
    PASSED_FULL,
    PASSED,
    CYCLED,
    RELEASED,
) = range(14)
_SCRIPTED = {
    phases.FULL: PASSED_FULL,
    phases.DEFAULT_DEPTH: PASSED,
    phases.BACKFILL: CYCLED,
}


# Something that is not an end of a job by itself: its date (s), one of the above, and of whom.
Event = tuple[float, int, int]


def script_of(recorded: Recorded, places: Mapping[str, int]) -> list[Event]:
    """Passes, cycles, limit checks and ends at the dates of a recorded run.

    places: of jobs by their ids, in order of submission.
    """
    script: list[Event] = [(date, _SCRIPTED[what], 0) for date, what in recorded.cycles]
    script += [(date, CHECK, 0) for date in _checks(recorded)]
    script += [(date, END, places[job]) for job, date in recorded.ended.items() if job in places]
    return sorted(script)


def _checks(recorded: Recorded) -> set[float]:
    """When limits were checked: when jobs were killed, and every 30 s from each full pass on."""
    full = [date for date, what in recorded.cycles if what == phases.FULL]
    found = {*recorded.checked, *full}
    for date, following in zip(full, [*full[1:], inf], strict=True):
        gap = round(following - date) if following < inf else 2 * LIMITS_S
        if gap % LIMITS_S == 0:
            found |= {date + late for late in range(LIMITS_S, gap, LIMITS_S)}
    return found
