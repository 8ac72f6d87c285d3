"""The open loop: stepping, submission at run time, wakes, messages, preemption, hosts that fail."""

from __future__ import annotations

import random
from math import inf

import pytest

from ptaskmodel.batch import (
    FAILED,
    KILLED,
    SUCCESS,
    SUSPENDED,
    WALLTIME,
    BatchSimulation,
    Conservative,
    Easy,
    Fcfs,
    Filler,
    HostCapacity,
    HostSet,
    Job,
    Kill,
    Reject,
    Requeue,
    Resume,
    SetPower,
    Start,
    Suspend,
    Verifier,
    Wake,
    actual_duration_s,
    check_policy,
    check_schedule,
    load,
    metrics,
    random_jobs,
)
from ptaskmodel.batch.policies.redirection import Redirection
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform.facts import AvailabilityTrace
from ptaskmodel.workload.works import DelayWork

POLICIES = (Fcfs, Filler, Easy, Conservative, lambda: Redirection(0.25, 1))


def job(name, submit, hosts, duration, walltime=None, **demands):
    work = DelayWork(float(duration))
    return Job(name, float(submit), hosts, f"d{duration}", work, walltime, **demands)


def spans(schedule):
    return [(a.job.id, a.start_s, a.end_s, a.mask, a.state, a.ordinal) for a in schedule.attempts]


def dates(schedule):
    return {a.job.id: (a.start_s, a.end_s, a.state) for a in schedule.final}


class Scripted:
    """Fills, and does at dates what it is told to."""

    def __init__(self, script):
        self.script = dict(script)

    def decide(self, view):
        for date in sorted(self.script):
            if date <= view.now:
                yield from self.script.pop(date)
            else:
                yield Wake(date)
                break
        for waiting in view.queue:
            if view.is_waiting(waiting) and view.fits(waiting):
                yield waiting


# --- stepping and submission ------------------------------------------------------------------


@pytest.mark.parametrize("make", POLICIES)
def test_stepping_stopping_and_submitting_late_change_no_bit(make):
    for seed in range(12):
        jobs = [j for j in random_jobs(seed, 40, 8) if j.num_hosts <= 6]
        whole = BatchSimulation(jobs, 8, make(), estimate=actual_duration_s).run()
        stepped = BatchSimulation(jobs, 8, make(), estimate=actual_duration_s)
        while stepped.step():
            assert stepped.schedule().now_s == stepped.now
        assert spans(stepped.schedule()) == spans(whole)
        draw = random.Random(seed)
        late = BatchSimulation([], 8, make(), estimate=actual_duration_s)
        for one in sorted(jobs, key=lambda j: j.submit_time_s):
            if one.submit_time_s > late.now and draw.random() < 0.7:
                late.advance_to(draw.uniform(late.now, late.now * 0.1 + one.submit_time_s * 0.9))
            late.submit(one)
        assert spans(late.run()) == spans(whole)
        assert [a.job for a in late.schedule().final] == [a.job for a in whole.final]


def test_results_can_be_read_at_any_time():
    simulation = BatchSimulation(
        [job("a", 0, 2, 10), job("b", 1, 2, 5), job("c", 90, 1, 1)], 2, Fcfs()
    )
    assert simulation.next_event_s() == 0
    simulation.advance_to(4.0)
    schedule = simulation.schedule()
    assert (simulation.now, simulation.next_event_s()) == (4.0, 10.0)
    assert [(a.job.id, a.state) for a in schedule.final] == [("a", "RUNNING"), ("b", "WAITING")]
    assert metrics(schedule)["jobs"]["all"] == 2
    assert load(schedule).used_hosts.tolist() == [2, 2, 0]
    assert simulation.view.running[0].expected_end_s == inf
    simulation.run()
    assert simulation.next_event_s() is None
    assert not simulation.step()


def test_submission_at_run_time_is_checked():
    simulation = BatchSimulation([job("a", 0, 1, 10)], 2, Fcfs())
    simulation.advance_to(5)
    for bad, message in (
        (job("b", 4, 1, 1), "it is 5 s now"),
        (job("a", 6, 1, 1), "the id is taken"),
        (job("c", 6, 3, 1), "asks for 3 hosts"),
    ):
        with pytest.raises(SimulationError, match=message):
            simulation.submit(bad)
    with pytest.raises(SimulationError, match="cannot go to date"):
        simulation.advance_to(4)
    simulation.submit(job("now", 5, 1, 1))
    assert dates(simulation.run())["now"] == (5, 6, SUCCESS)


def test_a_policy_is_woken_and_told():
    told = []

    class Listener(Filler):
        def decide(self, view):
            told.append((view.now, [event.kind for event in view.events], list(view.messages)))
            if view.now == 0:
                yield Wake(3.0)
                yield Wake(7.5)
            yield from super().decide(view)

    simulation = BatchSimulation([job("a", 0, 1, 5)], 1, Listener())
    simulation.advance_to(4.0)
    simulation.send({"hello": 1})
    simulation.advance_to(20.0)
    assert told == [
        (0.0, ["submitted"], []),
        (3.0, ["wake"], []),
        (4.0, ["message"], [{"hello": 1}]),
        (5.0, ["ended"], []),
        (7.5, ["wake"], []),
    ]


# --- preemption -------------------------------------------------------------------------------


def test_a_suspended_job_leaves_its_hosts_to_others_and_its_walltime_waits():
    long, short = job("long", 0, 2, 10, 12.0), job("short", 4, 2, 3, 5.0)
    tight = job("tight", 0, 2, 10, 8.0)
    for one, end, state in ((long, 13.0, SUCCESS), (tight, 11.0, WALLTIME)):
        script = {4.0: [Suspend(one), Start(short)], 7.0: [Resume(one)]}
        simulation = BatchSimulation([one, short], 2, Scripted(script), observe=Verifier())
        simulation.advance_to(5)
        assert [a.job.id for a in simulation.view.suspended] == [one.id]
        assert simulation.schedule().final[0].state == SUSPENDED
        schedule = simulation.run()
        assert dates(schedule) == {one.id: (0, end, state), "short": (4, 7, SUCCESS)}
        assert schedule.final[0].suspended_s(99.0) == 3.0
        check_schedule(schedule, [one, short])
        assert metrics(schedule)["utilisation"] == 1.0
        assert metrics(schedule)["execution_s"]["max"] == end - 3


def test_requeued_jobs_begin_anew_at_their_place_and_killed_ones_do_not():
    a, b, c = job("a", 0, 2, 10), job("b", 1, 2, 10), job("c", 2, 1, 1)
    script = {4.0: [Requeue(a, "make way")], 15.0: [Kill(a, "enough")]}
    schedule = BatchSimulation([a, b, c], 2, Scripted(script)).run()
    assert [(x.job.id, x.ordinal, x.start_s, x.end_s, x.state) for x in schedule.attempts] == [
        ("a", 0, 0, 4, KILLED),
        ("b", 0, 4, 14, SUCCESS),  # what waited when the policy was asked; then a, before c
        ("a", 1, 14, 15, KILLED),
        ("c", 0, 15, 16, SUCCESS),
    ]
    assert schedule.attempts[2].reason == "enough"
    check_schedule(schedule, [a, b, c])


def test_a_suspended_job_can_be_killed_and_requeued():
    a, b = job("a", 0, 1, 10), job("b", 0, 1, 10)
    script = {1.0: [Suspend(a), Suspend(b)], 2.0: [Kill(a), Requeue(b)]}
    schedule = BatchSimulation([a, b], 2, Scripted(script)).run()
    assert dates(schedule) == {"a": (0, 2, KILLED), "b": (2, 12, SUCCESS)}
    assert [x.suspended_s(9) for x in schedule.attempts] == [1, 1, 0]


def test_a_policy_that_kills_is_asked_again_at_that_date():
    class Killer:
        """Starts the first of the queue and kills it at once; notes what it sees."""

        def decide(self, view):
            ended = [a.job.id for a in view.ended]
            seen.append((view.now, [j.id for j in view.queue], ended))
            for first in view.queue[:1]:
                yield first
                yield Kill(first)

    seen = []
    jobs = [job(name, date, 1, 10) for name, date in (("a", 0), ("b", 0), ("c", 3))]
    schedule = BatchSimulation(jobs, 4, Killer()).run()
    assert dates(schedule) == {"a": (0, 0, KILLED), "b": (0, 0, KILLED), "c": (3, 3, KILLED)}
    assert seen == [
        (0, ["a", "b"], []), (0, ["b"], ["a"]), (0, [], ["b"]), (3, ["c"], []), (3, [], ["c"])
    ]  # fmt: skip


class Preempting:
    """Everything that a policy may do, at random; always the same for a seed."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def decide(self, view):
        draw = self.draw
        for attempt in view.running:
            chance = draw.random()
            if chance < 0.1:
                yield Suspend(attempt.job)
            elif chance < 0.15 and attempt.ordinal < 3:
                yield Requeue(attempt.job)
            elif chance < 0.18:
                yield Kill(attempt.job)
        for attempt in view.suspended:
            if view.can_resume(attempt) and draw.random() < 0.6:
                yield Resume(attempt.job)
        for waiting in view.queue:
            if view.is_waiting(waiting) and view.fits(waiting):
                yield Reject(waiting) if draw.random() < 0.05 else waiting
        if (view.queue or view.suspended) and view.now < 500:
            yield Wake(view.now + 1.0)
        elif view.suspended:
            yield from (Resume(a.job) for a in view.suspended if view.can_resume(a))


def shared_jobs(seed, count, hosts):
    """Jobs of whole hosts and of cores, with memory, resources and licences."""
    draw = random.Random(seed)
    made = []
    for one in random_jobs(seed, count, hosts):
        demands = {}
        if draw.random() < 0.7:
            demands["cores"] = draw.randint(1, 4)
        if draw.random() < 0.5:
            demands["memory_B"] = draw.choice((1.0, 4.0, 8.0))
        if draw.random() < 0.2 and one.num_hosts <= hosts // 2:
            demands["resources"] = {"gpu": draw.randint(1, 2)}
        if draw.random() < 0.2:
            demands["licences"] = {"solver": 1}
        width = min(one.num_hosts, hosts)
        work, walltime = one.work, one.walltime_s
        made.append(Job(one.id, one.submit_time_s, width, one.profile, work, walltime, **demands))
    return made


def machine(hosts):
    """Hosts of 4 cores and 8 B of memory, half of them with 2 GPUs."""
    return [HostCapacity(4, 8.0, {"gpu": 2} if k < hosts // 2 else {}) for k in range(hosts)]


@pytest.mark.parametrize("seed", range(25))
def test_whatever_a_policy_does_nothing_is_used_twice_and_every_job_ends_once(seed):
    jobs = shared_jobs(seed, 40, 6)
    policy = Preempting(seed)
    schedule = BatchSimulation(
        jobs, machine(6), policy, licences={"solver": 2}, observe=Verifier()
    ).run()
    check_schedule(schedule, jobs, machine(6))
    for moment in {a.start_s for a in schedule.attempts}:
        there = [a for a in schedule.attempts if a.start_s <= moment < a.end_s]
        assert sum(a.job.licences.get("solver", 0) for a in there) <= 2
    for attempt in schedule.attempts:
        ran = attempt.end_s - attempt.start_s - attempt.suspended_s(0.0)
        if attempt.state != KILLED:
            assert ran == pytest.approx(actual_duration_s(attempt.job), abs=1e-9)


# --- cores ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Fcfs, Filler, Easy, Conservative])
def test_policies_schedule_cores_memory_and_resources(make):
    for seed in range(20):
        jobs = shared_jobs(seed, 30, 6)
        simulation = BatchSimulation(
            jobs, machine(6), make(), licences={"solver": 2}, observe=Verifier()
        )
        schedule = simulation.run()
        check_schedule(schedule, jobs, machine(6))
        assert all(a.state in (SUCCESS, WALLTIME) for a in schedule.final)


def test_cores_are_shared_and_whole_hosts_are_not():
    hosts = [HostCapacity(4), HostCapacity(4)]
    jobs = [
        job("two", 0, 1, 10, cores=2),
        job("both", 0, 2, 5, cores=2),
        job("whole", 0, 1, 1),
        job("one", 0, 1, 1, cores=1),
    ]
    schedule = BatchSimulation(jobs, hosts, Filler()).run()
    assert [(a.job.id, a.start_s, str(a.hosts), a.cores) for a in schedule.attempts] == [
        ("two", 0, "0", (2,)),
        ("both", 0, "0-1", (2, 2)),
        ("one", 0, "1", (1,)),
        ("whole", 5, "1", None),
    ]
    assert load(schedule).used_hosts.tolist() == [1.75, 1.5, 1.5, 0.5, 0]


def test_easy_backfills_cores_without_delaying_the_first():
    hosts = [HostCapacity(4)]
    jobs = [
        job("run", 0, 1, 10, 10.0, cores=3),
        job("head", 1, 1, 5, 5.0, cores=3),
        job("long", 2, 1, 20, 20.0, cores=1),
        job("late", 3, 1, 20, 20.0, cores=1),
    ]
    found = dates(BatchSimulation(jobs, hosts, Easy()).run())
    assert (found["long"][0], found["head"][0], found["late"][0]) == (2, 10, 15)


def test_uneven_cores_are_a_placement_of_the_policys_own():
    class Uneven:
        def decide(self, view):
            for waiting in view.queue:
                yield Start(waiting, [0, 1], cores=(3, 1))

    jobs = [job("a", 0, 2, 1, cores=2)]
    schedule = BatchSimulation(jobs, [HostCapacity(4)] * 2, Uneven()).run()
    assert schedule.final[0].ranks == [0, 0, 0, 1]
    with pytest.raises(SimulationError, match="not 4 free ones"):
        BatchSimulation(jobs, [HostCapacity(2)] * 2, Uneven()).run()


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        ({"cores": 9}, "0 of the 6 hosts have that"),
        ({"memory_B": 9.0}, "9 B of memory"),
        ({"resources": {"fpga": 1}}, "'fpga', which no host has"),
        ({"licences": {"solver": 3}}, "3 licences 'solver'"),
    ],
)
def test_what_can_never_run_is_refused(demands, message):
    with pytest.raises(SimulationError, match=message):
        BatchSimulation([job("a", 0, 1, 1, **demands)], machine(6), Fcfs(), licences={"solver": 2})


# --- hosts ------------------------------------------------------------------------------------


def test_no_job_starts_on_a_host_that_is_down():
    """Two hosts, the second off from 10 s to 30 s: four jobs run on the first meanwhile."""
    trace = AvailabilityTrace("off", (10.0, 30.0), (0.0, 1.0))
    jobs = [job(f"j{k}", 8, 1, 4) for k in range(8)]
    schedule = BatchSimulation(jobs, 2, Fcfs(), traces={1: trace}, observe=Verifier()).run()
    assert [(a.start_s, a.end_s, str(a.hosts), a.state) for a in schedule.attempts] == [
        (8, 12, "0", SUCCESS),
        (8, 10, "1", FAILED),
        (12, 16, "0", SUCCESS),
        (16, 20, "0", SUCCESS),
        (20, 24, "0", SUCCESS),
        (24, 28, "0", SUCCESS),
        (28, 32, "0", SUCCESS),
        (30, 34, "1", SUCCESS),
    ]
    assert schedule.attempts[1].reason == "host 1 went down"
    assert [(c.date_s, str(c.hosts), c.state) for c in schedule.host_changes] == [
        (10, "1", "down"),
        (30, "1", "up"),
    ]


def test_jobs_of_a_failed_host_are_requeued_if_asked():
    trace = AvailabilityTrace("off", (10.0, 20.0), (0.0, 1.0))
    jobs = [job("a", 0, 2, 15), job("b", 1, 1, 3)]
    schedule = BatchSimulation(
        jobs, 2, Fcfs(), traces={0: trace}, on_failure="requeue", observe=Verifier()
    ).run()
    assert [(a.job.id, a.ordinal, a.start_s, a.end_s, a.state) for a in schedule.attempts] == [
        ("a", 0, 0, 10, FAILED),
        ("a", 1, 20, 35, SUCCESS),
        ("b", 0, 35, 38, SUCCESS),
    ]


def test_a_job_that_ends_as_its_host_fails_has_ended():
    trace = AvailabilityTrace("off", (10.0, 20.0), (0.0, 1.0))
    schedule = BatchSimulation([job("a", 0, 1, 10)], 1, Fcfs(), traces={0: trace}).run()
    assert schedule.final[0].state == SUCCESS


def test_hosts_fail_and_come_back_by_hand():
    simulation = BatchSimulation([job("a", 0, 2, 10), job("b", 0, 1, 2)], 2, Fcfs())
    simulation.advance_to(3.0)
    simulation.fail(0)
    simulation.advance_to(4.0)
    assert simulation.view.down_hosts == HostSet.of([0])
    assert (simulation.view.num_available, simulation.view.free) == (1, 0)
    simulation.restore(0)
    assert dates(simulation.run()) == {"a": (0, 3, FAILED), "b": (3, 5, SUCCESS)}
    with pytest.raises(SimulationError, match="there is no host 2"):
        simulation.fail(2)


def test_hosts_are_turned_off_and_on():
    jobs = [job("a", 0, 1, 2), job("b", 1, 2, 1)]
    script = {1.0: [SetPower([1], "off")], 5.0: [SetPower(HostSet.of([1]), "on")]}
    schedule = BatchSimulation(jobs, 2, Scripted(script), observe=Verifier()).run()
    assert dates(schedule) == {"a": (0, 2, SUCCESS), "b": (5, 6, SUCCESS)}
    for bad, message in (
        (SetPower([0], "off"), "on which job 'a' runs"),
        (SetPower([0], "standby"), "use 'on', 'off'"),
        (SetPower([7], "off"), "host 7"),
    ):
        with pytest.raises(SimulationError, match=message):
            BatchSimulation(jobs, 2, Scripted({1.0: [bad]})).run()


@pytest.mark.parametrize("make", POLICIES)
@pytest.mark.parametrize("rule", ["fail", "requeue"])
def test_no_policy_loses_a_job_while_hosts_come_and_go(make, rule):
    for seed in range(8):
        draw = random.Random(seed)
        jobs = [j for j in random_jobs(seed, 40, 8) if j.num_hosts <= 6]
        traces = {
            host: AvailabilityTrace("t", (draw.uniform(1, 30), 40.0), (0.0, 1.0), 60.0)
            for host in draw.sample(range(8), 4)
        }
        schedule = BatchSimulation(
            jobs, 8, make(), traces=traces, on_failure=rule, observe=Verifier()
        ).run()
        check_schedule(schedule, jobs)
        for attempt in schedule.attempts:
            for host, trace in traces.items():
                if attempt.mask >> host & 1:
                    phase = attempt.start_s % 60.0
                    assert not trace.dates_s[0] <= phase < 40.0


def test_a_job_that_waits_for_ever_for_hosts_is_told(monkeypatch):
    monkeypatch.setattr("ptaskmodel.batch.loop.loop.MAX_IDLE_DATES", 50)
    blink = AvailabilityTrace("t", (1.0, 2.0), (0.0, 1.0), 3.0)
    never = AvailabilityTrace("t", (0.0,), (0.0,))
    with pytest.raises(SimulationError, match="starts none of 1 jobs"):
        BatchSimulation([job("a", 5, 2, 1)], 2, Easy(), traces={0: blink, 1: never}).run()
    with pytest.raises(SimulationError, match="never starts job 'a'"):
        BatchSimulation([job("a", 5, 2, 1)], 2, Easy(), traces={1: never}).run()


def test_easy_lets_others_go_while_nobody_knows_when_the_first_can():
    never = AvailabilityTrace("t", (0.0, 50.0), (0.0, 1.0))
    jobs = [job("head", 1, 2, 5, 5.0), job("small", 2, 1, 10, 10.0)]
    for make in (Easy, Conservative):
        found = dates(BatchSimulation(jobs, 2, make(), traces={1: never}).run())
        assert (found["small"][0], found["head"][0]) == (2, 50)


# --- odd policies -----------------------------------------------------------------------------


class Stubborn:
    def decide(self, view):
        yield from (Requeue(a.job) for a in view.running)
        yield from (j for j in view.queue if view.is_waiting(j) and view.fits(j))


def test_going_round_in_circles_at_one_date_ends(monkeypatch):
    monkeypatch.setattr("ptaskmodel.batch.loop.loop.MAX_DECISIONS_AT_A_DATE", 100)
    with pytest.raises(SimulationError, match="100 times at one date"):
        BatchSimulation([job("a", 0, 1, 5), job("b", 1, 1, 1)], 1, Stubborn()).run()


def test_a_policy_needs_no_order():
    check_policy(lambda: Scripted({}), workloads=5)


def test_an_order_is_a_function():
    with pytest.raises(SimulationError, match="its order is '5'"):
        BatchSimulation([], 1, Fcfs(order="5"))
