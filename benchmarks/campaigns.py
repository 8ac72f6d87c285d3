"""What a campaign costs beside its runs: on processes and on a Dask cluster of this machine.

    python benchmarks/campaigns.py [--runs 5000] [--seconds 0.05] [--workers 2]

Prints a line for each executor: overhead of a run (time of the workers that is no run's, over the
runs), and how long after a run had ended the command knew of it. Then what each part costs, which
docs/background/campaigns_at_scale.md counts with. A run sleeps, so that other work on the machine
disturbs the figures less.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ptaskmodel.campaign import Campaign, Cluster, plan_of

STUDY = """import time

def measure(parameters):
    time.sleep(parameters["sleep_s"])
    numbers = {f"metric_{k}": parameters["x"] / (k + 1) for k in range(60)}
    return numbers | {"ended_at": time.time()}
"""


def plan(place: Path, runs: int, sleep_s: float):
    (place / "study.py").write_text(STUDY)
    text = (
        f'run = "study.py:measure"\n[parameters]\nsleep_s = {sleep_s}\n'
        f"[factors]\nx = {{from = 1, to = {runs}}}\n"
    )
    return plan_of(text, place, "plan")


@contextlib.contextmanager
def machines(count: int, place: Path):
    """A scheduler and workers that have joined it: its address, and their processes."""
    from distributed import Client

    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1"]
    file = place / "scheduler.json"
    log = (place / "log.txt").open("w")
    started = [
        subprocess.Popen(
            [*command, "--no-dashboard", "--port", "0", "--scheduler-file", str(file)],
            stdout=log, stderr=log,
        )
    ]  # fmt: skip
    while not file.exists():
        time.sleep(0.05)
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
    options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--host", "127.0.0.1"]
    for _ in range(count):
        started.append(subprocess.Popen([*worker, *options], cwd=place, stdout=log, stderr=log))
    address = json.loads(file.read_text())["address"]
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count)
    try:
        yield address, started
    finally:
        for process in started:
            process.kill()
            process.wait()
        log.close()


def cpu_s(pid: int) -> float:
    """Processor time of a process so far, s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def disturbed_only_by_itself(campaign: Campaign, workers: int, on: Cluster | None) -> dict:
    """Make a campaign; its overhead a run, ms, and how late the command knew of runs, ms."""
    told_at = {}

    def progress(done, failed, total, run, seconds, error):
        told_at[run.id] = time.time()

    began = time.perf_counter()
    status = campaign.make(workers, on=on, progress=progress)
    elapsed_s = time.perf_counter() - began
    assert status.done == len(campaign.runs), status
    frame = campaign.frame()
    runs_s = float(frame["wall_s"].sum())
    late = frame["run"].map(told_at) - frame["ended_at"]
    return {
        "elapsed_s": elapsed_s,
        "overhead_ms": (elapsed_s * workers - runs_s) / len(campaign.runs) * 1e3,
        "late_median_ms": float(late.median()) * 1e3,
        "late_most_ms": float(late.max()) * 1e3,
    }


def timed(what) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        many = plan(place, given.runs, given.seconds)
        found = disturbed_only_by_itself(Campaign.of(many, place / "a"), given.workers, None)
        print("processes", {key: round(value, 2) for key, value in found.items()}, flush=True)
        with machines(given.workers, fresh(place)) as (address, _):
            on = Cluster(address)
            found = disturbed_only_by_itself(Campaign.of(many, place / "b"), given.workers, on)
            print("Dask", {key: round(value, 2) for key, value in found.items()}, flush=True)
        nothing = plan(place, given.runs, 0.0)
        campaign = Campaign.of(nothing, place / "c")
        with machines(given.workers, fresh(place)) as (address, processes):
            on = Cluster(address)
            campaign.make(on=on)  # workers and their processes are warm
            campaign = Campaign.of(nothing, place / "d")
            before = [cpu_s(process.pid) for process in processes], time.process_time()
            elapsed_s = timed(lambda: campaign.make(on=on))
            spent = [cpu_s(process.pid) for process in processes], time.process_time()
        runs = given.runs
        costs = {
            "elapsed": elapsed_s,
            "front end": spent[1] - before[1],
            "scheduler": spent[0][0] - before[0][0],
            "Dask worker": (sum(spent[0][1:]) - sum(before[0][1:])),
            "expand the plan": timed(nothing.runs),
            "see what is there": timed(campaign.status),
            "make the table": timed(campaign.frame),
        }
        record = campaign.store.read(campaign.runs[0].id)
        store = type(campaign.store)(place / "e")
        costs["keep a record"] = timed(
            lambda: [store.write(run.id, {**record, "id": run.id}) for run in campaign.runs]
        )
        for part, seconds in costs.items():
            print(f"{part:<20}{seconds / runs * 1e3:8.3f} ms a run", flush=True)
        kept = sum(path.stat().st_size for path in (place / "d" / "runs").iterdir())
        print(f"a record takes {kept / runs:.0f} bytes of {len(json.dumps(record))}")


def fresh(place: Path) -> Path:
    """A new directory."""
    return Path(tempfile.mkdtemp(dir=place))


if __name__ == "__main__":
    main()
