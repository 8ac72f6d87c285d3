"""A real Slurm and the simulated one on the same input: where they differ."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.batch.slurm.accounts.facts import Accounts
from ptaskmodel.batch.slurm.on_platform import execution_on
from ptaskmodel.batch.slurm.record import JobRecord
from ptaskmodel.batch.slurm.requests.request import Submissions
from ptaskmodel.batch.slurm.run import SlurmRun, simulate
from ptaskmodel.batch.slurm.watching import hostlist
from ptaskmodel.bridges.slurm_live.run import LiveRun
from ptaskmodel.results.drawing import BLUE, GREY, ORANGE, RED, new_figure, save, time_unit

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform

COLUMNS = (
    *("job_id", "start_real", "start_simulated", "gap", "nodes_real", "nodes_simulated"),
    *("scheduler_real", "scheduler_simulated", "state_real", "state_simulated"),
)
# Starts this far apart, s, are a turn of the main loop and the ties within it; not a decision.
NEAR_S = 5


class Pair(NamedTuple):
    """A job in both. Dates: s from date 0, None: it did not start; nodes as Slurm writes them."""

    job: str
    submit_s: int
    starts_s: tuple[int | None, int | None]
    nodes: tuple[str, str]
    schedulers: tuple[str, str]
    states: tuple[str, str]

    @property
    def gap_s(self) -> int | None:
        """How much later it starts in the simulation; None: it does not start in both."""
        real, simulated = self.starts_s
        return None if real is None or simulated is None else simulated - real

    @property
    def differs(self) -> bool:
        """Whether something else was decided."""
        started = [start is not None for start in self.starts_s]
        far = self.gap_s is not None and abs(self.gap_s) > NEAR_S
        return started[0] != started[1] or far or self.nodes[0] != self.nodes[1]


@dataclass(frozen=True, slots=True, eq=False)
class LiveComparison:
    """Every job, in order of submission: first what the real Slurm did, then the simulated."""

    pairs: tuple[Pair, ...]

    @property
    def first(self) -> Pair | None:
        """The job of which something else was decided first; what follows may follow from it."""
        different = [pair for pair in self.pairs if pair.differs]
        return min(different, key=_begin_s, default=None)

    def summary(self) -> dict[str, Any]:
        """How many jobs start at the same date and on the same nodes, and the largest gap."""
        gaps = [abs(pair.gap_s) for pair in self.pairs if pair.gap_s is not None]
        return {
            "jobs": len(self.pairs),
            "same_start": sum(gap == 0 for gap in gaps),
            "near_start": sum(gap <= NEAR_S for gap in gaps),
            "same_nodes": sum(pair.nodes[0] == pair.nodes[1] for pair in self.pairs),
            "same_scheduler": sum(p.schedulers[0] == p.schedulers[1] for p in self.pairs),
            "largest_gap_s": max(gaps, default=None),
            "first_different": None if self.first is None else self.first.job,
        }

    def table(self) -> str:
        """COLUMNS of every job as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for pair in self.pairs:
            cells = (*pair.starts_s, pair.gap_s, *pair.nodes, *pair.schedulers, *pair.states)
            writer.writerow((pair.job, *("" if cell is None else cell for cell in cells)))
        return text.getvalue()


def _begin_s(pair: Pair) -> float:
    """When a job first started anywhere."""
    return min((start for start in pair.starts_s if start is not None), default=float("inf"))


def compared(
    run: LiveRun, submissions: Submissions, accounts: Accounts | None, platform: Platform | None
) -> LiveComparison:
    """Simulate Slurm with the phases of a real one, and set both side by side."""
    simulated = simulate(
        run.conf,
        submissions.jobs,
        accounts=accounts,
        phases=run.phases,
        execution=None if platform is None else execution_on(platform, run.conf),
    )
    others = {job.id: job for job in simulated.jobs}
    return LiveComparison(
        tuple(_pair(run, job, simulated, others[job.id]) for job in run.jobs if job.id in others)
    )


def _pair(run: LiveRun, real: JobRecord, simulated: SlurmRun, other: JobRecord) -> Pair:
    t0 = run.phases.t0
    both = (run, real), (simulated, other)
    return Pair(
        real.id,
        real.submit_s - t0,
        _of([None if job.allocation is None else job.start_s - t0 for _, job in both]),
        _of(
            [
                "" if job.allocation is None else hostlist(one.nodes.names_of(job.allocation.nodes))
                for one, job in both
            ]
        ),
        (real.by, other.by),
        (real.state, other.state),
    )


def _of(pair: list[Any]) -> tuple[Any, Any]:
    return pair[0], pair[1]


def draw(found: LiveComparison, path: Path) -> None:
    """Who runs when in both, and by how much starts differ."""
    figure = new_figure(11.0, 7.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
    started = [pair for pair in found.pairs if pair.gap_s is not None]
    dates = [start for pair in started for start in pair.starts_s if start is not None]
    unit, unit_name = time_unit(max(dates, default=1))
    for row, pair in enumerate(started):
        real, simulated = (float(start or 0) / unit for start in pair.starts_s)
        colour = RED if pair.differs else GREY
        upper.plot([pair.submit_s / unit, max(real, simulated)], [row, row], color=colour, lw=0.8)
        upper.plot(real, row, "o", color=BLUE, ms=6, label="real" if row == 0 else None)
        upper.plot(simulated, row, "x", color=ORANGE, ms=5, label="simulated" if row == 0 else None)
    if len(started) <= 60:
        upper.set_yticks(range(len(started)), [pair.job for pair in started], fontsize=7)
    else:
        upper.set_ylabel("jobs, in order of submission")
    upper.invert_yaxis()
    upper.set_title("From submission to start of each job; red: decided otherwise", fontsize=10)
    if started:
        upper.legend(loc="upper right", frameon=False, ncols=2)
    lower.axhspan(-NEAR_S, NEAR_S, color=GREY, alpha=0.2, lw=0)
    lower.plot(
        [float(pair.starts_s[0] or 0) / unit for pair in started],
        [float(pair.gap_s or 0) for pair in started],
        "o",
        color=BLUE,
        ms=4,
    )
    lower.set_ylabel("simulated start later by (s)")
    lower.set_xlabel(f"start in the real Slurm ({unit_name})")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    save(figure, path)
