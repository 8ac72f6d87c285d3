"""`ptaskmodel slurm-live`: what it writes, and that nothing outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_slurm import needs_slurm, written

from ptaskmodel.cli import main

pytestmark = needs_slurm

JOBS = "id,submit,nodes,cores,limit,run\na,0,2,,600,50\nb,0,4,,600,90\nc,7,1,,600,40\n"
# So many that the run lasts long enough to be ended.
MANY = "id,submit,nodes,cores,limit,run\n" + "".join(
    f"j{k},{9 * k},4,,600,90\n" for k in range(400)
)


def test_what_is_written_can_be_read_and_compared(tmp_path, capsys):
    conf, jobs = written(tmp_path, JOBS)
    out, again = tmp_path / "out", tmp_path / "simulated"
    assert main(["slurm-live", str(conf), str(jobs), "-o", str(out), "--compare"]) == 0
    printed = capsys.readouterr().out
    assert "3 within 5 s" in printed
    assert "3 on the same nodes" in printed
    summary = json.loads((out / "summary.json").read_text())
    assert summary["jobs"] == {"submitted": 3, "COMPLETED": 3}
    assert summary["comparison"]["same_nodes"] == 3
    assert (out / "comparison.png").stat().st_size > 10_000
    assert not (tmp_path / "out.over.csv").exists()
    meta = ["--meta", str(out / "meta.json"), "--cycles", str(out / "events.csv")]
    assert main(["slurm", str(conf), str(jobs), *meta, "-o", str(again)]) == 0
    assert main(["compare", str(out), str(again)]) == 0
    assert "3 wait the same" in capsys.readouterr().out


def below(pid: int) -> list[int]:
    """The children of a process."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def begun(tmp_path: Path) -> tuple[subprocess.Popen, list[int]]:
    """A run in which jobs have ended, and all its processes."""
    conf, jobs = written(tmp_path, MANY)
    command = [sys.executable, "-m", "ptaskmodel", "slurm-live", str(conf), str(jobs), "-o", "out"]
    run = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    journal = tmp_path / "out.over.csv"
    until = time.monotonic() + 300
    while not journal.exists() or len(journal.read_text().splitlines()) < 3:
        assert run.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    front = [run.pid]
    every = []
    while front:
        every += front
        front = [child for pid in front for child in below(pid)]
    return run, every


def daemon(pids: list[int], name: str) -> int:
    """The process of a program of a run."""
    for pid in pids:
        words = [b""]
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if any(word.endswith(name.encode()) for word in words[:4]):
            return pid
    raise AssertionError(name)


def living(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        found += [] if state == "Z" else [pid]
    return found


@pytest.mark.parametrize("killed", ["ptaskmodel", "slurmctld", "slurmd"])
def test_whoever_is_killed_one_line_is_said_and_finished_jobs_are_kept(tmp_path, killed):
    run, every = begun(tmp_path)
    os.kill(run.pid if killed == "ptaskmodel" else daemon(every[1:], killed), signal.SIGKILL)
    _, said = run.communicate(timeout=300)
    until = time.monotonic() + 120
    while living(every) and time.monotonic() < until:
        time.sleep(0.02)
    assert living(every) == []
    assert said.startswith("ptaskmodel: ")
    assert said.count("\n") == 1
    if killed == "ptaskmodel":
        assert "out.over.csv" in said
        kept = (tmp_path / "out.over.csv").read_text()
    else:
        assert run.returncode == 2
        assert f"{killed}" in said
        assert "was killed (SIGKILL)" in said
        kept = (tmp_path / "out" / "jobs.csv").read_text()
    assert kept.count("COMPLETED") >= 2
