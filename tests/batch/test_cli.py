"""``ptaskmodel batch`` and ``ptaskmodel workload``: what they write, and refuse in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from loading import loaded_by

from ptaskmodel.batch.policies import user_policy
from ptaskmodel.batch.verifier import check_policy
from ptaskmodel.cli import main

ROOT = Path(__file__).resolve().parents[2]
GRAPHENE = str(ROOT / "platforms" / "graphene.xml")
EXAMPLE = ROOT / "experiments" / "batch_policies" / "small_first.py"
JOBS = [
    {"id": 1, "subtime": 0, "res": 100, "profile": "wait", "walltime": 50},
    {"id": 2, "subtime": 1, "res": 144, "profile": "wait", "walltime": 50},
    {"id": 3, "subtime": 2, "res": 20, "profile": "short", "walltime": 10},
]
PROFILES = {"wait": {"type": "delay", "delay": 40}, "short": {"type": "delay", "delay": 5}}


@pytest.fixture
def workload(tmp_path):
    def write(jobs=JOBS, profiles=PROFILES, name="w.json"):
        path = tmp_path / name
        path.write_text(json.dumps({"nb_res": 144, "jobs": jobs, "profiles": profiles}))
        return str(path)

    return write


def summary(capsys, *arguments):
    assert main(["batch", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("policy", "waits"),
    [("fcfs", [0, 39, 78]), ("easy", [0, 39, 0]), ("filler", [0, 39, 0]), ("sjf", [0, 39, 0])],
)
def test_policies_by_name(capsys, workload, tmp_path, policy, waits):
    out = tmp_path / "out"
    found = summary(capsys, GRAPHENE, workload(), "--policy", policy, "-o", str(out))
    assert found["jobs"]["succeeded"] == 3
    with (out / "jobs.csv").open() as file:
        assert [float(row["waiting_time"]) for row in csv.DictReader(file)] == waits
    assert json.loads((out / "summary.json").read_text())["policy"] == policy
    assert {p.name for p in out.iterdir()} == {
        "classes.csv",
        "jobs.csv",
        "schedule.json",
        "machine_states.csv",
        "load.csv",
        "over_time.csv",
        "machines.csv",
        "summary.json",
    }


def test_pictures_are_drawn_on_demand(capsys, workload, tmp_path):
    out = tmp_path / "out"
    summary(capsys, GRAPHENE, workload(), "-o", str(out), "--plots")
    assert (out / "gantt.png").stat().st_size > 5_000
    assert (out / "load.png").stat().st_size > 5_000
    assert main(["batch", GRAPHENE, workload(), "--plots"]) == 2
    assert "--plots writes files" in capsys.readouterr().err


def test_pictures_are_those_of_plot(capsys, workload, tmp_path):
    out = tmp_path / "out"
    found = summary(capsys, GRAPHENE, workload(), "-o", str(out), "--plots")
    assert found["jobs"]["succeeded"] == 3
    written = json.loads((out / "summary.json").read_text())["files"]
    for kind in ("gantt", "load"):
        assert f"{kind}.png" in written
        assert main(["plot", str(out), kind, "-o", str(tmp_path / "x.png")]) == 0
        assert (tmp_path / "x.png").read_bytes() == (out / f"{kind}.png").read_bytes()


def test_there_is_no_picture_of_nothing(capsys, workload, tmp_path):
    out = tmp_path / "out"
    summary(capsys, GRAPHENE, workload(jobs=[]), "-o", str(out), "--plots")
    assert not list(out.glob("*.png"))
    assert main(["plot", str(out), "load", "-o", str(tmp_path / "x.png")]) == 2
    assert "no job was there; nothing to draw" in capsys.readouterr().err


def test_the_table_is_for_readers(capsys, workload):
    assert main(["batch", GRAPHENE, workload(), "--verify", "head"]) == 0
    captured = capsys.readouterr()
    assert "waiting (s)" in captured.out
    assert "jobs         3: 3 ended" in captured.out
    assert "estimates: the walltimes" in captured.out
    assert captured.err == ""


@pytest.mark.parametrize("allocation", ["contiguous", "random", "spread", "topology"])
def test_allocations_by_name(capsys, workload, allocation):
    found = summary(capsys, GRAPHENE, workload(), "--allocation", allocation)
    assert found["waiting_s"]["max"] == 39


def test_the_example_of_a_users_policy_passes_the_kit(capsys, workload):
    spec = f"{EXAMPLE}:SmallFirst"
    found = summary(
        capsys, GRAPHENE, workload(), "--policy", spec, "--policy-option", "patience_s=10"
    )
    assert found["waiting_s"]["max"] == 39
    check_policy(lambda: user_policy(spec, {"patience_s": 20.0}), workloads=30)


def test_metric_aware_by_its_options(capsys, workload):
    options = ["balance=0.5", "window=4", "backfill=conservative", "adaptive=window"]
    found = summary(
        capsys,
        GRAPHENE,
        workload(),
        "--policy",
        "metric-aware",
        *(word for option in options for word in ("--policy-option", option)),
    )
    assert found["jobs"]["succeeded"] == 3


@pytest.mark.parametrize("profiles", ["as-given", "ptask"])
def test_fair_starts_are_counted_and_written(capsys, workload, tmp_path, profiles):
    jobs = [JOBS[0], JOBS[1], JOBS[2] | {"res": 100}]
    out = tmp_path / "out"
    arguments = [GRAPHENE, workload(jobs), "--fairness", "both", "-o", str(out)]
    arguments += ["--policy", "sjf", "--profiles", profiles, "--no-contention"]
    found = summary(capsys, *arguments)
    with (out / "jobs.csv").open() as file:
        jobs = {row["job_id"]: row for row in csv.DictReader(file)}
    late = float(jobs["2"]["starting_time"]) > 50
    assert found["unfair_jobs"] == {"runtimes": 1, "estimates": int(late), "frozen": False}
    with (out / "fair_starts.csv").open() as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    assert rows["1"]["fair_start_by_runtimes"] == ""
    assert rows["2"]["fair_start_by_runtimes"] == jobs["1"]["finish_time"]
    assert float(rows["2"]["fair_start_by_estimates"]) == 50
    assert [rows[name]["unfair_by_runtimes"] for name in "123"] == ["0", "1", "0"]


def test_redirection_by_its_options(capsys, workload):
    jobs = [JOBS[0] | {"res": 72}] + [
        {"id": k, "subtime": k, "res": 72, "profile": "short", "walltime": 10} for k in (2, 3, 4)
    ]
    options = ["alpha=0.5", "theta=1", "conflict=longest"]
    found = summary(
        capsys,
        GRAPHENE,
        workload(jobs),
        "--policy",
        "redirection",
        *(word for option in options for word in ("--policy-option", option)),
    )
    assert found["jobs"]["lost_runs"] == 1


BAD_OPTIONS = {
    "policy": (["--policy", "lottery"], "policy 'lottery' is unknown"),
    "policy file": (["--policy", "absent.py:P"], "there is no file absent.py"),
    "policy class": (["--policy", f"{EXAMPLE}:Absent"], "has no class 'Absent'"),
    "policy argument": (
        ["--policy", f"{EXAMPLE}:SmallFirst", "--policy-option", "color=1"],
        "check --policy-option",
    ),
    "option form": (["--policy-option", "alpha"], "'alpha' is not KEY=VALUE"),
    "option unknown": (["--policy-option", "alpha=1"], "has no option 'alpha'"),
    "no alpha": (["--policy", "redirection"], "needs --policy-option alpha=NUMBER"),
    "alpha": (
        ["--policy", "redirection", "--policy-option", "alpha=2", "--policy-option", "theta=1"],
        "alpha is 2",
    ),
    "redirected": (
        ["--policy", "redirection"]
        + [f"--policy-option={option}" for option in ("alpha=0.5", "theta=1", "redirected=wait")],
        "redirected is 'wait'; use start or queue",
    ),
    "balance": (
        ["--policy", "metric-aware", "--policy-option", "balance=2"],
        "balance is 2: it must be between 0 and 1",
    ),
    "window": (
        ["--policy", "metric-aware", "--policy-option", "window=1.5"],
        "metric-aware needs --policy-option window=NUMBER",
    ),
    "frozen alone": (["--frozen"], "give --fairness too"),
    "fairness": (["--fairness", "equal"], "fairness 'equal' is unknown"),
    "own order": (["--policy", "metric-aware", "--order", "sjf"], "sets its own order"),
    "order": (["--order", "zigzag"], "order 'zigzag' is unknown"),
    "order twice": (["--policy", "sjf", "--order", "ljf"], "is an order itself"),
    "backfill order": (["--policy", "fcfs", "--backfill-order", "sjf"], "has no backfill order"),
    "allocation": (["--allocation", "magic"], "allocation 'magic' is unknown"),
    "partitions": (["--allocation", "partitions:absent.txt"], "absent.txt: no such file"),
    "intrepid": (["--allocation", "intrepid"], "80 midplanes, one host each"),
    "estimates": (["--estimates", "factor:-1"], "use exact, walltime or factor"),
    "tau": (["--tau", "0"], "tau is 0 s"),
    "storage": (["--storage", "pfs=nowhere"], "nowhere"),
    "processors": (["--processors-per-host", "0"], "give 1 or more"),
    "trace of delays": (["--trace", "csv"], "--profiles ptask converts delays into parallel tasks"),
    "delays limited": (["--attribution", "--profiles", "delay"], "--attribution: every job is a"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_refused_in_one_line(capsys, workload, tmp_path, case):
    options, message = BAD_OPTIONS[case]
    out = tmp_path / "out"
    assert main(["batch", GRAPHENE, workload(), *options, "-o", str(out)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("option", ["--trace=csv", "--attribution", "--neighbours", "--plots"])
def test_files_need_a_directory(capsys, workload, option):
    assert main(["batch", GRAPHENE, workload(), option]) == 2
    assert "writes files; give --output DIR" in capsys.readouterr().err


@pytest.fixture
def talking(workload):
    """Two jobs that exchange data across the cabinets, the second while the first does."""
    profile = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 2e7}
    jobs = [{"id": k, "subtime": k, "res": 40, "profile": "talk", "walltime": 9000} for k in (1, 2)]
    return workload(jobs, {"talk": profile})


def test_a_batch_is_traced_and_its_limits_named(capsys, talking, tmp_path):
    plain, seen = tmp_path / "plain", tmp_path / "seen"
    run = ["batch", GRAPHENE, talking, "--allocation", "random"]
    watch = ["--trace", "csv", "--attribution", "--neighbours"]
    assert main([*run, "-o", str(plain)]) == 0
    assert main([*run, *watch, "-o", str(seen)]) == 0
    assert (seen / "jobs.csv").read_bytes() == (plain / "jobs.csv").read_bytes()
    files = {"trace.csv", "bottlenecks.csv", "attribution.csv", "utilisation.csv", "neighbours.csv"}
    files.add("link_users.csv")
    assert files <= set(json.loads((seen / "summary.json").read_text())["files"])
    with (seen / "trace.csv").open() as file:
        uses = list(csv.DictReader(file))
    for job in ("1", "2"):
        done = sum(
            float(use["rate"]) * (float(use["end_s"]) - float(use["start_s"]))
            for use in uses
            if use["task_id"] == job and use["kind"] == "host"
        )
        assert done == pytest.approx(40 * 1e9, rel=1e-9)
    with (seen / "attribution.csv").open() as file:
        limits = {row["task_id"]: row for row in csv.DictReader(file)}
    assert limits["1"]["main_limit"] == "link"
    assert limits["1"]["shared_with"] == "2"


def test_a_batch_is_shown_like_any_run(capsys, talking, tmp_path):
    out, page = str(tmp_path / "out"), tmp_path / "report.html"
    assert main(["batch", GRAPHENE, talking, "--attribution", "-o", out]) == 0
    assert main(["report", out, "-o", str(page)]) == 0
    assert "graphene.xml" in page.read_text(encoding="utf-8")
    for kind in ("gantt", "progress", "links", "hosts", "topology", "slowdowns"):
        picture = tmp_path / f"{kind}.png"
        assert main(["plot", out, kind, "-o", str(picture)]) == 0
        assert picture.stat().st_size > 1000
    assert main(["compare", out, out]) == 0


BAD_WORKLOADS = {
    "too large": ([JOBS[0] | {"res": 145}], "asks for 145 hosts and the platform has 144"),
    "negative date": ([JOBS[0] | {"subtime": -3}], "submitted at -3 s"),
    "unknown profile": ([JOBS[0] | {"profile": "x"}], "there is no profile 'x'"),
}


@pytest.mark.parametrize("case", BAD_WORKLOADS)
def test_bad_workloads_leave_earlier_results(capsys, workload, tmp_path, case):
    jobs, message = BAD_WORKLOADS[case]
    out = tmp_path / "out"
    assert main(["batch", GRAPHENE, workload(), "-o", str(out)]) == 0
    before = (out / "jobs.csv").read_bytes()
    capsys.readouterr()
    assert main(["batch", GRAPHENE, workload(jobs, name="bad.json"), "-o", str(out)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert (out / "jobs.csv").read_bytes() == before


def test_jobs_of_a_log_stay_columns(monkeypatch, tmp_path):
    """The compiled loop and the files that are written need no object for each job."""
    log = tmp_path / "two.swf"
    log.write_text("".join(f"{k} {k} 0 9 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n" for k in (1, 2)))
    monkeypatch.setattr("ptaskmodel.workload.jobs.jobs_of_columns", None)
    out = tmp_path / "out"
    assert main(["batch", GRAPHENE, str(log), "--loop", "compiled", "-o", str(out)]) == 0
    assert len((out / "jobs.csv").read_text(encoding="utf-8").splitlines()) == 3


def test_jobs_too_large_can_be_left_out(capsys, workload):
    jobs = [*JOBS, JOBS[0] | {"id": 9, "res": 145}]
    found = summary(capsys, GRAPHENE, workload(jobs), "--leave-out-larger")
    assert found["jobs"]["all"] == 3
    note = {
        "level": "note",
        "text": "left out 1 job that needs more than 144 hosts",
        "effect": None,
    }
    assert note in found["remarks"]


def told(capsys, *arguments):
    assert main(["workload", *arguments]) == 0
    return capsys.readouterr().out


def test_workloads_are_described_and_converted(capsys, workload, tmp_path):
    source, swf = workload(), str(tmp_path / "w.swf.gz")
    assert "3 jobs, 2 profiles" in told(capsys, "convert", source, "-o", swf)
    facts = json.loads(told(capsys, "info", swf, "--json"))
    assert (facts["jobs"], facts["machine_hosts"]) == (3, 144)
    back = str(tmp_path / "back.json")
    told(capsys, "convert", swf, "-o", back, "--batsim-version", "3")
    profiles = json.loads(Path(back).read_text())["profiles"]
    assert {p["type"] for p in profiles.values()} == {"delay"}
    ptasks = str(tmp_path / "ptasks.json")
    options = ["--profiles", "ptask", "--speed", "1e9", "--bandwidth", "1e8", "--pattern", "ring"]
    told(capsys, "convert", swf, "-o", ptasks, *options)
    assert "3 parallel" in told(capsys, "info", ptasks)


def test_workloads_are_generated_and_cut(capsys, workload, tmp_path):
    made = str(tmp_path / "made.swf")
    told(capsys, "generate", "lublin", "-o", made, "--jobs", "3000", "--hosts", "16", "--pace", "2")
    listed = told(capsys, "extract", made, "--days", "3", "--min-utilisation", "0.3")
    assert "utilisation" in listed
    week = str(tmp_path / "week.json")
    told(
        capsys,
        "extract",
        made,
        "-o",
        week,
        "--days",
        "3",
        "--min-utilisation",
        "0.3",
        "--pick",
        "0",
    )
    assert "window of the log" in told(capsys, "info", week)
    kinds = [
        {"id": "a", "subtime": 0, "res": 4, "profile": "wait", "weight": 3},
        {"id": "b", "subtime": 0, "res": 8, "profile": "short"},
    ]
    drawn = str(tmp_path / "drawn.json")
    told(capsys, "generate", "weibull", workload(kinds), "-o", drawn, "--jobs", "40")
    assert len(json.loads(Path(drawn).read_text())["jobs"]) == 40


BAD_COMMANDS = {
    "no such file": (["info", "absent.swf"], "no such file"),
    "format": (["convert", "{w}", "-o", "{out}"], "end it in .json or .swf"),
    "version": (
        ["convert", "{w}", "-o", "{out}.json", "--batsim-version", "7"],
        "not in the range",
    ),
    "no speed": (["convert", "{w}", "-o", "{out}.json", "--profiles", "ptask"], "give --speed"),
    "no window": (["extract", "{w}"], "no window of 7 days"),
    "no jobs": (["generate", "lublin", "-o", "{out}.json", "--jobs", "0"], "needs at least 1 job"),
    "zero": (["info", "{w}", "--zero-run-time", "x"], "nor 'drop'"),
    "nowhere": (["convert", "{w}", "-o", "/nonexistent/x.json"], "cannot be written: No such file"),
}


@pytest.mark.parametrize("case", BAD_COMMANDS)
def test_bad_commands_are_refused_in_one_line(capsys, workload, tmp_path, case):
    words, message = BAD_COMMANDS[case]
    places = {"w": workload(), "out": str(tmp_path / "out")}
    assert main(["workload", *(word.format(**places) for word in words)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.glob("out*"))


def test_several_batches_side_by_side(capsys, workload, tmp_path):
    places = []
    for policy in ("fcfs", "easy", "sjf"):
        places.append(str(tmp_path / policy))
        jobs = [job | {"subtime": 3600 * job["id"]} for job in JOBS]
        lasting = {"wait": 9000, "short": 1000}
        delays = {name: {"type": "delay", "delay": s} for name, s in lasting.items()}
        jobs = [job | {"walltime": lasting[job["profile"]] + 500} for job in jobs]
        arguments = [GRAPHENE, workload(jobs, delays), "--policy", policy, "-o", places[-1]]
        summary(capsys, *arguments)
    picture, table = tmp_path / "page.png", tmp_path / "page.csv"
    assert main(["compare", *places, "--picture", str(picture), "-o", str(table)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("The runs each end ")
    assert lines[2].split() == ["fcfs", "easy", "sjf", "better", "if"]
    (waiting,) = (line for line in lines if line.startswith("  mean waiting ("))
    assert waiting.count(" less") == 3
    assert "*" not in "".join(lines)
    assert picture.stat().st_size > 10_000
    assert table.read_text().startswith("group,metric,fcfs,easy,sjf\nDid they do the same work?,")
    queue = tmp_path / "queue.png"
    assert main(["plot", places[0], "queue", "-o", str(queue)]) == 0
    assert queue.stat().st_size > 10_000
    assert main(["compare", places[0]]) == 2
    assert "give two directories of results" in capsys.readouterr().err


def test_a_batch_imports_no_library_that_it_does_not_need(workload):
    loaded = loaded_by("batch", GRAPHENE, workload())
    assert not {"numba", "scipy", "pandas", "networkx", "matplotlib", "rich", "msgspec"} & loaded
    assert "ptaskmodel.sharing.problem" not in loaded


def test_a_log_loads_nothing_of_parallel_tasks(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text("1 0 -1 9 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    loaded = loaded_by("batch", GRAPHENE, str(log))
    assert not {"numpy.ma", "concurrent.futures", "html", "shutil", "tempfile"} & loaded
    ours = ("engine.driver", "mpi", "runs.recording", "runs.simulate", "simulation")
    assert not {f"ptaskmodel.{name}" for name in (*ours, "workload.traces")} & loaded
