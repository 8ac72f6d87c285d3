"""Routes as an installed SimGrid computes them: compiles and runs simgrid/routes.cpp."""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parent / "simgrid" / "routes.cpp"
TAIL_LIMIT = 50


class LiveRoute(NamedTuple):
    """``links`` None: SimGrid throws (or crashes, if ``crashed``) on this pair."""

    links: tuple[str, ...] | None
    latency_s: float
    crashed: bool = False


@functools.cache
def dumper() -> Path | None:
    """The compiled program, or None where there is no compiler or no SimGrid."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    program = Path(tempfile.gettempdir()) / f"ptaskmodel-simgrid-routes-{digest}"
    if not program.exists():
        fresh = program.with_suffix(f".{id(program)}")
        command = [compiler, "-std=c++17", "-O1", str(SOURCE), "-o", str(fresh), "-lsimgrid"]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return None
        fresh.rename(program)
    return program


needs_simgrid = [
    pytest.mark.simgrid,
    pytest.mark.skipif(dumper() is None, reason="needs g++ and SimGrid"),
]


def run(platform: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run the program on a platform file with some pairs."""
    command = [str(dumper()), str(platform), "--log=root.thres:critical"]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, timeout=300
    )


def loads(platform: Path) -> bool:
    """Whether SimGrid loads a platform file."""
    return run(platform, "").returncode == 0


def routes(platform: Path, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], LiveRoute]:
    """SimGrid's routes; pairs on which it crashes are stepped over, at most TAIL_LIMIT times."""
    found: dict[tuple[str, str], LiveRoute] = {}
    todo = list(pairs)
    for _ in range(TAIL_LIMIT):
        done = run(platform, "".join(f"{a}\t{b}\n" for a, b in todo))
        lines = done.stdout.splitlines()
        for line in lines:
            a, b, *rest = line.split("\t")
            if not rest:
                found[a, b] = LiveRoute(None, 0.0, crashed=True)
            elif rest[0] == "error":
                found[a, b] = LiveRoute(None, 0.0)
            else:
                found[a, b] = LiveRoute(tuple(rest[1:]), float(rest[0]))
        todo = todo[len(lines) :]
        if not todo or not lines:
            break
    return found
