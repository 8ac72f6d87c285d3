"""A real Slurm where there is none: settings, options of sbatch, logs, what is missing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.conf.facts import nodes_of
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.job_table import read_jobs
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.live import programs, run
from ptaskmodel.slurm.live import programs as building
from ptaskmodel.slurm.live.cluster import read_failures
from ptaskmodel.slurm.live.jobs import Placements
from ptaskmodel.slurm.live.processes import batches_of, sbatch_words
from ptaskmodel.slurm.live.programs import LiveFault
from ptaskmodel.slurm.live.reading import Event, event_of, in_order, over_of
from ptaskmodel.slurm.live.settings import Place, gres_conf, most_gpus, slurm_conf
from ptaskmodel.workload.works import DelayWork

CONF = """ClusterName=big
SlurmctldHost=head(10.0.0.1)
SchedulerParameters=bf_interval=60
Epilog=/opt/clean.sh
PluginDir=/opt/slurm
SelectType=select/cons_tres
NodeName=n[1-3] CPUs=8 Sockets=2 CoresPerSocket=4 NodeAddr=10.0.1.[1-3] Gres=gpu:2
NodeName=fat CPUs=8
PartitionName=main Nodes=ALL Default=YES
"""


@pytest.fixture
def conf_file(tmp_path: Path) -> Path:
    file = tmp_path / "slurm.conf"
    file.write_text(CONF)
    return file


def test_what_decides_is_kept_and_what_is_of_the_site_is_not(conf_file, tmp_path):
    place = Place(tmp_path, "127.9.8.7", 17000)
    text = slurm_conf(conf_file, read_conf(conf_file), place, pings=False).splitlines()
    assert "SchedulerParameters=bf_interval=60" in text
    assert "Epilog=/bin/true" in text
    assert "GresTypes=gpu" in text
    assert "SlurmctldHost=localhost(127.9.8.7)" in text
    nodes = [line for line in text if line.startswith("NodeName")]
    assert nodes[0].endswith("NodeHostname=localhost NodeAddr=127.9.8.7 Port=[17002-17004]")
    assert nodes[1].endswith("Port=17005")
    assert not any("10.0" in line or "/opt" in line for line in text)
    assert place.notes == ["2 keys of the site are set aside: SlurmctldHost, PluginDir"]


def test_gpus_have_files_and_other_resources_have_counts(tmp_path):
    file = tmp_path / "slurm.conf"
    file.write_text(
        "NodeName=n[1-2] CPUs=8 Gres=gpu:a:2,gpu:b:3,disk:7\n"
        "NodeName=n3 CPUs=8 Gres=gpu:1\nPartitionName=main Nodes=ALL\n"
    )
    conf = read_conf(file)
    assert str(gres_conf(conf, Path("/x/gpu"))).splitlines() == [
        "NodeName=n1,n2 Name=gpu Type=a File=/x/gpu[0-1]",
        "NodeName=n1,n2 Name=gpu Type=b File=/x/gpu[2-4]",
        "NodeName=n1,n2 Name=disk Count=7",
        "NodeName=n3 Name=gpu File=/x/gpu[0-0]",
    ]
    assert most_gpus(conf) == 5


def test_requests_are_what_sbatch_was_told(tmp_path):
    file = tmp_path / "jobs.csv"
    file.write_text(
        "id,submit,nodes,cores,limit,run,user,nice,mem,depend,extra\n"
        "a,0,2-3,,90,5,ann,7,,,--array=1-5:2%2 -C big --gres=gpu:2\n"
        'b,3,,4,60,5,,,2G,"afterok:a,after:gone",-c 2 --contiguous\n'
    )
    first, second = batches_of(read_jobs(file).jobs)
    assert [request.id for request in first] == ["a_1", "a_3", "a_5"]
    words = sbatch_words(first, str, {})
    assert {"--nodes=2-3", "--time=2", "--nice=7", "--exclusive", "--array=1,3,5%2"} <= set(words)
    assert {"--constraint=big", "--gres=gpu:2"} <= set(words)
    words = sbatch_words(second, str, {"a": 12})
    assert {"--ntasks=4", "--cpus-per-task=2", "--mem=2048M", "--contiguous"} <= set(words)
    assert "--dependency=afterok:12" in words


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("after:a+5,singleton", "after:12+5,singleton"),
        ("afterok:a?afternotok:b:gone", "afterok:12?afternotok:13"),
        ("aftercorr:b,afterany:b_3", "aftercorr:13,afterany:13_3"),
        ("afterok:gone?after:gone+1", None),
    ],
)
def test_dependencies_have_numbers_of_slurm(given, told):
    job = JobRequest("j", 0.0, DelayWork(1.0), dependency=given)
    words = sbatch_words([job], str, {"a": 12, "b": 13, "b_3": 13})
    found = [word for word in words if word.startswith("--dependency")]
    assert found == ([] if told is None else [f"--dependency={told}"])


def test_tracked_resources_are_in_the_database_before_the_limits():
    conf = "ClusterName=c\nAccountingStorageTRES=gres/gpu,License/x,cpu,gres/gpu:a\n"
    rows = "(1, 'gres', 'gpu'), (1, 'license', 'x'), (1, 'gres', 'gpu:a');\n"
    assert run.tracked(conf).endswith(rows)
    assert run.tracked("ClusterName=c\n") == ""


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (
            "sched: Allocate JobId=5_2(11) NodeList=n[1-2] #CPUs=8 Partition=main",
            ("main", "start", 11, (5, 2), "n[1-2]"),
        ),
        (
            "sched/backfill: _start_job: Started JobId=3 in main on n4",
            ("backfill", "start", 3, None, "n4"),
        ),
        ("debug:  gang: suspending JobId=7", ("gang", "suspend", 7, None, "")),
        ("_job_complete: JobId=7 done", ("job", "end", 7, None, "")),
        (
            "debug:  sched: Running job scheduler for full queue.",
            ("main", "full queue", 0, None, ""),
        ),
    ],
)
def test_the_log_of_the_controller_is_understood(line, event):
    assert event_of(f"[1970-01-01T00:00:01.500] {line}") == Event(1.5, *event)
    assert event_of(line) is None


def test_what_is_over_is_understood():
    over = over_of(
        "JobId=9 UserId=a(1) JobState=TIMEOUT Partition=p TimeLimit=5 "
        "StartTime=1970-01-01T00:00:10 EndTime=1970-01-01T00:05:20 "
        "NodeList=n1 ProcCnt=8 SubmitTime=1970-01-01T00:00:00 "
        "EligibleTime=Unknown ArrayJobId=4 ArrayTaskId=3"
    )
    assert over is not None
    assert (over.number, over.task, over.state, over.cpus, over.limit_min) == (
        *(9, (4, 3), "TIMEOUT", 8),
        5,
    )
    assert (over.start_s, over.end_s, over.eligible_s) == (10, 320, None)
    assert over_of("JobId=x") is None


def test_ends_of_one_date_are_told_by_task():
    begin, late = Event(5.0, "main", "x"), Event(6.0, "job", "end", 1)
    ends = [Event(5.0, "job", "end", 1, (1, 5)), Event(5.0, "job", "end", 7, (1, 4))]
    assert in_order([begin, *ends, late]) == in_order([begin, *ends[::-1], late])
    assert in_order([ends[0], begin, ends[1]]) == (ends[0], begin, ends[1])


def test_cores_are_those_that_slurm_tells(conf_file):
    placements = Placements(nodes_of(read_conf(conf_file)))
    for line in (
        "JobId=4 nhosts:2 ncpus:3 node_req:0 nodes=n[1-2]",
        "Node[0]:",
        "  Mem(MB):100:0  Sockets:2  Cores:4  CPUs:2:0",
        "  Socket[0] Core[1] is allocated",
        "  Socket[1] Core[0] is allocated",
        "Node[1]:",
        "  Mem(MB):50:0  Sockets:2  Cores:4  CPUs:1:0",
        "  Socket[1] Core[3] is allocated",
    ):
        placements.take(f"[1970-01-01T00:00:01.500] {line}")
    held = placements.allocation(4, None, "n[1-2]")
    assert held.cores == (0b0001_0010, 0b1000_0000)
    assert held.cpus == (2, 1)
    assert held.memory_MiB == (100, 50)
    assert placements.allocation(4, None, "n[1-2]").cores == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x,n1,dies", "time is 'x'; give seconds, 0 or more"),
        ("1,n9,dies", "daemon is 'n9'; give a node or slurmctld"),
        ("1,n1,sleeps", "what is 'sleeps'; give dies, starts or restarts"),
    ],
)
def test_failures_are_read_with_care(tmp_path, conf_file, line, said):
    file = tmp_path / "failures.csv"
    file.write_text(f"time,daemon,what\n{line}\n")
    with pytest.raises(SlurmError, match=f"failures.csv:2: {said}"):
        read_failures(file, read_conf(conf_file))


def test_a_command_of_sacctmgr_that_fails_is_named_with_its_line(monkeypatch, tmp_path):
    text = "sacctmgr: error: no TRES known by type gres/foo\n"
    cluster = SimpleNamespace(client=lambda *words: SimpleNamespace(status=1, text=text))
    ((line, words),) = run._calls("# site\nsacctmgr -i add account a grptres=gres/foo=3\n")
    with pytest.raises(LiveFault, match=f"^here: sacctmgr add account a .*: {text.strip()}$"):
        run._tell(cluster, words, "here: ")
    assert line == 2


def test_one_line_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "PLACES", str(tmp_path))
    with pytest.raises(LiveFault, match=r"slurmctld, .* not found; install Slurm .*slurm-client"):
        programs.installed()
    for name in ("slurmctld", "slurmd", "slurmstepd", "sbatch", "scancel", "scontrol"):
        (tmp_path / name).write_text("#!/bin/sh\necho slurm 99.11.3\n")
    for name in ("squeue", "sinfo"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    for file in tmp_path.iterdir():
        file.chmod(0o755)
    with pytest.raises(LiveFault, match=r"is Slurm 99\.11\.3, and its clock can be led in 22\.05"):
        programs.installed()
    monkeypatch.setenv("CC", str(tmp_path / "none"))
    monkeypatch.setattr(building, "cache_directory", lambda: tmp_path)
    with pytest.raises(LiveFault, match=r"needs a C compiler here, and .* cannot be run"):
        building.built()
    assert not list(tmp_path.glob("*slurm-live*"))
