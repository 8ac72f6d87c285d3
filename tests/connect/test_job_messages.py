"""Jobs that send and receive messages: what they do when, and what cannot be."""

from __future__ import annotations

import pytest
from batsim_sessions import Calls, job, reply, serve

from ptaskmodel.connect import jobs as book
from ptaskmodel.errors import WorkloadError

PROFILES = {
    "say": {"type": "send", "msg": {"hello": [1]}, "sleeptime": 2},
    "d10": {"type": "delay", "delay": 10},
    "d4": {"type": "delay", "delay": 4},
    "bad": {"type": "delay", "delay": 1, "ret": 3},
    "hear": {"type": "recv", "regex": "a+", "success": "d10", "failure": "bad", "polltime": 3},
    "look": {"type": "recv", "success": "d10", "timeout": "d4"},
    "all": {"type": "composed", "seq": ["d4", "say", "hear", "say"], "repeat": 2},
    "task": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
}
SUCCESS, WALLTIME = "COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED"


class Talker(Calls):
    """Starts every job on its host when it is submitted; then says (date, type, data) at dates."""

    def __init__(self, *said, **answers):
        super().__init__(self._reply)
        self.said = said
        self.answers = answers

    def _reply(self, request):
        events = []
        for event in request["events"]:
            if event["type"] == "SIMULATION_BEGINS":
                events += [("CALL_ME_LATER", {"timestamp": date}) for date, *_ in self.said]
            elif event["type"] == "JOB_SUBMITTED":
                name = event["data"]["job_id"]
                events.append(("EXECUTE_JOB", {"job_id": name, "alloc": "0"}))
            elif event["type"] == "REQUESTED_CALL":
                events += [what for date, *what in self.said if date == request["now"]]
            elif event["type"] == "FROM_JOB_MSG" and "msg" in self.answers:
                data = {"job_id": event["data"]["job_id"], "msg": self.answers["msg"]}
                events.append(("TO_JOB_MSG", data))
        return reply(request, *events)


def message(date, text):
    return (date, "TO_JOB_MSG", {"job_id": "w0!0", "msg": text})


def run(tmp_path, profile, *said, walltime=None, more=(), **answers):
    """(scheduler, start, end and state of job 0) of a session that ends well."""
    wire = Talker(*said, **answers)
    jobs = [job(0, profile=profile, at=1, walltime=walltime), *more]
    session, result = serve(tmp_path, wire, jobs, PROFILES)
    assert session.fault is None, session.fault
    ran = {a.job.id: a for a in result.schedule.final}["0"]
    return wire, (ran.start_s, ran.end_s, ran.state)


def told(wire, kind):
    return [
        (event["timestamp"], event["data"])
        for request in wire.requests
        for event in request["events"]
        if event["type"] == kind
    ]


def test_a_message_is_sent_at_the_start_and_the_job_then_sleeps(tmp_path):
    wire, ran = run(tmp_path, "say")
    assert ran == (1.0, 3.0, SUCCESS)
    assert told(wire, "FROM_JOB_MSG") == [(1.0, {"job_id": "w0!0", "msg": {"hello": [1]}})]


@pytest.mark.parametrize(
    ("text", "end", "code"),
    # Looks at 1, 4, 7 ...: a message of 5 s is seen at 7 s.
    [("aaa", 17.0, 0), ("ab", 8.0, 3), ("", 8.0, 3)],
)
def test_what_a_message_says_decides_how_the_job_goes_on(tmp_path, text, end, code):
    wire, ran = run(tmp_path, "hear", message(5.0, text))
    assert ran == (1.0, end, "COMPLETED_FAILED" if code else SUCCESS)
    assert [data["return_code"] for _, data in told(wire, "JOB_COMPLETED")] == [code]


@pytest.mark.parametrize(
    ("said", "end"),
    # Before the start a message waits for the job; without one it goes its way at once.
    [([message(1.0, "x")], 11.0), ([message(3.0, "x")], 5.0), ([], 5.0)],
)
def test_a_job_that_does_not_wait_takes_what_is_there(tmp_path, said, end):
    wire = Talker(*said)
    jobs = [job(0, profile="look", at=1)]

    def answer(request):
        told = wire._reply(request)
        told["events"].sort(key=lambda event: event["type"] != "TO_JOB_MSG")
        return told

    wire.answer = answer
    session, result = serve(tmp_path, wire, jobs, PROFILES)
    assert session.fault is None, session.fault
    assert result.schedule.final[0].end_s == end


def test_sequences_converse_at_each_of_their_steps(tmp_path):
    wire, ran = run(tmp_path, "all", msg="a")
    # A round: 4 s, sent; 2 s, and the message of then is taken at once; 10 s; sent; 2 s. The
    # answer to the second message is taken in the next round.
    assert ran == (1.0, 37.0, SUCCESS)
    assert [date for date, _ in told(wire, "FROM_JOB_MSG")] == [5.0, 17.0, 23.0, 35.0]


def test_a_walltime_ends_a_job_that_waits(tmp_path):
    _wire, ran = run(tmp_path, "hear", walltime=7)
    assert ran == (1.0, 8.0, WALLTIME)


def test_a_job_that_is_killed_says_how_far_it_is_and_nothing_more(tmp_path):
    kill = (6.0, "KILL_JOB", {"job_ids": ["w0!0"]})
    wire, ran = run(tmp_path, "all", kill)
    assert ran == (1.0, 6.0, "COMPLETED_KILLED")
    ((_, data),) = told(wire, "JOB_KILLED")
    inner = {"profile_name": "say", "progress": 0.5}
    far = {"profile_name": "all", "current_task_index": 1, "current_task": inner}
    assert data["job_progress"] == {"w0!0": far}


def test_jobs_that_talk_run_beside_parallel_tasks(tmp_path):
    more = [job(1, profile="task", at=20)]
    _wire, ran = run(tmp_path, "hear", message(5.0, "a"), more=more)
    assert ran == (1.0, 17.0, SUCCESS)


def test_alone_a_job_that_waits_would_have_taken_as_long(tmp_path):
    jobs = [job(0, profile="hear", walltime=7), job(1, profile="task", at=20)]
    _, result = serve(tmp_path, Talker(), jobs, PROFILES)
    assert list(result.alone_s) == [7.0, 1.0]


def test_a_message_that_never_comes_is_one_line(tmp_path):
    session, _ = serve(tmp_path, Talker(), [job(0, profile="hear", at=1)], PROFILES)
    assert str(session.fault).endswith(
        "job 'w0!0', which runs, waits for a message; send it by TO_JOB_MSG, or kill it"
    )


WRONG = {
    "text": (
        {"type": "send", "msg": "x"},
        "/msg: is missing or not an object; give the object to send",
    ),
    "sleep": ({"type": "send", "msg": {}, "sleeptime": -1}, "/sleeptime"),
    "regex": ({"type": "recv", "regex": "("}, "/regex: it is not a regular expression"),
    "long": ({"type": "recv", "regex": "a" * 1001}, "more than 1000 characters"),
    "name": ({"type": "recv", "success": 3}, "/success: 3 is not a string"),
    "poll": ({"type": "recv", "polltime": 0}, "/polltime: is 0; give a time above 0 s"),
    "nobody": ({"type": "recv", "failure": "x"}, "there is no profile 'x'; define it"),
    "task": ({"type": "recv", "failure": "task"}, "'task' is not a delay"),
    "mixed": ({"type": "composed", "seq": ["say", "task"]}, "'task' is not a delay"),
    "circle": ({"type": "recv", "failure": "p"}, "leads back to itself"),
    "many": ({"type": "composed", "seq": ["look"], "repeat": 10**6}, "more than 1000000 steps"),
}


@pytest.mark.parametrize("case", WRONG)
def test_profiles_that_cannot_be_are_refused(tmp_path, case):
    fields, problem = WRONG[case]
    with pytest.raises(WorkloadError) as caught:
        serve(tmp_path, Talker(), [job(0)], {**PROFILES, "p": fields})
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_message_that_would_be_matched_for_ever_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(book, "MATCH_S", 0.05)
    profiles = PROFILES | {"hear": PROFILES["hear"] | {"regex": "(a+)+b"}}
    wire = Talker(message(5.0, "a" * 40))
    session, _ = serve(tmp_path, wire, [job(0, profile="hear")], profiles)
    told = "job 'w0!0': regular expression '(a+)+b' takes more than 0.05 s to match a message of 40"
    assert told in str(session.fault)
