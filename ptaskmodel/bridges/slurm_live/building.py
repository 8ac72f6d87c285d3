"""What is written in C, built on the spot with the machine's compiler, once for each source."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.bridges.slurm_live.faults import LiveFault
from ptaskmodel.caching import REMEDY, cache_directory

SOURCES = Path(__file__).resolve().parent / "native"
SHARED = ("-fPIC", "-shared", "-pthread")
# What is built: from which source, with which options.
PARTS = {"clock.so": ("clock.c", SHARED), "driver.so": ("driver.c", SHARED), "job": ("job.c", ())}
SECONDS = 120


class Built(NamedTuple):
    """The library of Slurm's processes, that of the driver, the program that jobs are."""

    clock: Path
    driver: Path
    job: Path


def built() -> Built:
    """The parts, from the cache or newly built. Raises LiveFault if there is no compiler."""
    cache = cache_directory()
    if cache is None:
        raise LiveFault(f"there is no directory to build in: {REMEDY}")
    place = cache / f"slurm-live-{_identity()}"
    if not place.is_dir():
        _build(place)
    return Built(*(place / name for name in PARTS))


def _identity() -> str:
    """Of all sources, and of the kind of machine."""
    digest = hashlib.sha256(platform.machine().encode())
    for path in sorted(SOURCES.glob("*.[ch]")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(place: Path) -> None:
    """Build in a directory beside it, which then takes its name: there is all of it or nothing."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    partial = Path(tempfile.mkdtemp(prefix=".slurm-live-", dir=place.parent))
    try:
        for name, (source, options) in PARTS.items():
            _compile([*compiler, "-O2", *options, "-o", str(partial / name), str(SOURCES / source)])
        partial.chmod(0o755)
        try:
            partial.rename(place)
        except OSError:
            if not place.is_dir():  # another process has not built it meanwhile
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _compile(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        raise LiveFault(
            f"a real Slurm needs a C compiler here, and '{command[0]}' cannot be run: install one "
            "(Debian: apt-get install gcc libc6-dev), name it in $CC, or use ptaskmodel slurm"
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise LiveFault(f"{command[0]} cannot build {Path(command[-1]).name}: {first[:200]}")
