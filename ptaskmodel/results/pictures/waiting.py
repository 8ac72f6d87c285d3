"""Waiting times by class, and slowdowns, for pictures and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.charts import Cumulative, Strip, cumulative_figure, curves, strips
from ptaskmodel.results.pictures.drawing import NEEDS_ATTRIBUTION
from ptaskmodel.results.states import KILLED, NOT_SLOWED, is_cut_off, outcome_of
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.style.figures import finished, picture
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_NAMED = 12
TAU_S = 60.0  # of the bounded slowdown, where a summary does not say
# The place and the name of the run times of jobs that run at the end.
RUNNING = len(slurm_reading.LENGTHS), "still running"


class Waited(NamedTuple):
    """Jobs that started, in order: what each waited, s, whether it was killed, and its classes.

    lasted_s: how long each ran, nan while it runs. sizes: hosts, of Slurm's jobs CPUs.

    classes: of each kind, such as "hosts", for each job (the place among the classes, its name).
    """

    waits_s: NDArray[np.float64]
    killed: NDArray[np.bool_]
    lasted_s: NDArray[np.float64]
    sizes: NDArray[np.float64]
    classes: dict[str, list[tuple[Any, str]]]

    def strips(self, kind: str) -> list[Strip]:
        """The classes of a ``kind`` in order; of many those with most jobs, the rest as one."""
        found: dict[tuple[Any, str], list[int]] = {}
        for k, each in enumerate(self.classes[kind]):
            found.setdefault(each, []).append(k)
        largest = sorted(found, key=lambda key: -len(found[key]))
        kept = [(name, found[place, name]) for place, name in sorted(largest[:MOST_NAMED])]
        if rest := [k for key in largest[MOST_NAMED:] for k in found[key]]:
            kept.append((f"{count(len(largest) - MOST_NAMED)} others", rest))
        return [
            Strip.of(name, self.waits_s[its], float(self.killed[its].mean())) for name, its in kept
        ]


def waited(results: Results, users: Mapping[str, str] | None = None) -> Waited:
    """Return the waits of the jobs of ``results`` that started: by size, run time, and user.

    users: of jobs of a batch, where they are known. Those of Slurm have a partition besides.
    """
    jobs: Sequence[Any]
    if slurm_reading.is_slurm(results.summary):
        jobs = [job for job in results.jobs if job.wait_s is not None]
        waits, lasted = [job.wait_s for job in jobs], [job.run_s for job in jobs]
        classes = {kind: [slurm_reading.GROUPINGS[kind](job) for job in jobs]
                   for kind in ("partition", "size")}  # fmt: skip
        named, sizes = [job.user for job in jobs], [job.cpus for job in jobs]
    else:
        jobs = [task for task in results.tasks if task.waiting_s is not None]
        waits, lasted = [job.waiting_s for job in jobs], [job.duration_s for job in jobs]
        sizes = [len(job.hosts) for job in jobs]
        classes = {"size": [_size(hosts) for hosts in sizes]}
        named = [(users or {}).get(job.task_id, "") for job in jobs]
    classes["run time"] = [
        RUNNING if seconds is None else slurm_reading.length_of(seconds) for seconds in lasted
    ]
    if any(named):
        most = Counter(named)
        classes["user"] = [(-most[name], name or "(none)") for name in named]
    cut = [outcome_of(job.state) == KILLED for job in jobs]
    numbers = (np.array(values, dtype=float) for values in (waits, lasted, sizes))
    waits_s, lasted_s, held = numbers
    return Waited(waits_s, np.array(cut, dtype=bool), lasted_s, held, classes)


@picture
def waiting_figure(results: Results) -> Figure:
    """How long jobs waited, by size and length, in Slurm by partition and user too.

    Raises PTaskModelError if no job started, or the results are not of a batch.
    """
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not a batch: no waiting times")
    jobs = waited(results)
    waits = jobs.waits_s.tolist()
    if not waits:
        raise PTaskModelError(f"{results.directory}: no job ran; nothing to draw")
    figure = strips([(kind, jobs.strips(kind)) for kind in jobs.classes], "job")
    some = [wait for wait in waits if wait > 0.0]
    half, most = (float(np.percentile(waits, part)) for part in (50, 95))
    title = f"Half of {count(len(waits), 'job')} wait {_at_most(half)}, 5 % over {duration(most)}"
    at_once = number(1 - len(some) / len(waits), "share")
    sentence = f"{title}; {at_once} start at once; the longest wait is {duration(max(waits))}."
    figure = finished(figure, title, "", sentence)
    figure.axes[0].set_title("")
    return figure


def slowdown_chart(results: Results) -> Cumulative | None:
    """Return how slow tasks of ``results`` were, of those killed a curve of its own; None: unknown.

    By contention where that is known, else of jobs by waiting.
    """
    what = results.what
    slow: dict[str, list[float]] = {"ended": [], "killed": []}
    for task in results.tasks:
        if task.slowdown is not None:
            slow["killed" if is_cut_off(task.state) else "ended"].append(task.slowdown)
    known = [*slow["ended"], *slow["killed"]]
    if not known:
        return _bounded(results)
    found = curves({f"{name}: {count(len(its), what)}": [its] for name, its in slow.items()})
    roles = [role for role, its in zip(("use", "lost"), slow.values(), strict=True) if its]
    half, tail = np.percentile(known, (50, 95))
    missing = len(results.tasks) - len(known)
    of = f"{count(len(known))} of " * bool(missing) + count(len(results.tasks), what)
    said = (
        f"Contention slows half of {of} by a factor of at most {number(float(half))}, 5 % by more "
        f"than {number(float(tail))}, one by {number(max(known))}; mean "
        f"{number(float(np.mean(known)))}."
    )
    if max(known) <= NOT_SLOWED:
        said = f"Contention slows 0 of {of}: each takes as long as alone."
    its = [curve._replace(role=role) for curve, role in zip(found, roles, strict=True)]
    return Cumulative("contention slowdown", "number", its, said=said)


def _bounded(results: Results) -> Cumulative | None:
    tau = results.summary.get("tau_s")
    tau_s = float(tau) if isinstance(tau, int | float) and tau > 0 else TAU_S
    values = [
        max((task.waiting_s + task.duration_s) / max(task.duration_s, tau_s), 1.0)
        for task in results.tasks
        if task.waiting_s is not None and task.duration_s is not None
    ]
    if results.what != "job" or not values:
        return None
    half, tail = np.percentile(values, (50, 95))
    of = count(len(values), "job")
    said = (
        f"Half of {of} have a bounded slowdown of at most {number(float(half))}, 5 % more than "
        f"{number(float(tail))}: waiting and running over running, {duration(tau_s)} at least."
    )
    (curve,) = curves({of: [values]})
    return Cumulative("bounded slowdown", "number", [curve._replace(role="wait-text")], said=said)


@picture
def slowdown_figure(results: Results) -> Figure:
    """How many tasks were slowed down how much, of those killed a curve of its own.

    Of a batch without attribution: the bounded slowdown, by waiting.
    """
    if (chart := slowdown_chart(results)) is None:
        why = "no job ended; nothing to draw" if results.what == "job" else ""
        why = why or f"no slowdowns there; {NEEDS_ATTRIBUTION}"
        raise PTaskModelError(f"{results.directory}: {why}")
    title, _, mean = chart.said.rstrip(".").partition("; ")
    return cumulative_figure([chart], title, mean)


def _at_most(seconds: float) -> str:
    return f"less than {duration(seconds)}" if seconds > 0.0 else "not at all"


def _size(hosts: int) -> tuple[int, str]:
    """The class of a number of hosts, by powers of two: 1, 2, 3-4, 5-8, ..."""
    k = max(hosts - 1, 0).bit_length()
    return k, count(hosts, "host") if k < 2 else f"{2 ** (k - 1) + 1}-{2**k} hosts"
