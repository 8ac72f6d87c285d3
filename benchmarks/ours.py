"""Runs one load with the package and prints what each step cost on a processor, as JSON.

    python benchmarks/ours.py SCENARIO|DIR [--solver fairbottleneck] [--again] [--dates FILE]

A scenario of loads.py is made in memory (``make_s`` is not the package's). From a directory that
loads.py wrote, platform and tasks are read, as SimGrid reads them, and this process is the whole
command: ``start_s`` is the interpreter and the import of the package; what a step loads besides is
its own. With ``--again`` everything is done once before, and what is told is the second time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ptaskmodel import Platform, Simulation, Task, load_platform, load_tasks

clock = time.process_time


def made(name: str) -> tuple[Platform, Sequence[Task], list[float]]:
    """Platform and tasks of a scenario, and the dates between the steps."""
    import loads

    dates = [clock()]
    scenario = loads.SCENARIOS[name]()
    dates.append(clock())
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "platform.xml"
        path.write_text(scenario.platform_xml)
        platform = load_platform(path)
    dates.append(clock())
    tasks = loads.tasks(scenario)
    return platform, tasks, [*dates, clock()]


def read(place: Path) -> tuple[Platform, Sequence[Task], list[float]]:
    """The same of files."""
    dates = 2 * [clock()]
    platform = load_platform(place / "platform.xml")
    dates.append(clock())
    tasks = load_tasks(place / "tasks.json")
    return platform, tasks, [*dates, clock()]


def measure(options: argparse.Namespace) -> dict[str, float]:
    """What each step cost."""
    place = Path(options.load)
    platform, tasks, dates = read(place) if place.is_dir() else made(options.load)
    simulation = Simulation(platform, solver=options.solver)
    dates.append(clock())
    simulation.add_all(tasks)
    dates.append(clock())
    simulation.run()
    dates.append(clock())
    if options.dates:
        lines = [f"{r.task_id} {r.end_s!r}\n" for r in simulation.records()]
        options.dates.write_text("".join(lines))
    steps = ("make_s", "load_s", "read_s", "setup_s", "add_s", "run_s")
    seconds = [after - before for before, after in itertools.pairwise(dates)]
    return {
        **dict(zip(steps, seconds, strict=True)),
        "events": simulation.events,
        "jobs": len(tasks),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("load")
    parser.add_argument("--solver", default="fairbottleneck")
    parser.add_argument("--dates", type=Path, help="write 'task finish_time' lines here")
    parser.add_argument("--again", action="store_true", help="tell what a second run costs")
    options = parser.parse_args()
    cost = {"start_s": clock()} | measure(options)
    cost["rss_kB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if options.again:
        cost |= measure(options)
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
