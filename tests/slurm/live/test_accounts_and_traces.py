"""A real Slurm with its database, and over jobs that are traces: the simulated one does alike."""

from __future__ import annotations

import csv
import json

import pytest
from real_slurm import CORES, needs_slurm, written

from ptaskmodel.cli import main
from ptaskmodel.slurm.live.programs import LiveFault, installed

ACCOUNTS = """add account physics Fairshare=3
add account biology Fairshare=1
add qos urgent Priority=100 MaxJobsPerUser=1
add user daemon Account=physics QOS=normal,urgent DefaultQOS=normal
add user bin Account=biology QOS=normal,urgent DefaultQOS=normal GrpTRES=cpu=8
"""
ENFORCED = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=limits,qos
PriorityType=priority/multifactor
PriorityWeightFairshare=1000
PriorityWeightQOS=2000
PriorityCalcPeriod=5
"""
# Who fills the machine first; then two who are urgent, one at a time, and who has too many cores.
OF_USERS = """id,submit,nodes,cores,limit,run,user,qos
first,0,,16,300,40,daemon,
plain,5,,8,300,60,daemon,
hasty,7,,4,300,50,daemon,urgent
again,9,,4,300,50,daemon,urgent
small,11,,4,300,45,bin,
large,13,,8,300,30,bin,
other,15,,4,300,30,bin,urgent
"""
# Those that wait do so for an end in a turn of the main loop, which Slurm hears of behind it.
PAIRS = """id,submit,nodes,cores,limit,run
a,0,2,,600,40.3
b,2,2,,600,50
c,9,3,,600,60.4
d,12,1,,600,30
"""
PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="1-4" speed="1Gf" core="4" bw="100MBps"
           lat="10us" bb_bw="100MBps" bb_lat="0us"/>
</platform>
"""


def has_database() -> bool:
    """Whether slurmdbd and MariaDB are here too."""
    try:
        installed(database=True)
    except LiveFault:
        return False
    return True


def compared(place, *words: str) -> tuple[dict, dict[str, dict[str, str]]]:
    """The summary and the jobs of a real run that was compared with a simulated one."""
    out = place / "out"
    files = [str(place / "slurm.conf"), str(place / "jobs.csv")]
    assert main(["slurm-live", *files, *words, "-o", str(out), "--compare"]) == 0
    with (out / "jobs.csv").open(newline="") as file:
        jobs = {row["job_id"]: row for row in csv.DictReader(file)}
    return json.loads((out / "summary.json").read_text()), jobs


@needs_slurm
@pytest.mark.skipif(not has_database(), reason="slurmdbd or MariaDB is not installed")
def test_shares_and_limits_of_accounts_decide_alike(tmp_path):
    conf, _ = written(tmp_path, OF_USERS, CORES)
    conf.write_text(ENFORCED + conf.read_text())
    accounts = tmp_path / "accounts.txt"
    accounts.write_text(ACCOUNTS)
    summary, jobs = compared(tmp_path, "--accounts", str(accounts))
    assert summary["jobs"] == {"submitted": 7, "COMPLETED": 7}
    alike = summary["comparison"]
    assert [alike[key] for key in ("same_start", "same_nodes", "same_scheduler")] == [7, 7, 7]
    starts = {name: float(job["starting_time"]) for name, job in jobs.items()}
    ends = {name: float(job["finish_time"]) for name, job in jobs.items()}
    # One urgent job of a user at a time, and no more than 8 cores of an association.
    assert starts["again"] >= ends["hasty"] or starts["hasty"] >= ends["again"]
    assert starts["large"] >= min(ends["small"], ends["other"])


@needs_slurm
@pytest.mark.skipif(not has_database(), reason="slurmdbd or MariaDB is not installed")
def test_an_unknown_default_qos_is_said_with_its_line(tmp_path, capsys):
    conf, jobs = written(tmp_path, OF_USERS, CORES)
    conf.write_text(ENFORCED + conf.read_text())
    accounts = tmp_path / "accounts.txt"
    accounts.write_text("add account physics\nadd user daemon Account=physics DefaultQOS=none\n")
    words = ["--accounts", str(accounts), "-o", str(tmp_path / "out")]
    assert main(["slurm-live", str(conf), str(jobs), *words]) != 0
    told = capsys.readouterr().err
    assert "line 2 of the accounts" in told
    assert "bad default qos 'none'" in told


@needs_slurm
def test_jobs_that_are_traces_end_when_the_platform_says(tmp_path):
    written(tmp_path, PAIRS)
    nodes = tmp_path / "nodes.xml"
    nodes.write_text(PLATFORM)
    summary, jobs = compared(tmp_path, "--platform", str(nodes), "--profiles", "smpi")
    assert summary["jobs"] == {"submitted": 4, "COMPLETED": 4}
    alike = summary["comparison"]
    assert [alike[key] for key in ("same_start", "same_nodes", "same_scheduler")] == [4, 4, 4]
    assert float(jobs["a"]["execution_time"]) >= 40
