"""Replays of MPI traces against SimGrid's ``smpirun -replay``, in turn, dates compared.

    python benchmarks/replays.py [--only LOAD ...] [--repetitions 3]

Processor time of the simulation alone: for us that of the replay, with platform and trace read and
kernels compiled; for SimGrid that of smpirun less that of a replay in which ranks do nothing; and
that of the whole commands. SimGrid runs twice: with ``network/optim:Full`` (see tests/smpi.py for
why), and as it is by default; ratios are to the faster. Ends of all ranks are compared to 15
digits. Besides these loads there are ``batch``, jobs as traces on a machine, ``memory``, what
replays of many messages take beyond their traces, and ``reading``, how long a trace of many actions
takes to read.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import replay_loads
from costs import ROOT, Cost, run_process, table

sys.path.insert(0, str(ROOT / "tests"))

from smpi import WHOLE, ends_by_smpirun, write_case

from ptaskmodel.mpi import read_trace, replay
from ptaskmodel.platform import load_platform
from ptaskmodel.workload.formats.ti_trace import write_trace

HEADING = "Replays of MPI traces"
TEXT = """Seconds on a processor, the least of several, in turn in one run. SimGrid 3.32's
`smpirun -replay`, with `network/optim:Full` and as it is by default; the simulation: less what a
replay takes there in which ranks do nothing. Whole: the command (`ptaskmodel replay`), from its
start to its end. Ratios are to the faster of SimGrid's two; dates are those of all ranks, against
`Full`."""
HEAD = ("Load", "lines", "SimGrid, s", "by default, s", "ours, s", "ratio", "ends, difference")
HEAD += ("SimGrid whole, s", "by default, s", "ours whole, s", "ratio")
BATCH_JOBS = 1024
BATSIM_S = 167  # published for these jobs as traces
MEMORY_RANKS, MEMORY_MESSAGES = 64, (10**6, 10**7)
READ_RANKS, READ_ACTIONS = 64, 10**7


def by_smpirun(place: Path, ranks: int, *options: str) -> float:
    """What a replay takes, s."""
    files = ("-hostfile", "hosts", "-platform", "platform.xml", "-replay", "traces.txt")
    paths = (each if each.startswith("-") else str(place / each) for each in files)
    return run_process(["smpirun", "-np", str(ranks), *options, *paths])[1]


def row(name: str, repetitions: int, place: Path) -> list[str]:
    """The row of the table for one load."""
    load = replay_loads.LOADS[name]()
    n = len(load.traces)
    hosts = [f"n{rank}" for rank in range(n)]
    idle = [f"{rank} init\n{rank} finalize\n" for rank in range(n)]
    for folder, traces in (("busy", load.traces), ("idle", idle)):
        write_case(place / folder, hosts, traces)
        (place / folder / "platform.xml").write_text(load.platform_xml)
    files = [str(place / "busy" / each) for each in ("platform.xml", "traces.txt", "hosts")]
    command = [sys.executable, "-m", "ptaskmodel", "replay", *files[:2], "--ranks-on", files[2]]
    platform, trace = load_platform(files[0]), read_trace(files[1])
    run_process(command)  # compiles modules
    result = replay(platform, trace, hosts)  # loads the kernels
    ours = Cost()
    theirs = {option: Cost() for option in ((WHOLE,), ())}
    for _ in range(repetitions):
        began = time.process_time()
        replay(platform, trace, hosts)
        ours.run_s.append(time.process_time() - began)
        ours.whole_s.append(run_process(command)[1])
        for options, cost in theirs.items():
            cost.whole_s.append(by_smpirun(place / "busy", n, *options))
            cost.run_s.append(cost.whole_s[-1] - by_smpirun(place / "idle", n, *options))
    ends = ends_by_smpirun(place / "busy", place / "busy" / "platform.xml", hosts, timeout_s=600)
    difference = max(abs(a - b) / b for a, b in zip(result.end_s.tolist(), ends, strict=True))
    costs = list(theirs.values())
    fastest_s, fastest_whole_s = min(c.seconds for c in costs), min(c.whole for c in costs)
    return [
        load.title,
        f"{len(trace):,}",
        *(f"{cost.seconds:.2f}" for cost in costs),
        f"{ours.seconds:.3f}",
        f"**{fastest_s / ours.seconds:.1f}**",
        f"{difference:.0e}",
        *(f"{cost.whole:.2f}" for cost in costs),
        f"{ours.whole:.2f}",
        f"**{fastest_whole_s / ours.whole:.1f}**",
    ]


def batch(repetitions: int) -> str:
    """A sentence on many jobs as traces on a machine."""
    sys.path.insert(0, str(ROOT / "experiments" / "job_profiles"))
    import study

    jobs = {"jobs": BATCH_JOBS, "seed": 1, "scale_s": 6.0, "contention": False}
    taken = []
    for jobs["jobs"] in (16, *(repetitions * [BATCH_JOBS])):  # the first loads the kernels
        began = time.process_time()
        study.one_run({**jobs, "profiles": "trace", "allocation": "first-fit"})
        taken.append(time.process_time() - began)
    return (
        f"{BATCH_JOBS:,} FT jobs of class C on 8 to 32 nodes of Graphene as traces, in a batch "
        f"(see `experiments/job_profiles`): {statistics.median(taken[1:]):.1f} s of a processor; "
        f"Batsim: {BATSIM_S} s, published."
    )


def memory(place: Path) -> str:
    """A sentence on what replays of many messages, each a process, take beyond their traces."""
    hosts = [f"n{rank}" for rank in range(MEMORY_RANKS)]
    told = []
    for messages in MEMORY_MESSAGES:
        rounds = messages // (MEMORY_RANKS * (MEMORY_RANKS - 1)) + 1
        own = place / f"memory-{messages}"
        write_case(own, hosts, replay_loads.ft(MEMORY_RANKS, rounds))
        (own / "platform.xml").write_text(replay_loads.cluster(MEMORY_RANKS, replay_loads.ONE_WIRE))
        done = subprocess.run(
            [sys.executable, __file__, "--measure", str(own)],
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        told.append(
            f"{found['beyond_MB']:.1f} MB for {found['messages']:,} messages "
            f"({found['replay_s']:.0f} s of a processor)"
        )
    return (
        f"Memory of a replay beyond what the process holds once the trace is read, FT on "
        f"{MEMORY_RANKS} ranks: {', '.join(told)}. Only messages under way are kept."
    )


def reading(place: Path) -> str:
    """A sentence on how long many actions take to read, as text and packed."""
    hosts = [f"n{rank}" for rank in range(READ_RANKS)]
    actions = len(replay_loads.stencil(READ_RANKS, 100)[0].splitlines()) // 100
    traces = replay_loads.stencil(READ_RANKS, math.ceil(READ_ACTIONS / READ_RANKS / actions))
    write_case(place, hosts, traces)
    size_MB = sum(map(len, traces)) / 1e6
    began = time.process_time()
    trace = read_trace(place / "traces.txt")
    text_s = time.process_time() - began
    write_trace(trace, place / "packed.npz")
    began = time.process_time()
    read_trace(place / "packed.npz")
    packed_s = time.process_time() - began
    packed_MB = (place / "packed.npz").stat().st_size / 1e6
    return (
        f"A trace of {len(trace):,} actions is read in {text_s:.1f} s of a processor as text "
        f"({size_MB:.0f} MB), in {packed_s:.1f} s packed ({packed_MB:.0f} MB)."
    )


def measure(place: Path) -> None:
    """Replay the traces of a folder; print what that takes (on Linux)."""
    platform = load_platform(place / "platform.xml")
    trace = read_trace(place / "traces.txt")
    before_MB = memory_MB("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    began = time.process_time()
    result = replay(platform, trace, [f"n{rank}" for rank in range(trace.ranks)])
    found = {
        "messages": result.messages,
        "replay_s": time.process_time() - began,
        "before_MB": before_MB,
        "beyond_MB": memory_MB("VmHWM") - before_MB,
    }
    print(json.dumps(found))


def memory_MB(what: str) -> float:
    """A figure of /proc/self/status."""
    status = Path("/proc/self/status").read_text()
    return float(status.split(f"{what}:")[1].split()[0]) / 1024


def section(repetitions: int, place: Path, *names: str) -> str:
    """The table of all loads, and the sentences on the others."""
    wanted = names or (*replay_loads.LOADS, *OTHERS)
    rows = []
    for name in [each for each in wanted if each in replay_loads.LOADS]:
        rows.append(row(name, repetitions, place / name))
        print(rows[-1], flush=True)
    sentences = []
    if "batch" in wanted:
        sentences.append(batch(repetitions))
        print(sentences[-1], flush=True)
    for name, other in (("memory", memory), ("reading", reading)):
        if name in wanted:
            sentences.append(other(place / name))
            print(sentences[-1], flush=True)
    return "\n\n".join([TEXT, table(HEAD, rows), *sentences])


OTHERS = ("batch", "memory", "reading")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=[*replay_loads.LOADS, *OTHERS], default=[])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
    else:
        with tempfile.TemporaryDirectory() as directory:
            section(options.repetitions, Path(directory), *options.only)
