"""Schedulers that break the protocol: one line each, what happened until then is kept, no hang."""

from __future__ import annotations

import json
import os
import re
import threading

import pytest
from batsim_sessions import SLEEPY, Calls, job, reply, serve

from ptaskmodel.connect import transport
from ptaskmodel.connect.transport import SocketWire, free_endpoint

PROFILES = {
    "d10": {"type": "delay", "delay": 10},
    "two": {"type": "parallel", "cpu": [1, 1]},
    "pfs": {"type": "parallel_homogeneous_pfs", "bytes_to_write": 1, "storage": "big"},
    "stage": {"type": "data_staging", "nb_bytes": 1, "from": "a", "to": "b"},
}
JOBS = [
    job(0, at=1),
    job(1, 2, at=1),
    job(2, 2, "two", at=1),
    job(3, 1, "pfs", at=1),
    job(4, 1, "stage", at=1),
]
# What needs no parallel task is quicker without.
PLAIN_JOBS = JOBS[:2]
PLAIN_PROFILES = {"d10": PROFILES["d10"]}
OK = {"job_id": "w0!0", "alloc": "0"}
IO = {"alloc": "0", "profile_name": "d10"}


def bare(text):
    """A message as it stands."""
    return lambda request: text if isinstance(text, bytes) else text.encode()


def event(kind, data, **more):
    """One event at the date of the request."""

    def answer(request):
        said = {"timestamp": request["now"], "type": kind, "data": data} | more
        return {"now": request["now"], "events": [said]}

    return answer


def events(*said):
    return lambda request: reply(request, *said)


def execute(**more):
    return event("EXECUTE_JOB", OK | more)


def twice(first, second):
    return events(first, second)


RUN = ("EXECUTE_JOB", OK)
NESTED = '{"now":1,"events":' + "[" * 5000 + "]" * 5000 + "}"
KINDS = {
    # no message at all
    "nothing": (bare(""), "not JSON"),
    "a word": (bare("hello"), "not JSON"),
    "half a message": (bare('{"now": 1, "events": ['), "not JSON"),
    "more after it": (bare('{"now": 1, "events": []} x'), "not JSON"),
    "two messages": (bare('{"now":1,"events":[]}{"now":1,"events":[]}'), "not JSON"),
    "a final zero": (bare(b'{"now":1,"events":[]}\0'), "not JSON"),
    "not UTF-8": (bare(b'{"now":1,"events":[],"x":"\xff\xfe"}'), "not JSON"),
    "not UTF-8 in an event": (
        bare(b'{"now":1,"events":[{"timestamp":1,"type":"\xff","data":{}}]}'),
        "not JSON|no type",
    ),
    "UTF-16": (bare('{"now":1,"events":[]}'.encode("utf-16")), "not JSON"),
    "binary": (bare(bytes(range(256))), "not JSON"),
    "nan": (bare('{"now":NaN,"events":[]}'), "not JSON"),
    "infinity": (bare('{"now":Infinity,"events":[]}'), "not JSON"),
    "a huge number": (bare('{"now":1e400,"events":[]}'), "out of range|not JSON"),
    "nested too deep": (bare(NESTED), "deep|expected"),
    "a comment": (bare('{"now":1,/* */"events":[]}'), "not JSON"),
    "single quotes": (bare("{'now':1,'events':[]}"), "not JSON"),
    "a list": (bare("[]"), "expected `object`"),
    "a number": (bare("7"), "expected `object`"),
    "null": (bare("null"), "expected `object`"),
    "no now": (bare('{"events":[]}'), "`now`"),
    "no events": (bare('{"now":1}'), "`events`"),
    "now as text": (bare('{"now":"1","events":[]}'), "/now"),
    "now is null": (bare('{"now":null,"events":[]}'), "/now"),
    "now is true": (bare('{"now":true,"events":[]}'), "/now"),
    "events as an object": (bare('{"now":1,"events":{}}'), "/events"),
    "events are null": (bare('{"now":1,"events":null}'), "/events"),
    "an event is a number": (bare('{"now":1,"events":[7]}'), "event 0"),
    "an event is null": (bare('{"now":1,"events":[null]}'), "event 0"),
    "an event is a list": (bare('{"now":1,"events":[[]]}'), "event 0"),
    "an empty event": (bare('{"now":1,"events":[{}]}'), "event 0.*`type`"),
    # dates
    "an event after a 'now' that is past": (
        lambda r: reply(r, ("NOTIFY", {"type": "x"}, 0.7), now=0.5),
        "0.7 s is after the 'now' of the message, 0.5 s",
    ),
    "an event after now": (events(("NOTIFY", {"type": "x"}, 7.0)), "after the 'now'"),
    "dates that descend": (
        lambda r: reply(r, (*RUN, 3.0), ("NOTIFY", {"type": "x"}, 2.0), now=4.0),
        "event 1 .NOTIFY.: /timestamp: 2.0 s is before 3.0 s",
    ),
    "a timestamp as text": (event("NOTIFY", {"type": "x"}, timestamp="1"), "/timestamp"),
    "no timestamp": (
        bare('{"now":1,"events":[{"type":"NOTIFY","data":{"type":"x"}}]}'),
        "`timestamp`",
    ),
    # kinds of events
    "no type": (bare('{"now":1,"events":[{"timestamp":1,"data":{}}]}'), "`type`"),
    "an unknown type": (event("EXECUTE_JOBS", OK), "'EXECUTE_JOBS' is not an event type"),
    "an event of the simulator": (
        event("JOB_COMPLETED", OK),
        "'JOB_COMPLETED' is not an event type",
    ),
    "an event of version 2": (event("SUBMIT_JOB", OK), "write REGISTER_JOB"),
    "a type as number": (event(7, OK), "event 0"),
    "no data": (bare('{"now":1,"events":[{"timestamp":1,"type":"QUERY"}]}'), "`data`"),
    "data is null": (event("EXECUTE_JOB", None), "/data"),
    "data as text": (event("EXECUTE_JOB", "w0!0"), "/data"),
    # executions
    "no job": (event("EXECUTE_JOB", {"alloc": "0"}), "`job_id`"),
    "no allocation": (event("EXECUTE_JOB", {"job_id": "w0!0"}), "`alloc`"),
    "a job as number": (execute(job_id=0), "EXECUTE_JOB.: /data/job_id: expected `str`"),
    "a field too many": (execute(allocation="0"), "unknown field `allocation`"),
    "an unknown job": (execute(job_id="w0!99"), "no job 'w0!99'"),
    "a job of no workload": (execute(job_id="0"), "no job '0'"),
    "a job to come": (execute(job_id="w0!9"), "no job 'w0!9'"),
    "a double start": (twice(RUN, RUN), "event 1 .EXECUTE_JOB.: /data/job_id.*is RUNNING"),
    "a start of a rejected job": (twice(("REJECT_JOB", {"job_id": "w0!0"}), RUN), "is REJECTED"),
    "an empty allocation": (execute(alloc=""), "/data/alloc: .*empty"),
    "a blank allocation": (execute(alloc="  "), "/data/alloc: .*empty"),
    "an allocation with commas": (execute(alloc="0,1"), "not a set of resources"),
    "words": (execute(alloc="node-0"), "not a set of resources"),
    "a negative resource": (execute(alloc="-1"), "not a set of resources"),
    "a resource too many": (execute(alloc="4"), "'4' is out of range; resources are 0 to 3"),
    "a huge interval": (execute(alloc="0-99999999999999999999"), "resources are 0 to 3"),
    "an interval backwards": (execute(alloc="2-1"), "runs backwards"),
    "digits of another script": (execute(alloc="\u0661"), "not a set of resources"),
    "a list of resources": (execute(alloc=[0]), "/data/alloc: expected `str`"),
    "too few resources": (execute(job_id="w0!1"), "1 resources for a job that requests 2"),
    "too many resources": (execute(alloc="0-2"), "3 resources for a job that requests 1"),
    "a busy resource": (
        twice(RUN, ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0-1"})),
        "event 1 .*resource 0 runs a job .--enable-compute-sharing",
    ),
    "a mapping too short": (execute(mapping={}), "/data/mapping: 0 executors"),
    "a mapping with a gap": (
        event("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0", "mapping": {"0": 0, "2": 0}}),
        "executor 1 is missing",
    ),
    "a mapping beyond": (execute(mapping={"0": 1}), "/data/mapping/0: 1 is not a position"),
    "a mapping to words": (execute(mapping={"0": "x"}), "/data/mapping/0: 'x' is not a position"),
    "a mapping as list": (execute(mapping=[0]), "/data/mapping: expected `object"),
    "an unknown storage": (
        event("EXECUTE_JOB", {"job_id": "w0!3", "alloc": "0", "storage_mapping": {"big": 9}}),
        "there is no storage 9",
    ),
    "a storage not named": (
        event("EXECUTE_JOB", {"job_id": "w0!3", "alloc": "0"}),
        "name the storage",
    ),
    "staging without storages": (
        event("EXECUTE_JOB", {"job_id": "w0!4", "alloc": "0"}),
        "name the storage that 'a'",
    ),
    "a storage for nothing": (execute(storage_mapping={"x": 4}), "uses no storage"),
    "delays beside delays": (execute(additional_io_job=IO), "must be parallel tasks"),
    "an unknown profile beside": (
        execute(additional_io_job=IO | {"profile_name": "x"}),
        "/data/additional_io_job/profile_name: there is no profile 'x'",
    ),
    "a profile beside that is there": (
        execute(additional_io_job=IO | {"profile": {"type": "delay", "delay": 1}}),
        "'d10' already exists",
    ),
    "a storage beside that is not": (
        execute(additional_io_job=IO | {"alloc": "4"}),
        "/data/additional_io_job/alloc: '4'",
    ),
    # other decisions about jobs
    "a rejection of a running job": (
        twice(RUN, ("REJECT_JOB", {"job_id": "w0!0"})),
        "event 1 .REJECT_JOB.*is RUNNING",
    ),
    "a kill of nobody": (event("KILL_JOB", {"job_ids": []}), "/data/job_ids: expected .*length"),
    "a kill of a waiting job": (event("KILL_JOB", {"job_ids": ["w0!0"]}), "is SUBMITTED"),
    "a kill of a stranger": (event("KILL_JOB", {"job_ids": ["x"]}), "/data/job_ids/0: .*no job"),
    "a kill by number": (event("KILL_JOB", {"job_ids": [0]}), "/data/job_ids/0: expected `str`"),
    "metadata with quotes": (
        event("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": '"'}),
        "double quote",
    ),
    "metadata as object": (
        event("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": {}}),
        "/data/metadata: expected `str`",
    ),
    "metadata of a stranger": (
        event("SET_JOB_METADATA", {"job_id": "x", "metadata": ""}),
        "no job 'x'",
    ),
    "a state that is none": (
        event("CHANGE_JOB_STATE", {"job_id": "w0!0", "job_state": "HAPPY"}),
        "/data/job_state: .*cannot become 'HAPPY'",
    ),
    "a state that leads nowhere": (
        event("CHANGE_JOB_STATE", {"job_id": "w0!0", "job_state": "COMPLETED_KILLED"}),
        "cannot become",
    ),
    "the state of a job that runs here": (
        twice(RUN, ("CHANGE_JOB_STATE", {"job_id": "w0!0", "job_state": "COMPLETED_KILLED"})),
        "by EXECUTE_JOB and cannot become",
    ),
    "a message to a stranger": (event("TO_JOB_MSG", {"job_id": "x", "msg": "m"}), "no job 'x'"),
    # calls, hosts, questions
    "a call in the past": (event("CALL_ME_LATER", {"timestamp": 0.5}), "not after the present"),
    "a call now": (event("CALL_ME_LATER", {"timestamp": 1}), "/data/timestamp: 1.0 s is not after"),
    "a call at no date": (event("CALL_ME_LATER", {"timestamp": "soon"}), "/data/timestamp"),
    "a pstate without energy": (
        event("SET_RESOURCE_STATE", {"resources": "0", "state": "1"}),
        "energy is off",
    ),
    "a question without energy": (
        event("QUERY", {"requests": {"consumed_energy": {}}}),
        "energy is off",
    ),
    "no question": (event("QUERY", {"requests": {}}), "`consumed_energy`"),
    "an unknown question": (event("QUERY", {"requests": {"weather": {}}}), "`weather`"),
    # registration
    "a profile without dynamic jobs": (
        event(
            "REGISTER_PROFILE",
            {"workload_name": "w", "profile_name": "p", "profile": {"type": "delay"}},
        ),
        "dynamic jobs are off",
    ),
    "a job without dynamic jobs": (event("REGISTER_JOB", {"job_id": "w!1", "job": {}}), "are off"),
    "a continuation of no registration": (
        event("NOTIFY", {"type": "continue_registration"}),
        "are off",
    ),
    "an unknown notice": (event("NOTIFY", {"type": "queue_state"}), "'queue_state' is unknown"),
    "silence about jobs": (events(), "no event is left and 2 jobs wait, 'w0!0' first"),
}


def check_fault(session, result, pattern):
    """It is one line, and the schedule so far is there."""
    text = str(session.fault)
    assert re.search(pattern, text), text
    assert re.match(r"the scheduler, at [\d.e]+ s: ", text)
    assert "\n" not in text
    assert len(text) <= 1000
    assert result.driven["stopped"] == text


@pytest.mark.parametrize("name", KINDS)
def test_a_mistake_is_told_in_one_line(name, tmp_path):
    answer, pattern = KINDS[name]

    def says(request):
        begins = request["events"][0]["type"] == "SIMULATION_BEGINS"
        return reply(request) if begins else answer(request)

    storage = "storage" in pattern
    jobs, profiles = (JOBS, PROFILES) if storage else (PLAIN_JOBS, PLAIN_PROFILES)
    session, result = serve(tmp_path, Calls(says), jobs, profiles)
    check_fault(session, result, pattern)


DELAY = {"type": "delay", "delay": 1}


def profile(name="p", fields=DELAY, workload="w0"):
    return (
        "REGISTER_PROFILE",
        {"workload_name": workload, "profile_name": name, "profile": fields},
    )


def new(name="w0!9", **fields):
    given = {"id": name, "res": 1, "profile": "d10"} | fields
    return ("REGISTER_JOB", {"job_id": name, "job": given})


REGISTRATIONS = {
    "a profile of no type": ([profile(fields={})], "/data/profile: .*'type'"),
    "a profile of an unknown type": ([profile(fields={"type": "x"})], "type 'x' is unknown"),
    "a negative delay": ([profile(fields={"type": "delay", "delay": -1})], "/data/profile/delay"),
    "a delay of text": ([profile(fields={"type": "delay", "delay": "1"})], "/data/profile/delay"),
    "a profile twice": ([profile(), profile()], "event 1 .*'p' already exists"),
    "a profile that is there": ([profile("d10")], "'d10' already exists"),
    "a sequence of nothing": ([profile(fields={"type": "composed", "seq": []})], "/seq"),
    "a sequence of itself": ([profile(fields={"type": "composed", "seq": ["p"]})], "/seq/0"),
    "a profile in no workload": ([profile(workload="a!b")], "/data/workload_name"),
    "a job of no profile": ([new(profile="x")], "/data/job/profile: there is no profile 'x'"),
    "a job of no workload": ([new("w7!1")], "no workload 'w7'"),
    "a job without an id": ([("REGISTER_JOB", {"job_id": "w0!9", "job": {}})], "/data/job/id"),
    "a job with another id": ([new(id="w0!8")], "'w0!8' is not 'w0!9'"),
    "an id without a workload": ([new("9")], "'9' is not an id; write WORKLOAD!JOB"),
    "a job that is there": ([new("w0!0")], "'w0!0' already exists"),
    "a job twice": ([new(), new()], "'w0!9' already exists"),
    "a job of no size": ([new(res="many")], "/data/job/res: 'many'"),
    "a job of minus one host": ([new(res=-1)], "/data/job/res: -1"),
    "a size of a fraction": ([new(res=1.5)], "/data/job/res: 1.5"),
    "a size beyond all": ([new(res=10**18)], "/data/job/res: 10+ is too large; give less than 2"),
    "a size that does not fit its profile": ([new(profile="two")], "/data/job/res"),
    "a walltime of zero": ([new(walltime=0)], "walltime of 0"),
    "a job after the end": (
        [("NOTIFY", {"type": "registration_finished"}), new()],
        "registration has finished",
    ),
    "no object": ([("REGISTER_JOB", {"job_id": "w0!9"})], "/data/job: is missing"),
    "no end of registration": (
        [("REJECT_JOB", {"job_id": f"w0!{k}"}) for k in range(5)],
        "it has not sent registration_finished",
    ),
}


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_a_registration_that_is_none(name, tmp_path):
    said, pattern = REGISTRATIONS[name]

    def says(request):
        submitted = request["events"][0]["type"] == "JOB_SUBMITTED"
        return reply(request, *(said if submitted else ()))

    session, result = serve(tmp_path, Calls(says), JOBS, PROFILES, dynamic_jobs=True)
    check_fault(session, result, pattern)


SECRET = "root:x:0:0"
TRACE_READERS = ("smpi", "usage_trace", "trace_replay")


@pytest.mark.parametrize("kind", TRACE_READERS)
@pytest.mark.parametrize("name", ["secret", "link", "listing", "pipe", "ABOVE"])
def test_a_scheduler_reads_regular_files_below_the_workload_alone(kind, name, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    for secret in (tmp_path / "secret", place / "listing"):
        secret.write_text("../secret\n" if secret.name == "listing" else SECRET)
    (place / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(place / "pipe")
    path = {"secret": "../secret", "ABOVE": str(tmp_path / "secret")}.get(name, name)
    fields = {"type": kind, "filename": path, "trace_file": path, "trace_type": "SMPI"}

    def says(request):
        submitted = request["events"][0]["type"] == "JOB_SUBMITTED"
        return reply(request, *([profile(fields=fields)] if submitted else ()))

    session, result = serve(place, Calls(says), JOBS, PROFILES, dynamic_jobs=True)
    check_fault(session, result, "regular file|no such file")
    assert SECRET not in str(session.fault)


def test_a_trace_below_the_workload_is_read(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "list").write_text("rank0\n")
    (tmp_path / "below" / "rank0").write_text("0 m_usage 0.5 1e9\n")
    known = profile(fields={"type": "usage_trace", "filename": "below/list"}, workload="dyn")

    def says(request):
        kinds = [each["type"] for each in request["events"]]
        said = [known, new("dyn!1", profile="p")] if "JOB_SUBMITTED" in kinds else []
        return reply(request, *said)

    session, result = serve(tmp_path, Calls(says), PLAIN_JOBS, PLAIN_PROFILES, dynamic_jobs=True)
    check_fault(session, result, "it has not sent registration_finished; 3 jobs wait")


SLEEP = ("SET_RESOURCE_STATE", {"resources": "0", "state": "3"})
STATES = {
    "of no resource": ([("SET_RESOURCE_STATE", {"resources": "", "state": "3"})], "empty"),
    "as a number": ([("SET_RESOURCE_STATE", {"resources": "0", "state": 3})], "/data/state"),
    "of a word": ([("SET_RESOURCE_STATE", {"resources": "0", "state": "off"})], "'off'"),
    "that is not there": ([("SET_RESOURCE_STATE", {"resources": "0", "state": "9"})], "pstate 9"),
    "of passage": ([("SET_RESOURCE_STATE", {"resources": "0", "state": "4"})], "only passes"),
    "under a job": ([RUN, SLEEP], "event 1 .*on which a job runs"),
    "while switching": ([SLEEP, SLEEP], "event 1 .*is switching"),
    "that switches, for a job": ([SLEEP, RUN], "event 1 .*resource 0 is switching"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_pstate(name, tmp_path):
    said, pattern = STATES[name]

    def says(request):
        submitted = request["events"][0]["type"] == "JOB_SUBMITTED"
        return reply(request, *(said if submitted else ()))

    session, result = serve(
        tmp_path, Calls(says), PLAIN_JOBS, PLAIN_PROFILES, energy=True, platform=SLEEPY
    )
    check_fault(session, result, pattern)


def test_decisions_after_the_end(tmp_path):
    def says(request):
        kinds = {each["type"] for each in request["events"]}
        if "JOB_SUBMITTED" in kinds:
            return reply(request, RUN)
        return reply(request, RUN) if "SIMULATION_ENDS" in kinds else reply(request)

    session, result = serve(tmp_path, Calls(says), JOBS[:1], PLAIN_PROFILES)
    check_fault(session, result, "event 0 .EXECUTE_JOB.: the simulation has ended")
    assert result.schedule.final[0].end_s == 11.0


def test_time_that_does_not_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "MAX_EXCHANGES_AT_A_DATE", 50)
    ask = ("QUERY", {"requests": {"consumed_energy": {}}})
    wire = Calls(lambda request: reply(request, ask))
    session, result = serve(
        tmp_path, wire, PLAIN_JOBS, PLAIN_PROFILES, energy=True, platform=SLEEPY
    )
    check_fault(session, result, "50 times at the same simulated time")


# --- over a socket ------------------------------------------------------------------------------


def over_socket(tmp_path, behave, timeout_s=60.0):
    """Serve with a scheduler in a thread that behaves as it likes on its socket."""
    zmq = pytest.importorskip("zmq")
    endpoint = free_endpoint()
    context = zmq.Context()
    listens = threading.Event()

    def scheduler():
        socket = context.socket(zmq.REP)
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(endpoint)
        listens.set()
        try:
            behave(socket)
        except zmq.ZMQError:
            pass
        finally:
            socket.close(0)

    thread = threading.Thread(target=scheduler, daemon=True)
    thread.start()
    listens.wait(60)
    wire = SocketWire(endpoint, timeout_s)
    try:
        return serve(tmp_path, wire, JOBS[:1], PLAIN_PROFILES)
    finally:
        wire.close()
        context.destroy(0)
        thread.join(60)
        assert not thread.is_alive()


def well(socket, times):
    """Answer some requests, starting the job."""
    for _ in range(times):
        request = json.loads(socket.recv())
        kinds = {each["type"] for each in request["events"]}
        socket.send_json(reply(request, *([RUN] if "JOB_SUBMITTED" in kinds else ())))


def silent(socket):
    well(socket, 2)
    socket.recv()
    socket.poll(60_000)


def leaves(socket):
    well(socket, 2)
    socket.recv()


def too_much(socket):
    well(socket, 2)
    socket.recv()
    socket.send(b" " * 100_000_000)
    socket.poll(60_000)


def frames(socket):
    well(socket, 2)
    socket.recv()
    socket.send_multipart([b'{"now":11,"events":[]}', b"more"])


@pytest.mark.parametrize(
    ("behave", "timeout_s", "pattern"),
    [
        (silent, 2.0, "no reply from tcp://127.0.0.1:.* within 2 s"),
        (leaves, 30.0, "closed the connection"),
        (too_much, 30.0, "100,000,000 bytes"),
        (frames, 30.0, "several frames"),
    ],
)
def test_a_scheduler_that_misbehaves_on_its_socket(behave, timeout_s, pattern, tmp_path):
    session, result = over_socket(tmp_path, behave, timeout_s)
    check_fault(session, result, pattern)
    assert result.schedule.final[0].end_s == 11.0


def test_a_good_scheduler_over_a_socket(tmp_path):
    session, result = over_socket(tmp_path, lambda socket: well(socket, 4))
    assert session.fault is None
    assert result.driven["exchanges"] == 4
    assert result.driven["scheduler_wall_time_s"] > 0
