"""Runs one benchmark scenario with the package and prints its cost as JSON.

    python benchmarks/ours.py SCENARIO [--solver fairbottleneck] [--dates FILE]

The simulation is what the clock counts: adding the tasks and running them; platform and task list
are read before, as SimGrid's are, and so is the compiled code.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", choices=list(loads.SCENARIOS))
    parser.add_argument("--solver", default="fairbottleneck")
    parser.add_argument("--dates", type=Path, help="write 'task finish_time' lines here")
    options = parser.parse_args()
    scenario = loads.SCENARIOS[options.scenario]()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "platform.xml"
        path.write_text(scenario.platform_xml)
        platform = pm.load_platform(path)
    loaded = time.perf_counter()
    tasks = loads.tasks(scenario)
    del scenario
    load_kernels(platform, tasks, options.solver)
    made = time.perf_counter()
    simulation = pm.Simulation(platform, solver=options.solver)
    ready = time.perf_counter()
    simulation.add_all(tasks)
    simulation.run()
    end = time.perf_counter()
    if options.dates:
        lines = [f"{r.task_id} {r.finish_time!r}\n" for r in simulation.records()]
        options.dates.write_text("".join(lines))
    cost = {
        "load_s": loaded - begin,
        "prepare_s": made - loaded,
        "setup_s": ready - made,
        "run_s": end - made,
        "events": simulation.events,
        "jobs": len(tasks),
        "rss_kB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    print(json.dumps(cost))


if __name__ == "__main__":
    main()
