"""Compare two configurations of Slurm on the same jobs: changes of waiting times, and a picture."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.results.loading import Results, results_of
from ptaskmodel.results.pictures.drawing import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    check_picture,
    new_figure,
    save,
    time_unit,
)
from ptaskmodel.results.tables.slurm_reading import (
    SlurmJob,
    grouped,
    is_slurm,
    last_date_s,
    read_jobs,
    waiting,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = (
    *("job_id", "user", "account", "partition", "cpus", "submission_time", "state_a", "state_b"),
    *("starting_time_a", "starting_time_b", "waiting_time_a", "waiting_time_b", "change"),
    *("execution_time_a", "execution_time_b"),
)
# Waits that differ by no more than this, s, are called the same: a scheduler's turns and cycles.
SAME_s = 60.0
# The bounded slowdown's threshold, s.
TAU_s = 60.0
# How many users (accounts, partitions) are told of: those whose waits changed most in sum.
MOST_NAMES = 10
# Changes whose largest is so many times the median need a bent axis.
BENT = 50.0
BY = ("size", "length", "user", "account", "partition")

Array = NDArray[np.float64]


class GroupChange(NamedTuple):
    """What became of some jobs.

    jobs: that started in both runs. wait_a_s, wait_b_s: means. gain, lose: how many wait less or
    longer, by more than SAME_s.
    """

    by: str
    name: str
    jobs: int
    wait_a_s: float
    wait_b_s: float
    gain: int
    lose: int

    @property
    def change_s(self) -> float:
        return self.wait_b_s - self.wait_a_s


@dataclass(frozen=True, slots=True, eq=False)
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

    def settings(self) -> list[tuple[str, str, str]]:
        """(name, in a, in b) of the settings that differ."""
        a, b = (results.summary.get("settings") or {} for results in (self.a, self.b))
        names = [*a, *(name for name in b if name not in a)]
        texts = [(name, str(a.get(name, "-")), str(b.get(name, "-"))) for name in names]
        found = [each for each in texts if each[1] != each[2]]
        for name in ("workload", "controllers", "seed", "test_cost_s"):
            x, y = (results.summary.get(name) for results in (self.a, self.b))
            if x != y:
                found.append((name, str(x), str(y)))
        return found

    def totals(self) -> list[tuple[str, float | None, float | None]]:
        """(what, in a, in b) over the jobs that are in both runs, and of the machine."""
        sides = ((self.a, self.jobs_a, self.waits_a_s), (self.b, self.jobs_b, self.waits_b_s))
        columns = [dict(_totals(*side)) for side in sides]
        return [(name, columns[0][name], columns[1][name]) for name in columns[0]]

    def groups(self, by: str) -> list[GroupChange]:
        """What became of the jobs of each group: all sizes and lengths, of names the most changed.

        The groups are those of a.
        """
        changes, known = self.changes_s, ~np.isnan(self.changes_s)
        found = []
        for name, numbers in grouped(self.jobs_a, by).items():
            mine = np.array(numbers)[known[numbers]]
            if len(mine):
                found.append(
                    GroupChange(
                        by,
                        name,
                        len(mine),
                        float(self.waits_a_s[mine].mean()),
                        float(self.waits_b_s[mine].mean()),
                        int((changes[mine] < -SAME_s).sum()),
                        int((changes[mine] > SAME_s).sum()),
                    )
                )
        if by in ("size", "length"):
            return found
        found.sort(key=lambda group: (-abs(group.change_s * group.jobs), group.name))
        return found[:MOST_NAMES]

    def counts(self) -> dict[str, int]:
        """How many jobs wait less, longer, the same, or did not start in one or both."""
        changes = self.changes_s
        gain, lose = int((changes < -SAME_s).sum()), int((changes > SAME_s).sum())
        unknown = int(np.isnan(changes).sum())
        same = len(changes) - gain - lose - unknown
        names = ("wait less", "wait longer", "wait the same", "did not start in one or both")
        return dict(zip(names, (gain, lose, same, unknown), strict=True))

    def most_changed(self, number: int) -> list[tuple[SlurmJob, float, float]]:
        """(job, waits in a and b) of those whose wait changed most, s; ties in order."""
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


def _totals(
    results: Results, jobs: Sequence[SlurmJob], waits_s: Array
) -> list[tuple[str, float | None]]:
    started = waits_s[~np.isnan(waits_s)]
    ran = [job for job in jobs if job.wait_s is not None and job.run_s is not None]
    slowdown = [_bounded(job) for job in ran]
    cpu_s = np.array([job.cpus * (job.run_s or 0.0) for job in ran])
    waited = np.array([job.wait_s for job in ran])
    weighted = float((waited * cpu_s).sum() / cpu_s.sum()) if cpu_s.sum() > 0 else None
    summary: Mapping[str, Any] = results.summary
    backfill = summary.get("backfill") or {}
    used = summary.get("utilisation")
    return [
        ("jobs started", float(len(started))),
        ("mean wait (s)", float(started.mean()) if len(started) else None),
        ("median wait (s)", float(np.median(started)) if len(started) else None),
        ("95 % wait at most (s)", float(np.percentile(started, 95)) if len(started) else None),
        ("longest wait (s)", float(started.max()) if len(started) else None),
        ("mean wait, by CPU time (s)", weighted),
        ("mean bounded slowdown", float(np.mean(slowdown)) if slowdown else None),
        ("utilisation (%)", None if used is None else 100.0 * used),
        ("makespan (s)", _number(summary.get("makespan_s"))),
        ("started by backfill", _number(backfill.get("started"))),
        ("killed at their limits", float(sum(job.state == "TIMEOUT" for job in jobs))),
    ]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _bounded(job: SlurmJob) -> float:
    wait_s, run_s = job.wait_s or 0.0, job.run_s or 0.0
    return max(1.0, (wait_s + run_s) / max(run_s, TAU_s))


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
    mine, others = read_jobs(a.directory), {job.job_id: job for job in read_jobs(b.directory)}
    jobs_a = [job for job in mine if job.job_id in others]
    if not jobs_a:
        raise PTaskModelError(
            f"{a.directory} and {b.directory}: no job is in both; compare runs of the same workload"
        )
    jobs_b = [others[job.job_id] for job in jobs_a]
    known = {job.job_id for job in mine}
    return SlurmComparison(
        a,
        b,
        jobs_a,
        jobs_b,
        _waits(jobs_a),
        _waits(jobs_b),
        [job.job_id for job in mine if job.job_id not in others],
        [name for name in others if name not in known],
    )


def _waits(jobs: Sequence[SlurmJob]) -> Array:
    return np.array([np.nan if job.wait_s is None else job.wait_s for job in jobs])


# --- the picture ----------------------------------------------------------------------------------


def slurm_comparison_figure(found: SlurmComparison) -> Figure:
    """Queues of both over time; the change of the mean wait by size, length and user; of all."""
    figure = new_figure(11.0, 9.5)
    grid = figure.add_gridspec(3, 2, height_ratios=(0.8, 1.0, 1.0))
    _queues(figure.add_subplot(grid[0, :]), found)
    places = ((1, 0, "size"), (1, 1, "length"), (2, 0, "user"))
    groups = {by: found.groups(by) for _, _, by in places}
    largest = max((abs(each.change_s) for of in groups.values() for each in of), default=1.0)
    unit, unit_name = time_unit(largest)
    for row, column, by in places:
        _changes(figure.add_subplot(grid[row, column]), groups[by], by, unit, unit_name)
    _every_job(figure.add_subplot(grid[2, 1]), found)
    names = f"a: {found.a.directory}\nb: {found.b.directory}"
    figure.suptitle(names, fontsize=10, ha="left", x=0.01)
    return figure


def _queues(axes: Any, found: SlurmComparison) -> None:
    sides = ((found.jobs_a, ORANGE, "a"), (found.jobs_b, BLUE, "b"))
    end_s = max(last_date_s(jobs) for jobs, _, _ in sides)
    unit, unit_name = time_unit(end_s)
    for jobs, colour, name in sides:
        curve = waiting(jobs, end_s)
        axes.step(curve.dates_s / unit, curve.values, where="post", color=colour, label=name)
    axes.set_xlim(0.0, end_s / unit)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_ylabel("jobs that wait")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper right", frameon=False, ncols=2)


def _changes(axes: Any, groups: list[GroupChange], by: str, unit: float, unit_name: str) -> None:
    for row, group in enumerate(groups):
        colour = BLUE if group.change_s < 0 else RED
        axes.barh(row, group.change_s / unit, color=colour, height=0.7)
    axes.set_yticks(range(len(groups)))
    axes.set_yticklabels([f"{each.name} ({each.jobs:,})" for each in groups], fontsize=8)
    axes.invert_yaxis()
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.grid(alpha=0.3, axis="x")
    axes.set_xlabel(f"mean wait in b minus that in a ({unit_name})")
    most = " (those it changes most for)" if by == "user" else ""
    axes.set_title(f"by {by}{most}: blue gains, orange loses", fontsize=9, loc="left")


def _every_job(axes: Any, found: SlurmComparison) -> None:
    changes = np.sort(found.changes_s[~np.isnan(found.changes_s)])
    axes.set_title("every job", fontsize=9, loc="left")
    axes.set_ylabel("jobs with at most that change (%)")
    axes.set_ylim(0.0, 102.0)
    if not len(changes):
        return
    unit, unit_name = time_unit(max(float(np.abs(changes).max()), 1.0))
    part = 100.0 * np.arange(1, len(changes) + 1) / len(changes)
    axes.step(changes / unit, part, where="post", color=BLUE, linewidth=1.5)
    low, high = np.percentile(np.abs(changes), (50, 100)) / unit
    if high > BENT * max(low, 1e-9) and high > 0:
        bend = max(low, high / 1000.0)
        axes.set_xscale("symlog", linthresh=bend)
        # Both signs of the least power of ten would stand on the 0 between them.
        ticks = 10.0 ** np.arange(np.floor(np.log10(bend)) + 1, np.ceil(np.log10(high)) + 1)
        axes.set_xticks([*-ticks[::-1], 0.0, *ticks])
        axes.set_xlim(*(1.1 * np.array([min(changes[0], 0.0), max(changes[-1], 0.0)]) / unit))
    axes.axvline(0.0, color=GREY, linewidth=1.0)
    axes.grid(alpha=0.3)
    axes.set_xlabel(f"wait in b less wait in a ({unit_name})")
