"""Tasks that share a platform: the package and SimGrid in turn, their dates compared."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from costs import ROOT, Cost, largest_difference, run_process, table

import simgrid_driver  # isort: skip

HEADING = "Against SimGrid"
SIMGRID_OPTIONS = ("--cfg=host/model:ptask_L07", "--cfg=host/solver:fairbottleneck")
# Contended, or many flows, told one by one; then loads of other kinds.
EXPLICIT = {
    "crossbar-all-to-all": "600 overlapping all-to-all jobs of 16 hosts, crossbar of 1,024",
    "crossbar-ring": "1,500 overlapping ring jobs of 4-32 hosts, crossbar of 1,024",
    "backbone-all-to-all": "300 overlapping all-to-all jobs of 16 hosts, one backbone",
    "fat-tree-all-to-all": "1,500 all-to-all jobs of 4-64 hosts of their own, fat tree of 1,024",
    "fat-tree-ring": "4,000 ring jobs of 4-64 hosts of their own, fat tree of 1,024",
    "all-to-all-256": "16 overlapping all-to-all jobs on all of 256 hosts",
}
OTHERS = {
    "delays": "8,000 delays",
    "batch-day-subset": "first 3,000 jobs of the batch day (all-to-all given by its amount)",
}
HEAD = (
    "load",
    "SimGrid, s",
    "ours, s",
    "ratio",
    "with bmf, s",
    "ratio",
    "whole process, ratio",
    "with bmf",
    "SimGrid, MB",
    "ours, MB",
    "difference",
)
TEXT = """Seconds are those that the simulation takes on a processor: from a platform and a task
list in memory to all finish dates. For SimGrid 3.32, the run of its engine
(`tests/simgrid/ptasks.cpp`: one actor that starts each task at its date, asynchronously; one actor
per delay), with its default solver `fairbottleneck`; for us, adding the tasks and running them,
with `fairbottleneck` and with our default, `bmf`, the second time in a process, when all kernels
are loaded. *Whole process* counts start-up and reading too, and a first run: the jobs of the first
six loads are given to both as lists of flows, in a file. *difference*: the largest relative
difference of a finish date, both with `fairbottleneck`. SimGrid's own `bmf` aborts on most of these
loads.

Ours gives SimGrid's rates under `fairbottleneck` by going through the same rounds, in the same
order, which is most of the time of a contended load. `bmf` need not do that."""


def run_ours(
    name: str, solver: str, cost: Cost, place: Path, *, listed: bool = False, again: bool = False
) -> None:
    """One run by the package; its cost is added, its dates kept.

    again: what the simulation costs is told of a second run in another process.
    """
    dates = place / "dates"
    command = [sys.executable, str(ROOT / "benchmarks" / "ours.py"), name, "--solver", solver]
    if listed:
        command += ["--tasks", str(place / "tasks.json")]
    done, seconds = run_process([*command, "--dates", str(dates)])
    if again:
        done, _ = run_process([*command, "--again"])
    said = json.loads(done.stdout.splitlines()[-1])
    cost.whole_s.append(seconds)
    cost.run_s.append(said["run_s"])
    cost.setup_s.append(said["setup_s"])
    cost.rss_MB.append(said["rss_kB"] / 1000)
    cost.events, cost.jobs = said["events"], said["jobs"]
    lines = dates.read_text().splitlines()
    cost.dates = {line.split()[0]: float(line.split()[1]) for line in lines}


def run_simgrid(place: Path, cost: Cost) -> None:
    """One run by SimGrid."""
    files = [str(place / "platform.xml"), str(place / "load.txt")]
    command = [str(simgrid_driver.build()), *files, *SIMGRID_OPTIONS, *simgrid_driver.QUIET]
    done, seconds = run_process(command)
    _, _, run_s, rss_kB = done.stderr.split()[-4:]
    cost.whole_s.append(seconds)
    cost.run_s.append(float(run_s))
    cost.rss_MB.append(int(rss_kB) / 1000)
    words = [line.split() for line in done.stdout.splitlines()]
    cost.dates = {w[1]: float(w[3]) for w in words if w and w[0] == "task" and w[3] != "-"}


def compare(name: str, repetitions: int, place: Path) -> tuple[Cost, Cost, Cost]:
    """SimGrid, the package, and the package with `bmf`, in turn."""
    # In a process of its own: the memory of a child begins with that of who started it.
    run_process([sys.executable, str(ROOT / "benchmarks" / "loads.py"), name, str(place)])
    listed = name in EXPLICIT
    theirs, ours, bmf = Cost(), Cost(), Cost()
    for _ in range(repetitions):
        run_ours(name, "fairbottleneck", ours, place, listed=listed, again=True)
        run_simgrid(place, theirs)
        run_ours(name, "bmf", bmf, place, listed=listed, again=True)
    return theirs, ours, bmf


def section(repetitions: int, place: Path) -> str:
    """The table of all loads, and what their ratios come to."""
    rows, ratios = [], {"fairbottleneck": [], "bmf": []}
    for name, title in (EXPLICIT | OTHERS).items():
        theirs, ours, bmf = compare(name, repetitions, place)
        cells = [
            title,
            f"{theirs.seconds:.2f}",
            f"{ours.seconds:.3f}",
            f"**{theirs.seconds / ours.seconds:.0f}**",
            f"{bmf.seconds:.3f}",
            f"**{theirs.seconds / bmf.seconds:.0f}**",
            f"{theirs.whole / ours.whole:.1f}",
            f"{theirs.whole / bmf.whole:.1f}",
            f"{max(theirs.rss_MB):.0f}",
            f"{max(ours.rss_MB):.0f}",
            f"{largest_difference(ours.dates, theirs.dates):.0e}",
        ]
        print(name, cells[1:], flush=True)
        rows.append(cells)
        if name in EXPLICIT:
            ratios["fairbottleneck"].append(theirs.seconds / ours.seconds)
            ratios["bmf"].append(theirs.seconds / bmf.seconds)
    said = "; ".join(
        f"`{solver}`: median {statistics.median(found):.0f}, least {min(found):.0f}"
        for solver, found in ratios.items()
    )
    return f"{TEXT}\n\n{table(HEAD, rows)}\n\nThe first six: {said}."
