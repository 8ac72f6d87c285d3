"""``ptaskmodel replay`` and ``trace``: files, pictures, and mistakes in one line."""

from __future__ import annotations

import csv
import json

import pytest
from loading import loaded_by

from ptaskmodel.cli import main
from ptaskmodel.workload import load_tasks

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"/>
</platform>
"""
RANKS = (
    "0 init\n0 compute 1e9\n0 send 1 0 1e6\n0 barrier\n0 finalize\n",
    "1 init\n1 recv 0 0 1e6\n1 compute 5e8\n1 barrier\n1 finalize\n",
)


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(PLATFORM)
    for rank, text in enumerate(RANKS):
        (tmp_path / f"r{rank}").write_text(text)
    (tmp_path / "traces.txt").write_text("r0\nr1\n")
    return tmp_path


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.jit
def test_a_replay_is_written_and_drawn(case, capsys):
    assert main(["replay", "p.xml", "traces.txt", "--timeline", "-o", "out"]) == 0
    assert "2 messages" not in capsys.readouterr().err
    summary = json.loads((case / "out" / "summary.json").read_text())
    ranks = rows(case / "out" / "ranks.csv")
    assert [row["host"] for row in ranks] == ["n0", "n1"]
    assert summary["makespan"] == max(float(row["end_s"]) for row in ranks)
    assert (summary["ranks"], summary["messages"], summary["unmatched_messages"]) == (2, 3, 0)
    assert float(ranks[0]["computing_s"]) == 1.0
    for row in ranks:  # what a rank does adds up to its end
        spent = sum(float(value) for name, value in row.items() if name.endswith("ing_s"))
        assert spent + float(row["in_collectives_s"]) == pytest.approx(float(row["end_s"]))
    spans = rows(case / "out" / "spans.csv")
    assert (spans[0]["rank"], spans[0]["action"], spans[0]["end_s"]) == ("0", "compute", "1.0")
    assert len(rows(case / "out" / "messages.csv")) == 3
    assert {(row["source"], row["target"]) for row in rows(case / "out" / "matrix.csv")} == {
        ("0", "1"),
        ("1", "0"),
    }
    for kind in ("ranks", "matrix"):
        assert main(["plot", "out", kind, "-o", f"{kind}.png"]) == 0
        assert (case / f"{kind}.png").stat().st_size > 5000
    assert main(["replay", "p.xml", "traces.txt", "--json", "--per-host", "2"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n", 4)[4])["ranks"] == 2


@pytest.mark.jit
def test_a_packed_trace_replays_alike(case, capsys):
    assert main(["trace", "pack", "traces.txt", "-o", "t.npz"]) == 0
    for traces in ("traces.txt", "t.npz"):
        assert main(["replay", "p.xml", traces, "-o", traces[0]]) == 0
    assert (case / "t" / "ranks.csv").exists()
    assert main(["trace", "info", "t.npz"]) == 0
    assert "compute       2" in capsys.readouterr().out


@pytest.mark.jit
def test_a_trace_becomes_tasks(case, capsys):
    make = ["trace", "to-ptask", "traces.txt", "-o", "t.json"]
    assert main([*make, "--hosts", "n[0-1]"]) == 0
    assert main(["simulate", "p.xml", "t.json"]) == 0
    assert "a task of 2 ranks, 1 phase" in capsys.readouterr().out
    (task,) = load_tasks("t.json")
    assert (task.hosts, task.work.flops.tolist()) == (("n0", "n1"), [1e9, 5e8])
    assert task.work.flow_bytes.tolist() == [1e6]
    assert main([*make, "--platform", "p.xml", "--phases", "collectives"]) == 0
    assert main([*make, "--platform", "p.xml", "--phases", "time", "--windows", "3"]) == 0
    assert main(["simulate", "p.xml", "t.json", "-o", "as_tasks"]) == 0
    assert main(["replay", "p.xml", "traces.txt", "-o", "as_ranks"]) == 0
    dates = [
        json.loads((case / name / "summary.json").read_text()) for name in ("as_tasks", "as_ranks")
    ]
    assert dates[0]["makespan"] == pytest.approx(dates[1]["makespan"], rel=1e-3)


def test_traces_of_programs_are_made(case, capsys):
    for name in ("t.txt", "t.txt.gz", "t.npz"):
        make = ["trace", "make", "stencil", "--ranks", "6", "--iterations", "2", "-o", name]
        assert main(make) == 0
        assert main(["trace", "info", name]) == 0
        assert "compute       12" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("trace make fft --ranks 2 -o x.png", "'fft' is unknown; use one of all-to-all, stencil"),
        ("trace make pdgemm --ranks 2 -o x.png", "2 ranks do not make a square grid"),
        ("trace make stencil --ranks 0 -o x.png", "give 1 or more"),
        ("trace make stencil --ranks 2 --imbalance 2 -o x.png", "2.0 is not in the range"),
        ("trace make stencil --ranks 2 -o nowhere/x.png", "nowhere/x.png: cannot be written"),
        ("trace to-ptask traces.txt -o x.png", "a task needs hosts; give --platform"),
        ("trace to-ptask traces.txt --phases time --hosts n0 -o x.png", "replays the trace; give"),
        (
            "trace to-ptask traces.txt --hosts n0 --ranks-on p.xml -o x.png",
            "--ranks-on and --hosts exclude",
        ),
        ("trace to-ptask traces.txt --platform p.xml --hosts m0 -o x.png", "unknown host 'm0'"),
        ("trace to-ptask traces.txt --hosts a --phases some -o x.png", "phases 'some' is unknown"),
        ("trace to-ptask p.xml --hosts n0 -o x.png", "p.xml"),
        ("replay p.xml nowhere.txt", "nowhere.txt: no such file"),
        ("replay p.xml traces.txt --timeline", "--timeline writes files; give --output DIR"),
        ("replay p.xml traces.txt --hosts n0 --ranks-on p.xml", "--ranks-on and --hosts exclude"),
        ("replay p.xml traces.txt --hosts n[0-9", "brackets that do not match"),
        ("replay p.xml traces.txt --hosts m0", "unknown host 'm0'"),
        ("replay p.xml traces.txt --ranks 3", "names 2 traces for 3 ranks"),
        ("replay p.xml traces.txt --network-model LV09", "did you mean 'LV08'"),
        ("replay p.xml traces.txt --timeline-as paje", "--timeline-as writes files; give --output"),
        ("replay p.xml traces.txt --trace csv", "--trace writes files; give --output DIR"),
        ("replay p.xml traces.txt --collective barrier", "is not NAME=ALGORITHM"),
        ("replay p.xml traces.txt --collective bariere=ring", "'bariere' is not a collective"),
        (
            "replay p.xml traces.txt --collective barrier=mpich_smp",
            "barrier: the algorithm 'mpich_smp' is not available (SimGrid's own replay crashes",
        ),
        ("replay p.xml p.xml", "p.xml"),
        ("trace info p.xml", "p.xml"),
        ("plot p.xml ranks -o x.png", "p.xml: is a file; give a directory"),
        ("plot p.xml links --no-messages -o x.png", "apply only to the picture 'ranks'"),
        ("plot p.xml ranks --from 3 --until 2 -o x.png", "--from 3 is not before --until 2"),
    ],
)
def test_a_mistake_is_one_line(case, capsys, arguments, message):
    assert main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert message in error
    assert not (case / "x.png").exists()


@pytest.mark.parametrize(
    "command",
    [
        "replay p.xml traces.txt",
        "trace compare p.xml traces.txt",
        "trace to-ptask traces.txt --platform p.xml --phases time -o x.json",
    ],
)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--collective alltoall=frob", "'frob' is not available"),
        ("--hosts m0", "unknown host 'm0'"),
        ("--ranks 3", "names 2 traces for 3 ranks"),
    ],
)
def test_a_mistake_is_told_before_anything_is_replayed(
    case, monkeypatch, capsys, command, options, message
):
    def no_replay(*_, **__):
        raise AssertionError("replays")

    monkeypatch.setattr("ptaskmodel.mpi.run.run", no_replay)
    assert main([*command.split(), *options.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.jit
def test_everything_about_a_replay_is_written(case, capsys):
    wanted = "--critical-path --attribution --trace csv --timeline --timeline-as perfetto"
    arguments = f"replay p.xml traces.txt {wanted} --timeline-as paje -o out"
    assert main(arguments.split()) == 0
    assert "critical path: 3 messages over 2 ranks" in capsys.readouterr().out
    summary = json.loads((case / "out" / "summary.json").read_text())
    assert set(summary["files"]) == {path.name for path in (case / "out").iterdir()}
    parts = rows(case / "out" / "critical_path.csv")
    assert sum(float(row["duration_s"]) for row in parts) == pytest.approx(summary["makespan"])
    assert summary["critical_path"]["seconds"]["computing"] == 1.5
    assert float(rows(case / "out" / "critical_links.csv")[0]["bytes"]) == 1e6
    # Who used what: the bytes of all messages, with their envelopes, and all flop.
    used = {}
    for row in rows(case / "out" / "trace.csv"):
        amount = (float(row["end_s"]) - float(row["start_s"])) * float(row["rate"])
        used[row["resource"]] = used.get(row["resource"], 0.0) + amount
    assert used["n0"] == pytest.approx(1e9)
    assert used["n1"] == pytest.approx(5e8)
    limited = rows(case / "out" / "bottlenecks.csv")
    assert {row["task_id"] for row in limited} == {
        "rank 0 #0", "rank 1 #0", "0>1 #0", "1>0 #1", "0>1 #2",
    }  # fmt: skip
    large = [row for row in limited if row["task_id"] == "0>1 #0"]
    assert [row["limited_by"] for row in large] == ["latency", "link"]
    messages = rows(case / "out" / "messages.csv")
    assert (messages[0]["message"], messages[0]["start_s"]) == ("0", large[0]["start_s"])
    assert messages[0]["end_s"] == large[1]["end_s"]
    assert json.loads((case / "out" / "timeline.perfetto.json").read_text())["traceEvents"]
    for kind in ("ranks", "links"):
        assert main(["plot", "out", kind, "-o", f"{kind}.png"]) == 0
    assert main(["report", "out", "-o", "report.html"]) == 0


def test_a_replay_imports_nothing_that_it_does_not_need(case):
    loaded = loaded_by("replay", "p.xml", "traces.txt")
    assert not {"numba", "scipy", "pandas", "networkx", "matplotlib", "rich", "msgspec"} & loaded
    assert (
        not {"numpy.ma", "concurrent.futures", "difflib", "html", "secrets", "subprocess"} & loaded
    )
    ours = ("batch", "recording", "mpi.critical_path", "results.traces", "runs.recording")
    assert not {f"ptaskmodel.{name}" for name in (*ours, "simulation")} & loaded


@pytest.mark.jit
def test_a_deadlock_is_one_line_and_writes_nothing(case, capsys):
    (case / "r1").write_text("1 recv 0 7 1\n")
    assert main(["replay", "p.xml", "traces.txt", "-o", "out"]) == 2
    assert "2 ranks wait forever: rank 0 in 'send 1 0 1000000'; rank 1 in" in (
        capsys.readouterr().err
    )
    assert not (case / "out").exists()
