"""Picture of waiting times: by size and length of jobs, in Slurm also by partition and user.

Pages take the same classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.charts import Strip, strips
from ptaskmodel.results.pictures.drawing import finished, picture
from ptaskmodel.results.states import KILLED, outcome_of
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_NAMED = 12
# The place and the name of the run times of jobs that run at the end.
RUNNING = len(slurm_reading.LENGTHS), "still running"


class Waited(NamedTuple):
    """Jobs that started, in order: what each waited, s, whether it was killed, and its classes.

    classes: of each kind, such as "hosts", for each job (the place among the classes, its name).
    """

    waits_s: NDArray[np.float64]
    killed: NDArray[np.bool_]
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
            Strip(name, self.waits_s[its], float(self.killed[its].mean())) for name, its in kept
        ]


def waited(results: Results, users: Mapping[str, str] | None = None) -> Waited:
    """Return the waits of the jobs of ``results`` that started: by size, run time, and user.

    users: of jobs of a batch, where they are known. Those of Slurm have a partition besides.
    """
    jobs: Sequence[Any]
    if slurm_reading.is_slurm(results.summary):
        jobs = [job for job in slurm_reading.read_jobs(results.directory) if job.wait_s is not None]
        waits, lasted = [job.wait_s for job in jobs], [job.run_s for job in jobs]
        classes = {kind: [slurm_reading.GROUPINGS[kind](job) for job in jobs]
                   for kind in ("partition", "size")}  # fmt: skip
        named = [job.user for job in jobs]
    else:
        jobs = [task for task in results.tasks if task.waiting_s is not None]
        waits, lasted = [job.waiting_s for job in jobs], [job.duration_s for job in jobs]
        classes = {"size": [_size(len(job.hosts)) for job in jobs]}
        named = [(users or {}).get(job.task_id, "") for job in jobs]
    classes["run time"] = [
        RUNNING if seconds is None else slurm_reading.length_of(seconds) for seconds in lasted
    ]
    if any(named):
        most = Counter(named)
        classes["user"] = [(-most[name], name or "(none)") for name in named]
    cut = [outcome_of(job.state) == KILLED for job in jobs]
    return Waited(np.array(waits, dtype=float), np.array(cut, dtype=bool), classes)


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


def _at_most(seconds: float) -> str:
    return f"less than {duration(seconds)}" if seconds > 0.0 else "not at all"


def _size(hosts: int) -> tuple[int, str]:
    """The class of a number of hosts, by powers of two: 1, 2, 3-4, 5-8, ..."""
    k = max(hosts - 1, 0).bit_length()
    return k, count(hosts, "host") if k < 2 else f"{2 ** (k - 1) + 1}-{2**k} hosts"
