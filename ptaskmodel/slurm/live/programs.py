"""Find Slurm's programs on this machine, check them, and build the C helpers of a live run.

A helper is compiled once for each version of its source.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.directories import REMEDY, cache_directory
from ptaskmodel.errors import SimulationError

# The library that gives Slurm its clock was made for what these versions call.
VERSIONS = ("22.05",)
PACKAGES = "slurmctld slurmd slurm-client"
DATABASE_PACKAGES = "slurmdbd slurm-wlm-mysql-plugin mariadb-server-core"
SQL = Path("/usr/share/mysql")
VERSION_TIMEOUT_S = 20
SHARED = ("-fPIC", "-shared", "-pthread")
# What is built: from which source, with which options.
PARTS = {"clock.so": ("clock.c", SHARED), "driver.so": ("driver.c", SHARED), "job": ("job.c", ())}
BUILD_TIMEOUT_S = 120
LAST_PORT = 32_000
FIRST_PORT = 17_000


class LiveFault(SimulationError):
    """Slurm cannot run here, does not start, or ended before its time."""


PLACES = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin", "/usr/local/bin"))


class Installed(NamedTuple):
    """Paths of programs by their names, and the version of Slurm."""

    programs: dict[str, str]
    version: str


def installed(*, database: bool = False) -> Installed:
    """What a run needs, with a database or without. Raises LiveFault if it is not there."""
    if sys.platform != "linux":
        raise LiveFault(
            f"a real Slurm runs on Linux, and this is {sys.platform}; use ptaskmodel slurm"
        )
    names = [
        "slurmctld",
        "slurmd",
        "slurmstepd",
        "sbatch",
        "scancel",
        "scontrol",
        "squeue",
        "sinfo",
    ]
    packages = PACKAGES
    if database:
        names += ["slurmdbd", "sacctmgr", "mariadbd"]
        packages += f" {DATABASE_PACKAGES}"
    found = {name: _path(name) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise LiveFault(
            f"{', '.join(missing)} not found; install Slurm (Debian: apt-get install "
            f"{packages}), or use ptaskmodel slurm, which simulates it"
        )
    programs = {name: path for name, path in found.items() if path is not None}
    version = _version(programs["slurmctld"])
    if not version.startswith(VERSIONS):
        raise LiveFault(
            f"{programs['slurmctld']} is Slurm {version}, and its clock can be led in "
            f"{', '.join(VERSIONS)}; install that, or use ptaskmodel slurm"
        )
    if (
        not Path("/proc/self/task").exists()
        or not Path(f"/proc/self/task/{os.getpid()}/children").exists()
    ):
        raise LiveFault("/proc has no task/*/children: mount it, or use a kernel that has it")
    return Installed(programs, version)


def _path(name: str) -> str | None:
    # Debian's daemons are alternatives, whose own names end so.
    return shutil.which(f"{name}-wlm", path=PLACES) or shutil.which(name, path=PLACES)


def _version(slurmctld: str) -> str:
    try:
        told = subprocess.run(
            [slurmctld, "-V"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise LiveFault(f"{slurmctld}: cannot be run: {fault}") from None
    found = re.search(r"\d+\.\d+(\.\d+)?", told)
    return found[0] if found else "unknown"


SOURCES = Path(__file__).resolve().parent / "native"


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
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        raise LiveFault(
            f"a real Slurm needs a C compiler here, and '{command[0]}' cannot be run; install one "
            "(Debian: apt-get install gcc libc6-dev), name it in $CC, or use ptaskmodel slurm"
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise LiveFault(f"{command[0]} cannot build {Path(command[-1]).name}: {first[:200]}")


def address(count: int) -> tuple[str, int]:
    """A loopback address of this process alone, and the first of `count` free ports there."""
    pid = os.getpid()
    own = f"127.{1 + (pid >> 16) % 250}.{pid >> 8 & 255}.{1 + pid % 254}"
    for begin in range(FIRST_PORT, LAST_PORT - count, max(count, 97)):
        if all(_is_free(own, port) for port in range(begin, begin + count)):
            return own, begin
    raise LiveFault(f"there are no {count} free ports on {own}; end what listens there")


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
