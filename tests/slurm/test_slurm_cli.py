"""The command ``slurm``: files that it writes, stories, one-line errors."""

import csv
import json
import os
import signal
from contextlib import nullcontext as given

import pytest

from ptaskmodel.cli import main
from ptaskmodel.results.tables.slurm import JOB_COLUMNS, SACCT_COLUMNS, job_row, sacct_row
from ptaskmodel.results.tables.slurm_summary import settings_of
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.event_log import Watch
from ptaskmodel.slurm.jobs.request import Command, JobRequest
from ptaskmodel.slurm.run import offered_load, simulate_slurm, warn_of_overload
from ptaskmodel.workload.works import DelayWork

CONF = """SelectType=select/linear
PriorityType=priority/basic
NodeName=n[1-4] CPUs=8
PartitionName=p Nodes=ALL Default=YES
"""
JOBS = """id,submit,nodes,cores,limit,run
a,0,3,,600,400
b,2,4,,300,120
c,3,1,,300,290
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return tmp_path


def rows(path, delimiter=","):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_what_became_of_jobs_is_written(files, capsys):
    out = files / "out"
    arguments = ["slurm", str(files / "slurm.conf"), str(files / "jobs.csv"), "-o", str(out)]
    assert main([*arguments, "--explain", "c"]) == 0
    said = capsys.readouterr().out
    assert "started by backfill" in said
    jobs = {row["job_id"]: row for row in rows(out / "jobs.csv")}
    assert jobs["a"]["nodes"] == "n[1-3]"
    assert jobs["c"]["nodes"] == "n4"
    assert int(jobs["b"]["starting_time"]) >= int(jobs["a"]["finish_time"])
    assert [row["State"] for row in rows(out / "sacct.txt", "|")] == ["COMPLETED"] * 3
    summary = json.loads((out / "summary.json").read_text())
    assert summary["started_by"] == {"main": 2, "backfill": 1}
    assert summary["jobs"] == {"submitted": 3, "COMPLETED": 3}
    assert (out / "explanation.txt").read_text().startswith("job c\n")
    assert {row["reason"] for row in rows(out / "reasons.csv")} <= {"Priority", "Resources"}


def test_the_same_files_at_every_run(files):
    written = []
    for name in ("x", "y"):
        arguments = [str(files / "slurm.conf"), str(files / "jobs.csv"), "--seed", "3"]
        assert main(["slurm", *arguments, "-o", str(files / name)]) == 0
        written.append([(files / name / one).read_text() for one in ("jobs.csv", "events.csv")])
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("slurm.conf", "SelectType=select/none\n" + CONF, "slurm.conf:1"),
        ("jobs.csv", "id,submit,nodes,cores,limit,run\na,x,1,,60,1\n", "jobs.csv:2"),
        ("events.csv", "a,b\n", "events.csv:1"),
        ("run.meta.json", "{}", "run.meta.json"),
    ],
)
def test_a_mistake_is_one_line(files, capsys, name, text, says):
    (files / "events.csv").write_text("time,who,what,id\n")
    (files / "run.meta.json").write_text('{"t0": 0, "loaded": -50}')
    (files / name).write_text(text)
    arguments = [str(files / "slurm.conf"), str(files / "jobs.csv")]
    options = ["--meta", str(files / "run.meta.json"), "--cycles", str(files / "events.csv")]
    assert main(["slurm", *arguments, *options]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert "Traceback" not in error


def test_a_signal_ends_a_run_with_what_it_has_so_far(files, capsys, monkeypatch):
    def stopping(date, over, waiting):
        os.kill(os.getpid(), signal.SIGTERM)

    many = "".join(f"{k},{60 * k},1,,300,120\n" for k in range(400))
    (files / "jobs.csv").write_text("id,submit,nodes,cores,limit,run\n" + many)
    monkeypatch.setattr("ptaskmodel.cli.progress.told_progress", lambda *_, **__: given(stopping))
    out = files / "out"
    arguments = [str(files / "slurm.conf"), str(files / "jobs.csv"), "-o", str(out)]
    assert main(["slurm", *arguments]) == 128 + signal.SIGTERM
    printed = capsys.readouterr().out
    assert "stopped      at " in printed
    assert "still to be submitted" in printed
    summary = json.loads((out / "summary.json").read_text())
    stopped = summary["stopped_early"]
    over = [row for row in rows(out / "jobs.csv") if row["finish_time"]]
    assert 0 < len(over) < 400
    assert max(float(row["finish_time"]) for row in over) <= stopped["at_s"]
    assert len(rows(out / "jobs.csv")) + stopped["not_submitted"] == 400
    assert any(one["effect"] == "stopped" for one in summary["remarks"])
    assert main(["report", str(out), "-o", str(files / "page.html")]) == 0


def test_settings_of_two_files_differ_in_what_they_set_only(tmp_path):
    found = []
    for name, weight in (("a.conf", 20), ("b.conf", 30)):
        text = f"{CONF}SchedulerParameters=max_switch_wait=24:00:00\nPriorityWeightAge={weight}\n"
        (tmp_path / name).write_text(text)
        conf = read_conf(tmp_path / name)
        assert conf.remarks
        found.append(settings_of(conf))
    differ = {name for name, value in found[0].items() if value != found[1][name]}
    assert differ == {"priority.weight_age"}


def test_a_job_that_was_requeued_and_cancelled_shows_no_start(files):
    conf = read_conf(files / "slurm.conf")
    commands = (Command(100, "requeue"), Command(150, "cancel"))
    run = simulate_slurm(conf, [request("a", 0, 500, limit_min=10, commands=commands)])
    (job,) = run.jobs
    row = dict(zip(JOB_COLUMNS, job_row(run, job, 1, {}), strict=True))
    assert (row["final_state"], row["restarts"]) == ("CANCELLED", 1)
    assert not any(row[name] for name in ("starting_time", "waiting_time", "nodes"))
    printed = dict(zip(SACCT_COLUMNS, sacct_row(run, job), strict=True))
    assert (printed["Start"], printed["Elapsed"]) == ("Unknown", "00:00:00")


HOSTS = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="1-4" speed="1Gf" core="8"
 bw="1GBps" lat="10us"/></platform>
"""


def test_a_job_that_is_not_there_cannot_be_explained(files, capsys):
    arguments = ["slurm", str(files / "slurm.conf"), str(files / "jobs.csv"), "--explain", "z"]
    assert main(arguments) == 2
    assert "'z'" in capsys.readouterr().err


def request(name, submit_s, run_s, **asked):
    return JobRequest(name, submit_s, DelayWork(run_s), **asked)


def test_a_story_says_for_what_a_job_waited_and_how_that_ended(files):
    cancelled = Command(200.0, "cancel")
    jobs = [
        request("a", 0.5, 500.0, min_nodes=4, limit_min=10),
        request("b", 2.5, 60.0, min_nodes=4, limit_min=10),
        request("c", 4.5, 60.0, min_nodes=1, limit_min=10, commands=(cancelled,)),
    ]
    watch = Watch(("b", "c"))
    simulate_slurm(read_conf(files / "slurm.conf"), jobs, watch=watch)
    start, waited, _ = watch.stories["b"][-3:]
    seconds = float(start.split()[-2])
    told = [float(part.split()[0]) for part in waited.split("waited ")[1].split(", ")]
    assert "s for Resources" in waited
    assert seconds >= 498
    assert sum(told) == pytest.approx(seconds, abs=2)
    assert watch.stories["c"][-2:] == [
        "     200.000 s  cancelled while it waits",
        "                waited 193 s for Priority, 2 s for the next look",
    ]


def test_the_offered_load_is_the_work_over_what_nodes_can_do(files):
    conf = read_conf(files / "slurm.conf")
    one = request("a", 0.0, 100.0, min_nodes=2)  # 16 of 32 CPUs
    two = request("b", 200.0, 1000.0, tasks=4, limit_min=5)  # 4 CPUs, 300 s
    assert offered_load(conf, [one, two]) == (100 * 16 + 300 * 4) / (200 * 32)
    assert offered_load(conf, [one]) == 0.0


def test_overload_is_said(files):
    conf = read_conf(files / "slurm.conf")
    jobs = [request(f"j{k}", float(k), 100.0, min_nodes=1) for k in range(1000)]
    with pytest.warns(UserWarning, match=r"offered load is 25: the queue grows"):
        warn_of_overload(conf, jobs)
    warn_of_overload(conf, jobs[:999])  # too few to tell a burst from a load: no warning
    warn_of_overload(conf, [request(f"j{k}", 100.0 * k, 9.0) for k in range(1000)])


def test_what_is_not_used_and_who_waits_for_nobody_is_told(files, capsys):
    (files / "slurm.conf").write_text(f"LogFile=/x\nPriorityFlags=NEW\n{CONF}")
    rows = "id,submit,nodes,limit,run,depend,extra\na,0,1,60,1,,-C x\nb,1,1,60,1,afterok:a,\n"
    (files / "jobs.csv").write_text(rows)
    assert main(["slurm", str(files / "slurm.conf"), str(files / "jobs.csv")]) == 0
    said = capsys.readouterr().out
    assert "slurm.conf:2: PriorityFlags NEW changes nothing here" in said
    assert "that change nothing here: 1, such as LogFile" in said
    assert "1 job depends on jobs that were refused" in said


def test_jobs_of_users_whom_nobody_knows_are_explained(files, capsys):
    enforced = "AccountingStorageType=slurmdbd\nAccountingStorageEnforce=limits\n"
    (files / "slurm.conf").write_text(enforced + CONF)
    rows = "id,submit,nodes,limit,run,user\na,0,4,600,500,ann\nb,2,1,60,60,ann\nc,3,1,60,60,\n"
    (files / "jobs.csv").write_text(rows)
    words = ["slurm", str(files / "slurm.conf"), str(files / "jobs.csv"), "--explain", "b"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert (
        "2 jobs are refused, as AccountingStorageEnforce lets in known users only: 'ann' in" in said
    )
    assert "2.000 s  refused at submission: InvalidAccount" in said
    assert "1 of 3 jobs end" in said, "who names no user is root"


@pytest.mark.parametrize("key", ["AllowAccounts=physics", "AllowQos=long"])
def test_partitions_that_take_no_jobs_without_accounts_are_explained(files, capsys, key):
    (files / "slurm.conf").write_text(
        f"{CONF}PartitionName=DEFAULT {key}\nPartitionName=q Nodes=ALL"
    )
    rows = "id,submit,nodes,limit,run,partition\na,0,1,600,500,\nb,2,1,60,60,q\n"
    (files / "jobs.csv").write_text(rows)
    assert main(["slurm", str(files / "slurm.conf"), str(files / "jobs.csv")]) == 0
    said = capsys.readouterr().out
    assert "1 job is refused or never starts, as AllowAccounts and AllowQos of partitions" in said


def test_a_table_of_jobs_may_have_deadlines(files):
    rows = "id,submit,nodes,limit,run,deadline\na,0,4,600,500,\nb,1,1,600,60,900\n"
    (files / "jobs.csv").write_text(rows)
    words = ["slurm", str(files / "slurm.conf"), str(files / "jobs.csv"), "-o", str(files / "out")]
    assert main(words) == 0
    summary = json.loads((files / "out" / "summary.json").read_text())
    assert summary["jobs"] == {"submitted": 2, "COMPLETED": 1, "DEADLINE": 1}


@pytest.mark.parametrize(
    ("enforced", "becomes"),
    [("associations", "orders and limits nothing"), ("associations,qos", "they are refused")],
)
def test_a_qos_that_is_not_among_the_accounts_is_told(files, capsys, enforced, becomes):
    conf = files / "slurm.conf"
    more = f"AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce={enforced}"
    conf.write_text(f"{CONF}{more}\n")
    (files / "accounts.txt").write_text("add account a\nadd user ann account=a\n")
    jobs = "id,submit,nodes,cores,limit,run,user,qos\na,0,1,,300,9,ann,gold\nb,0,1,,300,9,ann,\n"
    (files / "jobs.csv").write_text(jobs)
    accounts = ["--accounts", str(files / "accounts.txt")]
    assert main(["slurm", str(conf), str(files / "jobs.csv"), *accounts]) == 0
    said = capsys.readouterr().out
    assert "1 job asks for QOS 'gold', which is not among the accounts" in said
    assert becomes in said


SHOWN = """ReservationName=maint StartTime=2024-03-01T10:05:00 EndTime=2024-03-01T11:05:00 Duration=01:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=16
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)
"""  # noqa: E501


def test_jobs_without_dates_meet_printed_reservations_if_their_begin_is_given(tmp_path, capsys):
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/linear\nNodeName=n[1-2] CPUs=8\nPartitionName=p Nodes=ALL Default=YES\n"
    )
    (tmp_path / "jobs.csv").write_text("id,submit,nodes,limit,run\na,0,1,240,60\nb,1,1,600,60\n")
    (tmp_path / "r.txt").write_text(SHOWN)
    words = ["slurm", *(str(tmp_path / name) for name in ("slurm.conf", "jobs.csv"))]
    words += ["--reservations", str(tmp_path / "r.txt"), "-o", str(tmp_path / "out")]
    assert main(words) == 2
    assert "give the date of second 0 (--begin)" in capsys.readouterr().err
    assert main([*words, "--begin", "2024-03-01T10:00:00"]) == 0
    rows = csv.DictReader((tmp_path / "out" / "jobs.csv").read_text().splitlines())
    starts = {row["job_id"]: float(row["starting_time"]) for row in rows}
    assert starts["a"] < 60  # ends before 10:05
    assert 3900 <= starts["b"] < 3990  # would not: after 11:05
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["begin_unix_s"] == 1709287200
    assert main([*words, "--begin", "March"]) == 2
    assert "--begin is 'March': give a date such as" in capsys.readouterr().err
