"""Replays of MPI traces against SimGrid's ``smpirun -replay``, in turn, dates compared.

    python benchmarks/replays.py [--only LOAD ...] [--repetitions 3]

Processor time of the simulation alone: for us that of the replay, with platform and trace read and
kernels compiled; for SimGrid the user time of smpirun less that of a replay in which ranks do
nothing. SimGrid runs with ``network/optim:Full`` (see tests/smpi.py for why).
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import replay_loads
from costs import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from smpi import WHOLE, write_case

from ptaskmodel.platform import load_platform
from ptaskmodel.replay import read_trace, replay

HEADING = "Replays of MPI traces"
HEAD = (
    "Processor time (user) of the simulation, medians, in turn in one run; SimGrid 3.32's "
    "`smpirun -replay` with `network/optim:Full`.\n\n"
    "| Load | messages | SimGrid, s | ours, s | ratio | last end, relative difference |\n"
    "|---|--:|--:|--:|--:|--:|\n"
)


def by_smpirun(place: Path, ranks: int) -> tuple[float, float]:
    """User time of a replay (s), and the date of the last end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(
        [
            *("smpirun", "-np", str(ranks), "-hostfile", "hosts", "-platform", "platform.xml"),
            *(WHOLE, "-replay", "traces.txt"),
        ],
        cwd=place,
        capture_output=True,
        text=True,
        check=True,
    )
    took_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return took_s, float(done.stderr.split("Simulation time")[-1].split()[0])


def line(name: str, repetitions: int, place: Path) -> str:
    """The line of the table for one load."""
    load = replay_loads.LOADS[name]()
    n = len(load.traces)
    hosts = [f"n{rank}" for rank in range(n)]
    idle = [f"{rank} init\n{rank} finalize\n" for rank in range(n)]
    for folder, traces in (("busy", load.traces), ("idle", idle)):
        write_case(place / folder, hosts, traces)
        (place / folder / "platform.xml").write_text(load.platform_xml)
    platform = load_platform(place / "busy" / "platform.xml")
    trace = read_trace(place / "busy" / "traces.txt")
    replay(platform, trace, hosts)  # loads the kernels
    ours, theirs = [], []
    for _ in range(repetitions):
        began = time.process_time()
        result = replay(platform, trace, hosts)
        ours.append(time.process_time() - began)
        took_s, end_s = by_smpirun(place / "busy", n)
        theirs.append(took_s - by_smpirun(place / "idle", n)[0])
    our_s, their_s = statistics.median(ours), statistics.median(theirs)
    difference = abs(result.makespan_s - end_s) / end_s
    return (
        f"| {load.title} | {result.messages:,} | {their_s:.2f} | {our_s:.3f} | "
        f"**{their_s / our_s:.1f}** | {difference:.0e} |"
    )


def section(repetitions: int, place: Path, *names: str) -> str:
    """The table of all loads."""
    lines = []
    for name in names or replay_loads.LOADS:
        lines.append(line(name, repetitions, place / name))
        print(lines[-1], flush=True)
    return HEAD + "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(replay_loads.LOADS), default=[])
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        section(options.repetitions, Path(directory), *options.only)
