"""The programs of Slurm on this machine, and whether they will do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.bridges.slurm_live.faults import LiveFault

# The library that gives Slurm its clock was made for what these versions call.
VERSIONS = ("22.05",)
PACKAGES = "slurmctld slurmd slurm-client"
DATABASE_PACKAGES = "slurmdbd slurm-wlm-mysql-plugin mariadb-server-core"
PLACES = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin", "/usr/local/bin"))
SQL = Path("/usr/share/mysql")
SECONDS = 20


class Installed(NamedTuple):
    """Paths of programs by their names, and the version of Slurm."""

    programs: dict[str, str]
    version: str


def installed(*, database: bool = False) -> Installed:
    """What a run needs, with a database or without. Raises LiveFault if it is not there."""
    if sys.platform != "linux":
        raise LiveFault(
            f"a real Slurm runs on Linux, and this is {sys.platform}: use ptaskmodel slurm"
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
            f"{', '.join(missing)} not found: install Slurm (Debian: apt-get install "
            f"{packages}), or use ptaskmodel slurm, which simulates it"
        )
    programs = {name: path for name, path in found.items() if path is not None}
    version = _version(programs["slurmctld"])
    if not version.startswith(VERSIONS):
        raise LiveFault(
            f"{programs['slurmctld']} is Slurm {version}, and its clock can be led in "
            f"{', '.join(VERSIONS)}: install that, or use ptaskmodel slurm"
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
            [slurmctld, "-V"], capture_output=True, text=True, timeout=SECONDS, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise LiveFault(f"{slurmctld}: cannot be run: {fault}") from None
    found = re.search(r"\d+\.\d+(\.\d+)?", told)
    return found[0] if found else "unknown"
