"""Hosts and links that fail: from files, from laws, with parallel tasks as SimGrid has it."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest
import quiet
import simgrid_driver

from ptaskmodel import load_platform
from ptaskmodel.batch import (
    FAILED,
    SUCCESS,
    BatchOptions,
    BatchSimulation,
    Conservative,
    Easy,
    FailureLaw,
    Fcfs,
    Filler,
    HostCapacity,
    Job,
    Preemptive,
    Verifier,
    Window,
    check_schedule,
    failures_of,
    machine_of,
    random_jobs,
    read_failures,
    read_maintenance,
    run_batch,
)
from ptaskmodel.batch.machine.host_sets import of_hosts
from ptaskmodel.batch.schedule_metrics import load
from ptaskmodel.errors import SimulationError
from ptaskmodel.results.tables.batch import write_schedule
from ptaskmodel.workload.jobs import Workload
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, SequenceWork

RECORDED = Path(__file__).parent / "failures_simgrid.json"
HOSTS = 6


def star(place, hosts=HOSTS):
    """Hosts of 100 flop/s, each on its own link of 100 B/s, and a backbone of 250 B/s."""
    lines = [f'<host id="h{k}" speed="100f"/>' for k in range(hosts)]
    lines += [f'<link id="l{k}" bandwidth="100Bps" latency="0s"/>' for k in range(hosts)]
    lines.append('<link id="backbone" bandwidth="250Bps" latency="0s"/>')
    for a, b in itertools.combinations(range(hosts), 2):
        links = "".join(f'<link_ctn id="{name}"/>' for name in (f"l{a}", "backbone", f"l{b}"))
        lines.append(f'<route src="h{a}" dst="h{b}">{links}</route>')
    path = place / "star.xml"
    path.write_text(
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM "
        '"https://simgrid.org/simgrid.dtd"><platform version="4.1"><zone id="z" routing="Full">'
        + "".join(lines)
        + "</zone></platform>"
    )
    return path


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    return quiet.load(star(tmp_path_factory.mktemp("star")))


def job(name, submit, hosts, work, walltime=None, **extra):
    if not isinstance(work, HomogeneousWork):
        work = DelayWork(float(work))
    return Job(name, float(submit), hosts, f"p{name}", work, walltime, extra=extra)


def workload(*jobs):
    return Workload(tuple(jobs), {job.profile: job.work for job in jobs}, name="test")


def attempts(schedule):
    return [(a.job.id, a.ordinal, a.start_s, a.end_s, a.state) for a in schedule.attempts]


# --- laws -------------------------------------------------------------------------------------


def test_drawn_failures_have_the_means_of_their_law_and_streams_of_their_own():
    law = FailureLaw(mtbf=1000.0, repair=50.0, shape=0.7, link_mtbf=400.0, seed=3)
    changes = list(itertools.islice(law.stream("a"), 40_000))
    dates = [date for date, _ in changes]
    assert dates == sorted(dates)
    assert [up for _, up in changes[:4]] == [False, True, False, True]
    ups = [b - a for (a, _), (b, _) in zip(changes[1::2], changes[2::2], strict=False)]
    downs = [b - a for (a, _), (b, _) in zip(changes[::2], changes[1::2], strict=True)]
    assert sum(ups) / len(ups) == pytest.approx(1000, rel=0.05)
    assert sum(downs) / len(downs) == pytest.approx(50, rel=0.05)
    # A Weibull law of shape 0.7 has a coefficient of variation of 1.46.
    deviation = (sum((up - 1000) ** 2 for up in ups) / len(ups)) ** 0.5
    assert deviation / 1000 == pytest.approx(1.46, rel=0.05)
    assert next(law.stream("a")) == changes[0] != next(law.stream("b"))
    assert next(law.stream("a", link=True)) != changes[0]
    constant = FailureLaw(mtbf=10.0, repair=2.0, repair_law="constant")
    (down, _), (up, _) = itertools.islice(constant.stream("a"), 2)
    assert up == down + 2.0
    assert list(FailureLaw(link_mtbf=5.0).stream("a")) == []


def test_what_a_host_suffers_depends_on_nothing_else(platform):
    """More hosts, another policy or other jobs change no failure of a host."""
    machine = machine_of(platform)
    law = FailureLaw(mtbf=50.0, repair=5.0, link_mtbf=60.0)
    one = failures_of(machine, law=law)
    assert set(one) == {*range(HOSTS), *(f"l{k}" for k in range(HOSTS)), "backbone"}
    seen = []
    for make in (Fcfs, Filler):
        jobs = random_jobs(1, 60, HOSTS - 2)
        simulation = BatchSimulation(
            jobs, HOSTS, make(), failures=failures_of(machine, law=FailureLaw(50.0, 5.0)),
            on_failure="requeue",
        )  # fmt: skip
        changes = simulation.run().host_changes
        seen.append([(c.date_s, str(c.hosts), c.state) for c in changes])
    count = min(map(len, seen))
    assert count > 10
    assert seen[0][:count] == seen[1][:count]


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names column 'date' 0 times"),
        ("date,resource\n1,h0\n", "names column 'event' 0 times"),
        ("date,date,resource,event\n", "names column 'date' 2 times"),
        ("date,resource,event\n1,h0\n", "t.csv:2: has 2 fields instead of 3"),
        ("date,resource,event\n-1,h0,down\n", "t.csv:2: date '-1'; give a finite date"),
        ("date,resource,event\nnan,h0,down\n", "give a finite date"),
        ("date,resource,event\n1s,h0,down\n", "give a finite date"),
        ("date,resource,event\n1,h0,off\n", "event 'off'; write down or up"),
        ("date,resource,event\n1,h0,up\n", "'h0' is up already"),
        ("date,resource,event\n5,h0,down\n4,h0,up\n3,h0,up\n", "4 s is before the last event"),
        ("date,resource,event\n1,nobody,down\n", "there is no host and no link 'nobody'"),
        ('date,resource,event\n1,"h0,down\n', "write plain CSV"),
    ],
)
def test_files_of_failures_are_checked(platform, tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(SimulationError, match=message):
        failures_of(machine_of(platform), file=path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("h9,1,2", "there is no host 'h9'"),
        (",1,2", "names no host"),
        ("0-7,1,2", "ascending numbers from 0 to 5"),
        ("3-1,1,2", "ascending numbers"),
        ("0-999999999,1,2", "ascending numbers"),
        ("h0,2,2", "not after its start"),
        ("h0,inf,2", "start 'inf'"),
    ],
)
def test_files_of_maintenance_are_checked(tmp_path, line, message):
    path = tmp_path / "w.csv"
    path.write_text(f"hosts,start,end\n{line}\n")
    with pytest.raises(SimulationError, match=message):
        read_maintenance(path, [f"h{k}" for k in range(HOSTS)])


def test_files_are_read(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("note,hosts,start,end\nx,h0 2-3,1,2\n\ny,all,5,6.5\n")
    names = [f"h{k}" for k in range(HOSTS)]
    assert read_maintenance(path, names) == [Window(0b1101, 1.0, 2.0), Window(0b111111, 5.0, 6.5)]
    path.write_text("event,date,resource\ndown,1,b\nup,2.5,b\ndown,0,a\n")
    assert read_failures(path) == {"b": [(1.0, False), (2.5, True)], "a": [(0.0, False)]}


def test_a_bad_row_is_left_out_and_told(tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("hosts,start,end\nh0,1,2\nh9,1,2\nh1,3,4\n")
    with pytest.warns(UserWarning, match="w.csv:3: left out: there is no host 'h9'"):
        assert read_maintenance(path, ["h0", "h1"]) == [Window(1, 1.0, 2.0), Window(2, 3.0, 4.0)]
    path.write_text("date,resource,event\n1,h0,down\nsoon,h0,up\n3,h0,up\n4,h1\n5,h1,down\n")
    with pytest.warns(UserWarning, match="w.csv:3: left out: date 'soon'.*and 1 more such"):
        assert read_failures(path) == {"h0": [(1.0, False), (3.0, True)], "h1": [(5.0, False)]}


@pytest.mark.filterwarnings("ignore")
def test_whatever_is_in_a_file_is_one_clear_error(platform, tmp_path):
    """Fuzzed: cut, doubled and mangled files are read, or refused with the file's name."""
    good = "date,resource,event\n1,h0,down\n2,h0,up\n3,l1,down\n"
    windows = "hosts,start,end\nh0 1-2,1,2\nall,3,4\n"
    path, names = tmp_path / "f.csv", [f"h{k}" for k in range(HOSTS)]
    draw = random.Random(1)
    for round_ in range(600):
        text = bytearray((good if round_ % 2 else windows).encode())
        for _ in range(draw.randint(1, 6)):
            at = draw.randrange(len(text))
            text[at : at + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
        path.write_bytes(text)
        message = ""
        try:
            if round_ % 2:
                failures_of(machine_of(platform), file=path)
            else:
                read_maintenance(path, names)
        except SimulationError as error:
            message = str(error)
        assert not message or "f.csv" in message.partition("\n")[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither mtbf nor link_mtbf"),
        ({"mtbf": 0}, "mtbf is 0"),
        ({"mtbf": "x"}, "mtbf is 'x'"),
        ({"mtbf": 1e30}, "mtbf is 1e"),
        ({"mtbf": 1, "repair": -1}, "repair is -1"),
        ({"mtbf": 1, "shape": 0}, "shape is 0"),
        ({"mtbf": 1, "seed": 0.5}, "seed is 0.5"),
        ({"mtbf": 1, "repair_law": "normal"}, "repair_law is 'normal'"),
        ({"mttf": 1}, "option 'mttf' is unknown"),
    ],
)
def test_laws_are_checked(options, message):
    with pytest.raises(SimulationError, match=message):
        FailureLaw.of(options)


def test_a_resource_has_one_source_of_failures(tmp_path):
    text = (
        star(tmp_path)
        .read_text()
        .replace('<host id="h0" speed="100f"/>', '<host id="h0" speed="100f" state_file="t.txt"/>')
    )
    (tmp_path / "t.txt").write_text("5 0\n6 1\n")
    (tmp_path / "traced.xml").write_text(text)
    machine = machine_of(quiet.load(tmp_path / "traced.xml"))
    with pytest.raises(SimulationError, match="'h0' has an availability trace"):
        failures_of(machine, law=FailureLaw(100.0))


# --- maintenance ------------------------------------------------------------------------------


def test_nobody_starts_what_would_run_into_maintenance():
    """Two hosts, the second in maintenance from 10 to 20 s: a short job starts there before."""
    jobs = [
        job("long", 0, 1, 8, 12.0),
        job("short", 0, 1, 8, 9.0),
        job("next", 8, 1, 8, 12.0),
        job("both", 9, 2, 1, 5.0),
    ]
    window = Window(0b10, 10.0, 20.0)
    for make in (Fcfs, Easy, Conservative):
        schedule = BatchSimulation(jobs, 2, make(), maintenance=[window], observe=Verifier()).run()
        assert [(a.job.id, a.start_s, str(a.hosts)) for a in schedule.attempts] == [
            ("long", 0, "0"), ("short", 0, "1"), ("next", 8, "0"), ("both", 20, "0-1")
        ]  # fmt: skip
        changes = [(c.date_s, str(c.hosts), c.state) for c in schedule.host_changes]
        assert changes == [(10, "1", "maintenance"), (20, "1", "maintenance over")]


def test_who_is_in_the_way_of_maintenance_is_stopped():
    """A job that runs on past its walltime fails, or waits again until its hosts are back."""
    for rule, rows in (
        ("fail", [("a", 0, 0, 10, FAILED)]),
        ("requeue", [("a", 0, 0, 10, FAILED), ("a", 1, 15, 30, SUCCESS)]),
    ):
        schedule = BatchSimulation(
            [job("a", 0, 1, 15, 5.0)], 1, Fcfs(), maintenance=[Window(1, 10.0, 15.0)],
            limited=False, on_failure=rule,
        ).run()  # fmt: skip
        assert attempts(schedule) == rows
        assert schedule.attempts[0].reason == "maintenance"


def test_a_policy_that_names_hosts_in_maintenance_is_at_fault():
    class There:
        def decide(self, view):
            for each in view.queue:
                from ptaskmodel.batch import Start

                yield Start(each, [0])

    with pytest.raises(SimulationError, match="hosts that are not 1 free ones"):
        BatchSimulation(
            [job("a", 0, 1, 5, 5.0)], 2, There(), maintenance=[Window(1, 3.0, 4.0)]
        ).run()


@pytest.mark.parametrize("make", [Fcfs, Filler, Easy, Conservative, lambda: Preemptive(5)])
def test_no_job_is_in_a_window_and_promises_are_kept(make):
    promise = {Easy: "head", Conservative: "all"}.get(make, "none")
    for seed in range(25):
        draw = random.Random(seed)
        windows, date = [], 0.0
        for _ in range(3):
            date += draw.uniform(5, 40)
            hosts = of_hosts(draw.sample(range(8), draw.randint(1, 8)))
            windows.append(Window(hosts, date, date + draw.uniform(1, 20)))
        jobs = random_jobs(seed, 40, 8)
        schedule = BatchSimulation(
            jobs, 8, make(), maintenance=windows, observe=Verifier(promise)
        ).run()
        check_schedule(schedule, jobs)
        for attempt in schedule.attempts:
            # Only who was suspended may still be there when maintenance begins, and is stopped.
            assert attempt.state != FAILED or attempt.suspensions
            for window in windows:
                apart = attempt.end_s <= window.start_s or attempt.start_s >= window.end_s
                assert apart or not attempt.mask & window.hosts


@pytest.mark.parametrize("make", [Fcfs, Easy, lambda: Easy(backfill_order=lambda j: j.walltime_s)])
def test_windows_after_all_ends_change_nothing(make):
    """In queues short and long: what ends before maintenance is planned as without."""
    for seed, count in ((0, 40), (1, 40), (2, 200)):
        jobs = random_jobs(seed, count, 8)
        found = [
            [
                (a.job.id, a.start_s, a.mask)
                for a in BatchSimulation(jobs, 8, make(), maintenance=windows).run().attempts
            ]
            for windows in ((), [Window(0b110, 1e6, 2e6)])
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("make", [Fcfs, Filler, Easy, Conservative, lambda: Preemptive(4)])
def test_failures_maintenance_and_cores_together(make):
    """Whatever happens, nothing is used twice and every job ends once."""
    for seed in range(15):
        draw = random.Random(seed)
        jobs = [
            Job(j.id, j.submit_time_s, j.num_hosts, j.profile, j.work, j.walltime_s,
                cores=draw.choice((None, 1, 2)), memory_B=draw.choice((None, 2.0, 4.0)))
            for j in random_jobs(seed, 40, 6)
        ]  # fmt: skip
        hosts = [HostCapacity(4, 8.0)] * 6
        failures = {k: FailureLaw(40.0, 5.0, seed=seed).stream(f"h{k}") for k in range(6)}
        schedule = BatchSimulation(
            jobs, hosts, make(), failures=failures, on_failure="requeue",
            maintenance=[Window(0b111, 30.0, 40.0)], observe=Verifier(),
        ).run()  # fmt: skip
        check_schedule(schedule, jobs, hosts)
        assert all(a.state != FAILED for a in schedule.final)


def test_what_is_down_is_told_in_the_files(tmp_path):
    schedule = BatchSimulation(
        [job("a", 0, 2, 10, 11.0), job("b", 20, 1, 10)], 3, Fcfs(),
        failures={1: [(5.0, False), (8.0, True)], 2: [(25.0, False)]},
        maintenance=[Window(0b10, 12.0, 14.0)], on_failure="requeue",
    ).run()  # fmt: skip
    names = ["n0", "n1", "n2"]
    write_schedule(
        tmp_path,
        schedule,
        load(schedule),
        workload_name="w",
        host_names=names,
        version="0",
        simulation_s=0.0,
    )
    assert (tmp_path / "failures.csv").read_text().splitlines() == [
        "date,resource,event", "5.0,n1,down", "8.0,n1,up", "25.0,n2,down"
    ]  # fmt: skip
    again = read_failures(tmp_path / "failures.csv")
    assert again == {"n1": [(5.0, False), (8.0, True)], "n2": [(25.0, False)]}
    states = [line.split(",") for line in (tmp_path / "machine_states.csv").read_text().split()]
    assert states[0][-3:] == ["nb_idle", "nb_computing", "nb_unavailable"]
    assert [(float(s[0]), *map(int, s[-3:])) for s in states[1:]] == [
        (0, 1, 2, 0), (5, 0, 2, 1), (8, 1, 2, 0), (12, 0, 2, 1), (14, 1, 2, 0), (15, 3, 0, 0),
        (20, 2, 1, 0), (25, 1, 1, 1), (30, 2, 0, 1),
    ]  # fmt: skip
    summary = json.loads((tmp_path / "schedule.json").read_text())
    assert summary["time_unavailable"] == 3 + 2 + 5
    assert sum(v for k, v in summary.items() if k.startswith("time_")) == 3 * 30


# --- parallel tasks ---------------------------------------------------------------------------


@pytest.mark.jit
def test_jobs_that_use_a_link_fail_with_it(platform, tmp_path):
    """The link of h1 is down from 1 to 4 s: who talks over it fails; who computes does not."""
    talk, compute = HomogeneousWork(0.0, 200.0), HomogeneousWork(500.0, 0.0)
    jobs = [job("talk", 0, 2, talk), job("other", 0, 2, talk), job("compute", 0, 2, compute)]
    path = tmp_path / "f.csv"
    path.write_text("date,resource,event\n1,l1,down\n4,l1,up\n")
    options = {"policy": "fcfs", "estimates": "walltime", "failures": path}
    schedule = run_batch(platform, workload(*jobs), BatchOptions(**options)).schedule
    found = {a.job.id: (a.end_s, a.state) for a in schedule.final}
    assert found == {"talk": (1.0, FAILED), "other": (pytest.approx(4.0), SUCCESS),
                     "compute": (5.0, SUCCESS)}  # fmt: skip
    assert schedule.final[0].reason == "l1 went down"
    again = run_batch(platform, workload(*jobs), BatchOptions(**options, on_failure="requeue"))
    rows = [a for a in again.schedule.attempts if a.job.id == "talk"]
    # Begun anew at once on the hosts that are free, which are the same: it waits for the link.
    assert [(a.start_s, a.state) for a in rows] == [
        (0.0, FAILED), (1.0, FAILED), (pytest.approx(4.0), SUCCESS)
    ]  # fmt: skip
    check_schedule(again.schedule, jobs)


def scenario(platform, place, solver):
    """A run with failures of hosts and links and preemption, and the same for SimGrid."""
    draw = random.Random(5)
    jobs = [
        job(f"j{k}", 3 * k, draw.choice((1, 2, 2, 3, 4)),
            HomogeneousWork(draw.uniform(100, 2500), draw.uniform(10, 400)),
            priority=int(k % 8 == 7))
        for k in range(40)
    ]  # fmt: skip
    path = place / "failures.csv"
    lines, names = [], [*(f"h{k}" for k in range(HOSTS - 1)), *(f"l{k}" for k in range(HOSTS))]
    for name in names:
        # Links are back at once: SimGrid sees late that a task begins on one that is down.
        repair_s = 6.0 if name.startswith("h") else 0.0
        stream = FailureLaw(mtbf=60.0, repair=repair_s, seed=8).stream(name)
        early = itertools.takewhile(lambda change: change[0] < 400, stream)
        lines += [f"{date!r},{name},{'up' if up else 'down'}" for date, up in early]
    path.write_text("\n".join(["date,resource,event", *lines]) + "\n")
    options = BatchOptions(
        policy="preemptive", policy_options={"field": "priority"}, estimates="walltime",
        failures=path, solver=solver, contention=False,
    )  # fmt: skip
    result = run_batch(platform, workload(*jobs), options)
    tasks, events = [], []
    for a in result.schedule.attempts:
        work, n = a.job.work, a.job.num_hosts
        flows = [(i, j, work.bytes) for i in range(n) for j in range(n) if i != j]
        tasks.append(
            {"id": f"t{a.number}", "start": a.start_s, "flops": [work.flops] * n, "flows": flows,
             "hosts": [result.machine.names[k] for k in a.hosts]}
        )  # fmt: skip
        for since, to in a.suspensions:
            events.append((since, "suspend", f"t{a.number}"))
            if to < a.end_s:
                events.append((to, "resume", f"t{a.number}"))
    for name, changes in read_failures(path).items():
        kind = "host" if name.startswith("h") else "link"
        for date, up in changes:
            if date <= result.schedule.now_s:
                events.append((date, f"{kind}_{'on' if up else 'off'}", name))
    events.sort(key=lambda event: event[0])
    ours = {f"t{a.number}": (a.end_s, a.state) for a in result.schedule.attempts}
    return {"tasks": tasks, "events": events, "observer": f"h{HOSTS - 1}"}, ours, result


def check_as_simgrid(ours, theirs):
    assert len(theirs) == 40
    states = [state for _, _, state in theirs.values()]
    assert min(states.count("completed"), len(states) - states.count("completed")) > 5
    for name, (_, end, state) in theirs.items():
        assert ours[name] == (
            pytest.approx(end, rel=1e-9),
            SUCCESS if state == "completed" else FAILED,
        )


@pytest.mark.jit
@pytest.mark.simgrid
@pytest.mark.skipif(not simgrid_driver.available(), reason="SimGrid is not installed")
def test_failures_are_simgrids(platform, tmp_path):
    described, ours, result = scenario(platform, tmp_path, "fairbottleneck")
    path = star(tmp_path)
    times = simgrid_driver.run({"platform_path": str(path), **described}, timeout_s=60.0)
    # A second suspension of a task does nothing in SimGrid 3.32.
    assert {len(a.suspensions) for a in result.schedule.attempts} == {0, 1}
    check_as_simgrid(ours, times)
    if not RECORDED.exists():
        RECORDED.write_text(json.dumps(times, indent=0) + "\n")


@pytest.mark.jit
def test_failures_are_those_that_simgrid_was_recorded_with(platform, tmp_path):
    """Recorded with SimGrid 3.32 by the test above, when the file was not there."""
    _, ours, _ = scenario(platform, tmp_path, "fairbottleneck")
    check_as_simgrid(ours, json.loads(RECORDED.read_text()))


@pytest.mark.jit
def test_checkpoints_of_parallel_tasks_are_those_of_delays(platform, tmp_path):
    """Jobs that only compute, with failures and preemption by checkpoint: the same dates."""
    path = tmp_path / "f.csv"
    path.write_text("date,resource,event\n9,h0,down\n10,h0,up\n14,h3,down\n31,h3,up\n")
    for law in ({"interval": 3, "write": 1, "read": 0.5}, {"interval": 4, "read": 1}, {"write": 2}):
        found = []
        for make in (DelayWork, lambda seconds: HomogeneousWork(100.0 * seconds, 0.0)):
            jobs = [
                Job(f"j{k}", 1.5 * k, 1 + k % 4, f"p{k}", make(2.0 + 3.25 * (k % 5)),
                    extra={"priority": int(k % 4 == 3)})
                for k in range(16)
            ]  # fmt: skip
            options = BatchOptions(
                policy="preemptive", failures=path, on_failure="requeue", checkpoint=law,
                policy_options={"field": "priority", "mechanism": "checkpoint"}, contention=False,
                estimates="walltime",
            )  # fmt: skip
            schedule = run_batch(platform, workload(*jobs), options).schedule
            check_schedule(schedule, jobs)
            found.append(schedule.attempts)
        assert len(found[0]) > 18
        for one, other in zip(*found, strict=True):
            assert (one.job.id, one.ordinal, one.state) == (
                other.job.id,
                other.ordinal,
                other.state,
            )
            for name in ("start_s", "end_s", "kept_s", "overhead_s"):
                assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-6), name


@pytest.mark.jit
def test_a_sequence_writes_no_checkpoint(platform):
    work = SequenceWork((HomogeneousWork(1.0, 0.0), HomogeneousWork(2.0, 0.0)))
    one = Job("a", 0.0, 1, "p", work, 50.0)
    with pytest.raises(SimulationError, match="job 'a' runs a sequence"):
        run_batch(platform, workload(one), BatchOptions(checkpoint={"write": 1}))


def test_a_fork_suffers_the_same_failures():
    law, jobs = FailureLaw(30.0, 5.0), random_jobs(2, 40, HOSTS)
    failures = {k: law.stream(f"h{k}") for k in range(HOSTS)}
    simulation = BatchSimulation(jobs, HOSTS, Easy(), failures=failures, on_failure="requeue")
    simulation.advance_to(40.0)
    later = [each for each in jobs if each.submit_time_s > 40.0]
    fork = simulation.fork(later)
    rows = [attempts(each.run()) for each in (fork, simulation)]
    assert rows[0] == rows[1][-len(rows[0]) :]
    assert len(rows[0]) > 20


def test_the_two_halves_of_a_link_are_named(tmp_path):
    text = '<cluster id="c" prefix="n" suffix="" radical="0-1" speed="1f" bw="1Bps" lat="0"/>'
    (tmp_path / "p.xml").write_text(f'<platform version="4.1">{text}</platform>')
    machine = machine_of(load_platform(tmp_path / "p.xml"))
    (tmp_path / "f.csv").write_text("date,resource,event\n1,c_link_0,down\n")
    with pytest.raises(SimulationError, match="two; use c_link_0_UP and c_link_0_DOWN"):
        failures_of(machine, file=tmp_path / "f.csv")
