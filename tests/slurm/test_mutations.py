"""Files with one mistake: refused in one message that names the file, or read and told."""

import random
import warnings

import pytest
from slurm.good_files import GOOD, write_all

from ptaskmodel.errors import MOST_PROBLEMS, PTaskModelError
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.conf.reservations import read_reservations
from ptaskmodel.slurm.jobs.submissions import read_submissions

SCRIPT = """#!/bin/bash
set -e
sudo sacctmgr -i add qos gold Priority=100 \\
    MaxWallDurationPerJob=00:30:00
sacctmgr -i add account phys,chem Fairshare=100
sacctmgr -i add user ana DefaultAccount=phys MaxSubmitJobs=1000 > /dev/null
sacctmgr -i add user ben account=chem
sacctmgr -i modify user where account=phys set qos+=gold
sacctmgr show associations format=Account,User
sacctmgr -i delete user ben
"""
EVENTS = """# made by hand
-dt 0 -e submit_batch_job | -J a -sim-walltime 60 --uid=ann -t 00:05:00 -n 4 -A phys -p low x.job
-dt 5 -e submit_batch_job | -jid 7 -sim-walltime -1 --uid=bob -t 10 -N 1 --mem=100 -q normal x.job
-e submit_batch_job -dt 9.5 | -J c -cancel-in 30 --uid=ann -t 1:00:00 -n 1 --array=0-3%2 x.sh 4
-dt 12 -e submit_batch_job | -J d -sim-walltime 0 --constraint=big -n 8 --ntasks-per-node=4 x.job
"""
PRINTED = """ReservationName=m StartTime=2024-01-01T10:00:00 EndTime=2024-01-01T12:00:00
   Nodes=n[1-4] NodeCnt=4 CoreCnt=32 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=32
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)
   MaxStartDelay=(null)

ReservationName=k StartTime=2024-01-02T10:00:00 EndTime=2024-01-02T12:00:00 Duration=02:00:00
   Nodes=m[01-02] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=low Flags=DAILY
   Users=(null) Groups=(null) Accounts=bio Licenses=matlab:2 State=INACTIVE BurstBuffer=(null)
"""
FILES = GOOD | {"script.sh": SCRIPT, "jobs.events": EVENTS, "printed.txt": PRINTED}
WORKLOADS = ("sacct.txt", "jobs.csv", "jobs.events")
READERS = {
    **dict.fromkeys(("slurm.conf", "topology.conf"), lambda path, _: read_conf(path)),
    **dict.fromkeys(WORKLOADS, read_submissions),
    **dict.fromkeys(("accounts.txt", "script.sh"), lambda path, _: read_accounts(path)),
    **dict.fromkeys(
        ("reservations.txt", "printed.txt"),
        lambda path, conf: read_reservations(path, conf, 1_704_067_200),
    ),
}
SPICE = ["", " ", "|", ",", "=", "-1", "0", "99999999999", "nan", "é", "\0", '"', "'", "\\", "\n"]
SPICE += ["#", "None", "n[1-", "9999-12-31T23:59:59", "ALL", "$x", ";", "--colour=red"]


def mutated(text, draw):
    """The text after one change: of letters, of a word, of a line, or of its end."""
    lines = text.split("\n")
    kind = draw.randrange(6)
    place = draw.randrange(len(text))
    if kind == 0:
        return text[:place] + text[place + draw.randint(1, 4) :]
    if kind == 1:
        return text[:place] + draw.choice(SPICE) + text[place:]
    if kind == 2:
        return text[:place]
    line = draw.randrange(len(lines) - 1)
    if kind == 3:
        lines.insert(line, lines[draw.randrange(len(lines))])
    elif kind == 4:
        lines[line] += draw.choice(["|x", ",x", " x=y", " x", "|" * 40])
    else:
        words = lines[line].split("|" if "|" in lines[line] else " ")
        words[draw.randrange(len(words))] = draw.choice(SPICE)
        lines[line] = ("|" if "|" in lines[line] else " ").join(words)
    return "\n".join(lines)


def lines_of(text):
    return [line for line in text.split("\n") if line.strip() and line[0] != "#"]


def outcome(reader, path, conf):
    """What was read, or what the error says."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reader(path, conf), None
    except PTaskModelError as error:
        return None, str(error)


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_file_with_a_mistake_is_refused_or_read_and_told(tmp_path, name):
    write_all(tmp_path)
    conf = read_conf(tmp_path / "slurm.conf")
    target = "slurm.conf" if name == "topology.conf" else name
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    good = READERS[name](tmp_path / target, conf)
    refused = 0
    for seed in range(100):
        text = mutated(FILES[name], random.Random(f"{name} {seed}"))
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        found, error = outcome(READERS[name], tmp_path / target, conf)
        if error is not None:
            refused += 1
            assert str(tmp_path) in error, (seed, text)
            assert error.count("\n") <= MOST_PROBLEMS + 1
        elif name in WORKLOADS:
            lost = {job.id for job in good.jobs} - {job.id for job in found.jobs}
            whole = len(lines_of(text)) >= len(lines_of(FILES[name]))
            fewer = len(found.jobs) < len(good.jobs)
            assert not (lost and fewer and whole) or found.remarks, (seed, text)
    assert refused < 100


def test_the_events_of_another_simulator(tmp_path):
    write_all(tmp_path)
    (tmp_path / "jobs.events").write_text(EVENTS + "-dt 20 -e cancel_job | a\n-dt x -e y\n")
    conf = read_conf(tmp_path / "slurm.conf")
    found = read_submissions(tmp_path / "jobs.events", conf, phase_s=0.0)
    by_id = {job.id: job for job in found.jobs}
    assert list(by_id) == ["a", "7", "c_0", "c_1", "c_2", "c_3", "d"]
    assert (by_id["a"].run_s, by_id["a"].limit_min, by_id["a"].tasks) == (60.0, 5, 4)
    assert (by_id["a"].user, by_id["a"].account, by_id["a"].partitions) == ("ann", "phys", ("low",))
    assert by_id["7"].run_s > 600
    assert by_id["c_1"].commands[0].date_s == 39.5
    assert (by_id["d"].run_s, by_id["d"].constraint) == (0.0, "big")
    assert found.open_ended == {"7", "c_0", "c_1", "c_2", "c_3"}
    *said, assumed = [one.text.rpartition("left out: ")[2] for one in found.remarks]
    assert assumed.endswith("c has no -sim-walltime: it runs until its time limit")
    assert said == [
        "the event 'cancel_job' is not simulated; remove it",
        "is not an event; write -dt SECONDS -e submit_batch_job | OPTIONS SCRIPT",
    ]


def test_reservations_as_they_are_printed(tmp_path):
    write_all(tmp_path)
    conf = read_conf(tmp_path / "slurm.conf")
    one_line = PRINTED.replace("\n   ", " ").replace("Nodes=m[01-02]", "Nodes=m[01-09]")
    for text, more in ((PRINTED, 0), (one_line, 1)):
        (tmp_path / "printed.txt").write_text(text)
        found = read_reservations(tmp_path / "printed.txt", conf, 1_704_067_200)
        first = found.named("m", 0)
        assert (first.start_s, first.end_s) == (1_704_103_200, 1_704_110_400)
        assert (first.users, first.accounts) == ({"root"}, frozenset())
        assert first.nodes.bit_count() == 4
        assert found.named("k", 0).accounts == {"bio"}
        assert found.named("k", 0).nodes.bit_count() == 2
        texts = [one.text for one in found.remarks]
        assert len(texts) == 1 + more
        assert "k: is not simulated: flag DAILY, Licenses" in texts[0]
