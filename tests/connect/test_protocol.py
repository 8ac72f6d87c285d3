"""What schedulers say is done, at its date, and what happens is told, in order."""

from __future__ import annotations

import json

import pytest
from batsim_sessions import SLEEPY, STORAGE, Calls, job, reply, serve

DELAYS = {
    "d10": {"type": "delay", "delay": 10},
    "d4": {"type": "delay", "delay": 4},
    "fail": {"type": "delay", "delay": 2, "ret": 3},
}


class Script(Calls):
    """Answers the requests one by one; an answer is a list of events, or a reply as it stands."""

    def __init__(self, *answers):
        super().__init__(self._next)
        self.answers = list(answers)

    def _next(self, request):
        answer = self.answers.pop(0) if self.answers else []
        return answer(request) if callable(answer) else reply(request, *answer)


def execute(name, alloc, date=None, **more):
    event = ("EXECUTE_JOB", {"job_id": f"w0!{name}", "alloc": alloc, **more})
    return event if date is None else (*event, date)


def run(tmp_path, jobs, *answers, profiles=DELAYS, **options):
    wire = Script(*answers)
    session, result = serve(tmp_path, wire, jobs, profiles, **options)
    assert session.fault is None, session.fault
    return wire, result


def dates(result):
    return {a.job.id: (a.start_s, a.end_s, a.state) for a in result.schedule.final}


def kinds(wire, number):
    return [event["type"] for event in wire.requests[number]["events"]]


def test_decisions_take_effect_at_their_dates_and_the_simulation_runs_on(tmp_path):
    jobs = [job(0, profile="d4"), job(1), job(2, at=1)]
    wire, result = run(
        tmp_path,
        jobs,
        [],
        lambda r: reply(r, execute(0, "0"), execute(1, "1", 3.0), now=5.5),
        lambda r: reply(r, execute(2, "2", 6.0), now=6.0),
    )
    ran = "COMPLETED_SUCCESSFULLY"
    assert dates(result) == {"0": (0.0, 4.0, ran), "1": (3.0, 13.0, ran), "2": (6.0, 16.0, ran)}
    third = wire.requests[2]
    assert third["now"] == 5.5
    assert [event["timestamp"] for event in third["events"]] == [1.0, 1.0, 4.0]
    assert kinds(wire, 2) == ["JOB_SUBMITTED", "NOTIFY", "JOB_COMPLETED"]


def test_all_of_a_date_comes_in_one_request_and_in_order(tmp_path):
    jobs = [job(1, profile="d4"), job(0, profile="d4"), job(2, at=4)]
    wire, _ = run(
        tmp_path,
        jobs,
        [("CALL_ME_LATER", {"timestamp": 4.0})],
        [execute(1, "0"), execute(0, "1")],
        [execute(2, "0")],
    )
    assert kinds(wire, 2) == [
        "JOB_COMPLETED",
        "JOB_COMPLETED",
        "JOB_SUBMITTED",
        "NOTIFY",
        "REQUESTED_CALL",
    ]
    ended = [event["data"]["job_id"] for event in wire.requests[2]["events"][:2]]
    assert ended == ["w0!1", "w0!0"]  # by start


def test_jobs_of_a_date_come_by_their_ids_as_texts(tmp_path):
    jobs = [job(2), job(10)]
    wire, _ = run(tmp_path, jobs, [], [execute(2, "0"), execute(10, "1")])
    ids = [event["data"].get("job_id") for event in wire.requests[1]["events"]]
    assert ids == ["w0!10", "w0!2", None]


def test_a_rounded_date_is_now(tmp_path):
    jobs = [job(0, at=1 / 3)]

    def rounded(request):
        return {
            "now": 0.333333,
            "events": [
                {
                    "timestamp": 0.333333,
                    "type": "EXECUTE_JOB",
                    "data": {"job_id": "w0!0", "alloc": "0"},
                }
            ],
        }

    _, result = run(tmp_path, jobs, [], rounded)
    assert dates(result)["0"][0] == 1 / 3


def test_a_failing_job_and_one_that_reaches_its_walltime(tmp_path):
    jobs = [job(0, profile="fail"), job(1, walltime=10)]
    wire, _ = run(tmp_path, jobs, [], [execute(0, "0"), execute(1, "1")])
    ends = [data for kind, data in wire.told if kind == "JOB_COMPLETED"]
    assert [(end["job_state"], end["return_code"]) for end in ends] == [
        ("COMPLETED_FAILED", 3),
        ("COMPLETED_WALLTIME_REACHED", -1),
    ]


def test_a_kill_of_several_jobs_and_what_it_says_of_those_over(tmp_path):
    jobs = [job(0, profile="d4"), job(1), job(2)]
    everything = ("KILL_JOB", {"job_ids": ["w0!0", "w0!1"]})
    again = ("KILL_JOB", {"job_ids": ["w0!1"]})
    both = ("KILL_JOB", {"job_ids": ["w0!1", "w0!2"]})
    wire, _ = run(
        tmp_path,
        jobs,
        [],
        [execute(0, "0"), execute(1, "1"), execute(2, "2")],
        [everything, again, both],
        [again],
    )
    told = [(k, d.get("job_ids")) for k, d in wire.told if k.startswith("JOB_") and k[4] in "CK"]
    assert told == [
        ("JOB_COMPLETED", None),
        ("JOB_COMPLETED", None),
        ("JOB_COMPLETED", None),
        ("JOB_KILLED", ["w0!0", "w0!1"]),
        ("JOB_KILLED", ["w0!2"]),
        ("JOB_KILLED", ["w0!1"]),
    ]
    progress = [data["job_progress"] for kind, data in wire.told if kind == "JOB_KILLED"]
    far = {"profile_name": "d10", "progress": 0.4}
    assert progress == [{"w0!1": far}, {"w0!2": far}, {}]


@pytest.mark.parametrize(("protocol", "key"), [(2, "profile"), (4, "profile_name")])
def test_how_far_a_killed_sequence_was(tmp_path, protocol, key):
    profiles = DELAYS | {
        "twice": {"type": "composed", "repeat": 2, "seq": ["d4", "d4"]},
        "all": {"type": "composed", "seq": ["d10", "twice"]},
    }
    call = ("CALL_ME_LATER", {"timestamp": 21.0})
    kill = ("KILL_JOB", {"job_ids": ["w0!0"]})
    wire, _ = run(
        tmp_path,
        [job(0, profile="all")],
        [call],
        [execute(0, "0")],
        [kill],
        profiles=profiles,
        protocol=protocol,
    )
    progress = dict(wire.told)["JOB_KILLED"]["job_progress"]["w0!0"]
    inner = {key: "twice", "current_task_index": 2, "current_task": {key: "d4", "progress": 0.75}}
    assert progress == {key: "all", "current_task_index": 1, "current_task": inner}


def test_jobs_registered_without_acknowledgement_run_at_once(tmp_path):
    profile = {
        "workload_name": "dyn",
        "profile_name": "d2",
        "profile": {"type": "delay", "delay": 2},
    }
    new = {"job_id": "dyn!7", "job": {"id": "7", "res": 1, "profile": "d2"}}
    wire, result = run(
        tmp_path,
        [job(0)],
        [],
        [
            execute(0, "0"),
            ("REGISTER_PROFILE", profile),
            ("REGISTER_JOB", new),
            ("SET_JOB_METADATA", {"job_id": "dyn!7", "metadata": "of my own"}),
            ("EXECUTE_JOB", {"job_id": "dyn!7", "alloc": "1"}),
            ("NOTIFY", {"type": "registration_finished"}),
        ],
        dynamic_jobs=True,
    )
    assert dates(result)["dyn!7"][:2] == (0.0, 2.0)
    assert result.metadata == {"dyn!7": "of my own"}
    assert [kind for kind, _ in wire.told].count("JOB_SUBMITTED") == 1


def test_registration_can_be_taken_up_again(tmp_path):
    new = {"job_id": "w0!1", "job": {"id": "w0!1", "res": 1, "profile": "d4"}}
    _, result = run(
        tmp_path,
        [job(0)],
        [("NOTIFY", {"type": "registration_finished"})],
        [execute(0, "0"), ("NOTIFY", {"type": "continue_registration"})],
        [("REGISTER_JOB", new), ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "0"})],
        [("NOTIFY", {"type": "registration_finished"})],
        dynamic_jobs=True,
    )
    assert dates(result)["1"][:2] == (10.0, 14.0)


def test_jobs_that_the_scheduler_simulates_itself(tmp_path):
    def state(name, to):
        return ("CHANGE_JOB_STATE", {"job_id": f"w0!{name}", "job_state": to, "kill_reason": ""})

    wire, result = run(
        tmp_path,
        [job(0, walltime=1), job(1)],
        [("CALL_ME_LATER", {"timestamp": 6.0})],
        [state(0, "RUNNING"), state(1, "REJECTED")],
        [state(0, "COMPLETED_SUCCESSFULLY")],
    )
    assert dates(result)["0"] == (0.0, 6.0, "COMPLETED_SUCCESSFULLY")
    assert dates(result)["1"][2] == "REJECTED"
    assert "JOB_COMPLETED" not in [kind for kind, _ in wire.told]


def test_hosts_with_several_jobs(tmp_path):
    answers = ([], [execute(0, "0-1"), execute(1, "1-2")])
    _, result = run(tmp_path, [job(0, 2), job(1, 2, "d4")], *answers, compute_sharing=True)
    assert [attempt.end_s for attempt in result.schedule.final] == [10.0, 4.0]


def test_machines_go_and_come_while_jobs_run(tmp_path):
    events = [
        {"type": "machine_unavailable", "resources": "0 2", "timestamp": 3},
        {"type": "disk", "timestamp": 4, "name": "x"},
        {"type": "machine_available", "resources": "0 2", "timestamp": 12},
    ]
    wire, result = run(
        tmp_path,
        [job(0), job(1, at=3)],
        [],
        [execute(0, "0")],
        [],
        [],
        [],
        [execute(1, "2")],
        events=events,
        forward_unknown_events=True,
    )
    assert dates(result)["0"][1] == 10.0
    assert dates(result)["1"][0] == 12.0
    notes = [data for kind, data in wire.told if kind == "NOTIFY"]
    assert notes == [
        {"type": "no_more_static_job_to_submit"},
        {"type": "event_machine_unavailable", "resources": "0 2"},
        {"type": "disk", "timestamp": 4, "name": "x"},
        {"type": "event_machine_available", "resources": "0 2"},
        {"type": "no_more_external_event_to_occur"},
    ]


def test_computing_pstates_change_at_once(tmp_path):
    states = [
        ("SET_RESOURCE_STATE", {"resources": "0-1", "state": "1"}),
        ("SET_RESOURCE_STATE", {"resources": "2", "state": "3"}),
    ]
    wire, _ = run(tmp_path, [job(0)], [], [*states, execute(0, "0")], energy=True, platform=SLEEPY)
    told = [(e["timestamp"], e["data"]) for r in wire.requests for e in r["events"]]
    assert (0.0, {"resources": "0-1", "state": "1"}) in told
    assert (6.0, {"resources": "2", "state": "3"}) in told


def test_nothing_to_submit(tmp_path):
    wire, _ = run(tmp_path, [])
    assert [kind for kind, _ in wire.told] == ["SIMULATION_BEGINS", "NOTIFY", "SIMULATION_ENDS"]


def test_the_first_request_of_the_third_version(tmp_path):
    wire, _ = run(tmp_path, [], protocol=3)
    data = wire.told[0][1]
    assert "sched-config" not in data["config"]
    assert "zone_properties" not in data["compute_resources"][0]


def test_the_second_version(tmp_path):
    new = {
        "job_id": "w0!1",
        "job": {"id": "1", "res": 1, "profile": "other"},
        "profile": {"type": "delay", "delay": 1},
    }
    wire, result = run(
        tmp_path,
        [job(0)],
        [],
        [
            execute(0, "0"),
            ("SUBMIT_JOB", new),
            ("EXECUTE_JOB", {"job_id": "w0!1", "alloc": "1"}),
            ("NOTIFY", {"type": "submission_finished"}),
        ],
        protocol=2,
        dynamic_jobs=True,
    )
    begins = wire.told[0][1]
    assert begins["config"]["job_submission"]["from_scheduler"]["enabled"]
    assert "profiles" not in begins
    assert [each["name"] for each in begins["resources_data"]][:2] == ["node-0", "node-1"]
    assert dict(wire.told)["JOB_COMPLETED"]["kill_reason"] == ""
    assert "NOTIFY" not in [kind for kind, _ in wire.told]
    assert dates(result)["1"][:2] == (0.0, 1.0)


# --- parallel tasks -----------------------------------------------------------------------------

TASKS = {
    "pair": {"type": "parallel", "cpu": [1e9, 1e9], "com": [0, 0, 0, 0]},
    "total": {"type": "parallel_homogeneous_total", "cpu": 4e9, "com": 0},
    "io": {"type": "parallel_homogeneous", "cpu": 0, "com": 2e9},
    "pfs": {"type": "parallel_homogeneous_pfs", "bytes_to_write": 2e9, "storage": "big"},
    "stage": {"type": "data_staging", "nb_bytes": 3e9, "from": "a", "to": "b"},
}


def one(tmp_path, profile, alloc, res=2, platform=STORAGE, **more):
    answers = ([], [execute(0, alloc, **more)])
    wire, result = run(
        tmp_path, [job(0, res, profile)], *answers, profiles=TASKS, platform=platform
    )
    return wire, dates(result)["0"]


def test_executors_are_mapped_to_hosts(tmp_path):
    assert one(tmp_path, "pair", "1-2")[1][1] == pytest.approx(1.0)
    assert one(tmp_path, "pair", "1", mapping={"0": "0", "1": 0})[1][1] == pytest.approx(2.0)


def test_amounts_for_all_hosts_are_spread_over_those_given(tmp_path):
    assert one(tmp_path, "total", "0-3")[1][1] == pytest.approx(1.0)
    assert one(tmp_path, "total", "3")[1][1] == pytest.approx(4.0)


def test_a_storage_is_the_only_one_or_the_one_named(tmp_path):
    wire, (_, end, _) = one(tmp_path, "pfs", "0-1")
    assert end == pytest.approx(4.0)
    (storage,) = wire.told[0][1]["storage_resources"]
    assert (storage["id"], storage["properties"]) == (4, {"role": "storage"})
    assert one(tmp_path, "pfs", "0-1", storage_mapping={"big": 4})[1][1] == pytest.approx(4.0)


def test_work_beside_that_of_a_job(tmp_path):
    beside = {"alloc": "1-2", "profile_name": "more", "profile": TASKS["io"]}
    _, (_, end, _) = one(tmp_path, "pair", "0-1", additional_io_job=beside)
    assert end == pytest.approx(2.0)
    beside = {"alloc": "0 4", "profile_name": "io"}
    _, (_, end, _) = one(tmp_path, "pair", "0-1", additional_io_job=beside)
    assert end == pytest.approx(4.0)  # 2e9 bytes each way over one link


def test_a_killed_parallel_task_says_how_far_it_was(tmp_path):
    wire, _ = run(
        tmp_path,
        [job(0, 2, "pair")],
        [("CALL_ME_LATER", {"timestamp": 0.25})],
        [execute(0, "0-1")],
        [("KILL_JOB", {"job_ids": ["w0!0"]})],
        profiles=TASKS,
    )
    assert dict(wire.told)["JOB_COMPLETED"]["return_code"] == -2
    progress = dict(wire.told)["JOB_KILLED"]["job_progress"]["w0!0"]["progress"]
    assert progress == pytest.approx(0.25)


def test_the_same_session_has_the_same_bytes(tmp_path):
    jobs = [job(0, 2, "pair"), job(1, 2, "io")]
    answers = ([], [execute(0, "0-1"), execute(1, "2-3")])
    first, second = (
        run(tmp_path, jobs, *answers, profiles=TASKS, platform=STORAGE)[0] for _ in range(2)
    )
    assert json.dumps(first.requests) == json.dumps(second.requests)


def test_replies_dated_before_their_requests_take_effect_at_these(tmp_path):
    """A scheduler whose clock has whole seconds alone, as batsim-py's."""

    def floored(request):
        now = float(int(request["now"]))
        said = [
            ("EXECUTE_JOB", {"job_id": event["data"]["job_id"], "alloc": "0"}, now)
            for event in request["events"]
            if event["type"] == "JOB_SUBMITTED"
        ]
        return reply(request, *said, now=now)

    jobs = [job(0, at=0.5), job(1, at=12.25), job(2, at=30)]
    session, result = serve(tmp_path, Calls(floored), jobs, DELAYS)
    assert session.fault is None
    ran = "COMPLETED_SUCCESSFULLY"
    assert dates(result) == {
        "0": (0.5, 10.5, ran),
        "1": (12.25, 22.25, ran),
        "2": (30.0, 40.0, ran),
    }
    assert result.driven["early_replies"] == 4
    assert result.notes == (
        "4 replies of the scheduler have a timestamp before their requests (the first: for "
        "0.0 s at "
        "0.5 s); they took effect at the time of the request",
    )


def test_dates_so_late_that_delays_move_no_clock_are_told(tmp_path):
    late = [execute(0, "0"), ("CALL_ME_LATER", {"timestamp": 1e17})]
    _, result = run(tmp_path, [job(0, profile="d4")], [], late)
    assert result.notes == (
        "at 1e+17 s floating-point times are 16 s apart; shorter delays may not advance the clock",
    )


def test_the_end_of_a_registration_that_is_off_changes_nothing(tmp_path):
    finished = ("NOTIFY", {"type": "registration_finished"})
    _, result = run(tmp_path, [job(0)], [finished, finished], [execute(0, "0"), finished])
    assert dates(result)["0"][:2] == (0.0, 10.0)
