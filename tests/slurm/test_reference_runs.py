"""Arrays, dependencies, limits, licences, QOS preemption: as a real Slurm did (see reference/)."""

from dataclasses import replace
from pathlib import Path

import pytest
from slurm.recorded_runs import rows

from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.phases import read_cycles, read_phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.conf.values import hosts
from ptaskmodel.slurm.jobs.request import Command
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm

REFERENCE = Path(__file__).parent / "reference"
# What keeps the jobs that never started.
REASONS = {
    "times": {
        "d": "PartitionTimeLimit",
        "e": "PartitionNodeLimit",
        "f": "PartitionTimeLimit",
    },
    "arrays": {"l": "DependencyNeverSatisfied"},
    "limits": {
        "l": "AssocMaxWallDurationPerJobLimit",
        "m": "QOSMaxCpuPerJobLimit",
        "s": "AssocMaxSubmitJobLimit",
    },
    "qos": {},
}


def simulated(name, *, fed, watch=None):
    """Our run of a folder, and what the real one did, by job."""
    path = REFERENCE / name
    conf = read_conf(path / "slurm.conf")
    known = path / "sacctmgr.txt"
    jobs = read_submissions(path / "jobs.csv", conf).jobs
    released = {"k": (Command(150.0, "release"),)} if name == "times" else {}
    run = simulate_slurm(
        conf,
        [replace(job, commands=released.get(job.id, ())) for job in jobs],
        accounts=read_accounts(known) if known.exists() else None,
        phases=read_phases(path / "run1.meta.json", conf),
        recorded=read_cycles(path / "run1.events.csv") if fed else None,
        watch=watch,
    )
    return run, {row["id"]: row for row in rows(path / "run1.csv")}


def check(run, real, late_s):
    for job in run.jobs:
        row = real.get(job.id)
        if row is None:
            continue
        start = job.start_s - run.phases.t0
        assert abs(start - int(row["start"])) <= late_s, job.id
        assert (job.state, job.by) == (row["state"], row["by"]), job.id
        names = {run.nodes.names[k] for k in members(job.allocation.nodes)}
        assert names == set(hosts(row["nodelist"])), job.id


@pytest.mark.parametrize("name", sorted(REASONS))
def test_decisions_at_the_recorded_dates(name):
    run, real = simulated(name, fed=True)
    check(run, real, late_s=0)
    kept = {job.id: job.reason for job in run.jobs if job.id not in real}
    assert kept == REASONS[name]


@pytest.mark.parametrize("name", ["qos", "times"])
def test_alone_within_a_turn_of_the_main_loop(name):
    check(*simulated(name, fed=False), late_s=1)


class Priorities:
    """Notes the priorities of those who wait, by date and by Slurm's id."""

    looks_at_plans = False

    def __init__(self):
        self.seen = []

    def note(self, *_):
        """Nothing."""

    def turned(self, controller, turn):
        table = controller.rules.priorities.table()
        found = dict(zip(table["number"].tolist(), table["priority"].tolist(), strict=True))
        self.seen.append((turn.date_s, found))


def printed():
    """What sprio printed in the run of limits: date, Slurm's id, priority."""
    date = None
    for line in (REFERENCE / "limits" / "said.txt").read_text().splitlines():
        words = line.split("|")
        if "sprio -h" in line:
            date = float(line.split()[0])
        elif date is not None and len(words) == 8:
            yield date, int(words[0]), int(words[1])


def test_priorities_with_classic_shares_as_sprio_printed_them():
    watch = Priorities()
    simulated("limits", fed=True, watch=watch)
    count = 0
    for date, number, real in printed():
        # Slurm gives no id to the job that it refuses after the 12th; no pass of ours is after 300.
        if number <= 12 and date < 300:
            _, ours = max((one for one in watch.seen if one[0] < date), key=lambda one: one[0])
            assert ours[number] == real, (date, number)
            count += 1
    assert count > 10
