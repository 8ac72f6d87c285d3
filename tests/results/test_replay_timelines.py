"""Timelines of replays for other programs: events that balance, as these programs want them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter

import pandas
import pytest

from ptaskmodel.platform import Platform
from ptaskmodel.replay import read_trace
from ptaskmodel.results.replay.runs import ReplayFiles, replay_into

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


def test_of_many_messages_each_nth_is_drawn_and_told(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from ptaskmodel.results.replay import plots

    for name, most in (("MOST_LINES", 4), ("PLAIN_LINES", 3), ("MOST_BARS", 1)):
        monkeypatch.setattr(plots, name, most)
    (tmp_path / "t.txt").write_text("0 send 1 0 1e6\n1 recv 0 0 1e6\n" * 9)
    build = Platform.build("p")
    build.cluster("c", 2, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6)
    wanted = ReplayFiles(timeline=True, critical_path=True)
    trace = read_trace(tmp_path / "t.txt")
    replay_into(tmp_path / "out", build.finish(), trace, ["n0", "n1"], wanted=wanted)
    legend = plots.ranks(tmp_path / "out").axes[0].get_legend()
    told = [text.get_text() for text in legend.get_texts()]
    assert told[-2:] == ["message (3 of 9)", "critical path (9 messages)"]
