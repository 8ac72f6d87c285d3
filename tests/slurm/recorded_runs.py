"""The recorded runs of a real Slurm, where they are, and what their files say."""

import csv
import json
import re
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.phases import read_cycles, read_phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.conf.reservations import read_reservations
from ptaskmodel.slurm.event_log import hostlist
from ptaskmodel.slurm.jobs.record import REFUSED
from ptaskmodel.slurm.jobs.request import Command
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "slurm"
FOLDERS = sorted(path.parent.name for path in RECORDED.glob("*/slurm.conf"))


def folder(name: str) -> Path:
    """The folder of a recorded workload; the test is skipped where it is not there."""
    path = RECORDED / name
    if not path.is_dir():
        pytest.skip("the recorded runs are not here")
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def meta(path: Path) -> dict:
    return json.loads(path.read_text())


ACTIONS = {"scancel": "cancel", "hold": "hold", "release": "release"}


def commands_in(path):
    """What was done to jobs by hand, by id; of an array to its first task."""
    told = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        date, action, job = re.fullmatch(r"(\S+) (\w+) \{(\w+)\}", line).groups()
        told.setdefault(job, []).append(Command(float(date), ACTIONS[action]))
    return told


def replayed(place, *, fed):
    """The simulated run of a recorded one; fed: with the dates of its cycles."""
    conf = read_conf(place / "slurm.conf")
    commands = commands_in(place / "at.txt")
    phases = read_phases(place / "run1.meta.json", conf)
    lines = place / "reservations.txt"
    return simulate_slurm(
        conf,
        [
            replace(job, commands=tuple(commands.pop(job.array_id, ())))
            for job in read_submissions(place / "jobs.csv", conf).jobs
        ],
        accounts=read_accounts(place / "sacctmgr.txt") if conf.database else None,
        phases=phases,
        reserved=read_reservations(lines, conf, phases.t0) if lines.exists() else None,
        recorded=read_cycles(place / "run1.events.csv") if fed else None,
    )


def refused(run):
    """The jobs, and arrays, that a run refuses."""
    return sorted({job.request.array_id for job in run.jobs if job.state == REFUSED})


def decisions(run, until=inf):
    """When, where, by which scheduler each job of a run started, and how it ended.

    until: the date at which the real Slurm was stopped, while jobs waited for usage to decay.
    """
    return {
        job.id: (
            job.start_s - run.phases.t0,
            hostlist(run.nodes.names_of(job.allocation.nodes)),
            job.by,
            job.state,
        )
        for job in run.jobs
        if job.attempt is not None and job.start_s - run.phases.t0 <= until
    }


def decided(place):
    """The same as the real Slurm decided it."""
    return {
        row["id"]: (int(row["start"]), row["nodelist"], row["by"], row["state"])
        for row in rows(place / "run1.csv")
        if row["by"]
    }


def is_equal(place, *, fed):
    """Whether all that was decided in a recorded run is decided again."""
    run, known = replayed(place, fed=fed), meta(place / "run1.meta.json")
    equal = decisions(run, known.get("until", inf)) == decided(place)
    return equal and refused(run) == known["refused"]
