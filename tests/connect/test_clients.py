"""Schedulers of others, where they are installed: their schedules, and those of our same rules.

`pybatsim` (3.2.1) is found by the PATH. PYBATSIM_RUNS says how many random workloads are compared.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from batsim_sessions import job, serve, write_inputs

from ptaskmodel import load_platform
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.run import run_batch
from ptaskmodel.connect.transport import SocketWire, end_guarded
from ptaskmodel.workload.reading import read_workload

PYBATSIM = shutil.which("pybatsim")
RUNS = int(os.environ.get("PYBATSIM_RUNS", "5"))
pytestmark = pytest.mark.skipif(PYBATSIM is None, reason="pybatsim is not installed")
HERE = Path(__file__).resolve().parent
DELAYS = {name: {"type": "delay", "delay": int(name[1:])} for name in ("d3", "d5", "d10", "d20")}


def python_of_pybatsim():
    return str(Path(str(PYBATSIM)).resolve().parent / "python")


class Clients:
    """Schedulers of pybatsim in one process, for one session each."""

    def __init__(self, names, directory):
        self.endpoints = [f"ipc://{directory}/{k}" for k in range(len(names))]
        script = HERE.parent.parent / "pybatsim_client.py"
        (directory / "names").write_text("\n".join(names))
        with (directory / "names").open() as stdin:
            self.process = subprocess.Popen(
                [python_of_pybatsim(), str(script), *self.endpoints],
                cwd=directory,
                stdin=stdin,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": ""},
                start_new_session=True,
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_guarded(self.process, 1.0)


def starts(result):
    return {a.job.id: a.start_s for a in result.schedule.final}


# Starts and hosts of five jobs, as published with recorded sessions (id: start, hosts).
PUBLISHED = {
    "fillerSched": "0: 0.005, 0-2; 2: 2.005, 3; 3: 7.01, 3; 1: 27.015, 0-3",
    "easyBackfill": "0: 0, 0-2; 2: 2, 3; 1: 10, 0-3; 3: 15, 0; 4: 16, 1-2",
    "schedFcfs": "0: 1, 0-2; 1: 11, 0-3; 2: 16, 0; 3: 16, 1; 4: 17, 2-3",
    "schedFiller": "0: 1, 0-2; 2: 3, 3; 3: 8, 3; 4: 17, 0-1; 1: 28, 0-3",
    "schedEasySjfBackfill": "0: 1, 0-2; 2: 3, 3; 1: 11, 0-3; 3: 16, 0; 4: 17, 1-2",
}


def test_shipped_schedulers_have_their_published_schedules(tmp_path):
    rows = [
        (0, 3, "d10", 12),
        (1, 4, "d5", 6),
        (2, 1, "d5", 6),
        (3, 1, "d20", 25),
        (16, 2, "d3", 4),
    ]
    with Clients(list(PUBLISHED), tmp_path) as clients:
        for (name, text), endpoint in zip(PUBLISHED.items(), clients.endpoints, strict=True):
            late = name.startswith("sched")
            jobs = [job(k, r[1], r[2], r[0] + late, r[3]) for k, r in enumerate(rows)]
            jobs = jobs[:4] if name == "fillerSched" else jobs
            wire = SocketWire(endpoint, 60.0)
            session, result = serve(tmp_path, wire, jobs, DELAYS)
            assert session.fault is None
            found = {a.job.id: (a.start_s, a.hosts_text) for a in result.schedule.final}
            for part in text.split("; "):
                number, _, rest = part.partition(": ")
                date, _, hosts = rest.partition(", ")
                assert found[number] == (pytest.approx(float(date)), hosts), name


def random_workload(seed, ptasks, sizes):
    """Jobs at dates of their own, whose walltimes are longer than they last."""
    rng = random.Random(seed)
    jobs, profiles, date = [], {}, 1.0
    for k in range(15):
        size, lasts = rng.choice(sizes), rng.uniform(1, 30)
        date += rng.expovariate(0.2)
        parallel = {"type": "parallel_homogeneous", "cpu": 1e9 * lasts, "com": 1e8 * lasts}
        profiles[f"p{k}"] = parallel if ptasks else {"type": "delay", "delay": lasts}
        jobs.append(job(k, size, f"p{k}", date, lasts * rng.uniform(3, 6)))
    return jobs, profiles


def different(name, ours, directory, ptasks, sizes):
    """The seeds of the random workloads that a scheduler and a policy schedule differently."""
    found = []
    with Clients([name] * RUNS, directory) as clients:
        for seed, endpoint in enumerate(clients.endpoints):
            jobs, profiles = random_workload(seed, ptasks, sizes)
            wire = SocketWire(endpoint, 60.0)
            session, theirs = serve(directory, wire, jobs, profiles)
            assert session.fault is None, (seed, session.fault)
            paths = write_inputs(directory, jobs, profiles)
            mine = run_batch(load_platform(paths[0]), read_workload(paths[1]), ours)
            if starts(theirs) != pytest.approx(starts(mine)):
                found.append(seed)
    print(f"{Path(name).name}, {sizes}{', parallel tasks' * ptasks}: {len(found)} of {RUNS} differ")
    return found


MENDED = str(HERE.parent.parent / "pybatsim_mended.py")
RULES = {"schedFiller": "filler", "schedFcfs": "fcfs", MENDED: "easy"}


@pytest.mark.parametrize("ptasks", [False, True], ids=["delays", "tasks"])
@pytest.mark.parametrize("name", RULES, ids=RULES.get)
def test_the_same_rule_makes_the_same_schedule(name, ptasks, tmp_path):
    """Of one host or all four: which hosts are chosen makes no difference then."""
    ours = BatchOptions(policy=RULES[name])
    assert not different(name, ours, tmp_path, ptasks, (1, 4))


def test_the_filler_on_consecutive_hosts(tmp_path):
    ours = BatchOptions(policy="filler", allocation="contiguous")
    assert not different("schedFiller", ours, tmp_path, False, (1, 2, 3, 4))


def test_the_easy_of_pybatsim_lets_the_first_wait(tmp_path):
    """It does not see that free hosts between those of a reservation are needed for it too."""
    ours = BatchOptions(policy="easy")
    found = different("easyBackfill", ours, tmp_path, False, (1, 4))
    assert len(found) < max(2, RUNS)
