"""What a scheduler over a socket costs: empty exchanges, and 1,024 FT jobs under an external FCFS.

    python benchmarks/batsim_protocol.py exchanges|jobs [N]

Seconds are those of the processors, of both processes together: what one core needs. Beside the
exchanges stand bare ones of the same bytes over the same kind of socket, in turn in one run.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
REPETITIONS = 5


def empty_client(endpoint: str, calls: int) -> None:
    """Asks for many calls at once, and answers each with nothing."""
    import zmq

    socket = zmq.Context().socket(zmq.REP)
    socket.bind(endpoint)
    while True:
        message = socket.recv()
        if b"SIMULATION_BEGINS" in message:
            call = b'{"timestamp":0.0,"type":"CALL_ME_LATER","data":{"timestamp":%d}}'
            events = b",".join(call % (k + 1) for k in range(calls))
            socket.send(b'{"now":0.0,"events":[' + events + b"]}")
            continue
        now = message[7 : message.index(b",")]
        socket.send(b'{"now":' + now + b',"events":[]}')
        if b"SIMULATION_ENDS" in message:
            return


def fcfs_client(endpoint: str, hosts: int) -> None:
    """First come, first served, on the lowest free hosts."""
    import zmq

    socket = zmq.Context().socket(zmq.REP)
    socket.bind(endpoint)
    free, queue, held = list(range(hosts)), [], {}
    while True:
        message = json.loads(socket.recv())
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                queue.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                free = sorted(free + held.pop(data["job_id"]))
        said = []
        while queue and queue[0][1] <= len(free):
            name, size = queue.pop(0)
            held[name], free = free[:size], free[size:]
            data = {"job_id": name, "alloc": " ".join(map(str, held[name]))}
            said.append({"timestamp": message["now"], "type": "EXECUTE_JOB", "data": data})
        socket.send_json({"now": message["now"], "events": said})
        if message["events"] and message["events"][0]["type"] == "SIMULATION_ENDS":
            return


def processor_s() -> float:
    """Seconds of processors of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def beside(client, arguments, work) -> tuple[float, float, object]:
    """(processor s, wall s, what ``work(endpoint)`` gives) with a client in a process."""
    from ptaskmodel.connect.transport import free_endpoint

    endpoint = free_endpoint()
    process = multiprocessing.get_context("fork").Process(
        target=client, args=(endpoint, *arguments)
    )
    began, used = time.perf_counter(), processor_s()
    process.start()
    found = work(endpoint)
    process.join()
    return processor_s() - used, time.perf_counter() - began, found


def served(endpoint: str, jobs: list, profiles: dict, platform: str) -> object:
    from batsim_sessions import serve

    from ptaskmodel.batch.options import BatchOptions
    from ptaskmodel.connect.transport import SocketWire

    with tempfile.TemporaryDirectory() as place:
        wire = SocketWire(endpoint)
        session, result = serve(
            Path(place),
            wire,
            jobs,
            profiles,
            platform=platform,
            batch=BatchOptions(contention=False),
        )
    assert session.fault is None, session.fault
    return result


def bare(endpoint: str, calls: int) -> None:
    """The same bytes without a simulation."""
    from ptaskmodel.connect.transport import SocketWire

    wire = SocketWire(endpoint)
    event = b'[{"timestamp":%d.0,"type":"REQUESTED_CALL","data":{}}]'
    wire.exchange(b'{"now":0.0,"events":[{"type":"SIMULATION_BEGINS"}]}', 0.0)
    for k in range(calls):
        wire.exchange(b'{"now":%d.0,"events":' % k + event % k + b"}", 0.0)
    wire.exchange(b'{"now":0.0,"events":[{"type":"SIMULATION_ENDS"}]}', 0.0)
    wire.close()


def exchanges(calls: int) -> None:
    from batsim_sessions import PLAIN

    rows: dict[str, list[float]] = {"bare": [], "served": []}
    for _ in range(REPETITIONS):
        cpu, _, _ = beside(empty_client, (calls,), lambda place: bare(place, calls))
        rows["bare"].append(1e6 * cpu / calls)
        cpu, _, _ = beside(empty_client, (calls,), lambda place: served(place, [], {}, PLAIN))
        rows["served"].append(1e6 * cpu / calls)
    for name, times in rows.items():
        best = min(times)
        print(f"{name:<8}{best:8.1f} us of one core an exchange: {1e6 / best:,.0f} a second")


def ft_jobs(count: int) -> tuple[list, dict]:
    """NAS FT jobs of class C on 8, 16 and 32 hosts, one every 2 s."""
    values, iterations = 512**3, 20
    profiles = {
        f"ft.{nodes}": {
            "type": "parallel_homogeneous",
            "cpu": iterations * 5 * values * math.log2(values) / nodes,
            "com": iterations * 16 * values / nodes**2,
        }
        for nodes in (8, 16, 32)
    }
    sizes = [(8, 16, 32)[k * 7 % 3] for k in range(count)]
    jobs = [
        {"id": str(k), "subtime": 2.0 * k, "res": size, "profile": f"ft.{size}"}
        for k, size in enumerate(sizes)
    ]
    return jobs, profiles


def ft(count: int) -> None:
    from ptaskmodel.platform import load_platform

    text = (ROOT / "platforms" / "graphene.xml").read_text()
    body = text[text.index("<platform") :]
    body = body[body.index(">") + 1 : body.rindex("</platform>")]
    jobs, profiles = ft_jobs(count)
    hosts = len(load_platform(ROOT / "platforms" / "graphene.xml").hosts)
    times = []
    for _ in range(REPETITIONS):
        cpu, wall, result = beside(
            fcfs_client, (hosts,), lambda place: served(place, jobs, profiles, body)
        )
        times.append(cpu)
        print(
            f"{cpu:.2f} s of one core, {wall:.2f} s in all, {result.driven['exchanges']} exchanges"
        )
    print(f"{count} FT jobs: {min(times):.2f} s of one core")


if __name__ == "__main__":
    which, *number = sys.argv[1:] or ["exchanges"]
    {"exchanges": exchanges, "jobs": ft}[which](
        int(number[0]) if number else {"exchanges": 20_000, "jobs": 1024}[which]
    )
