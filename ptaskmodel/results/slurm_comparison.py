"""Compare two configurations of Slurm on the same jobs: which classes of jobs gain or lose."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.results.batch_comparison import Standings, standings
from ptaskmodel.results.compared_metrics import TIME, idle_while_waiting_h
from ptaskmodel.results.loading import Results, results_of
from ptaskmodel.results.pictures.charts import Cumulative, Dot, DotPanel, curves, dots
from ptaskmodel.results.tables.slurm_reading import SlurmJob, grouped, is_slurm
from ptaskmodel.style.figures import check_picture, finished, picture, save
from ptaskmodel.style.text import column, count, duration, elided

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    *("job_id", "user", "account", "partition", "cpus", "submission_time", "state_a", "state_b"),
    *("starting_time_a", "starting_time_b", "waiting_time_a", "waiting_time_b", "change"),
    *("execution_time_a", "execution_time_b"),
)
# Waits that differ by no more than this, s, are called the same: a scheduler's turns and cycles.
SAME_s = 60.0
# How many users (accounts, partitions) are told of: those whose waits changed most in sum.
MOST_NAMES = 10
# Classes that the sentence at the head names.
MOST_TOLD = 3
BY = ("partition", "size", "length", "user", "account")
# By a part of a key of slurm.conf: what it deals with, whose classes come first.
CONCERNS = {"size": "size", "fairshare": "user", "account": "account", "assoc": "account"}
BETTER, WORSE, MIXED, UNCHANGED = "better", "worse", "mixed", "the same"
NAME, LETTERS = 24, 64  # of the name of a class in the picture, and with what becomes of its jobs
ROLES = {BETTER: "gain", WORSE: "lose"}  # of colours; others are ink

Array = NDArray[np.float64]


class GroupChange(NamedTuple):
    """What became of the jobs of a class that started in both runs.

    jobs: how many. before_s, after_s: median of their waits, and what 95 % of them wait at most, s.
    gain, lose: how many wait less or longer, by more than SAME_s. moved_s: the sum of changes, s.
    """

    by: str
    name: str
    jobs: int
    before_s: tuple[float, float]
    after_s: tuple[float, float]
    gain: int
    lose: int
    moved_s: float

    @property
    def same(self) -> int:
        """How many wait about as long."""
        return self.jobs - self.gain - self.lose

    @property
    def verdict(self) -> str:
        """BETTER or WORSE where waits and counts agree, MIXED where not, UNCHANGED if none differs.

        Waits: the median, or what 95 % wait at most if medians are about the same. Counts: those
        who gain and those who lose differ by more than twice the square root of their number. That
        is a rule of thumb and no test, since the jobs of a run depend on each other.
        """
        if not self.gain + self.lose:
            return UNCHANGED
        changes = [b - a for a, b in zip(self.before_s, self.after_s, strict=True)]
        change = next((one for one in changes if abs(one) > SAME_s), 0.0)
        clear = abs(self.gain - self.lose) > 2.0 * math.sqrt(self.gain + self.lose)
        if not clear or change * (self.lose - self.gain) <= 0.0:
            return MIXED
        return WORSE if change > 0.0 else BETTER


@dataclass(frozen=True, eq=False)
class SlurmComparison:
    """The jobs that are in both runs, in order of a; those that only one has, by id.

    waits_a_s, waits_b_s: of the jobs in both; nan for one that never started.
    """

    a: Results
    b: Results
    jobs_a: list[SlurmJob]
    jobs_b: list[SlurmJob]
    waits_a_s: Array
    waits_b_s: Array
    only_a: list[str]
    only_b: list[str]

    @property
    def changes_s(self) -> Array:
        """How much longer each job waits in b; nan where it did not start in one or both."""
        return self.waits_b_s - self.waits_a_s

    @cached_property
    def totals(self) -> Standings:
        """All metrics of both runs."""
        return standings([self.a, self.b])

    def settings(self) -> list[tuple[str, ...]]:
        """(name, in a, in b) of the settings and options that differ."""
        return [row for row in self.totals.choices() if row[0] != "input"]

    def order(self) -> list[str]:
        """The members of BY, that first which the changed settings deal with."""
        changed = " ".join(name for name, *_ in self.settings()).lower()
        by = "partition" if "partition" in changed else None
        by = by or next((by for part, by in CONCERNS.items() if part in changed), BY[0])
        return [by, *(each for each in BY if each != by)]

    def groups(self, by: str) -> list[GroupChange]:
        """What became of the jobs of each class: all sizes and lengths, of names the most changed.

        by: one of BY. The classes are those of a.
        """
        changes, known = self.changes_s, ~np.isnan(self.changes_s)
        found = []
        for name, numbers in grouped(self.jobs_a, by).items():
            mine = np.array(numbers)[known[numbers]]
            if len(mine):
                before_s, after_s = _levels(self.waits_a_s[mine]), _levels(self.waits_b_s[mine])
                (gain, lose), moved_s = _sides(changes[mine]), float(changes[mine].sum())
                found.append(
                    GroupChange(by, name, len(mine), before_s, after_s, gain, lose, moved_s)
                )
        if by in ("size", "length"):
            return found
        found.sort(key=lambda group: (-abs(group.moved_s), group.name))
        return found[:MOST_NAMES]

    def counts(self) -> dict[str, int]:
        """How many jobs wait less, longer, the same, or did not start in one or both."""
        changes = self.changes_s
        gain, lose = _sides(changes)
        unknown = int(np.isnan(changes).sum())
        same = len(changes) - gain - lose - unknown
        names = ("wait less", "wait longer", "wait the same", "did not start in one or both")
        return dict(zip(names, (gain, lose, same, unknown), strict=True))

    def counts_text(self) -> str:
        """`counts` for a reader."""
        counts = ", ".join(f"{count(n)} {name}" for name, n in self.counts().items() if n)
        return f"{count(len(self.jobs_a), 'job')} in both: {counts}"

    def answer(self) -> str:
        """The verdict, then what the change does to the classes it deals with, then its price.

        Each is a line. A user gains or loses whose mean wait changes by more than SAME_s.
        """
        groups = self.groups(self.order()[0])
        told = [
            f"{group.name}: half wait at most {_arrow(group, 0)}, 95 % {_arrow(group, 1)}"
            for group in groups[:MOST_TOLD]
        ]
        if len(groups) > MOST_TOLD:
            told.append(f"{len(groups) - MOST_TOLD} more below")
        gain, lose, same, unknown = self.counts().values()
        never = f", {count(unknown)} did not start in one or both" if unknown else ""
        hours = [idle_while_waiting_h(each) for each in (self.a, self.b)]
        unit = column(hours)
        return (
            f"{self._verdict()}\n{'; '.join(told)}.\nIdle while jobs wait: {unit.text(hours[0])} → "
            f"{unit.text(hours[1])} CPU h. {count(gain, 'job')} gain{'s' * (gain == 1)}, "
            f"{count(lose)} lose{'s' * (lose == 1)}, {count(same)} wait"
            f"{'s' * (same == 1)} about as long{never}."
        )

    def _verdict(self) -> str:
        """How the mean wait changes, of the jobs that started in both, and for how many users."""
        known = ~np.isnan(self.changes_s)
        if not known.any():
            return "No job started in both."
        before, after = (
            duration(float(of[known].mean())) for of in (self.waits_a_s, self.waits_b_s)
        )
        more = self.changes_s[known].mean() > 0.0
        means = f"Mean wait {'rises' if more else 'falls'} from {before} to {after}"
        if before == after:
            means = f"Mean wait stays {before}"
        users = (np.array(its) for its in grouped(self.jobs_a, "user").values())
        moved = [float(np.nanmean(self.changes_s[its])) for its in users if known[its].any()]
        gain, lose = _sides(np.array(moved))
        waits = "waits" if gain == 1 else "wait"
        of = count(len(moved), "user")
        return f"{means}; of {of} {count(gain)} {waits} less on average, {count(lose)} longer."

    def waits(self) -> Cumulative:
        """How long the jobs in both wait, cumulative, in a and in b."""
        waits = {"a": self.waits_a_s, "b": self.waits_b_s}
        found = curves({name: [of[~np.isnan(of)]] for name, of in waits.items()})
        return Cumulative("waiting of the jobs in both", TIME, found)

    def most_changed(self, number: int) -> list[tuple[SlurmJob, float, float]]:
        """(job, waits in a and b) of the `number` whose wait changed most, s; ties in order."""
        size = np.nan_to_num(np.abs(self.changes_s), nan=-1.0)
        order = np.argsort(-size, kind="stable")[:number]
        return [
            (self.jobs_a[k], float(self.waits_a_s[k]), float(self.waits_b_s[k]))
            for k in order.tolist()
            if size[k] > 0
        ]

    def write(self, stream: IO[str]) -> None:
        """Write COLUMNS of every job of both runs as CSV."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for a, b in zip(self.jobs_a, self.jobs_b, strict=True):
            waits = (a.wait_s, b.wait_s)
            known = None not in waits
            change = (b.wait_s or 0.0) - (a.wait_s or 0.0) if known else None
            writer.writerow(
                "" if value is None else f"{value:g}" if isinstance(value, float) else value
                for value in (
                    *(a.job_id, a.user, a.account, a.partition, a.cpus, a.submit_s),
                    *(a.state, b.state, a.start_s, b.start_s, *waits, change, a.run_s, b.run_s),
                )
            )


def class_table(groups: Sequence[GroupChange]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return heads, but for the first, and rows of texts of a table of `groups`, one or more."""
    levels = [[x for pair in zip(each.before_s, each.after_s, strict=True) for x in pair]
              for each in groups]  # fmt: skip
    median, high = (
        column([x for row in levels for x in row[first : first + 2]], TIME) for first in (0, 2)
    )
    units = median, median, high, high
    rows = [
        (each.name, count(each.jobs), *(unit.text(x) for unit, x in zip(units, row, strict=True)),
         *map(count, (each.gain, each.same, each.lose)), each.verdict)
        for each, row in zip(groups, levels, strict=True)
    ]  # fmt: skip
    heads = [unit.head(f"{name} {run}")
             for unit, name in ((median, "median"), (high, "95 %")) for run in "ab"]  # fmt: skip
    return ["jobs", *heads, "gain", "same", "lose", "waits are"], rows


def _levels(waits_s: Array) -> tuple[float, float]:
    """The median of waits, and what 95 % of them are at most."""
    return float(np.median(waits_s)), float(np.percentile(waits_s, 95))


def _sides(changes_s: Array) -> tuple[int, int]:
    """How many wait less, and how many longer, by more than SAME_s."""
    return int((changes_s < -SAME_s).sum()), int((changes_s > SAME_s).sum())


def _arrow(group: GroupChange, k: int) -> str:
    before, after = duration(group.before_s[k]), duration(group.after_s[k])
    return before if before == after else f"{before} → {after}"


def both_slurm(runs: Sequence[Results]) -> bool:
    """Whether all results are those of a simulated Slurm."""
    return all(is_slurm(each.summary) for each in runs)


def compare_slurm(
    a: Results | str | Path,
    b: Results | str | Path,
    *,
    table: str | Path | None = None,
    picture: str | Path | None = None,
) -> SlurmComparison:
    """Compare two runs of Slurm, or those in two directories, job by job; jobs are matched by id.

    table: also write a CSV file, a line for every job. picture: also draw which jobs gain or lose
    (.png, .svg or .pdf). Raises PTaskModelError if results cannot be read, are of another kind,
    have no job in common, or a file cannot be written.
    """
    if picture is not None:
        check_picture(picture)
    runs = results_of(a), results_of(b)
    for results in runs:
        if not is_slurm(results.summary):
            raise PTaskModelError(f"{results.directory}: not the results of ptaskmodel slurm")
    found = _compared(*runs)
    if table is not None:
        with whole_file(table) as stream:
            found.write(stream)
    if picture is not None:
        save(slurm_comparison_figure(found), picture)
    return found


def _compared(a: Results, b: Results) -> SlurmComparison:
    mine, others = a.jobs, {job.job_id: job for job in b.jobs}
    jobs_a = [job for job in mine if job.job_id in others]
    if not jobs_a:
        raise PTaskModelError(
            f"{a.directory} and {b.directory}: no job is in both; compare runs of the same workload"
        )
    jobs_b = [others[job.job_id] for job in jobs_a]
    known = {job.job_id for job in mine}
    only_a = [job.job_id for job in mine if job.job_id not in others]
    only_b = [name for name in others if name not in known]
    return SlurmComparison(a, b, jobs_a, jobs_b, _waits(jobs_a), _waits(jobs_b), only_a, only_b)


def _waits(jobs: Sequence[SlurmJob]) -> Array:
    return np.array([np.nan if job.wait_s is None else job.wait_s for job in jobs])


@picture
def slurm_comparison_figure(found: SlurmComparison) -> Figure:
    """Waits of classes of jobs before and after, and how many gain and lose."""
    names: list[str] = []
    rows: list[list[Dot]] = []
    for by in found.order():
        groups = found.groups(by)
        if len(groups) < 2:
            continue
        names.append(f"by {by}")
        rows.append([])
        for group in groups:
            counts = f"{group.gain} gain, {group.same} same, {group.lose} lose"
            names.append(f"{elided(group.name, NAME)}: {counts}")
            levels = (group.before_s, "soft"), (group.after_s, ROLES.get(group.verdict, "ink"))
            rows.append([Dot(half, half, high, role) for (half, high), role in levels])
    runs = f"above {found.a.directory.name}, below {found.b.directory.name}"
    key = f"dots: what half wait at most; lines: to what 95 % do; {runs}\n"
    key += "green: better; violet: worse; black: neither"
    figure = dots(names, [DotPanel("wait", TIME, rows)], key, letters=LETTERS)
    return finished(figure, found.counts_text(), "", " ".join(found.answer().splitlines()))
