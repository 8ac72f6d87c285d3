"""Runs every benchmark by the package and by SimGrid, in turn, and writes benchmarks/README.md.

    python benchmarks/run.py [--repetitions 3] [--only NAME ...]

Needs SimGrid (headers and library) and g++; the driver tests/simgrid/ptasks.cpp is built on the
spot. Each run is a process of its own, on one thread, one at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform as machine
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import loads  # noqa: E402
import simgrid_driver  # noqa: E402

README = ROOT / "benchmarks" / "README.md"
SIMGRID_OPTIONS = ("--cfg=host/model:ptask_L07", "--cfg=host/solver:fairbottleneck")
AGAINST_SIMGRID = (
    "crossbar",
    "backbone",
    "fat-tree-all-to-all",
    "fat-tree-ring",
    "all-to-all-256",
    "delays",
    "batch-day-subset",
)
OURS_ALONE = ("batch-day",)
PLATFORM_SIZES = ("platform-1000", "platform-10000", "platform-100000")
LOAD_SIZES = ("load-15", "load-30", "load-60", "load-120")
TITLES = {
    "crossbar": "1,200 overlapping all-to-all jobs of 2-30 hosts, contended crossbar of 1,024",
    "backbone": "3,000 overlapping all-to-all jobs of 2-16 hosts, 512 hosts, one backbone",
    "fat-tree-all-to-all": "1,000 all-to-all jobs of 4-64 hosts of their own, fat tree of 1,024",
    "fat-tree-ring": "4,000 ring jobs of 4-64 hosts of their own, fat tree of 1,024",
    "all-to-all-256": "60 overlapping all-to-all jobs on all of 256 hosts",
    "delays": "8,000 delays",
    "batch-day-subset": "first 3,000 jobs of the batch day",
    "batch-day": "1,000,000 all-to-all jobs of 4-64 hosts of their own, fat tree of 1,024",
}


@dataclass
class Cost:
    """Seconds and memory of the runs of one simulator on one scenario."""

    run_s: list[float] = field(default_factory=list)
    setup_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)
    rss_MB: list[float] = field(default_factory=list)
    events: int = 0
    jobs: int = 0
    dates: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return statistics.median(self.run_s)


def run_ours(name: str, solver: str, cost: Cost, place: Path) -> None:
    """One run by the package; its cost is added, its dates kept."""
    dates = place / "dates"
    command = [sys.executable, str(ROOT / "benchmarks" / "ours.py"), name]
    environment = dict(os.environ, PYTHONPATH=str(ROOT), OMP_NUM_THREADS="1")
    begin = time.perf_counter()
    done = subprocess.run(
        [*command, "--solver", solver, "--dates", str(dates)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr.strip()[-2000:]}")
    cost.whole_s.append(time.perf_counter() - begin)
    said = json.loads(done.stdout.splitlines()[-1])
    cost.run_s.append(said["run_s"])
    cost.setup_s.append(said["setup_s"])
    cost.rss_MB.append(said["rss_kB"] / 1000)
    cost.events, cost.jobs = said["events"], said["jobs"]
    lines = dates.read_text().splitlines()
    cost.dates = {line.split()[0]: float(line.split()[1]) for line in lines}


def run_simgrid(files: tuple[Path, Path], cost: Cost) -> None:
    """One run by SimGrid."""
    command = [str(simgrid_driver.build()), str(files[0]), str(files[1]), *SIMGRID_OPTIONS]
    begin = time.perf_counter()
    done = subprocess.run(
        [*command, *simgrid_driver.QUIET], capture_output=True, text=True, check=True
    )
    cost.whole_s.append(time.perf_counter() - begin)
    _, _, run_s, rss_kB = done.stderr.split()[-4:]
    cost.run_s.append(float(run_s))
    cost.rss_MB.append(int(rss_kB) / 1000)
    words = [line.split() for line in done.stdout.splitlines()]
    cost.dates = {w[1]: float(w[3]) for w in words if w and w[0] == "task" and w[3] != "-"}


def largest_difference(a: dict[str, float], b: dict[str, float]) -> float:
    """Largest relative difference of two sets of dates of the same tasks."""
    if a.keys() != b.keys():
        raise SystemExit("the two simulators did not finish the same tasks")
    return max(abs(a[k] - b[k]) / max(abs(a[k]), abs(b[k]), 1e-300) for k in a)


def against_simgrid(name: str, repetitions: int, place: Path) -> str:
    """The line of the table for one scenario, the two simulators run in turn."""
    scenario = loads.SCENARIOS[name]()
    files = (place / "platform.xml", place / "load.txt")
    files[0].write_text(scenario.platform_xml)
    files[1].write_text("\n".join(loads.simgrid_lines(scenario)) + "\n")
    ours, theirs, bmf = Cost(), Cost(), Cost()
    for _ in range(repetitions):
        run_ours(name, "fairbottleneck", ours, place)
        run_simgrid(files, theirs)
        run_ours(name, "bmf", bmf, place)
    difference = largest_difference(ours.dates, theirs.dates)
    whole = statistics.median(theirs.whole_s) / statistics.median(ours.whole_s)
    cells = [
        TITLES[name],
        f"{theirs.seconds:.2f}",
        f"{ours.seconds:.3f}",
        f"**{theirs.seconds / ours.seconds:.0f}**",
        f"{bmf.seconds:.3f}",
        f"{whole:.1f}",
        f"{max(theirs.rss_MB):.0f}",
        f"{max(ours.rss_MB):.0f}",
        f"{difference:.0e}",
    ]
    print(name, cells[1:], flush=True)
    return "| " + " | ".join(cells) + " |"


def alone(name: str, repetitions: int, place: Path, solver: str) -> Cost:
    """The cost of a scenario run by the package only."""
    cost = Cost()
    for _ in range(repetitions):
        run_ours(name, solver, cost, place)
    rate = cost.seconds / max(cost.events, 1) * 1e6
    print(name, solver, f"{cost.seconds:.3f} s, {rate:.1f} us/event", flush=True)
    return cost


def growth_line(name: str, repetitions: int, place: Path) -> str:
    cells = [name.split("-")[1]]
    for solver in ("fairbottleneck", "bmf"):
        cost = alone(name, repetitions, place, solver)
        setup_s = statistics.median(cost.setup_s)
        loop_s = cost.seconds - setup_s
        cells += [f"{setup_s:.3f}", f"{loop_s:.3f}", f"{loop_s / cost.events * 1e6:.0f}"]
    cells.insert(1, str(cost.events))
    cells.append(f"{max(cost.rss_MB):.0f}")
    return "| " + " | ".join(cells) + " |"


HEAD = """# Benchmarks

Remade by `python benchmarks/run.py` (SimGrid 3.32 and g++ installed). This table: {when}, {cpu},
{repetitions} repetitions, medians, one thread, the simulators in turn in one run.

Seconds are those of the simulation: from a platform and a task list in memory to all finish dates.
For SimGrid, the run of its engine (`tests/simgrid/ptasks.cpp`: one actor that starts each task at
its date, asynchronously; one actor per delay), with its default solver `fairbottleneck`; for us,
adding the tasks and running them, kernels compiled before. `whole` is the ratio of the times of
the whole processes, start-up and reading included. `difference` is the largest relative difference
of a finish date between SimGrid's `fairbottleneck` and ours. SimGrid's `bmf` aborts on most of
these loads.

"""

RATIO_HEAD = (
    "| Load | SimGrid, s | ours, s | ratio | ours with bmf, s | whole, ratio "
    "| SimGrid, MB | ours, MB | difference |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)
GROWTH_HEAD = (
    "| {} | events | set-up, s | fairbottleneck, s | µs/event "
    "| set-up, s | bmf, s | µs/event | MB |\n"
    "|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def day_lines(place: Path) -> list[str]:
    """The million-job day, by the package alone."""
    lines = []
    for solver in ("fairbottleneck", "bmf"):
        cost = alone("batch-day", 1, place, solver)
        lines.append(
            f"| {solver} | {cost.jobs} | {cost.events} | {cost.seconds:.1f} "
            f"| {cost.whole_s[0]:.1f} | {cost.rss_MB[0]:.0f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="print these scenarios' figures, write nothing")
    options = parser.parse_args()
    n = options.repetitions
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for name in ("delays", "fat-tree-ring"):  # compiles the kernels
            run_ours(name, "fairbottleneck", Cost(), place)
            run_ours(name, "bmf", Cost(), place)
        if options.only:
            for name in options.only:
                if name in AGAINST_SIMGRID:
                    against_simgrid(name, n, place)
                else:
                    alone(name, n, place, "fairbottleneck")
            return
        ratios = [against_simgrid(name, n, place) for name in AGAINST_SIMGRID]
        platforms = [growth_line(name, n, place) for name in PLATFORM_SIZES]
        sizes = [growth_line(name, n, place) for name in LOAD_SIZES]
        day = day_lines(place)
    parts = [
        HEAD.format(when=time.strftime("%Y-%m-%d"), cpu=cpu_name(), repetitions=n),
        "\n".join([RATIO_HEAD, *ratios]),
        "\n\n## A million jobs\n\n",
        TITLES["batch-day"] + ". The whole process also makes the list of jobs.\n\n",
        "| solver | jobs | events | simulation, s | whole process, s | MB |\n",
        "|---|--:|--:|--:|--:|--:|\n" + "\n".join(day),
        "\n\n## Growth with the platform\n\n",
        "The same 10,000 jobs on a cluster of so many hosts; set-up: making the simulation.\n\n",
        "\n".join([GROWTH_HEAD.format("hosts"), *platforms]),
        "\n\n## Growth with the load\n\n2,000 jobs on 1,024 hosts, by starts per minute.\n\n",
        "\n".join([GROWTH_HEAD.format("jobs/min"), *sizes]),
        "\n",
    ]
    half_done = README.with_suffix(".part")
    half_done.write_text("".join(parts))
    half_done.replace(README)


def cpu_name() -> str:
    """The processor's name, and how many there are."""
    name = machine.processor() or machine.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name} ({os.cpu_count()} processors)"


if __name__ == "__main__":
    main()
