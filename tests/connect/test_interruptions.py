"""Signals to ``serve``: no scheduler outlives it, and what happened until then is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from batsim_sessions import job, write_inputs

pytest.importorskip("zmq")
ROOT = Path(__file__).resolve().parents[2]
# It starts the first job, says who it and a process below it are, and does not answer once more.
SCHEDULER = """
import json, os, subprocess, sys, time, zmq
socket = zmq.Context().socket(zmq.REP)
socket.bind(sys.argv[1])
below = subprocess.Popen(["sleep", "600"])
while True:
    request = json.loads(socket.recv())
    date, events = request["now"], []
    kinds = [event["type"] for event in request["events"]]
    if "JOB_SUBMITTED" in kinds:
        data = {"job_id": "w0!0", "alloc": "0"}
        events = [{"timestamp": date, "type": "EXECUTE_JOB", "data": data}]
    if "JOB_COMPLETED" in kinds:
        with open("pids.part", "w") as file:
            file.write(f"{os.getpid()} {below.pid}")
        os.rename("pids.part", "pids")
        time.sleep(600)
    socket.send_json({"now": date, "events": events})
"""


def is_there(pid):
    """Whether a process runs still; one that only waits to be buried does not."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return told.stdout.strip()[:1] not in ("", "Z")


def wait_until(holds, seconds=60.0):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def interrupted(place, number):
    """The process of a `serve` that got a signal while it waited, and the pids of its scheduler."""
    inputs = write_inputs(place, [job(0), job(1, at=20)], {"d10": {"type": "delay", "delay": 10}})
    (place / "scheduler.py").write_text(SCHEDULER)
    command = f"{sys.executable} scheduler.py {{socket}}"
    program = [sys.executable, "-m", "ptaskmodel", "serve"]
    process = subprocess.Popen(
        [*program, *map(str, inputs), "--scheduler", command, "-o", "out"],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until((place / "pids").exists)
        pids = [int(word) for word in (place / "pids").read_text().split()]
        assert all(map(is_there, pids))
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, told, pids


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_scheduler_and_keeps_what_happened(name, tmp_path):
    number = signal.Signals[name]
    code, told, pids = interrupted(tmp_path, number)
    assert (code, told) == (128 + number, "ptaskmodel: interrupted\n")
    assert not any(map(is_there, pids))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["stopped"] == f"interrupted by {name} at 10.0 s"
    assert ",COMPLETED_SUCCESSFULLY,0.0,10.0," in (tmp_path / "out" / "jobs.csv").read_text()


def test_a_kill_leaves_no_scheduler_either(tmp_path):
    _, _, pids = interrupted(tmp_path, signal.SIGKILL)
    wait_until(lambda: not any(map(is_there, pids)))
    assert not (tmp_path / "out").exists()
