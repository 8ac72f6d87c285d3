"""An unmodified Slurm schedules four jobs on ten simulated nodes: the small experiment of Batsky.

First as published, with jobs that last 20 s whatever happens; then with jobs that exchange data for
about as long over a backbone that they share, so that they slow each other down.

    python experiments/batsky/run.py -o results/batsky
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from ptaskmodel.cli.show import text_table
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.platform import load_platform
from ptaskmodel.runs.scheduling_options import LiveWriting
from ptaskmodel.runs.slurm_live import LiveResults, live_into
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.submissions import read_submissions

HERE = Path(__file__).resolve().parent
SIZES = (4, 2, 4, 2)
EVERY_s = 0.1
LASTS_s = 20.0
WALLTIME_s = 300
# Of a job that has the backbone (250 MB/s) to itself it takes 20 s to send so much in all.
SENT_B = 250e6 * LASTS_s


def workload(profiles: dict[str, Any], profile: str) -> dict[str, Any]:
    """Four jobs, a tenth of a second apart."""
    jobs = [
        {
            "id": str(k + 1),
            "subtime": k * EVERY_s,
            "res": size,
            "walltime": WALLTIME_s,
            "profile": profile.format(size),
        }
        for k, size in enumerate(SIZES)
    ]
    return {"nb_res": 10, "jobs": jobs, "profiles": profiles}


def exchanging(size: int) -> dict[str, Any]:
    """A parallel task in which each of some hosts sends as much to each other one."""
    each_B = SENT_B / (size * (size - 1))
    sent = [each_B if row != column else 0.0 for row in range(size) for column in range(size)]
    return {"type": "parallel", "cpu": [0.0] * size, "com": sent}


def table(found: LiveResults) -> str:
    """When each job was submitted, started and ended, and where it ran."""
    run = found.run
    rows = []
    for job in run.jobs:
        held = job.allocation
        nodes = " ".join(run.nodes.names_of(held.nodes)) if held is not None else "-"
        dates = (job.start_s - run.phases.t0, int(job.end_s) - run.phases.t0)
        rows.append((job.id, f"{job.request.submit_s:.1f}", *map(str, dates), nodes))
    header = ("job", "submitted (s)", "starts (s)", "ends (s)", "nodes")
    return text_table(header, rows, right=(1, 2, 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("results/batsky"))
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    kinds = {
        "delays": workload({"delay": {"type": "delay", "delay": LASTS_s}}, "delay"),
        "exchanges": workload({f"all{size}": exchanging(size) for size in set(SIZES)}, "all{}"),
    }
    conf, platform = HERE / "slurm.conf", load_platform(HERE / "cluster.xml")
    began = time.monotonic()
    for name, content in kinds.items():
        file = output / f"{name}.json"
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        found = live_into(
            output / name,
            conf,
            read_submissions(file, read_conf(conf)),
            platform=platform,
            writing=LiveWriting(compare=True),
            inputs=(conf, file, HERE / "cluster.xml"),
        )
        print(f"{name}\n{table(found)}\n")
    print(f"both in {time.monotonic() - began:.1f} s of real time")


if __name__ == "__main__":
    try:
        main()
    except PTaskModelError as error:
        raise SystemExit(f"ptaskmodel: error: {error}") from None
