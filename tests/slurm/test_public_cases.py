"""Inputs as sites publish them: small files of the same kinds, and collected ones if present."""

import csv
import json

import pytest

from ptaskmodel.cli import main
from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.jobs.sacct import read_sacct
from ptaskmodel.slurm.jobs.sbatch import read_events

CONF = """ClusterName=x
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n[1-2] CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 Feature=old
NodeName=z1 CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000 Feature=big
PartitionName=p Nodes=n[1-2] Default=YES MaxTime=2-00:00:00 State=UP
PartitionName=all Nodes=n[1-2],z1 MaxTime=1-00:00:00 State=UP
"""
HEADER = "JobID|JobName|Partition|Submit|Start|End|Elapsed|Timelimit|NNodes|ReqCPUS|State\n"
DAY = "2024-03-01T"


class Ran:
    """A run of the command: what it said, its jobs by id, its remarks."""

    def __init__(self, folder, capsys, conf, workload, *options):
        out = folder / "out"
        words = ["slurm", str(conf), str(workload), "-o", str(out), *map(str, options)]
        self.status = main(words)
        told = capsys.readouterr()
        self.said, self.error = told.out, told.err
        if self.status == 0:
            with (out / "jobs.csv").open(newline="") as file:
                self.jobs = {row["job_id"]: row for row in csv.DictReader(file)}
            self.remarks = json.loads((out / "summary.json").read_text())["remarks"]

    def starts(self):
        return {name: int(row["starting_time"] or -1) for name, row in self.jobs.items()}


@pytest.fixture
def ran(tmp_path, capsys):
    """Run the command slurm with texts of files, or their paths."""

    def run(workload, *options, conf=CONF, name="log.txt"):
        files = {"slurm.conf": conf, name: workload}
        for file, text in files.items():
            if isinstance(text, str):
                (tmp_path / file).write_text(text)
                files[file] = tmp_path / file
        return Ran(tmp_path, capsys, *files.values(), *options)

    return run


@pytest.fixture
def cases(shared_data):
    return shared_data / "public_cases"


def row(
    job, submit, start, end, elapsed, *, name="a", limit="02:00:00", nodes=1, state="COMPLETED"
):
    dates = (f"{DAY}{one}" if one[0].isdigit() else one for one in (submit, start, end))
    return f"{job}|{name}|p|{'|'.join(dates)}|{elapsed}|{limit}|{nodes}|{16 * nodes}|{state}\n"


ARRAY = (
    row("1", "10:00:00", "10:00:01", "11:00:01", "01:00:00")
    + row("{}", "10:00:10", "None", "10:30:00", "00:00:00", nodes=2, state="CANCELLED by 1000")
    + row("3", "10:00:20", "10:30:05", "10:40:05", "00:10:00", limit="03:00:00")
)


@pytest.mark.parametrize(
    ("array", "tasks"), [("2_[1-4]", ["2_1", "2_2", "2_3", "2_4"]), ("7_[3,5%1]", ["7_3", "7_5"])]
)
def test_tasks_that_never_started_wait_until_they_were_cancelled(ran, array, tasks):
    found = ran(HEADER + ARRAY.format(array))
    assert [found.jobs[name]["final_state"] for name in tasks] == ["CANCELLED"] * len(tasks)
    assert 1800 <= found.starts()["3"] <= 1830
    assert "run longer than their time limit" not in found.said


def test_tasks_of_arrays_that_still_wait_are_left_out(ran):
    found = ran(HEADER + ARRAY.format("2_[1-4]").replace("CANCELLED by 1000", "PENDING"))
    assert set(found.jobs) == {"1", "3"}
    assert "1 job that had not ended was left out" in found.said


def test_jobs_that_ran_past_their_limit_are_told_but_not_those_that_it_killed(ran):
    rows = row("1", "10:00:00", "10:00:01", "12:10:01", "02:10:00", limit="01:00:00")
    rows += row(
        "2", "10:00:10", "10:00:11", "11:00:21", "01:00:10", limit="01:00:00", state="TIMEOUT"
    )
    found = ran(HEADER + rows)
    assert "1 job runs longer than its limit and will be killed" in found.said
    text = "longer than its limit"
    effects = [one["effect"] for one in found.remarks if text in one["text"]]
    assert effects == ["killed"]


FIRST, LAST = (row(k, "10:00:00", "10:00:01", "10:10:01", "00:10:00") for k in "19")


@pytest.mark.parametrize(
    "name", ["fit||2", "one\ntwo\nthree", "|", "a|\n|b", "\n", "x\n\n", "1_2\n3"]
)
def test_names_may_hold_bars_and_new_lines(ran, name):
    odd = row("2", "10:00:05", "10:00:06", "10:20:06", "00:20:00", name=name)
    found = ran(HEADER + FIRST + odd + LAST)
    assert [found.jobs[job]["execution_time"] for job in "129"] == ["600", "1200", "600"]
    assert found.remarks == []


@pytest.mark.parametrize(
    ("row_2", "says"),
    [
        ("2|a|p|2024-03-01T10:00:05\n", "4 fields instead of 11"),
        (FIRST.replace("1|", "2|", 1).replace("10:00:01", "soon"), "start is '2024-03-01Tsoon'"),
        (FIRST.replace("1|", "2|", 1).replace("|16|", "|x|y|16|"), "13 fields instead of 11"),
        ("what is this\n", "1 field instead of 11"),
    ],
)
def test_a_bad_row_is_left_out_and_told_with_its_line(ran, row_2, says):
    found = ran(HEADER + FIRST + row_2 + LAST)
    assert set(found.jobs) == {"1", "9"}
    (remark,) = found.remarks
    assert remark["line"] == 3
    assert f"log.txt:3: left out: {says}" in remark["text"]


def test_a_log_that_is_mostly_unreadable_is_refused(ran):
    found = ran(HEADER + FIRST + FIRST.replace("10:00:01", "soon") + LAST.replace("|16|", "|"))
    assert found.status == 2
    assert "line 3: start is" in found.error
    assert "line 4: 10 fields instead of 11" in found.error


def test_partitions_of_a_log_that_are_not_there_stand_for_the_default(ran):
    gone = FIRST.replace("|p|", "|gone|")
    more = gone.replace("1|", "2|", 1) + LAST.replace("|p|", "|b,p|")
    found = ran(HEADER + gone + more)
    assert [row["partition"] for row in found.jobs.values()] == ["p"] * 3
    assert (
        "slurm.conf does not define: 'gone' (2 jobs): they go to the default partition, "
        "p" in found.said
    )


def test_all_that_a_table_of_jobs_names_in_vain_is_told_at_once(ran):
    text = "id,submit,cores,limit,run,partition,nodelist,depend\na,0,1,60,1,x,,\nb,0,1,60,1,x,n9,\n"
    found = ran(text + "c,0,1,60,1,,,never:a\n")
    assert found.status == 2
    assert "3 problems" in found.error
    assert "line 2: partition 'x' is not defined in " in found.error
    assert "slurm.conf; add it there (and 1 more such)" in found.error
    assert "line 4: dependency 'never:a'" in found.error
    others = "d,0,1,60,1,,,\ne,0,1,60,1,,,\n# f is commented out\n#f,0,1,60,1,,,\n"
    found = ran(text.replace(",x,n9", ",,n9") + others)
    assert found.status == 0
    assert set(found.jobs) == {"d", "e"}
    assert [remark["line"] for remark in found.remarks] == [2, 3, 6, 7]
    assert "log.txt:2: left out: partition 'x' is not defined in " in found.said
    assert "log.txt:6: the line begins with #, as a comment (and 1 more such)" in found.said
    found = ran(text.split("\n")[0] + "\na,0,1,60,1,,,,,\nb,0,1,60,1,,,,\n")
    assert set(found.jobs) == {"a", "b"}
    found = ran(text.split("\n")[0] + "\n")
    assert "log.txt:1: has no jobs below the header; add rows" in found.error
    found = ran("\n# mine\n" + (text + others).replace(",x,", ",,").replace(",", ";"))
    assert set(found.jobs) == {"a", "d", "e"}
    assert "semicolons separate the columns" in found.said


JSON_JOB = {
    "job_id": 5,
    "name": "a",
    "partition": "p",
    "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}, "task": ""},
    "state": {"current": ["COMPLETED"], "reason": "None"},
    "exit_code": {"status": ["SUCCESS"], "return_code": {"set": True, "number": 0}},
    "time": {
        "submission": 1709287200,
        "eligible": 1709287260,
        "start": 1709287300,
        "end": 1709287900,
        "elapsed": 600,
        "limit": {"set": True, "infinite": False, "number": 60},
    },
    "required": {"CPUs": 8, "memory_per_cpu": {"set": True, "infinite": False, "number": 100}},
    "tres": {"requested": [{"type": "cpu", "name": "", "id": 1, "count": 8}]},
}


def test_sacct_json_is_read_as_the_table_is(ran):
    older = JSON_JOB | {"job_id": 6, "array": {"job_id": 3, "task_id": 2}, "state": {}}
    older["time"] = JSON_JOB["time"] | {"limit": 60}
    waiting = {"job_id": 4, "task_id": None, "task": "7-8%1"}
    cancelled = JSON_JOB | {"array": waiting, "state": {"current": "CANCELLED"}}
    cancelled["time"] = JSON_JOB["time"] | {"start": 0, "elapsed": 0}
    broken = JSON_JOB | {"job_id": 9, "time": {"submission": "soon"}}
    jobs = [JSON_JOB, older, cancelled, broken]
    found = ran(json.dumps({"meta": {}, "jobs": jobs}), name="log.json")
    assert set(found.jobs) == {"5", "3_2", "4_7", "4_8"}
    assert found.jobs["5"]["requested_time"] == "3600"
    assert found.jobs["5"]["cpus"] == "8"
    assert found.starts()["5"] >= 60
    assert found.jobs["4_8"]["final_state"] == "CANCELLED"
    assert "left out: /jobs/3: submit is 'soon'" in found.said


CSV = "id,submit,limit,run,{}\n1,0,600,100,{}\n2,1,600,100,{}\n"


@pytest.mark.parametrize(
    ("column", "value", "nodes"),
    [
        ("constraint", "big", ["z1", "z1"]),
        ("ntasks", "16", ["n1", "n2"]),
        ("tasks", "16", ["n1", "n2"]),
        ("ntasks-per-node", "2", ["n1", "n2"]),
        ("--cpus-per-task", "16", ["n1", "n2"]),
        ("mem_per_cpu", "4000", ["n1", "n2"]),
        ("nodelist", "z1", ["z1", "z1"]),
        ("Exclude", "n1", ["n2", "z1"]),
    ],
)
def test_columns_are_named_as_options_of_sbatch(ran, column, value, nodes):
    conf = (
        CONF.replace("CR_Core", "CR_Core_Memory")
        .replace("Default=YES", "")
        .replace("PartitionName=all", "PartitionName=all Default=YES")
    )
    found = ran(CSV.format(column, value, value), conf=conf)
    assert [row["nodes"] for row in found.jobs.values()] == nodes


def test_options_that_change_no_schedule_are_taken(ran):
    found = ran(CSV.format("extra", "-n 3 -o a.txt --mail-type=END -D /x", "-n 1 --export=ALL"))
    assert [row["cpus"] for row in found.jobs.values()] == ["3", "1"]
    (said,) = found.remarks
    silent = "--chdir, --export, --mail-type, --output"
    assert said["text"].endswith(f"options that change no schedule: {silent}")


@pytest.mark.parametrize(
    ("nodes", "extra", "cpus", "told"),
    [
        ("", "-n 4", 4, False),
        ("1", "-n 4", 4, False),
        ("", "-c 3", 3, False),
        ("", "-N 2", 2, False),
        ("", "--ntasks-per-node=2", 2, False),
        ("", "-n 4 --exclusive", 16, False),
        ("", "--mem=1G", 16, False),
        ("1", "--ntasks-per-node=2", 16, True),
        ("1", "-c 3", 16, True),
        ("1", "-c 3 --exclusive", 16, False),
        ("", "--gres=gpu:1", 16, True),
        ("", "--gres=gpu:1 -n 1", 1, False),
        ("1", "--gpus-per-node=1 --exclusive", 16, False),
    ],
)
def test_extra_makes_jobs_ones_on_parts_of_nodes(ran, nodes, extra, cpus, told):
    conf = CONF.replace("Feature=old", "Gres=gpu:2")
    found = ran(CSV.format("nodes,extra", f"{nodes},{extra}", f"{nodes},{extra}"), conf=conf)
    assert [int(row["cpus"]) for row in found.jobs.values()] == [cpus, cpus]
    assert ("get whole nodes" in found.said) == told


def test_columns_that_are_not_read_are_told_by_their_names(ran):
    found = ran(CSV.format("colour,taste", "red,1", "blue,2"))
    assert "columns that are not used: 'colour', 'taste'" in found.said
    same = ran(CSV.format("cores,ntasks", "1,1", "1,"))
    assert "log.txt:2: left out: cores and ntasks set the same field; keep one" in same.said


def test_nodes_of_a_tree_that_are_not_there_are_left_out_of_it(ran, tmp_path):
    (tmp_path / "topology.conf").write_text(
        "SwitchName=s1 Nodes=n[1-8]\nSwitchName=s2 Nodes=z[1-20]\nSwitchName=s3 Nodes=c[1-2]\n"
        "SwitchName=low Switches=s3\nSwitchName=top Switches=s1,s2,low\n"
    )
    conf = CONF + "TopologyPlugin=topology/tree\n"
    found = ran("id,submit,nodes,limit,run,partition\n1,0,3,600,100,all\n", conf=conf)
    assert found.jobs["1"]["nodes"] == "n[1-2],z1"
    lines = {one["line"]: one["text"] for one in found.remarks}
    assert "slurm.conf has no nodes 'n3', 'n4', 'n5', 'n6', 'n7', 'n8': they" in lines[1]
    assert "'z11' and 9 more: they are left out" in lines[2]
    (tmp_path / "topology.conf").write_text("SwitchName=s1 Nodes=m[1-8]\n")
    none = ran("id,submit,nodes,limit,run\n1,0,1,600,100\n", conf=conf)
    assert "slurm.conf has none of its nodes" in none.error


SWF = "; MaxProcs: 32\n" + "".join(
    f"{k} 0 -1 600 1 -1 -1 1 {{limit}} -1 1 1 1 1 1 1 -1 -1\n" for k in (1, 2, 3)
)


@pytest.mark.parametrize(
    ("options", "starts"), [((), [0, 0, 600]), (("--ignore-memory",), [0, 0, 0])]
)
def test_memory_that_a_log_does_not_say_is_told(ran, options, starts):
    conf = CONF.replace("CR_Core", "CR_Core_Memory")
    found = ran(SWF.format(limit=1800), *options, conf=conf, name="log.swf")
    assert list(found.starts().values()) == starts
    said = "3 jobs request no memory: each takes all memory of its nodes" in found.said
    assert said == (not options)


def test_sizes_that_a_log_does_not_say_are_told(ran):
    day = "2024-01-01T1"
    found = ran(f"JobID|Submit|Start|End\n1|{day}0:00:00|{day}0:00:10|{day}0:10:10\n")
    assert "1 job tells no nodes and CPUs: 1 each; print ReqNodes and ReqCPUS" in found.said


def test_json_of_squeue_says_what_to_print(ran):
    found = ran(json.dumps({"jobs": [{"job_id": 1, "submit_time": 5}]}), name="log.json")
    assert "/jobs/0: is a job of squeue or scontrol; give the output of sacct --json" in found.error


def test_limits_that_a_log_does_not_say_are_told(ran):
    found = ran(SWF.format(limit=-1), name="log.swf")
    assert "3 jobs have no time limit: that of the partition (p: 2880 min) holds" in found.said
    assert "time limit" not in ran(SWF.format(limit=1800), name="log.swf").said


@pytest.mark.parametrize(
    ("script", "table", "states"),
    [
        ("all_users", "gold", ["COMPLETED"] * 2),
        ("of_cluster", "gold", ["COMPLETED"] * 2),
        ("listing", "normal", ["COMPLETED"] * 2),
        ("removal", "normal", ["COMPLETED"] * 2),
        ("script", "wall", ["COMPLETED", "PENDING"]),
    ],
)
def test_the_collected_scripts(ran, cases, script, table, states):
    place = cases / "sacctmgr"
    accounts = "--accounts", place / f"{script}.txt"
    found = ran(place / f"{table}.csv", *accounts, conf=place / "slurm.conf")
    assert [row["final_state"] for row in found.jobs.values()] == states


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("bar_in_name.txt", ["600", "1200", "300"]),
        ("newline.txt", ["600", "300", "600"]),
        ("sacct.json", ["600"]),
    ],
)
def test_the_collected_logs(ran, cases, name, times):
    found = ran(cases / "sacct" / name, conf=cases / "sacct" / "slurm.conf")
    assert [row["execution_time"] for row in found.jobs.values()] == times
    assert found.remarks == []


def test_the_collected_columns_and_tree(ran, cases):
    place = cases / "columns"
    found = ran(place / "jobs.csv", conf=place / "slurm.conf")
    assert [row["nodes"] for row in found.jobs.values()] == ["b1", "b1"]
    found = ran(cases / "topology" / "jobs.csv", conf=cases / "topology" / "slurm.conf")
    assert [row["nodes"] for row in found.jobs.values()] == ["n[1-4]", "m[1-4]"]


def linked(*rows):
    """A log of jobs (number, preceding jobs, think time) that come at 0 s and run for 100 s."""
    line = "{} 0 -1 100 16 -1 -1 16 300 -1 1 1 1 1 1 1 {} {}\n"
    return "; MaxProcs: 48\n" + "".join(line.format(*row) for row in rows)


CHAIN = linked((1, -1, -1), (2, -1, -1), (3, "1&2", 400), (4, 3, -1))


def test_preceding_jobs_are_told_and_waited_for_if_asked(ran):
    found = ran(CHAIN, name="log.swf")
    assert "2 jobs name a preceding job; --dependencies makes them wait for it" in found.said
    found = ran(CHAIN, "--dependencies", name="log.swf")
    starts = found.starts()
    assert starts["2"] == 0
    assert 500 <= starts["3"] <= 560  # at the first pass after the think time
    assert starts["3"] + 100 <= starts["4"] <= starts["3"] + 160
    assert "2 jobs wait for the end of their preceding jobs" in found.said


def test_a_job_that_comes_before_its_preceding_job_in_a_log_waits_too(ran):
    found = ran(linked((1, 2, -1), (2, -1, -1)), "--dependencies", name="log.swf")
    assert found.starts()["1"] >= 100
    rows = (1, 2, -1), (2, 1, -1), (3, 3, -1), (4, -1, -1)
    circle = ran(linked(*rows), "--dependencies", name="log.swf")
    assert circle.status == 2
    assert "log.swf: 2 problems:" in circle.error
    assert "jobs '1', '2' wait for each other; correct their preceding jobs" in circle.error
    assert "job '3' waits for itself" in circle.error


ENFORCED = CONF + "AccountingStorageType=slurmdbd\nAccountingStorageEnforce=limits,qos\n"
OWNED = "id,submit,cores,limit,run,user,account,qos\n1,0,1,60,9,ann,phys,gold\n2,0,1,60,9,ben,,\n"


@pytest.mark.parametrize(
    "script",
    [
        "docker exec $HOST sacctmgr -i add account phys &> /dev/null || true\n"
        'docker exec x bash -c "sacctmgr -i add user ann account=phys; echo done"\n'
        "sacctmgr -i add qos gold\nsacctmgr -i update user where user=ann set qos=gold\n",
        "sacctmgr -i <<-'EOF'\nadd account phys\nadd qos gold\n"
        "add user ann account=phys qos=gold\nEOF\necho add user ben account=phys\n",
    ],
)
def test_scripts_of_containers_and_with_their_input_inside(ran, tmp_path, script):
    (tmp_path / "a.sh").write_text(script)
    found = ran(OWNED, "--accounts", tmp_path / "a.sh", conf=ENFORCED)
    assert [row["final_state"] for row in found.jobs.values()] == ["COMPLETED", "REFUSED"]


CONTAINER = """#!/bin/bash
until echo "SELECT 1" | mysql -u root 2>&1 > /dev/null
do
  echo "it's waiting
    for the database"
done
mysql -u root <<-EOSQL
  CREATE DATABASE IF NOT EXISTS acct;
  CREATE USER IF NOT EXISTS 'slurm'@'localhost';
EOSQL
sacctmgr -i add account physics
bash <<END
sacctmgr -i add user ann account=physics
END
"""


def test_a_script_that_does_other_things_too_is_read(tmp_path):
    (tmp_path / "entry.sh").write_text(CONTAINER)
    accounts = read_accounts(tmp_path / "entry.sh")
    assert ("physics", "ann") in {(one.account, one.user) for one in accounts.associations}
    told = {remark.line for remark in accounts.remarks}
    assert told >= {2, 4, 8, 9}
    assert not told & {11, 13}


def test_names_of_events_may_occur_again(tmp_path):
    lines = [f"-dt {k} -e submit_batch_job | -sim-walltime 60 -J same -t 5 -n 1 x.job"
             for k in range(3)]  # fmt: skip
    (tmp_path / "j.events").write_text("\n".join(lines))
    jobs = read_events(tmp_path / "j.events")
    assert [job.id for job in jobs.jobs] == ["same", "same-line2", "same-line3"]
    assert [job.name for job in jobs.jobs] == ["same"] * 3
    assert [remark.line for remark in jobs.remarks] == [2, 3]


def test_a_table_of_accounts_without_bars_says_how_to_print_it(ran, tmp_path):
    (tmp_path / "a.txt").write_text("   Cluster       User\n---------- ----------\n  c  ann\n")
    found = ran(OWNED, "--accounts", tmp_path / "a.txt", conf=ENFORCED)
    assert "a.txt:1: is a table without | between its columns; print it with" in found.error


def test_accounts_are_made_of_the_jobs_if_asked(ran, tmp_path):
    found = ran(OWNED, conf=ENFORCED)
    assert "2 jobs are refused" in found.said
    assert "'ann' in 'phys' (1), 'ben' in no account (1). Give --accounts" in found.said
    found = ran(OWNED, "--accounts", "auto", conf=ENFORCED)
    assert [row["final_state"] for row in found.jobs.values()] == ["COMPLETED"] * 2
    assert [row["account"] for row in found.jobs.values()] == ["phys", "users"]
    (tmp_path / "some.txt").write_text("add account phys\nadd user ann account=phys qos=gold\n")
    found = ran(OWNED, "--accounts", tmp_path / "some.txt", conf=ENFORCED)
    assert "1 job is refused" in found.said
    assert "'ben' in no account (1). Correct --accounts" in found.said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("PriorityDecayHalfLife=0\n", "slurm.conf:8: PriorityDecayHalfLife=0 without"),
        ("PriorityDecayHalfLife=0\nPriorityUsageResetPeriod=MONTHLY\n", None),
        ("PriorityWeightTRES=CPU=1,GRES/gpu=-1000\n", None),
        ("SchedulerParameters=max_switch_wait=24:00:00\n", "max_switch_wait=24:00:00 is 24 for"),
    ],
)
def test_values_are_taken_as_the_real_one_takes_them(ran, line, said):
    found = ran("id,submit,nodes,limit,run\n1,0,1,600,100\n", conf=CONF + line)
    assert (said or "") in found.error + found.said
    assert found.status == (2 if line == "PriorityDecayHalfLife=0\n" else 0)


def test_an_unknown_option_of_an_event_is_left_out_and_told(ran):
    events = "-dt 0 -e submit_batch_job | -J a -sim-walltime 60 -t 10 {}x.job\n"
    found = ran(events.format("--lustre=big --colour red -p p "))
    assert found.jobs["a"]["execution_time"] == "60"
    assert [remark["field"] for remark in found.remarks if remark.get("kind") == "not used"] == [
        "--lustre",
        "--colour",
    ]


def test_events_files_and_printed_reservations_are_taken(ran, tmp_path):
    (tmp_path / "reservations.txt").write_text(
        "ReservationName=m StartTime=1970-01-01T00:05:00 EndTime=1970-01-01T00:10:00\n"
        "   Nodes=n[1-2] NodeCnt=2 CoreCnt=32 Features=(null) Flags=MAINT\n   Users=root\n"
    )
    events = "-dt 0 -e submit_batch_job | -J a -sim-walltime 60 -t 10 -N 2 -p p --exclusive x.job\n"
    given = "--reservations", tmp_path / "reservations.txt"
    (tmp_path / "meta.json").write_text('{"t0": 0, "loaded": -45, "speed": 1, "jobs": 1}')
    found = ran(events, *given, "--meta", tmp_path / "meta.json")
    assert 600 <= found.starts()["a"] <= 675


def test_bars_in_names_and_states_that_are_not_there_are_told(tmp_path):
    lines = ["JobID|User|Submit|Elapsed|NNodes|NCPUS"]
    lines += [f"{k}|a|2024-03-01T10:00:0{k}|01:00|1|1" for k in range(4)]
    lines.append("5|b|c|2024-03-01T10:00:05|01:00|1|1")
    (tmp_path / "s.txt").write_text("\n".join(lines))
    found = read_sacct(tmp_path / "s.txt")
    assert [job.user for job in found.jobs] == ["a"] * 4 + ["b|c"]
    assert [remark.text for remark in found.remarks] == [
        "1 row has bars that were taken for part of a name (line 6)",
        "5 jobs tell no state: taken as completed; print State",
    ]


def test_what_is_no_option_in_a_dump_is_refused(tmp_path):
    lines = ["Cluster - 'c'", "Parent - 'root'", "Account - 'a':Fairshar 2:MaxJobs=7"]
    (tmp_path / "d.txt").write_text("\n".join(lines))
    with pytest.raises(SlurmError, match=r"d.txt:3: 'Fairshar 2' is no option; write Key=Value"):
        read_accounts(tmp_path / "d.txt")
