"""Random configurations and jobs as a real Slurm ran them, to the second (see reference/)."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from slurm.recorded_runs import meta, rows

from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.phases import read_cycles, read_phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.conf.reservations import read_reservations
from ptaskmodel.slurm.event_log import hostlist
from ptaskmodel.slurm.jobs.record import REFUSED
from ptaskmodel.slurm.jobs.request import Command
from ptaskmodel.slurm.requests.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm

RANDOM = Path(__file__).parent / "reference" / "random"


ACTIONS = {"scancel": "cancel", "hold": "hold", "release": "release"}


def commands_in(path):
    """What was done to jobs by hand, by id; of an array to its first task."""
    told = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        date, action, job = re.fullmatch(r"(\S+) (\w+) \{(\w+)\}", line).groups()
        told.setdefault(job, []).append(Command(float(date), ACTIONS[action]))
    return told


NAMES = sorted(path.name for path in RANDOM.iterdir())


@pytest.mark.parametrize("fed", [True, False], ids=["fed", "free"])
@pytest.mark.parametrize("name", NAMES)
def test_every_decision_is_that_of_slurm(name, fed):
    place = RANDOM / name
    conf = read_conf(place / "slurm.conf")
    commands = commands_in(place / "at.txt")
    phases = read_phases(place / "run1.meta.json", conf)
    lines = place / "reservations.txt"
    run = simulate_slurm(
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
    refused = {job.request.array_id for job in run.jobs if job.state == REFUSED}
    assert sorted(refused) == meta(place / "run1.meta.json")["refused"]
    started = [job for job in run.jobs if job.attempt is not None]
    ours = {
        job.id: (
            job.start_s - run.phases.t0,
            hostlist(run.nodes.names_of(job.allocation.nodes)),
            job.by,
            job.state,
        )
        for job in started
    }
    told = [row for row in rows(place / "run1.csv") if row["by"]]
    real = {
        row["id"]: (int(row["start"]), row["nodelist"], row["by"], row["state"]) for row in told
    }
    assert ours == real
    cpus = {row["id"]: int(row["cpus"]) for row in told if row.get("cpus")}
    found = {job.id: sum(job.allocation.cpus) for job in started if job.allocation.cpus}
    assert {name: found.get(name, count) for name, count in cpus.items()} == cpus
