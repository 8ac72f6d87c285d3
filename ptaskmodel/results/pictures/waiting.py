"""Picture of waiting times: by size and length of jobs, in Slurm also by partition and user.

The classes of jobs of tables come from classes.csv.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.directory import finite, readable, rows
from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.pictures.charts import Strip, strips
from ptaskmodel.results.pictures.drawing import finished, picture
from ptaskmodel.results.states import KILLED, outcome_of
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.style.quantities import count, duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CLASSES = "classes.csv"
CLASS_COLUMNS = ("kind", "class", "jobs", "host_seconds", "mean_waiting", "max_waiting",
           "mean_execution", "mean_bounded_slowdown")  # fmt: skip
# Kinds of classes, and the head of their column.
SHOWN = {"size": "hosts asked for", "length": "time of execution", "user": "user"}
MOST_USERS = 20
MOST_NAMED = 12
MADE_ANEW = "make the batch anew"
# The only class of users where a workload names none.
UNKNOWN = "unknown"


def users_of(results: Results) -> list[tuple[str, int, float, float]]:
    """Return (user, jobs, mean wait in s, longest in s), the largest users first; empty if not
    known.

    Raises PTaskModelError if classes.csv is damaged.
    """
    path = results.directory / CLASSES
    with readable(path, MADE_ANEW):
        return [
            (
                row["class"],
                int(row["jobs"]),
                finite(row["mean_waiting"]),
                finite(row["max_waiting"]),
            )
            for row in classes_of(path)["user"]
        ]


def classes_of(path: Path) -> dict[str, list[dict[str, str]]]:
    """The lines of classes.csv at ``path`` of the kinds shown; of users those that are known."""
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in SHOWN}
    for row in rows(path, *CLASS_COLUMNS, optional=True):
        if row["kind"] in found:
            found[row["kind"]].append(row)
    found["user"] = _known(found["user"])
    return found


def _known(users: list[dict[str, str]]) -> list[dict[str, str]]:
    """Users by what they used; none where all there is is a class of those unknown."""
    if [row["class"] for row in users] == [UNKNOWN]:
        return []
    return sorted(users, key=lambda row: -finite(row["host_seconds"]))


@picture
def waiting_figure(results: Results) -> Figure:
    """How long jobs waited, by size and length, in Slurm by partition and user too.

    Raises PTaskModelError if no job started, or the results are not of a batch.
    """
    if slurm_reading.is_slurm(results.summary):
        groups, waits = _of_slurm(results)
    elif results.what == "job":
        groups, waits = _of_batch(results)
    else:
        raise PTaskModelError(f"{results.directory}: not a batch: no waiting times")
    figure = strips(groups, "job")
    some = [wait for wait in waits if wait > 0.0]
    half, most = (float(np.percentile(waits, part)) for part in (50, 95))
    title = f"Half of {count(len(waits), 'job')} wait {_at_most(half)}, 5 % over {duration(most)}"
    at_once = number(1 - len(some) / len(waits), "share")
    sentence = f"{title}; {at_once} start at once; the longest wait is {duration(max(waits))}."
    figure = finished(figure, title, "", sentence)
    figure.axes[0].set_title("")
    return figure


def _at_most(seconds: float) -> str:
    return f"less than {duration(seconds)}" if seconds > 0.0 else "not at all"


Groups = list[tuple[str, Sequence[Strip]]]


def _of_batch(results: Results) -> tuple[Groups, list[float]]:
    tasks = [task for task in results.tasks if task.waiting_s is not None]
    if not tasks:
        raise PTaskModelError(f"{results.directory}: no job ran; nothing to draw")

    def waited(task: ShownTask) -> float:
        return task.waiting_s or 0.0

    def killed(task: ShownTask) -> bool:
        return outcome_of(task.state) == KILLED

    kinds: dict[str, Callable[[ShownTask], tuple[Any, str]]] = {
        "hosts": lambda task: _size(len(task.hosts)),
        "time of execution": lambda task: slurm_reading.length_of(task.duration_s or 0.0),
    }
    groups: Groups = [(kind, _classes(tasks, of, waited, killed)) for kind, of in kinds.items()]
    return groups, [waited(task) for task in tasks]


def _of_slurm(results: Results) -> tuple[Groups, list[float]]:
    jobs = [job for job in slurm_reading.read_jobs(results.directory) if job.wait_s is not None]
    if not jobs:
        raise PTaskModelError(f"{results.directory}: no job started; nothing to draw")

    def waited(job: slurm_reading.SlurmJob) -> float:
        return job.wait_s or 0.0

    def killed(job: slurm_reading.SlurmJob) -> bool:
        return outcome_of(job.state) == KILLED

    groups: Groups = [
        (by, _classes(jobs, slurm_reading.GROUPINGS[by], waited, killed))
        for by in ("partition", "size", "length", "user")
    ]
    return groups, [waited(job) for job in jobs]


def _size(hosts: int) -> tuple[int, str]:
    """The class of a number of hosts, by powers of two: 1, 2, 3-4, 5-8, ..."""
    k = max(hosts - 1, 0).bit_length()
    return k, f"{hosts}" if k < 2 else f"{2 ** (k - 1) + 1}-{2**k}"


def _classes(
    jobs: Sequence[Any],
    of: Callable[[Any], tuple[Any, str]],
    waited: Callable[[Any], float],
    killed: Callable[[Any], bool],
) -> list[Strip]:
    """The classes of jobs in order; of many those with most jobs, the rest as one."""
    found: dict[tuple[Any, str], list[Any]] = {}
    for job in jobs:
        found.setdefault(of(job), []).append(job)
    largest = sorted(found, key=lambda key: -len(found[key]))
    kept = [(name, found[place, name]) for place, name in sorted(largest[:MOST_NAMED])]
    if rest := [job for key in largest[MOST_NAMED:] for job in found[key]]:
        kept.append((f"{count(len(largest) - MOST_NAMED)} others", rest))
    return [
        Strip(name, np.array([waited(job) for job in its]), sum(map(killed, its)) / len(its))
        for name, its in kept
    ]
