"""Slurm's accounting and other logs as requests."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slurm.small_clusters import FOUR, LINEAR, conf_of, job, run

from ptaskmodel.errors import SlurmError, WorkloadError
from ptaskmodel.results.tables.slurm import sacct_row, write_sacct
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.conf.facts import Conf, Gres, Partition
from ptaskmodel.slurm.conf.phases import read_phases
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.event_log import hostlist
from ptaskmodel.slurm.jobs import sbatch
from ptaskmodel.slurm.jobs.request import ArrayTask, Command
from ptaskmodel.slurm.jobs.sacct import looks_like, read_sacct
from ptaskmodel.slurm.jobs.submissions import CPUS, NODES, read_submissions, submissions_of
from ptaskmodel.slurm.run import simulate_slurm
from ptaskmodel.workload.formats.tasks_json import load_tasks
from ptaskmodel.workload.formats.ti_trace import read_trace
from ptaskmodel.workload.jobs import Job, Workload
from ptaskmodel.workload.reading import read_workload
from ptaskmodel.workload.works import DelayWork

HEADER = (
    "JobID|JobName|User|Account|QOS|Partition|Submit|Eligible|Start|End|Elapsed|Timelimit|"
    "ReqNodes|NNodes|ReqCPUS|ReqTRES|State|ExitCode\n"
)
DAY = "2024-01-31T"
ACCOUNTED = Path(__file__).parent / "reference" / "accounting"


def row(job, state="COMPLETED", **changes):
    cells = {
        "JobName": "sim",
        "User": "ann",
        "Account": "a",
        "QOS": "normal",
        "Partition": "main",
        "Submit": DAY + "12:00:30",
        "Eligible": DAY + "12:00:30",
        "Start": DAY + "12:10:00",
        "End": DAY + "13:10:05",
        "Elapsed": "01:00:05",
        "Timelimit": "1-02:00:00",
        "ReqNodes": "2",
        "NNodes": "2",
        "ReqCPUS": "16",
        "ReqTRES": "billing=16,cpu=16,gres/gpu:a=4,gres/gpu=4,license/x=1,mem=64G,node=2",
        "ExitCode": "0:0",
    } | changes
    return "|".join([job, *(cells[k] for k in cells if k != "ExitCode"), state, cells["ExitCode"]])


def read(tmp_path, *rows, header=HEADER):
    path = tmp_path / "sacct.txt"
    path.write_text(header + "".join(f"{one}\n" for one in rows))
    return read_sacct(path)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("COMPLETED by 1000", "1 job with words behind its state, which are not used"),
        ("DONE", "1 job in state 'DONE', which is taken for COMPLETED"),
        ("CANCELLED by 1000", None),
        ("CANCELLED+", None),
        ("OUT_OF_MEMORY", None),
    ],
)
def test_states_that_sacct_does_not_print_are_told(tmp_path, state, says):
    found = read(tmp_path, row("7", state), row("8"))
    assert [job.id for job in found.jobs] == ["7", "8"]
    assert [one.text for one in found.remarks] == [says] * (says is not None)


def test_parquet_is_named_with_the_way_out(tmp_path):
    (tmp_path / "part.0.parquet").write_bytes(b"PAR1\x15\x04")
    for read in (
        read_workload,
        lambda path: read_submissions(path, conf_of(tmp_path, FOUR)),
        load_tasks,
        read_trace,
    ):
        with pytest.raises(WorkloadError, match=r"is Parquet, .* convert it with pandas"):
            read(tmp_path / "part.0.parquet")


def test_columns_that_are_not_read_are_told(tmp_path):
    names = ["NTasks", "Colour", "Suspended", "WorkDir", "Extra"]
    header = HEADER.replace("JobID|", f"JobID|{'|'.join(names)}|")
    found = read(tmp_path, row("7").replace("7|", f"7|{'|' * 5}", 1), header=header)
    (remark,) = found.remarks
    assert remark.text == (
        "columns that are not used: 'ntasks', 'colour', 'suspended', 'workdir' and 1 more"
    )


def test_a_job(tmp_path):
    found = read(tmp_path, row("7"), row("7.batch"), row("7.0"))
    (job,) = found.jobs
    assert found.t0 == 1706702400
    assert (job.id, job.submit_s, job.run_s, job.limit_min) == ("7", 30.5, 3605.0, 1560)
    assert (job.user, job.account, job.qos, job.name) == ("ann", "a", "normal", "sim")
    assert job.partitions == ("main",)
    assert (job.min_nodes, job.max_nodes, job.tasks) == (2, 2, 16)
    assert job.memory_per_node_MiB == 32 * 1024
    assert job.gres == (Gres("gpu", "a", 2),)
    assert job.licenses == {"x": 1}
    assert job.begin_s is None
    assert not job.fails


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            "sbatch --exclusive -C 'fast|slow' --colour=red -x n9 --ntasks-per-node=9 job.sh -w n1",
            ("nodes", "fast|slow", ("n9",), ()),
        ),
        ("/usr/bin/sbatch -w n[1-2] --wrap=hostname", (None, None, (), ("n1", "n2"))),
        ("srun -w n1 hostname", (None, None, (), ())),
        ("sbatch -N two job.sh", (None, None, (), ())),
    ],
)
def test_a_submit_line_tells_what_no_column_does(tmp_path, line, found):
    header = HEADER.replace("JobID|", "JobID|SubmitLine|")
    text = header + row("7").replace("7|", f"7|{line}|", 1)
    (tmp_path / "log").write_text(text + "\n")
    (asked,) = read_sacct(tmp_path / "log").jobs
    assert (asked.exclusive, asked.constraint, asked.exclude, asked.nodelist) == found
    assert (asked.tasks, asked.tasks_per_node) == (16, None)


@pytest.mark.parametrize(
    ("line", "gpus", "gres"),
    [
        ("sbatch -n 16 --gpus=a100:2 x", (Gres("gpu", "a100", 2),), ()),
        ("sbatch -n 16 --gpus-per-task=2 x", (), ()),
        ("sbatch --gpus-per-node=2 x", (), (Gres("gpu", None, 2),)),
    ],
)
def test_a_submit_line_tells_gpus_where_no_column_of_tres_does(tmp_path, line, gpus, gres):
    header = HEADER.replace("JobID|", "JobID|SubmitLine|")
    for tres in ("", "cpu=16,node=1"):
        text = header + row("7", ReqTRES=tres).replace("7|", f"7|{line}|", 1)
        (tmp_path / "log").write_text(text + "\n")
        (asked,) = read_sacct(tmp_path / "log").jobs
        assert (asked.gpus, asked.gres) == (((), ()) if tres else (gpus, gres))


def test_what_became_of_jobs(tmp_path):
    found = read(
        tmp_path,
        row("1", "TIMEOUT", Timelimit="01:00:00"),
        row("2", "CANCELLED by 7", Start="None", Elapsed="00:00:00", End=DAY + "12:30:00"),
        row("3", "CANCELLED by 7"),
        row("4", "FAILED", ExitCode="1:0", Eligible=DAY + "12:20:30"),
        row("5_3"),
        row("5_[4-9%2]", "PENDING"),
        row("6", "RUNNING"),
        row("8", "NODE_FAIL"),
        row("8", Submit=DAY + "12:40:00", Elapsed="10:00"),
        row("9", "FAILED", Start="Unknown", Elapsed="00:00:00"),
    )
    by_id = {job.id: job for job in found.jobs}
    assert list(by_id) == ["1", "2", "3", "4", "5_3", "8"]
    assert by_id["1"].run_s == 3605 + 86_400
    assert by_id["2"].commands == (Command(1800.5, "cancel"),)
    assert by_id["3"].fails
    assert by_id["3"].run_s == 3605
    assert by_id["4"].begin_s == 1230
    assert by_id["5_3"].array == ArrayTask("5", 3)
    assert (by_id["8"].submit_s, by_id["8"].run_s) == (30.5, 600)
    assert [one.text.split(" ", 1)[0] for one in found.remarks] == ["2", "1", "1"]


def test_the_least_columns_and_other_units(tmp_path):
    found = read(
        tmp_path,
        "1|100|200|260|4000Mc|UNLIMITED|3|1K|",
        "2|90|Unknown|Unknown|4Gn||1|1|",
        "3|130|200|201|6G|90|2|2|",
        header="JobID|Submit|Start|End|ReqMem|TimelimitRaw|NNodes|NCPUS|\n",
    )
    one, three = found.jobs
    assert (one.run_s, one.memory_per_cpu_MiB, one.limit_min) == (60, 4000, None)
    assert (one.min_nodes, one.tasks) == (3, 1024)
    assert (three.memory_per_node_MiB, three.limit_min, three.submit_s) == (3072, 90, 70.5)
    assert "never started" in found.remarks[0].text


def test_names_of_jobs_may_have_bars_in_them(tmp_path):
    (job,) = read(tmp_path, row("1", JobName="säge|v2||")).jobs
    assert (job.name, job.user, job.run_s) == ("säge|v2||", "ann", 3605.0)


def test_columns_of_numbers_may_be_empty_beside_a_submit_line_with_bars(tmp_path):
    """As in rows of jobs, which have no number of tasks, and of steps, which have no limit."""
    header = HEADER.replace("JobID|", "JobID|NTasks|SubmitLine|Suspended|")
    line = "sbatch --wrap=env | grep X | sed s"
    text = header + row("7").replace("7|", f"7||{line}|00:00:00|", 1)
    (tmp_path / "log").write_text(text + "\n")
    found = read_sacct(tmp_path / "log")
    assert [job.id for job in found.jobs] == ["7"]
    assert [one.text for one in found.remarks] == [
        "columns that are not used: 'ntasks', 'suspended'"
    ]


def test_what_sacct_prints_of_unknown_memory_and_heterogeneous_jobs(tmp_path):
    asked = HEADER.replace("ReqTRES", "ReqMem")
    rows = [row(job, ReqTRES=memory) for job, memory in (("1", "?"), ("2+0", "4Gn"), ("2+1", ""))]
    found = read(tmp_path, *rows, header=asked)
    assert [job.memory_per_node_MiB for job in found.jobs] == [None, 4096, None]
    (remark,) = found.remarks
    assert "2 components of heterogeneous jobs became jobs of their own" in remark.text


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (row("x"), ":2: JobID is 'x'"),
        (row("1", Submit="soon"), "submit is 'soon': give a date"),
        (row("1", Submit="Unknown"), "Submit is 'Unknown'; give a date"),
        (row("1", Elapsed="long"), "elapsed is 'long': give [[days-]hours:]minutes:seconds"),
        (row("1", Timelimit="x"), "timelimit is 'x'"),
        (row("1", ReqTRES="many"), "reqtres is 'many'"),
        (row("1", "PENDING"), "contains no ended job"),
    ],
)
def test_mistakes_are_one_line(tmp_path, line, complaint):
    with pytest.raises(SlurmError) as caught:
        read(tmp_path, line)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("header", ["", "JobID|Elapsed\n", "JobID|Submit\n", "1|2|3\n"])
def test_tables_that_lack_something(tmp_path, header):
    with pytest.raises(SlurmError, match=r":1: .*; print"):
        read(tmp_path, "1|2|3", header=header)
    assert looks_like(HEADER.encode())


CELLS = st.sampled_from(["", "1", "Unknown", "1-02:03:04", DAY + "12:00:00", "5_1", "2.0", "9"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(CELLS | st.text(max_size=3), max_size=18), max_size=3))
def test_whatever_is_in_a_table_is_read_or_refused(tmp_path_factory, table):
    path = tmp_path_factory.getbasetemp() / "fuzzed.sacct"
    path.write_text(HEADER + "\n".join("|".join(cells) for cells in table), encoding="utf-8")
    with contextlib.suppress(SlurmError):
        read_sacct(path)


def test_a_workload_as_requests():
    conf = Conf((), (Partition("main"), Partition("3")))
    work = DelayWork(10.0)
    jobs = (
        Job("a", 1.0, 4, "p", work, 61.0, user="ann", group="g", queue="3", partition="9"),
        Job("b", 2.0, 2, "p", work, cores=3, memory_B=2.0**30, return_code=1),
    )
    workload = Workload(jobs, {"p": work})
    whole, part = submissions_of(workload, conf, NODES).jobs
    assert (whole.min_nodes, whole.tasks, whole.exclusive) == (4, None, "nodes")
    assert (whole.limit_min, whole.user, whole.account) == (2, "ann", "g")
    assert whole.partitions == ("3",)
    assert (part.min_nodes, part.tasks, part.tasks_per_node) == (2, 6, 3)
    assert (part.exclusive, part.memory_per_node_MiB, part.fails) == (None, 1024, True)
    found = submissions_of(workload, conf, CPUS)
    assert (found.jobs[0].min_nodes, found.jobs[0].tasks) == (None, 4)
    assert found.remarks == ()
    (remark,) = submissions_of(workload, Conf((), (Partition("main"),)), CPUS).remarks
    assert "does not define: '9' (1 job): they go to the default partition, main" in remark.text


def test_one_door_for_all_formats(tmp_path):
    conf = Conf((), (Partition("main"),))
    files = {
        "jobs.csv": "id,submit,nodes,cores,limit,run\na,1,2,,60,5\n",
        "sacct.txt": HEADER + row("7"),
        "log.swf": "1 1 0 5 8 -1 -1 8 61 -1 1 3 4 -1 -1 -1 -1 -1\n",
        "w.json": '{"nb_res": 4, "jobs": [{"id": "a", "subtime": 1, "res": 2, "profile": "d"}],'
        '"profiles": {"d": {"type": "delay", "delay": 5}}}',
    }
    found = {}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        (found[name],) = read_submissions(tmp_path / name, conf, phase_s=0.25).jobs
    assert found["jobs.csv"].submit_s == 1.25
    assert found["sacct.txt"].submit_s == 30.25
    assert (found["log.swf"].tasks, found["log.swf"].min_nodes) == (8, None)
    assert (found["w.json"].min_nodes, found["w.json"].run_s) == (2, 5.0)
    (job,) = read_submissions(tmp_path / "log.swf", conf, processors_per_node=4).jobs
    assert (job.min_nodes, job.exclusive, job.limit_min) == (2, "nodes", 2)
    (tmp_path / "x").write_text("nothing known")
    with pytest.raises(WorkloadError, match="like no known format"):
        read_submissions(tmp_path / "x", conf)


def test_what_a_run_writes_is_read_back_whatever_its_names_hold(tmp_path):
    conf = conf_of(tmp_path, LINEAR + FOUR)
    names = ["plain", "a|b", "|", '"quoted", \'twice"', "x|y|", " two  words ", "é\u2028", "tail|"]
    jobs = [
        replace(job(str(k), 10.0 * k, 100, 5, nodes=1, user="ann"), name=name)
        for k, name in enumerate(names)
    ]
    found, _ = run(conf, jobs)
    write_sacct(tmp_path / "sacct.txt", (sacct_row(found, one) for one in found.jobs))
    again = read_sacct(tmp_path / "sacct.txt").jobs
    assert [one.name for one in again] == names
    assert [(one.run_s, one.limit_min, one.user) for one in again] == [(100.0, 5, "ann")] * 8


def test_a_name_of_two_lines_is_written_on_one(tmp_path):
    write_sacct(tmp_path / "sacct.txt", [("7", "a\nb\r")])
    assert (tmp_path / "sacct.txt").read_text().splitlines()[1] == "7|a b "


def test_a_line_without_bars_that_goes_on_with_the_text_before_is_told(tmp_path):
    path = tmp_path / "log.txt"
    row = "{0}|2024-03-01T10:00:0{0}|00:10:00|1|COMPLETED|sbatch x"
    lines = [
        "JobID|Submit|Elapsed|ReqNodes|State|SubmitLine",
        row.format(1),
        " echo y",
        row.format(2),
    ]
    path.write_text("\n".join(lines))
    found = read_sacct(path)
    assert [job.id for job in found.jobs] == ["1", "2"]
    (remark,) = found.remarks
    assert remark.text == "1 line goes on with the text of the row before (line 3)"
    path.write_text("\n".join([*lines[:3], row.format(2)[:12], row.format(3), row.format(4)]))
    found = read_sacct(path)
    assert [job.id for job in found.jobs] == ["1", "3", "4"]
    assert [remark.line for remark in found.remarks] == [4, None]


@pytest.mark.parametrize(
    ("case", "left_out", "untold"),
    [
        ("parts", "JobName", []),
        ("parts", "SubmitLine", ["9"]),
        ("threads", "JobName", []),
        ("threads", "SubmitLine", []),
    ],
)
def test_jobs_run_where_they_ran(tmp_path, case, left_out, untold):
    """From the accounting of the real Slurm: jobs that name no number of nodes, and whole nodes.

    untold: jobs with tasks of two CPUs, which only the command line tells.
    """
    log = pd.read_csv(ACCOUNTED / case / "sacct.txt", sep="|", dtype=str)
    log.drop(columns=left_out).to_csv(tmp_path / "log.txt", sep="|", index=False)
    conf = read_conf(ACCOUNTED / case / "slurm.conf")
    found, by_id = run(conf, read_submissions(tmp_path / "log.txt", conf).jobs)
    log = log[log.State == "COMPLETED"].set_index("JobID")
    cpus = log.AllocTRES.str.extract(r"cpu=(\d+)", expand=False).astype(int)
    differ = [
        name
        for name, job in by_id.items()
        if name in log.index
        and (nodes_text(found, job), found.cpus_of(job)) != (log.NodeList[name], cpus[name])
    ]
    assert differ == untold


def nodes_text(found, job):
    return hostlist(found.nodes.names_of(job.allocation.nodes))


def test_a_log_that_does_not_tell_how_many_nodes_jobs_got(tmp_path):
    header = HEADER.replace("NNodes|", "")
    found = read(tmp_path, row("1").replace("|2|2|16|", "|2|16|"), header=header)
    assert (found.jobs[0].min_nodes, found.jobs[0].max_nodes) == (2, 2)
    assert [one.text for one in found.remarks] == [
        "1 job does not tell how many nodes it got: as many as ReqNodes; print NNodes and AllocTRES"
    ]


def test_a_recorded_site_is_simulated_from_its_accounting_alone():
    """Jobs that wait for others, victims that begin anew, options of the command line."""
    place = ACCOUNTED / "victims"
    conf = read_conf(place / "slurm.conf")
    asked = read_submissions(place / "sacct.txt", conf)
    phases = read_phases(place / "run1.meta.json", conf)
    accounts = read_accounts(place / "sacctmgr.txt")
    found = simulate_slurm(conf, asked.jobs, accounts=accounts, phases=phases)
    log = pd.read_csv(place / "sacct.txt", sep="|", dtype=str).drop_duplicates("JobID", keep="last")
    log = log[log.Start.notna()].set_index("JobID")
    began = {job.id: (job.start_s, nodes_text(found, job)) for job in found.jobs if job.attempt}
    dates = (pd.to_datetime(log.Start) - pd.Timestamp(0)).dt.total_seconds()
    assert began == dict(zip(log.index, zip(dates, log.NodeList, strict=True), strict=True))


@pytest.mark.parametrize(
    ("line", "nodes", "asked", "had", "gives_memory"),
    [
        ("-N 2 -n 4 --gres=gpu:2 --cpus-per-gpu=2", (2, 2), (4, 4, 32000), (8, 4, 4000), False),
        ("-n 2 --mem=3G --gres=gpu:2 --cpus-per-gpu=2", (1, 1), (2, 2, 3072), (4, 2, 3072), True),
        ("-N 2 -n 6 --gpus-per-task=1 --exclusive", (2, 2), (6, 6, 32000), (24, 8, 8000), False),
        ("-n 1 --gres=gpu:2 --gpus=4", (2, 2), (1, 4, 32000), (2, 4, 32000), True),
        ("-n 4 --gres=gpu:2 --gres-flags=enforce-binding", (1, 1), (4, 2, 16000), (4, 2, 2000), 0),
    ],
)
def test_gpus_as_the_command_line_says(tmp_path, line, nodes, asked, had, gives_memory):
    """From the accounting of the real Slurm, which logs all memory for jobs that ask for none."""
    tres = [
        f"billing={cpus},cpu={cpus},gres/gpu={gpus},mem={memory}M,node={count}"
        for count, (cpus, gpus, memory) in zip(nodes, (asked, had), strict=True)
    ]
    least, got = map(str, nodes)
    text = row("7", ReqNodes=least, NNodes=got, ReqCPUS=str(asked[0]), ReqTRES=tres[0])
    header = HEADER.replace("JobID|", "JobID|AllocTRES|SubmitLine|")
    text = text.replace("7|", f"7|{tres[1]}|sbatch {line} job.sh|", 1)
    (job,) = read(tmp_path, text, header=header).jobs
    told = sbatch.options(line)
    assert {name: getattr(job, name) for name in told} == told
    assert job.gives_memory == gives_memory
