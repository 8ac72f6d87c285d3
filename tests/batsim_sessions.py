"""Sessions of the Batsim protocol for tests: small machines, workloads, schedulers as functions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from ptaskmodel import load_platform
from ptaskmodel.batch.machine.machine import machine_of
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.run import run_batch
from ptaskmodel.connect.events import read_external_events
from ptaskmodel.connect.jobs import Book
from ptaskmodel.connect.options import SessionOptions
from ptaskmodel.connect.scheduler import Session

HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""
PLAIN = '<cluster id="c" prefix="node-" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="0"/>'
# Pstate 3 sleeps: 6 s to switch off, 15 s on; 100 W in all of them.
SLEEPY = (
    '<cluster id="c" prefix="node-" suffix="" radical="0-3" bw="1GBps" lat="0" '
    'speed="1Gf,0.9Gf,0.8Gf,1f,0.16666666666666666f,0.06666666666666667f">'
    '<prop id="wattage_per_state" value="{watts}"/><prop id="sleep_pstates" value="3:4:5"/>'
    "</cluster>"
).format(watts=", ".join(["100:100:100"] * 6))
STORAGE = (
    '<zone id="all" routing="Full">'
    '<cluster id="c" prefix="node-" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="0"/>'
    '<zone id="pfs" routing="Full"><host id="pfs_host" speed="1f">'
    '<prop id="role" value="storage"/></host></zone>'
    '<link id="backbone" bandwidth="1GBps" latency="0"/>'
    '<zoneRoute src="c" dst="pfs" gw_src="node-c_router" gw_dst="pfs_host">'
    '<link_ctn id="backbone"/></zoneRoute></zone>'
)


class Calls:
    """A scheduler as a function of the request; every message is kept."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []

    def exchange(self, request, now):
        message = json.loads(request)
        self.requests.append(message)
        reply = self.answer(message)
        return reply if isinstance(reply, bytes) else json.dumps(reply).encode()

    def close(self):
        pass

    @property
    def told(self):
        """(type, data) of all events, in order."""
        return [
            (event["type"], event["data"]) for each in self.requests for event in each["events"]
        ]


def write_inputs(directory: Path, jobs, profiles, platform=PLAIN):
    (directory / "p.xml").write_text(HEAD + platform + "\n</platform>\n")
    document = {"nb_res": 4, "jobs": jobs, "profiles": profiles}
    (directory / "w0.json").write_text(json.dumps(document))
    return directory / "p.xml", directory / "w0.json"


def serve(directory, wire, jobs, profiles, *, platform=PLAIN, events=(), batch=None, **options):
    """(session, result) of a run; ``events``: lines of external events."""
    paths = write_inputs(directory, jobs, profiles, platform)
    chosen = SessionOptions(**options)
    facts = load_platform(paths[0])
    machine = machine_of(facts)
    book = Book([paths[1]])
    (directory / "events.txt").write_text("".join(json.dumps(each) + "\n" for each in events))
    external = read_external_events(
        directory / "events.txt", machine.num_hosts, chosen.forward_unknown_events
    )
    session = Session(wire, book, machine, chosen, external)
    batch = replace(batch or BatchOptions(), estimates="walltime", energy=chosen.energy)
    result = run_batch(facts, book.workload, batch, driver=session)
    return session, result


def job(name, res=1, profile="d10", at=0, walltime=None, **more):
    limit = {} if walltime is None else {"walltime": walltime}
    return {"id": str(name), "subtime": at, "res": res, "profile": profile, **limit, **more}


def reply(request, *events, now=None):
    """The answer to a request; events as (type, data) or (type, data, date)."""
    date = request["now"]
    said = [
        {"timestamp": each[2] if len(each) > 2 else date, "type": each[0], "data": each[1]}
        for each in events
    ]
    return {"now": date if now is None else now, "events": said}
