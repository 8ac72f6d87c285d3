"""Jobs and profiles by way of a real Redis server, where one is installed."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time

import pytest
from batsim_sessions import Calls, job, reply, serve

from ptaskmodel.errors import SimulationError

redis = pytest.importorskip("redis")


@pytest.fixture
def server(tmp_path):
    """The port of a server of our own."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        for _ in range(2000):
            try:
                with redis.Redis(port=port) as client:
                    client.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        yield port
    finally:
        process.kill()
        process.wait()


def test_jobs_and_profiles_are_found_there_and_put_there(server, tmp_path):
    store = redis.Redis(port=server)
    found = {}

    def says(request):
        said = []
        for event in request["events"]:
            data = event["data"]
            if event["type"] == "SIMULATION_BEGINS":
                assert data["config"]["redis-enabled"]
                assert data["config"]["redis-port"] == server
                store.set("mine:profile_w0!d2", json.dumps({"type": "delay", "delay": 2}))
                new = {"id": "w0!9", "subtime": 0, "res": 1, "profile": "d2"}
                store.set("mine:job_w0!9", json.dumps(new))
            elif event["type"] == "JOB_SUBMITTED":
                name = data["job_id"]
                assert list(data) == ["job_id"]
                found[name] = json.loads(store.get(f"mine:job_{name}"))
                profile = found[name]["profile"]
                found[profile] = json.loads(store.get(f"mine:profile_w0!{profile}"))
                said += [
                    ("EXECUTE_JOB", {"job_id": name, "alloc": "0"}),
                    ("REGISTER_PROFILE", {"workload_name": "w0", "profile_name": "d2"}),
                    ("REGISTER_JOB", {"job_id": "w0!9"}),
                    ("EXECUTE_JOB", {"job_id": "w0!9", "alloc": "1"}),
                    ("NOTIFY", {"type": "registration_finished"}),
                ]
        return reply(request, *said)

    profile = {"type": "delay", "delay": 10}
    session, result = serve(
        tmp_path,
        Calls(says),
        [job(0)],
        {"d10": profile},
        redis=f"127.0.0.1:{server}",
        redis_prefix="mine",
        dynamic_jobs=True,
    )
    store.close()
    assert session.fault is None
    assert found == {"w0!0": job(0) | {"id": "w0!0"}, "d10": profile}
    assert [attempt.end_s for attempt in result.schedule.final] == [10.0, 2.0]


def test_no_server(tmp_path):
    with pytest.raises(SimulationError, match=r"Redis at 127.0.0.1:1: .*refused"):
        serve(tmp_path, Calls(reply), [], {}, redis="127.0.0.1:1")
