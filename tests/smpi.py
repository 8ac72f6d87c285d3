"""Runs SimGrid's ``smpirun -replay`` and reads when each rank ended."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

# Rates of the whole system at each event: with SimGrid's default, 3.32 leaves out links on which
# flows begin, and lets them carry more than their bandwidth.
WHOLE = "--cfg=network/optim:Full"


def is_installed() -> bool:
    return shutil.which("smpirun") is not None


def write_case(place: Path, hosts: Sequence[str], files: Sequence[str]) -> Path:
    """Write the traces of ranks, and a hostfile; returns the list of traces."""
    place.mkdir(parents=True, exist_ok=True)
    names = []
    for rank, text in enumerate(files):
        (place / f"rank{rank}.txt").write_text(text)
        names.append(str(place / f"rank{rank}.txt"))
    (place / "hosts").write_text("\n".join(hosts) + "\n")
    (place / "traces.txt").write_text("\n".join(names) + "\n")
    return place / "traces.txt"


def _run(command: list[str], place: Path, timeout_s: float) -> tuple[int, str]:
    """(exit status, what it said); smpirun is a script: none of what it starts outlives it."""
    with subprocess.Popen(
        command,
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said


def ends_by_smpirun(
    place: Path, platform: Path, hosts: Sequence[str], *options: str, timeout_s: float = 60
) -> list:
    """The date at which each rank of a case ended, to 15 digits."""
    paje = place / "smpi.paje"
    command = [
        *("smpirun", "-np", str(len(hosts)), "-hostfile", "hosts", "-platform", str(platform)),
        *("-trace", "-trace-file", str(paje), "--cfg=tracing/precision:15", WHOLE),
        *("--log=root.thres:critical", *options, "-replay", "traces.txt"),
    ]
    status, said = _run(command, place, timeout_s)
    assert status == 0, said[-4000:]
    ranks, ends = {}, {}
    for line in paje.read_text().splitlines():
        words = line.split()
        if words[0] == "6" and '"rank-' in line:
            ranks[words[2]] = int(re.search(r"rank-(\d+)", line)[1])
        elif len(words) == 4 and words[0] == "7" and words[3] in ranks:
            ends[ranks[words[3]]] = float(words[1])
    return [ends[rank] for rank in range(len(hosts))]
