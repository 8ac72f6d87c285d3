"""Timelines of replays for other programs: events that balance, as these programs want them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter

import pandas
import pytest

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.mpi import read_trace, trace_of_actions
from ptaskmodel.platform import Platform
from ptaskmodel.runs.options import ReplayFiles
from ptaskmodel.runs.replay import replay_into

TEXT = (
    "0 compute 1e9\n0 isend 1 0 1e6\n0 waitall\n0 barrier\n"
    "1 recv 0 0 1e6\n1 compute 5e8\n1 barrier\n2 barrier\n"
)


@pytest.fixture
def written(tmp_path):
    (tmp_path / "t.txt").write_text(TEXT)
    build = Platform.build("p")
    build.cluster("c", 3, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    wanted = ReplayFiles(timelines=("perfetto", "paje"))
    trace = read_trace(tmp_path / "t.txt")
    run = replay_into(tmp_path / "out", build.finish(), trace, ["n0", "n1", "n2"], wanted=wanted)
    assert run.frame().equals(pandas.read_csv(tmp_path / "out" / "ranks.csv"))
    return tmp_path / "out", run.result


def test_perfetto_has_a_track_for_each_rank_and_an_arrow_for_each_message(written):
    directory, result = written
    events = json.loads((directory / "timeline.perfetto.json").read_text())["traceEvents"]
    kinds = Counter(event["ph"] for event in events)
    assert kinds == {"M": 5, "X": 7, **dict.fromkeys("besf", result.messages)}
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert min(event["ts"], event.get("dur", 0)) >= 0
    for rank in range(3):
        own = [e for e in events if e["ph"] == "X" and e["tid"] == rank + 1]
        assert [e["ts"] for e in own] == sorted(e["ts"] for e in own)
        end = own[-1]["ts"] + own[-1]["dur"]
        assert end == pytest.approx(result.end_s[rank] * 1e6)
    starts = {event["id"]: event["ts"] for event in events if event["ph"] == "s"}
    ends = {event["id"]: event["ts"] for event in events if event["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert all(starts[number] < ends[number] for number in starts)


@pytest.mark.skipif(shutil.which("pj_dump") is None, reason="pj_dump (pajeng) is not installed")
def test_paje_is_accepted_by_pj_dump(written):
    directory, result = written
    done = subprocess.run(
        ["pj_dump", str(directory / "timeline.paje")], capture_output=True, text=True, check=True
    )
    lines = [line.split(", ") for line in done.stdout.splitlines()]
    assert sum(line[0] == "Link" for line in lines) == result.messages
    busy = [line for line in lines if line[0] == "State" and line[-1] != "nothing"]
    for rank in range(3):
        own = [line for line in busy if line[1] == f"rank {rank} on n{rank}"]
        spent = sum(float(line[5]) for line in own)
        assert spent == pytest.approx(result.spent_s[rank].sum(), rel=1e-4)  # it rounds


def test_of_many_messages_none_is_drawn_but_in_a_shorter_time(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from ptaskmodel.results.loading import load_results
    from ptaskmodel.results.pictures import mpi

    for name, most in (("MOST_LINES", 4), ("PLAIN_LINES", 3), ("MOST_BARS", 1)):
        monkeypatch.setattr(mpi, name, most)
    (tmp_path / "t.txt").write_text("0 send 1 0 1e6\n1 recv 0 0 1e6\n" * 9)
    build = Platform.build("p")
    build.cluster("c", 2, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    wanted = ReplayFiles(timeline=True, critical_path=True)
    trace = read_trace(tmp_path / "t.txt")
    replay_into(tmp_path / "out", build.finish(), trace, ["n0", "n1"], wanted=wanted)

    def told(*window, **options):
        axes = mpi.ranks(load_results(tmp_path / "out"), *window, **options).axes[0]
        return axes.get_xlim(), [text.get_text() for text in axes.get_legend().get_texts()]

    (begin, _), said = told()
    many = "9 messages, not drawn: choose a shorter time"
    assert (begin, said[-2:]) == (0.0, [many, "critical path (9 messages)"])
    window, said = told(0.010, 0.030)
    assert window == (0.010, 0.030)
    assert said[-2:] == ["message (3)", "critical path (9 messages)"]
    assert not any("message (" in text for text in told(0.010, 0.030, messages=False)[1])
    with pytest.raises(
        PTaskModelError, match=r"no action took time there: the run is from 0 to 0\.0"
    ):
        told(7.0, 8.0)


def test_a_replay_says_how_unevenly_its_ranks_compute(tmp_path):
    trace = trace_of_actions([[("compute", 1e9)], [("compute", 3e9)], [("compute", 2e9)], []])
    build = Platform.build("p")
    build.cluster("c", 4, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    summary = replay_into(None, build.finish(), trace, ["n0", "n1", "n2", "n3"]).summary
    assert (summary["imbalance"], summary["worst_rank"]) == (2.0, 1)
