"""Phases and costs of the controller's threads, and the order of events at one time.

Phases are the wake-up times of threads. They are parameters, drawn from a seed or recorded.

Costs are off by default. Without them, a cycle happens at one time. With them, each test of the
backfill scheduler takes time: the cycle holds the controller for bf_yield_interval, releases it for
bf_yield_sleep, and stops at bf_max_time. In a published simulation of Stampede 2 (Simakov et al.
2018), cycles took 0.5 to 0.75 s per test.
Source: Slurm 22.05's documentation of these options.
"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from math import ceil, floor, inf
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from ptaskmodel.csv_tables import csv_rows
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.slurm.conf import values
from ptaskmodel.slurm.conf.facts import LINEAR, Conf
from ptaskmodel.workload.formats.json import read_json

FULL, DEFAULT_DEPTH, BACKFILL_CYCLE = "full", "default", "backfill"
VIRTUAL, BEHIND_S = "virtual", 1e-4
# By how little a date may be before a second and yet be in it.
PHASE_S = 0.5
AT_ONCE_S = 1e-9
# What a controller loses, as recorded under a scaled clock of some speed. It loses more with many
# jobs (BUSY) than with few. With each message, s of the clock by the square of the speed:
FEW_JOBS, MANY_JOBS = 10, 40
LOST_S, LOST_BUSY_S = 0.0003, 0.0002
# With a turn of the main loop, the second part by the speed; and when its first turn is:
TURN_S, SCALED_TURN_S = 1.001, 1.0041
LOOP_S, LOOP_BUSY_S = 0.000475, 0.000145
TURN_PHASE_S, TURN_PHASE_BUSY_S = 0.14, 0.31
DATABASE_S = 0.245
# With backfill's sleep; s of real time to make a cycle, to test a job in it, of whole or of shared
# nodes, and to give nodes back:
BACKFILL_S = 0.004
CYCLE_S, TEST_S, SHARED_TEST_S = 0.0001, 0.00005, 0.00018
CLEAN_S = 0.004
# Between two events that a recorded run has at one date.
APART_S = 1e-6
# Events that are less far apart have the same written date.
AT_ONE_DATE_S = 5e-4
# A pass that has waited longer than an epilog takes comes before nodes that are clean at its date;
# another one comes after them.
TIE_S = APART_S / 2
# Turns of a loop that is late.
PATIENCE_S = 2.5
_COLUMNS = ["time", "who", "what", "id"]
_PASSES = {"full queue": FULL, "default depth": DEFAULT_DEPTH}
# Why a cycle was over: all were looked at, or a limit, or something changed in a pause.
QUEUE, DEPTH, TIME, CHANGED, STARTS, ROOM = "queue", "depth", "time", "changed", "starts", "room"
LIMITS_S = 30
# Passes that are further apart have no jobs between them: limits are not checked there.
MOST_GAP_S = 86_400
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
    FULL: PASSED_FULL,
    DEFAULT_DEPTH: PASSED,
    BACKFILL_CYCLE: CYCLED,
}
# Something that is not an end of a job by itself: its date (s), one of the above, and of whom.
Event = tuple[float, int, int]


class Turn(NamedTuple):
    """A pass or a cycle that has been made, for whoever looks.

    what: FULL, DEFAULT_DEPTH or BACKFILL_CYCLE; of a cycle: how many jobs it tested, how long it
    took (0 without costs), and why it was over.
    """

    date_s: float
    what: str
    tested: int = 0
    lasted_s: float = 0.0
    end: str = ""


@dataclass(frozen=True, slots=True)
class Phases:
    """Where the periodic threads stand, and what a real controller loses, in seconds.

    t0: date 0 in Unix time (whole seconds): backfill's grid is one of Unix time. boot_s: when the
    controller came up (before date 0). turn_s: from one turn of the main loop to the next;
    turn_phase_s: when the first comes, after that. main_late_s: how much later than backfill's
    thread the main loop comes up.
    backfill_s: what backfill's sleeps take longer; test_s: and each job that a cycle tests.
    submit_s: from a submission's date to its arrival. end_s: by how much each job runs longer.
    clean_s: from the end of a job until its nodes are free. backfill_first: whether a cycle comes
    before a turn of the main loop at the same date. tests_first: whether the main loop tests which
    jobs may begin before the pass that it asks for; either may be first. If not, the age of tasks
    behind the limit of their array counts from when they are looked at.
    """

    t0: int = 0
    boot_s: float = -50.0
    turn_s: float = 1.0
    turn_phase_s: float = 0.0
    main_late_s: float = 0.0
    backfill_s: float = 0.0
    test_s: float = 0.0
    submit_s: float = 0.0
    end_s: float = 0.0
    clean_s: float = 0.0
    backfill_first: bool = False
    tests_first: bool = True

    @property
    def main_boot_s(self) -> float:
        """When the main loop came up."""
        return self.boot_s + self.main_late_s

    def turn_after(self, date: float) -> float:
        """The first turn of the main loop at a date or later."""
        first = self.boot_s + self.main_late_s + self.turn_phase_s
        return first + ceil((date - first) / self.turn_s - 1e-9) * self.turn_s


def drawn(seed: int, t0: int = 0) -> Phases:
    """Return phases drawn by a `seed`; 0 gives the defaults.

    t0: Unix time of simulated time 0, s.
    """
    if seed == 0:
        return Phases(t0)
    draw = random.Random(seed)
    return Phases(t0 + draw.randrange(60), boot_s=-50.0 - draw.random() * 60)


class _Meta(msgspec.Struct):
    t0: Annotated[float, msgspec.Meta(ge=0, le=2**33)]
    loaded: Annotated[float, msgspec.Meta(ge=-1e6, le=1e6)]
    speed: Annotated[float, msgspec.Meta(gt=0, le=200)] = 1.0
    phase: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0
    jobs: Annotated[int, msgspec.Meta(ge=0)] = 0
    clock: Literal["scaled", "virtual"] = "scaled"
    tests_first: bool = True


@reader(SlurmError)
def read_phases(path: AnyPath, account: Account, conf: Conf) -> Phases:
    """Return the phases of a run recorded under `conf`, from the file at `path` (runK.meta.json).

    Under a virtual clock, code takes no time and all threads begin at once. Of threads that wake at
    one time, the one that slept longest comes first; jobs are submitted and end after them.

    account: of the file. Raises WorkloadError or SlurmError for anything else, with the line or the
    JSON pointer.
    """
    try:
        meta = msgspec.convert(read_json(Path(path)), _Meta)
    except msgspec.ValidationError as fault:
        raise SlurmError(f"{account.file}: {fault}; give the meta.json of a run") from None
    if meta.clock == VIRTUAL:
        found = of_virtual_clock(int(meta.t0), meta.loaded, meta.phase - PHASE_S)
        return replace(found, tests_first=meta.tests_first)
    speed = meta.speed
    busy = min(max(meta.jobs - FEW_JOBS, 0) / (MANY_JOBS - FEW_JOBS), 1.0)
    lost_s = (LOST_S + LOST_BUSY_S * busy) * speed**2
    scaled_turn_s = SCALED_TURN_S + (LOOP_S + LOOP_BUSY_S * busy) * speed
    return Phases(
        int(meta.t0),
        meta.loaded,
        TURN_S if speed <= 1 else scaled_turn_s,
        TURN_PHASE_S + TURN_PHASE_BUSY_S * busy,
        DATABASE_S * speed if conf.database else 0.0,
        BACKFILL_S + CYCLE_S * speed,
        (TEST_S if conf.select_type == LINEAR else SHARED_TEST_S) * speed,
        meta.phase - PHASE_S + lost_s,
        lost_s,
        CLEAN_S * speed,
    )


def of_virtual_clock(t0: int, boot_s: float, late_s: float = 0.0) -> Phases:
    """The phases of a controller under a virtual clock (see `read_phases`), jobs that late."""
    late_s += BEHIND_S
    return Phases(t0, boot_s, submit_s=late_s, end_s=BEHIND_S, backfill_first=True)


class Recorded(NamedTuple):
    """Dates of a recorded run: passes and cycles (date, kind), submissions and ends by job.

    checked: when jobs were killed at their limits; none where that was not recorded.
    """

    cycles: tuple[tuple[float, str], ...]
    submitted: Mapping[str, float]
    ended: Mapping[str, float]
    checked: tuple[float, ...] = ()


@reader(SlurmError)
def read_cycles(path: AnyPath, account: Account) -> Recorded:
    """Return the times of a recorded run, from the file at `path` (runK.events.csv).

    Events of one time keep the file's order. account: of the file. Lines that cannot be read are
    left out, and told; SlurmError is raised if most are such.
    """
    cycles: list[tuple[float, str]] = []
    submitted: dict[str, float] = {}
    ended: dict[str, float] = {}
    checked: set[float] = set()
    written, apart = -inf, 0.0
    lines = csv_rows(read_text(path, error=SlurmError))
    if next(lines, (1, []))[1] != _COLUMNS:
        raise SlurmError(f"{account.file}:1: columns are not {','.join(_COLUMNS)}; give them")
    rows = [(line, row) for line, row in lines if row]
    for line, row in rows:
        with account.row(line):
            date, who, what, job = _event(row)
            apart = apart + APART_S if date == written else 0.0
            written = date
            date += apart
            if who == "main" and what in _PASSES:
                cycles.append((date, _PASSES[what]))
            elif who == "backfill" and what == "begin":
                cycles.append((date, BACKFILL_CYCLE))
            elif who == "job" and what == "submit":
                submitted[job] = date
            elif who == "job" and what == "end":
                ended[job] = date
            elif who == "limit" and what == "kill":
                checked.add(date)
    account.check_rows(len(rows))
    if not cycles:
        raise SlurmError(f"{account.file}:1: no line reports a pass or a cycle; give the "
                         "events.csv of a whole run")  # fmt: skip
    return Recorded(tuple(sorted(cycles)), submitted, ended, tuple(sorted(checked)))


def _event(row: list[str] | str) -> tuple[float, str, str, str]:
    """The date, who, what and the job of a line. Raises SlurmError."""
    if isinstance(row, str):
        raise SlurmError(f"{row}; write plain CSV")
    if len(row) < len(_COLUMNS):
        raise SlurmError("is not an event; give a date, who, what and a job, separated by commas")
    try:
        date = float(row[0])
    except ValueError:
        date = inf
    if not abs(date) <= values.LONGEST_S:
        raise SlurmError(f"time is {shown(row[0])}; give seconds from date 0")
    return date, row[1], row[2], row[3]


def late_cleaning(recorded: Recorded, delay_s: float) -> dict[str, float]:
    """When jobs gave their nodes back, of those that cannot have done so at their end.

    That asks for a pass, ``delay_s`` after the last one at most and some turns of the loop; where
    the recorded run has none, the nodes were completing, as far as is known until the next pass.
    """
    passes = [date for date, what in recorded.cycles if what != BACKFILL_CYCLE]
    found = {}
    for job, end in recorded.ended.items():
        k = bisect_right(passes, end)
        due = max(end, passes[k - 1] + delay_s if k else end)
        if k < len(passes) and passes[k] > due + PATIENCE_S:
            found[job] = passes[k]
    return found


def second_of(phases: Phases, date: float) -> int:
    """The controller's clock at a date: whole seconds of Unix time."""
    return phases.t0 + floor(date + AT_ONCE_S)


@dataclass(frozen=True, slots=True)
class Costs:
    """test_s: how long it takes backfill to test a job, s. Raises SlurmError below 0.

    counts_all: whether jobs that can no longer start in a cycle are tested, too, as Slurm does.
    If not, a compiled cycle ends before them where they decide nothing but the counts.
    """

    test_s: float = 0.0
    counts_all: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.test_s < float("inf"):
            raise SlurmError(f"a test that costs {self.test_s} s; give 0 or more")


FREE = Costs()


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
    full = [date for date, what in recorded.cycles if what == FULL]
    found = {*recorded.checked, *full}
    for date, following in pairwise([*full, inf]):
        gap = round(following - date) if following < inf else 2 * LIMITS_S
        gap *= gap <= MOST_GAP_S
        if gap % LIMITS_S == 0:
            found |= {_in_turn(recorded, date + late) for late in range(LIMITS_S, gap, LIMITS_S)}
    return found


def _in_turn(recorded: Recorded, date: float) -> float:
    """When a turn of the main loop that is due at a date comes: after cycles that came before."""
    first = bisect_left(recorded.cycles, (date, ""))
    before = takewhile(
        lambda cycle: cycle[0] < date + AT_ONE_DATE_S and cycle[1] == BACKFILL_CYCLE,
        recorded.cycles[first:],
    )
    return max((cycle[0] + APART_S / 2 for cycle in before), default=date)
