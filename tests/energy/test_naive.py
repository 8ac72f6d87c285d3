"""The meter against a naive integration: intervals of use cut at every change, added one by one."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.energy.tasks import TaskEnergy
from ptaskmodel.recording.intervals import Recorder

HOSTS, LINKS = 4, 3
WATTS = [
    [(90.0, 110.0, 200.0), (80.0, 95.0, 150.0)],
    [(50.0, 50.0, 300.0), (40.0, 60.0, 100.0)],
    [(10.0, 5.0, 20.0), (1.0, 2.0, 3.0)],
    [(0.0, 0.0, 77.0), (7.0, 8.0, 9.0)],
]
SPEEDS = [[1e9, 5e8], [2e9, 1e8], [3e8, 3e8], [1e9, 9e8]]
CORES = [4, 1, 2, 1]
OFF_W = [3.0, 0.0, 1.0, 2.5]
RANGES = [(1.0, 5.0), (10.0, 10.5), (0.0, 2.0)]
RATES = [1e8, 5e7, 2e8]
STATE_TRACE = [(1.0, 1.0), (6.0, 0.0), (6.5, 1.0), (9.0, 1.0)]
RATE_TRACE = [(2.0, 4e7), (5.0, 8e7)]


def platform() -> pm.Platform:
    build = pm.Platform.build("naive")
    for k in range(HOSTS):
        power = ",".join(":".join(map(str, watts)) for watts in WATTS[k])
        build.host(
            f"h{k}",
            SPEEDS[k],
            CORES[k],
            properties={"wattage_per_state": power, "wattage_off": str(OFF_W[k])},
            speed_trace=[(3.0, 0.5), (4.0, 1.0)] if k == 0 else None,
            state_trace=STATE_TRACE if k == 3 else None,
        )
    for k in range(LINKS):
        watts = {"wattage_range": ":".join(map(str, RANGES[k]))}
        trace = RATE_TRACE if k == 1 else None
        build.link(f"l{k}", RATES[k], 0.001 * k, properties=watts, bandwidth_trace=trace)
    for a in range(HOSTS):
        for b in range(a + 1, HOSTS):
            build.route(f"h{a}", f"h{b}", [f"l{(a + b) % LINKS}", f"l{(a * b) % LINKS}"])
    return build.finish()


@dataclass
class Seen:
    """Every interval of use: resource, task, start, end, rate."""

    spans: list[tuple[int, int, float, float, float]] = field(default_factory=list)

    def begin(self, recorder):
        pass

    def changes(self, events):
        pass

    def phases(self, phases):
        pass

    def uses(self, uses):
        columns = (uses.resource, uses.task, uses.start, uses.end, uses.rate)
        self.spans += zip(*(column.tolist() for column in columns), strict=True)

    def end(self):
        pass


def random_task(draw: random.Random, k: int) -> pm.Task:
    hosts = draw.sample(range(HOSTS), draw.randint(1, 3))
    names = [f"h{host}" for host in hosts]
    start = {"start_s": draw.choice([0.0, draw.uniform(0, 8)]), "id": str(k)}
    kind = draw.random()
    if kind < 0.15:
        return pm.Delay(draw.uniform(0, 4), names, **start)
    flops = [draw.choice([0.0, 1.0, draw.uniform(0, 2e9)]) for _ in hosts]
    pairs = [(i, j) for i in range(len(hosts)) for j in range(len(hosts)) if i != j]
    flows = [[i, j, draw.uniform(0, 2e8)] for i, j in pairs if draw.random() < 0.4]
    return pm.ParallelTask(names, flops=flops, flows=flows or None, **start)


def happen(simulation, draw, date, changes) -> None:
    """Something is changed by hand; what matters to power is noted."""
    host = draw.randrange(HOSTS - 1)
    what = draw.choice(["pstate", "turn", "suspend", "nothing"])
    if what == "pstate":
        pstate = draw.randrange(2)
        simulation.set_pstate(f"h{host}", pstate)
        changes.append((date, host, "pstate", pstate))
    elif what == "turn":
        on = not simulation.is_on(f"h{host}")
        (simulation.restore if on else simulation.fail)(f"h{host}")
        changes.append((date, host, "on", on))
    elif what == "suspend":
        for ref in simulation.tasks():
            if ref.state == "running" and draw.random() < 0.5:
                simulation.suspend(ref)
            elif ref.state == "suspended":
                simulation.resume(ref)


def naive(spans, changes, lives, end):
    """Joules of each resource, whole and share of each task, from the definitions."""
    n = HOSTS + LINKS
    changes = [
        *changes,
        *((date, 3, "on", value > 0) for date, value in STATE_TRACE),
        *((date, HOSTS + 1, "rate", value) for date, value in RATE_TRACE),
    ]
    joules, whole, share = np.zeros(n), np.zeros(len(lives)), np.zeros(len(lives))
    for resource in range(n):
        mine = [span for span in spans if span[0] == resource]
        there = [k for k, (hosts, _, _) in enumerate(lives) if resource in hosts]
        cuts = {0.0, end, *(date for date, who, _, _ in changes if who == resource)}
        cuts |= {date for span in mine for date in span[2:4]}
        cuts |= {date for k in there for date in lives[k][1:]}
        dates = sorted(date for date in cuts if 0 <= date <= end)
        for a, b in itertools.pairwise(dates):
            state = {"pstate": 0, "on": True, "rate": RATES[max(resource - HOSTS, 0)]}
            for date, who, what, value in sorted(changes, key=lambda change: change[0]):
                if who == resource and date <= a:
                    state[what] = value
            uses = {task: rate for _, task, start, stop, rate in mine if start <= a and b <= stop}
            used = sum(uses.values())
            if resource < HOSTS:
                idle, epsilon, full = WATTS[resource][state["pstate"]]
                capacity = SPEEDS[resource][state["pstate"]] * CORES[resource]
            else:
                idle, full = RANGES[resource - HOSTS]
                epsilon, capacity = idle, state["rate"]
            watts = epsilon + min(1.0, used / capacity) * (full - epsilon) if uses else idle
            if resource < HOSTS and not state["on"]:
                watts = idle = OFF_W[resource]
            joules[resource] += watts * (b - a)
            for task, rate in uses.items():
                share[task] += (watts - idle) * (b - a) * rate / used
            present = [k for k in there if lives[k][1] <= a and b <= lives[k][2]]
            for k in present:
                whole[k] += watts * (b - a)
                share[k] += idle * (b - a) / len(present)
    return joules, whole, share


@pytest.mark.parametrize("seed", range(40))
def test_the_same_joules(seed):
    draw = random.Random(seed)
    simulation = pm.Simulation(platform(), solver=draw.choice(["bmf", "fairbottleneck"]))
    curve: list[np.ndarray] = []
    energy = TaskEnergy(simulation, curve=curve.append)
    seen = Seen()
    changes: list[tuple] = []
    with Recorder(simulation, [seen]):
        tasks = [random_task(draw, k) for k in range(draw.randint(1, 12))]
        simulation.add_all(tasks)
        date = 0.0
        while date < 12.0:
            date += draw.uniform(0.1, 2.0)
            simulation.advance_to(date)
            if draw.random() < 0.3:
                assert energy.total_J >= 0.0  # asking changes nothing
            happen(simulation, draw, date, changes)
        simulation.advance_to(date + 5.0)
    end = simulation.now
    lives = [
        (
            {int(name[1:]) for name in ref.task.hosts},
            end if ref.start_s is None else ref.start_s,
            end if ref.end_s is None else ref.end_s,
        )
        for ref in simulation.tasks()
    ]
    joules, whole, share = naive(seen.spans, changes, lives, end)
    found = np.concatenate([energy.hosts_J, energy.links_J])
    assert found == pytest.approx([*joules, 0.0], rel=1e-9, abs=1e-9)
    found_whole, found_share = energy.tasks_J()
    assert found_whole == pytest.approx(whole, rel=1e-9, abs=1e-9)
    assert found_share == pytest.approx(share, rel=1e-9, abs=1e-7)
    assert share.sum() == pytest.approx(energy.charged_J.sum(), rel=1e-9, abs=1e-7)
    assert energy.total_J == pytest.approx(joules.sum(), rel=1e-9)
    rows = np.concatenate(curve)
    lasted = np.diff([*rows["date"], end])
    assert rows["date"][0] == 0.0
    assert (np.diff(rows["date"]) > 0).all()
    assert (rows["hosts_W"] * lasted).sum() == pytest.approx(joules[:HOSTS].sum(), rel=1e-9)
    assert (rows["links_W"] * lasted).sum() == pytest.approx(joules[HOSTS:].sum(), rel=1e-9)


def test_what_runs_already_counts_from_now_on():
    simulation = pm.Simulation(platform())
    simulation.add(pm.Execution("h0", 4e9))
    simulation.set_pstate("h0", 1)
    simulation.fail("h1")
    simulation.advance_to(1.0)
    energy = TaskEnergy(simulation)
    simulation.advance_to(2.0)
    assert energy.host_J("h0") == pytest.approx(95 + 55 / 4)
    assert energy.host_J("h1") == 0.0
    assert energy.tasks_J()[0] == pytest.approx([95 + 55 / 4])


def test_a_meter_changes_no_date():
    def dates(metered):
        simulation = pm.Simulation(platform())
        if metered:
            TaskEnergy(simulation)
        draw = random.Random(7)
        simulation.add_all([random_task(draw, k) for k in range(30)])
        return [(r.start_s, r.end_s) for r in simulation.run().records()]

    assert dates(True) == dates(False)


def test_many_tasks_reclaim_patterns_and_places():
    simulation = pm.Simulation(platform())
    energy = TaskEnergy(simulation)
    for k in range(1500):
        hosts = [f"h{k % 3}", f"h{(k + 1) % 3}"]
        simulation.add(pm.ParallelTask(hosts, flops=[1e5 + k, 1e4], flows=[[0, 1, 1e3 + k]]))
        if k % 10 == 9:
            simulation.run()
    whole, share = energy.tasks_J()
    assert share.sum() == pytest.approx(energy.charged_J.sum(), rel=1e-9)
    assert (whole >= share * (1 - 1e-9)).sum() > 1000
