"""Runs one benchmark scenario with the package and prints its cost as JSON.

    python benchmarks/ours.py SCENARIO [--solver fairbottleneck] [--again] [--dates FILE]

The simulation is what the clock counts: adding the tasks and running them; platform and task list
are read before, as SimGrid's are, and so is the compiled code. It is the clock of this process, on
one thread: what else the machine does counts little. With ``--again`` everything is read and run
once before, and what is told is the second time: then all kernels that the load needs are there.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import loads

import ptaskmodel as pm


def load_kernels(platform: pm.Platform, tasks: list[pm.Task], solver: str) -> None:
    """Run the first tasks, so that the compiled code is in memory when the clock starts."""
    simulation = pm.Simulation(platform, solver=solver)
    simulation.add_all(tasks[:20])
    simulation.run()


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Read everything, run it, and what each step cost."""
    scenario = loads.SCENARIOS[options.scenario]()
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "platform.xml"
        path.write_text(scenario.platform_xml)
        platform = pm.load_platform(path)
    loaded = time.process_time()
    tasks = list(pm.load_tasks(options.tasks)) if options.tasks else loads.tasks(scenario)
    read = time.process_time()
    del scenario
    load_kernels(platform, tasks, options.solver)
    made = time.process_time()
    simulation = pm.Simulation(platform, solver=options.solver)
    ready = time.process_time()
    simulation.add_all(tasks)
    simulation.run()
    end = time.process_time()
    if options.dates:
        lines = [f"{r.task_id} {r.finish_time!r}\n" for r in simulation.records()]
        options.dates.write_text("".join(lines))
    return {
        "load_s": loaded - begin,
        "read_s": read - loaded,
        "kernels_s": made - read,
        "setup_s": ready - made,
        "run_s": end - made,
        "events": simulation.events,
        "jobs": len(tasks),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", choices=list(loads.SCENARIOS))
    parser.add_argument("--solver", default="fairbottleneck")
    parser.add_argument("--tasks", type=Path, help="read the tasks from this file")
    parser.add_argument("--dates", type=Path, help="write 'task finish_time' lines here")
    parser.add_argument("--again", action="store_true", help="tell what a second run costs")
    options = parser.parse_args()
    cost = measure(options)
    cost["rss_kB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if options.again:
        cost |= measure(options)
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
