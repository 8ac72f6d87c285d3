"""Jobs of a Slurm run in groups: by user, account, partition, size and length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from ptaskmodel.results.slurm.reading import SlurmJob

# Sizes are powers of this, in CPUs.
STEP = 4
LENGTHS = (
    (60.0, "up to 1 min"),
    (600.0, "1 to 10 min"),
    (3600.0, "10 min to 1 h"),
    (6 * 3600.0, "1 to 6 h"),
    (86400.0, "6 to 24 h"),
    (math.inf, "above 1 d"),
)


def size_class(job: SlurmJob) -> tuple[int, str]:
    """The place of a job's size among sizes, and its name: 1, 2-4, 5-16, ... CPUs."""
    if job.cpus <= 1:
        return 0, f"{job.cpus} CPU" + "s" * (job.cpus == 0)
    # In whole numbers: a logarithm of a power may be a little more than it is.
    k, most = 1, STEP
    while most < job.cpus:
        k, most = k + 1, most * STEP
    return k, f"{most // STEP + 1}-{most} CPUs"


def length_class(job: SlurmJob) -> tuple[int, str]:
    """The place of a job's run time among lengths, and its name."""
    run_s = job.run_s or 0.0
    return next((k, name) for k, (most, name) in enumerate(LENGTHS) if run_s <= most)


def _named(name: str) -> tuple[int, str]:
    return 0, name or "(none)"


# What jobs are grouped by: a place among the groups, and a name.
GROUPINGS: Mapping[str, Callable[[SlurmJob], tuple[int, str]]] = {
    "size": size_class,
    "length": length_class,
    "user": lambda job: _named(job.user),
    "account": lambda job: _named(job.account),
    "partition": lambda job: _named(job.partition),
}


def grouped(jobs: Iterable[SlurmJob], by: str) -> dict[str, list[int]]:
    """The numbers of the jobs in each group: sizes and lengths ascending, names as they come."""
    of = GROUPINGS[by]
    found: dict[tuple[int, str], list[int]] = {}
    for k, job in enumerate(jobs):
        found.setdefault(of(job), []).append(k)
    return {key[1]: found[key] for key in sorted(found, key=lambda key: key[0])}
