"""What reading and writing files costs beside pandas and pyarrow, for the same bytes.

    python benchmarks/files.py [--jobs 100000] [--repeat 5] [--log LOG] [--only TEXT]

Prints a table: seconds on a processor of ours, the least of repetitions in turn with the others,
and its ratio to theirs: to pandas (read_csv, to_csv; of JSON json.loads and a DataFrame, to_json)
and to the fastest of all ways tried (pyarrow on one thread, msgspec's untyped decoding into a
table). LOG: a log in the Standard Workload Format, instead of a random one.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import costs  # noqa: F401 (finds the package)
import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import replay_loads

import ptaskmodel as pm
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.run import run_batch
from ptaskmodel.batch.schedule_metrics import load
from ptaskmodel.results.tables.batch import plain_job_lines, write_schedule
from ptaskmodel.results.tables.tasks import write_tasks_csv
from ptaskmodel.simulation.records import TaskRecord
from ptaskmodel.workload.formats.batsim import read_batsim, write_batsim
from ptaskmodel.workload.formats.swf import FIELDS, read_swf, swf_from_workload, write_swf
from ptaskmodel.workload.formats.tasks_json import load_tasks, write_tasks
from ptaskmodel.workload.formats.ti_trace import read_trace
from ptaskmodel.workload.jobs import job_arrays
from ptaskmodel.workload.reading import read_workload

HOSTS = 256
Ways = dict[str, Callable[[], object]]


def swf_log(path: Path, jobs: int) -> None:
    """A log of random jobs."""
    draw = np.random.default_rng(1)
    rows = np.full((jobs, len(FIELDS)), -1, dtype=np.int64)
    rows[:, 0] = np.arange(1, jobs + 1)
    rows[:, 1] = np.cumsum(draw.integers(0, 60, jobs))
    rows[:, 3] = draw.integers(1, 100_000, jobs)
    rows[:, 4] = rows[:, 7] = draw.integers(1, HOSTS + 1, jobs)
    rows[:, 8] = rows[:, 3] + draw.integers(0, 10_000, jobs)
    rows[:, 10], rows[:, 11] = 1, draw.integers(1, 400, jobs)
    lines = [f"; MaxProcs: {HOSTS}", *(" ".join(map(str, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n")


def batsim_json(path: Path, jobs: int) -> None:
    """A Batsim workload: a tenth as many profiles as jobs, delays and homogeneous ones."""
    draw = random.Random(2)
    kinds = [
        {"type": "delay", "delay": draw.uniform(1, 1e5)}
        if k % 2
        else {"type": "parallel_homogeneous", "cpu": draw.uniform(1e9, 1e12), "com": 1e6 + k}
        for k in range(jobs // 10)
    ]
    entries = [
        {
            "id": str(k),
            "subtime": round(30 * k + draw.uniform(0, 60), 3),
            "res": draw.randint(1, HOSTS),
            "profile": f"p{draw.randrange(len(kinds))}",
            "walltime": draw.randint(60, 100_000),
        }
        for k in range(jobs)
    ]
    profiles = {f"p{k}": kind for k, kind in enumerate(kinds)}
    document = {"nb_res": HOSTS, "jobs": entries, "profiles": profiles}
    path.write_text(json.dumps(document, indent=1))


def tasks_json(path: Path, tasks: int) -> None:
    """Tasks on 8 hosts each: half of profiles, half with a ring of flows of their own."""
    draw = random.Random(3)
    profiles = {
        f"p{k}": {"type": "parallel_homogeneous", "cpu": draw.uniform(1e9, 1e12), "com": 1e6}
        for k in range(100)
    }
    entries = []
    for k in range(tasks):
        first = draw.randrange(HOSTS - 8)
        entry = {"id": f"t{k}", "hosts": [f"h{first + j}" for j in range(8)], "start": k / 8}
        if k % 2:
            entry["profile"] = f"p{draw.randrange(100)}"
        else:
            entry["cpu"] = 1e9
            entry["flows"] = [[j, (j + 1) % 8, draw.uniform(1e6, 1e9)] for j in range(8)]
        entries.append(entry)
    path.write_text(json.dumps({"profiles": profiles, "tasks": entries}))


def frame_of_json(path: Path, key: str) -> Ways:
    """The ways of others to make a table of the list ``key`` of a document."""
    return {
        "json, pandas": lambda: pd.DataFrame(json.loads(path.read_bytes())[key]),
        "msgspec, pandas": lambda: pd.DataFrame(msgspec.json.decode(path.read_bytes())[key]),
        "msgspec, pyarrow": lambda: pa.array(msgspec.json.decode(path.read_bytes())[key]),
    }


def csv_writers(frame: pd.DataFrame, path: Path) -> Ways:
    """The ways of others to write a table as CSV."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return {
        "pandas": lambda: frame.to_csv(path, index=False),
        "pyarrow": lambda: pyarrow.csv.write_csv(table, path),
    }


def logs(log: Path, place: Path) -> dict[str, tuple[Callable[[], object], Ways]]:
    content = log.read_bytes()
    body = b"".join(line for line in content.splitlines(True) if not line.startswith(b";"))
    single = b"\n".join(b" ".join(line.split()) for line in body.splitlines()) + b"\n"

    def by_pandas() -> object:
        return pd.read_csv(log, sep=r"\s+", comment=";", header=None)

    def by_pyarrow() -> object:
        options = pyarrow.csv.ParseOptions(delimiter=" ")
        read = pyarrow.csv.ReadOptions(autogenerate_column_names=True, use_threads=False)
        return pyarrow.csv.read_csv(io.BytesIO(single), read, options)

    readers: Ways = {"pandas": by_pandas, "pyarrow (one blank, no header)": by_pyarrow}
    rows = read_swf(log)
    workload = read_workload(log)
    frame = by_pandas()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    out = place / "out.swf"
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ")
    writers: Ways = {
        "pandas": lambda: frame.to_csv(out, sep=" ", header=False, index=False),
        "pyarrow": lambda: pyarrow.csv.write_csv(table, out, options),
    }
    return {
        "SWF, its rows": (lambda: read_swf(log), readers),
        "SWF, arrays of jobs": (lambda: job_arrays(read_workload(log).jobs), readers),
        "SWF, jobs as objects": (lambda: list(read_workload(log).jobs), readers),
        "SWF out, of rows": (lambda: write_swf(rows, out), writers),
        "SWF out, of jobs": (lambda: write_swf(swf_from_workload(workload), out), writers),
    }


def batsims(path: Path, place: Path) -> dict[str, tuple[Callable[[], object], Ways]]:
    workload = read_batsim(path)
    document = msgspec.json.decode(path.read_bytes())
    frame = pd.DataFrame(document["jobs"])
    out = place / "out.json"
    writers: Ways = {
        "pandas": lambda: frame.to_json(out, orient="records", indent=1),
        "json, no table": lambda: out.write_text(json.dumps(document, indent=1)),
    }
    return {
        "Batsim JSON, arrays of jobs": (
            lambda: job_arrays(read_batsim(path).jobs),
            frame_of_json(path, "jobs"),
        ),
        "Batsim JSON, jobs as objects": (
            lambda: list(read_batsim(path).jobs),
            frame_of_json(path, "jobs"),
        ),
        "Batsim JSON out": (lambda: write_batsim(workload, out), writers),
    }


def tasks(path: Path, place: Path) -> dict[str, tuple[Callable[[], object], Ways]]:
    table = load_tasks(path)
    loaded = list(table)
    document = msgspec.json.decode(path.read_bytes())
    frame = pd.DataFrame(document["tasks"])
    out = place / "out.json"
    writers: Ways = {
        "pandas": lambda: frame.to_json(out, orient="records", lines=True),
        "json, no table": lambda: out.write_text(json.dumps(document)),
    }
    draw = random.Random(4)
    records = [
        TaskRecord(task.id, task.profile, start, start + took, took, "completed", task.hosts)
        for task in loaded
        for start, took in [(task.start_s, draw.uniform(1, 1e4))]
    ]
    written = place / "tasks.csv"

    def write() -> None:
        with written.open("w", encoding="utf-8", newline="") as stream:
            write_tasks_csv(stream, records)

    write()
    return {
        "tasks JSON": (lambda: load_tasks(path), frame_of_json(path, "tasks")),
        "tasks JSON out, of tasks": (lambda: write_tasks(loaded, out), writers),
        "tasks JSON out, of a table": (lambda: write_tasks(table, out), writers),
        "tasks.csv out": (write, csv_writers(pd.read_csv(written), place / "other.csv")),
    }


def schedules(log: Path, place: Path) -> dict[str, tuple[Callable[[], object], Ways]]:
    workload = read_workload(log)
    hosts = workload.num_hosts or int(job_arrays(workload.jobs).num_hosts.max())
    build = pm.Platform.build("cluster")
    build.cluster("c", hosts, speed="1Gf", bandwidth="1GBps", latency="1us")
    schedule = run_batch(build.finish(), workload, BatchOptions(policy="easy")).schedule
    directory = place / "schedule"
    directory.mkdir()
    names = [f"c-{k}" for k in range(hosts)]

    def jobs_csv() -> None:
        with (directory / "jobs.csv").open("wb") as file:
            file.writelines(plain_job_lines(schedule.plain, "w0"))

    def whole() -> None:
        options = {"host_names": names, "version": "0", "simulation_s": 0.0}
        write_schedule(directory, schedule, load(schedule), workload_name="w0", **options)

    whole()
    others = csv_writers(pd.read_csv(directory / "jobs.csv"), place / "other.csv")
    return {"jobs.csv out": (jobs_csv, others), "all files of a schedule": (whole, others)}


def traces(place: Path) -> dict[str, tuple[Callable[[], object], Ways]]:
    """The trace of a stencil, all ranks in one file."""
    path = place / "trace.txt"
    path.write_text("".join(replay_loads.stencil(64, 250)))

    def by_pandas() -> object:
        return pd.read_csv(path, sep=" ", header=None, names=range(5))

    return {"TI trace, text": (lambda: read_trace(path), {"pandas": by_pandas})}


def seconds(way: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    way()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    print("| What | ours, s | to pandas | to the fastest | which |\n|---|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        log = place / "log.swf"
        if options.log is None:
            swf_log(log, options.jobs)
        else:
            from ptaskmodel.files import read_bytes

            log.write_bytes(read_bytes(options.log))
        batsim_json(place / "batsim.json", options.jobs)
        tasks_json(place / "tasks.json", options.jobs // 4)
        rows = logs(log, place) | batsims(place / "batsim.json", place)
        rows |= tasks(place / "tasks.json", place) | schedules(log, place) | traces(place)
        for what, (ours, others) in rows.items():
            if options.only in what:
                ways = {"": ours, **others}
                times = {way: [] for way in ways}
                for _ in range(options.repeat):
                    for way, call in ways.items():
                        times[way].append(seconds(call))
                least = {way: min(found) for way, found in times.items()}
                mine = least.pop("")
                best = min(least, key=least.get)
                pandas = next(found for way, found in least.items() if "pandas" in way)
                said = f"{mine:.3f} | {mine / pandas:.1f} | {mine / least[best]:.1f} | {best}"
                print(f"| {what} | {said} |", flush=True)


if __name__ == "__main__":
    main()
