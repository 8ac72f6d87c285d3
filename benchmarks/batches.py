"""Whole logs through the batch loop, and one of them through AccaSim."""

from __future__ import annotations

import csv
import gzip
import json
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

from costs import ROOT, run_process, table

HEADING = "Whole logs"
# Of the Parallel Workloads Archive: hosts, policies.
LOGS = {
    "CEA-Curie-2011-2.1-cln": (93_312, ("easy", "conservative")),
    "RICC-2010-2": (8192, ("easy", "conservative")),
    "SDSC-BLUE-2000-4.2-cln": (1152, ("easy", "conservative")),
    "KTH-SP2-1996-2.1-cln": (100, ("fcfs", "easy", "conservative")),
}
# Long queues: minutes, not seconds, in AccaSim.
PEER_LOG = "KTH-SP2-1996-2.1-cln"
PEER_POLICIES = {"fcfs": "fifo", "easy": "easy"}
TEXT = """`ptaskmodel batch` with the jobs of logs of the Parallel Workloads Archive as delays,
first fit, one host for each processor. *simulation*: wall time of the simulation alone;
*whole command*: processor time from the start of the process to the last byte of its results."""
PTASKS = ("CEA-Curie-2011-2.1-cln", 18)
PTASK_TEXT = """All jobs of {log} as parallel tasks (`--profiles ptask`, 16 processors a host,
EASY, walltimes not enforced) on a fat tree of {hosts:,} hosts, with times alone: by default,
and by the open loop (`--loop open`), whose results are bit-identical."""
PEER_TEXT = """KTH-SP2-1996-2.1-cln by AccaSim 1.1.3 (processor time of whole processes; both write
what ran where and when). Its FIFO starts jobs when our `fcfs` does ({equal}); its EASY reserves
named nodes, so times differ."""


def write_cluster(hosts: int, path: Path) -> None:
    """A flat cluster."""
    path.write_text(
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><zone id="world" routing="Full">'
        f'<cluster id="c" prefix="h" suffix="" radical="0-{hosts - 1}" speed="1Gf" bw="1GBps" '
        'lat="1us"/></zone></platform>\n'
    )


def write_fat_tree(ports: int, path: Path) -> None:
    """A fat tree of three levels of full switches."""
    k = ports
    path.write_text(
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><zone id="world" routing="Full">'
        f'<cluster id="ft" prefix="h" suffix="" radical="0-{k**3 - 1}" speed="1Gf" bw="125MBps" '
        f'lat="10us" topology="FAT_TREE" topo_parameters="3;{k},{k},{k};1,{k},{k};1,1,1"/>'
        "</zone></platform>\n"
    )


def run_ours(log: Path, hosts: int, policy: str, place: Path) -> tuple[dict, float]:
    """One run of the command: its summary, and its seconds on a processor."""
    platform = place / f"cluster-{hosts}.xml"
    if not platform.exists():
        write_cluster(hosts, platform)
    return run_command(platform, log, place, "--policy", policy)


def run_command(platform: Path, log: Path, place: Path, *options: str) -> tuple[dict, float]:
    """The same on a platform, with options."""
    results = place / "results"
    command = [sys.executable, "-m", "ptaskmodel", "batch", str(platform), str(log)]
    given = [*options, "--walltimes", "ignore", "-o", str(results)]
    _, seconds = run_process([*command, *given], {"PYTHONWARNINGS": "ignore"})
    return json.loads((results / "summary.json").read_text()), seconds


def as_ptasks(logs: Path, place: Path) -> str:
    """The table of a log whose jobs are parallel tasks, each way once."""
    log, ports = PTASKS
    platform = place / "fat_tree.xml"
    write_fat_tree(ports, platform)
    rows = []
    for loop in ("auto", "open"):
        options = ("--profiles", "ptask", "--processors-per-host", "16", "--loop", loop)
        summary, seconds = run_command(platform, logs / f"{log}.swf.gz", place, *options)
        jobs, took = summary["jobs"]["all"], summary["simulation_wall_time_s"]
        rows.append([summary["loop"], f"{took:.0f}", f"{1e6 * took / jobs:.0f}", f"{seconds:.0f}"])
        print("parallel tasks", rows[-1], flush=True)
    head = ("loop", "simulation, s", "µs a job", "whole command, s")
    return f"{PTASK_TEXT.format(log=log, hosts=ports**3)}\n\n{table(head, rows)}"


def our_starts(place: Path) -> dict[str, float]:
    """When each job of the last run started."""
    with (place / "results" / "jobs.csv").open() as file:
        return {row["job_id"]: float(row["starting_time"]) for row in csv.DictReader(file)}


def their_starts(file: Path) -> dict[str, float]:
    """The same of a table of AccaSim."""
    starts = {}
    for line in file.read_text().splitlines():
        head, _, dates = line.split("__")
        begin = datetime.strptime(dates.split(";")[0], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        starts[head.split(";")[0]] = begin.timestamp()
    return starts


def against_accasim(python: str, log: Path, repetitions: int, place: Path) -> str:
    """The table of one log, the two simulators in turn."""
    hosts = LOGS[PEER_LOG][0]
    plain = place / "log.swf"
    with gzip.open(log, "rt", errors="replace") as file:
        plain.write_text("".join(line for line in file if not line.startswith(";")))
    rows, equal = [], ""
    for policy, theirs in PEER_POLICIES.items():
        command = [python, str(ROOT / "benchmarks" / "accasim_run.py")]
        costs: tuple[list[float], list[float]] = ([], [])
        for _ in range(repetitions):
            costs[0].append(run_process([*command, str(plain), str(hosts), theirs, str(place)])[1])
            costs[1].append(run_ours(log, hosts, policy, place)[1])
        if policy == "fcfs":
            ours, others = our_starts(place), their_starts(place / "sched-log.swf")
            same = sum(others.get(job) == start for job, start in ours.items())
            equal = f"{same:,} of {len(ours):,} jobs"
        them, us = (statistics.median(found) for found in costs)
        rows.append([policy, f"{them:.1f}", f"{us:.2f}", f"**{them / us:.0f}**"])
        print(policy, rows[-1], equal, flush=True)
    head = ("policy", "AccaSim, s", "ours, s", "ratio")
    return f"{PEER_TEXT.format(equal=equal)}\n\n{table(head, rows)}"


def section(repetitions: int, place: Path, logs: Path, accasim: str | None) -> str:
    """The table of all logs, and of the peer's where an interpreter that has it is named."""
    rows = []
    for name, (hosts, policies) in LOGS.items():
        for policy in policies:
            said = [
                run_ours(logs / f"{name}.swf.gz", hosts, policy, place) for _ in range(repetitions)
            ]
            summary, _ = said[0]
            simulation_s = min(one["simulation_wall_time_s"] for one, _ in said)
            whole_s = min(seconds for _, seconds in said)
            count = int(summary["jobs"]["all"])
            rows.append(
                [name, f"{count:,}", f"{hosts:,}", policy, f"{simulation_s:.2f}", f"{whole_s:.1f}"]
            )
            print(rows[-1], flush=True)
    head = ("log", "jobs", "hosts", "policy", "simulation, s", "whole command, s")
    parts = [TEXT, table(head, rows), as_ptasks(logs, place)]
    if accasim is not None:
        parts.append(against_accasim(accasim, logs / f"{PEER_LOG}.swf.gz", repetitions, place))
    return "\n\n".join(parts)
