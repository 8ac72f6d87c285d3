"""batsim-py (1.0.5), which starts `batsim` itself and has a clock of whole seconds.

It is looked for in the Python that BATSIM_PY names, else in this one. BATSIM_PY_RUNS says how many
random workloads are run in each way.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from batsim_sessions import job, write_inputs

from ptaskmodel import load_platform
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.run import run_batch
from ptaskmodel.workload.reading import read_workload

PYTHON = os.environ.get("BATSIM_PY", sys.executable)
RUNS = int(os.environ.get("BATSIM_PY_RUNS", "2"))
SOURCE = Path(__file__).resolve().parents[2]
CLIENT = """
import sys
from batsim_py import SimulatorHandler
simulator = SimulatorHandler()
simulator.start(platform="p.xml", workload="w0.json", verbosity="information")
while simulator.is_running:
    for job in simulator.queue:
        free = [host.id for host in simulator.platform.hosts if host.is_idle]
        if len(free) < job.res:
            break
        simulator.allocate(job.id, free[: job.res])
    simulator.proceed_time(int(sys.argv[1]))
"""


@pytest.fixture(scope="module", autouse=True)
def installed():
    if subprocess.run([PYTHON, "-c", "import batsim_py"], capture_output=True).returncode:
        pytest.skip("batsim-py is not installed")


def started(place, step):
    """When jobs started under a scheduler that goes on by so many seconds, and what was said."""
    program = place / "batsim"
    code = "import sys; from ptaskmodel.cli.commands.batsim import main; sys.exit(main())"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -c "{code}" "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": "", "TMPDIR": str(place)}
    environment["PATH"] = f"{place}:{environment['PATH']}"
    done = subprocess.run(
        [PYTHON, "-c", CLIENT, str(step)],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in (place / "batsim_jobs.csv").read_text().splitlines()]
    column = rows[0].index("starting_time")
    return {row[rows[0].index("job_id")]: float(row[column]) for row in rows[1:]}, done.stderr


def write_random(place, seed):
    draw = random.Random(seed)
    profiles = {
        f"p{k}": {"type": "delay", "delay": round(draw.uniform(0.1, 30.0), 3)} for k in range(6)
    }
    jobs = [
        job(k, draw.randint(1, 4), f"p{draw.randrange(6)}", round(draw.uniform(0.0, 60.0), 2), 99)
        for k in range(12)
    ]
    return write_inputs(place, jobs, profiles)


def test_one_job_of_a_fraction_of_seconds(tmp_path):
    write_inputs(tmp_path, [job(0)], {"d10": {"type": "delay", "delay": 10.5}})
    found, said = started(tmp_path, 0)
    assert found == {"0": 0.0}
    assert (
        "2 replies of the scheduler have a timestamp before their requests (the first: for "
        "10.0" in said
    )


@pytest.mark.parametrize("seed", range(RUNS))
def test_at_every_event_it_starts_jobs_when_our_fcfs_does(seed, tmp_path):
    platform, workload = write_random(tmp_path, seed)
    found, _ = started(tmp_path, 0)
    ours = run_batch(load_platform(platform), read_workload(workload), BatchOptions(policy="fcfs"))
    assert found == pytest.approx({a.job.id: a.start_s for a in ours.schedule.final})


@pytest.mark.parametrize("seed", range(RUNS))
def test_in_steps_of_five_seconds_jobs_start_at_these(seed, tmp_path):
    """Its calls are 0.09 s after the date that it means."""
    _, workload = write_random(tmp_path, seed)
    found, _ = started(tmp_path, 5)
    jobs = json.loads(workload.read_text())["jobs"]
    assert sorted(found) == sorted(each["id"] for each in jobs)
    assert all(found[each["id"]] >= each["subtime"] for each in jobs)
    assert {round((start - 0.09) % 5.0, 6) for start in found.values()} <= {0.0, 5.0}
