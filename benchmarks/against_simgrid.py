"""Tasks that share a platform: the package and SimGrid in turn, their dates compared."""

from __future__ import annotations

import itertools
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
TEXT = """Seconds are processor time of the simulation: from a platform and a task list in memory to
the ends of all tasks. For SimGrid 3.32, the run of its engine counts (`tests/simgrid/ptasks.cpp`:
one actor that starts each task at its time, asynchronously; one actor per delay), with its default
solver `fairbottleneck`. For us, adding and running the tasks counts, with `fairbottleneck` and with
our default, `bmf`, the second time in a process, when all kernels are loaded. *difference*: the
largest relative difference of an end, both with `fairbottleneck`. SimGrid's own `bmf` aborts on
most of these loads.

With `fairbottleneck`, we compute SimGrid's rates by the same rounds in the same order. They take
most of the time of a contended load. `bmf` does not need them."""
WHOLE_TEXT = """Whole processes, from files to the ends of all tasks, with `bmf`: start of the
interpreter and imports, reading, adding, and running (with the loading of kernels). Both simulators
get the jobs of the first six loads as lists of flows."""
SOLVERS = ("fairbottleneck", "bmf")


def run_ours(
    load: str | Path, solver: str, cost: Cost, *options: str, package: Path = ROOT
) -> None:
    """One run by the package, or another version of it; its cost is added."""
    command = [sys.executable, str(ROOT / "benchmarks" / "ours.py"), str(load), "--solver", solver]
    done, seconds = run_process([*command, *options], {"PYTHONPATH": str(package)})
    said = json.loads(done.stdout.splitlines()[-1])
    cost.whole_s.append(seconds)
    cost.run_s.append(said["add_s"] + said["run_s"])
    cost.steps.append(said)
    cost.rss_MB.append(said["rss_kB"] / 1000)
    cost.events, cost.jobs = said["events"], said["jobs"]


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


class Compared(NamedTuple):
    """What one load costs SimGrid and, by solver, a version of the package.

    once: whole processes; again: the second time in a process.
    """

    theirs: Cost
    once: dict[str, Cost]
    again: dict[str, Cost]


def compare(name: str, repetitions: int, place: Path, packages: Sequence[Path]) -> list[Compared]:
    """SimGrid and each version of the package, in turn."""
    # In a process of its own: the memory of a child begins with that of who started it.
    run_process([sys.executable, str(ROOT / "benchmarks" / "loads.py"), name, str(place)])
    theirs = Cost()
    found = [
        Compared(theirs, {s: Cost() for s in SOLVERS}, {s: Cost() for s in SOLVERS})
        for _ in packages
    ]
    for _ in range(repetitions):
        run_simgrid(place, theirs)
        for solver, (package, costs) in itertools.product(
            SOLVERS, zip(packages, found, strict=True)
        ):
            dates = place / "dates"
            run_ours(place, solver, costs.once[solver], "--dates", str(dates), package=package)
            run_ours(place, solver, costs.again[solver], "--again", package=package)
            lines = [line.split() for line in dates.read_text().splitlines()]
            costs.once[solver].dates = {name: float(date) for name, date in lines}
    return found


def section(repetitions: int, place: Path, before: Path | None) -> str:
    """The tables of all loads, and what their ratios come to.

    before: a checkout of an earlier version, to run beside this one.
    """
    earlier = [] if before is None else [before]
    was = ["before, s"] * len(earlier)
    head = ["load", "SimGrid, s", *was, "ours, s", "ratio", *was, "with bmf, s", "ratio"]
    head += ["SimGrid, MB", "ours, MB", "difference"]
    whole_head = ["load", "SimGrid, s", *was, "ours, s", "start", "reading", "adding", "running"]
    whole_head += ["ratio", "ratio, fairbottleneck"]
    rows, whole_rows = [], []
    ratios: dict[str, list[float]] = {}
    for name, title in (EXPLICIT | OTHERS).items():
        *old, ours = compare(name, repetitions, place, [*earlier, ROOT])
        theirs = ours.theirs
        row = [title, f"{theirs.seconds:.2f}"]
        for solver in SOLVERS:
            row += [f"{each.again[solver].seconds:.3f}" for each in old]
            ratio = theirs.seconds / ours.again[solver].seconds
            row += [f"{ours.again[solver].seconds:.3f}", f"**{ratio:.0f}**"]
            whole_ratio = theirs.whole / ours.once[solver].whole
            if name in EXPLICIT:
                ratios.setdefault(f"`{solver}`", []).append(ratio)
                ratios.setdefault(f"whole process, `{solver}`", []).append(whole_ratio)
        once = ours.once["bmf"]
        memory = max(max(costs.rss_MB) for costs in ours.once.values())
        difference = largest_difference(ours.once["fairbottleneck"].dates, theirs.dates)
        row += [f"{max(theirs.rss_MB):.0f}", f"{memory:.0f}", f"{difference:.0e}"]
        rows.append(row)
        steps = (("start_s",), ("load_s", "read_s"), ("setup_s", "add_s"), ("run_s",))
        whole_rows.append(
            [
                title,
                f"{theirs.whole:.2f}",
                *(f"{each.once['bmf'].whole:.2f}" for each in old),
                f"{once.whole:.2f}",
                *(f"{once.step(*names):.3f}" for names in steps),
                f"**{theirs.whole / once.whole:.1f}**",
                f"**{theirs.whole / ours.once['fairbottleneck'].whole:.1f}**",
            ]
        )
        print(name, row[1:], whole_rows[-1][1:], flush=True)
    said = "; ".join(
        f"{kind}: median {statistics.median(found):.1f}, least {min(found):.1f}"
        for kind, found in ratios.items()
    )
    parts = (TEXT, table(head, rows), WHOLE_TEXT, table(whole_head, whole_rows))
    return "\n\n".join([*parts, f"The first six: {said}."])
