"""Traces: they account for all work, change nothing, and read back in every format."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections import defaultdict

import numpy as np
import pytest
from engine_runner import run
from recordings import Kept, busy_tasks, recorded, small_platform
from scenarios import random_flow_scenario, random_scenario

import ptaskmodel as pm
from ptaskmodel.engine.usage.placement import hosts_of
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.mpi import trace_of_actions
from ptaskmodel.recording import intervals
from ptaskmodel.recording.intervals import Recorder
from ptaskmodel.results.traces import trace_file
from ptaskmodel.results.traces.paje import PajeTrace
from ptaskmodel.results.traces.tables import CsvTrace, ParquetTrace
from ptaskmodel.results.traces.timelines import PerfettoTrace

SEEDS = range(40)


def totals(kept: Kept) -> dict[tuple[int, int], float]:
    """Work done of each (task, resource)."""
    resource, task, start, end, rate, _ = kept.use_table
    found: dict[tuple[int, int], float] = defaultdict(float)
    for r, t, work in zip(resource.tolist(), task.tolist(), rate * (end - start), strict=True):
        found[t, r] += work
    return found


def expected(simulation: pm.Simulation) -> dict[tuple[int, int], float]:
    """Work that the tasks that completed had to do on each resource."""
    core, found = simulation.core, defaultdict(float)
    arrays, programs = simulation._intake.arrays, simulation._intake.programs
    for k, record in enumerate(simulation.records()):
        if record.final_state != "completed":
            continue
        program = arrays.programs[arrays.tasks["program"][k]]
        hosts = hosts_of(programs.places[arrays.tasks["program"][k]])
        for stage in range(program["first"], program["first"] + program["count"]):
            work = programs.stage_work[stage]
            if isinstance(work, pm.DelayWork):
                continue
            shape, own = core.router.shape(work, hosts, None)
            row = core.router.route(shape)
            amount = row.amount if np.isnan(own) else own
            for r, asked in zip(row.resource.tolist(), row.usage.tolist(), strict=True):
                found[k, r] += asked * amount * int(program["rounds"])
    return found


def check_integrals(simulation: pm.Simulation, kept: Kept) -> None:
    found = totals(kept)
    for key, amount in expected(simulation).items():
        assert found.get(key, 0.0) == pytest.approx(amount, rel=1e-9, abs=1e-6), key


@pytest.mark.parametrize("seed", SEEDS)
def test_integrals_are_the_work_and_nothing_changes(seed):
    scenario = random_scenario(seed)
    solver = ("bmf", "fairbottleneck")[seed % 2]
    kept = Kept()
    simulation, times = recorded(scenario, kept, solver=solver)
    assert times == run(scenario, solver)
    check_integrals(simulation, kept)


@pytest.mark.parametrize("seed", range(10))
def test_integrals_under_flow_models(seed):
    scenario = random_flow_scenario(seed)
    kept = Kept()
    simulation, times = recorded(scenario, kept, network_model="LV08", solver=None)
    assert times == run(scenario, None, network_model="LV08")
    check_integrals(simulation, kept)


def test_integrals_with_sequences_in_small_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(intervals, "GATHERED", 7)
    monkeypatch.setattr(intervals, "HANDED_OVER", 20)
    simulation = pm.Simulation(small_platform(tmp_path))
    simulation.add_all(busy_tasks(np.random.default_rng(1), 60))
    kept = Kept()
    with Recorder(simulation, [kept]):
        simulation.run()
    check_integrals(simulation, kept)
    assert max(kept.use_table[3]) == simulation.makespan_s


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_are_in_order_and_capacities_hold(seed):
    kept = Kept()
    simulation, _ = recorded(random_scenario(seed), kept)
    resource, task, start, end, rate, capacity = kept.use_table
    assert (end > start).all()
    for key in set(zip(resource.tolist(), task.tolist(), strict=True)):
        mine = (resource == key[0]) & (task == key[1])
        assert (start[mine][1:] >= end[mine][:-1]).all()
    fatpipe = simulation.core.state.graph.constraints["fatpipe"][resource]
    for r in np.unique(resource[~fatpipe]).tolist():
        of_r = resource == r
        for date in np.unique(start[of_r]).tolist():
            here = of_r & (start <= date) & (end > date)
            assert rate[here].sum() <= capacity[here][0] * (1 + 1e-7)


def test_shares_follow_profiles_and_hands(tmp_path):
    path = tmp_path / "p.xml"
    path.write_text(
        """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="10f"/><host id="b" speed="10f"/>
<link id="slow" bandwidth="1Bps" latency="0s"/>
<link id="fast" bandwidth="100Bps" latency="0s" bandwidth_file="fast.bw"/>
<route src="a" dst="b"><link_ctn id="slow"/><link_ctn id="fast"/></route></zone></platform>"""
    )
    (tmp_path / "fast.bw").write_text("2 50\n3 20\nLOOPAFTER 5\n")
    simulation = pm.Simulation(pm.load_platform(path))
    simulation.add(pm.Flow("a", "b", 12.0))
    kept = Kept()
    with Recorder(simulation, [kept]):
        simulation.run(9.0)
        simulation.set_bandwidth("fast", 4.0)
        simulation.run()
    resource, _, start, end, rate, capacity = kept.use_table
    fast = resource == simulation._link_number("fast")
    rows = list(zip(start[fast], end[fast], rate[fast], capacity[fast], strict=True))
    assert rows == [
        (0, 2, 1, 100),
        (2, 3, 1, 50),
        (3, 9, 1, 20),
        (9, 10, 1, 4),
        (10, 11, 1, 50),
        (11, 12, 1, 20),
    ]


RANKS = [
    [("compute", 1e9), ("isend", 1, 0, 1e6), ("isend", 1, 1, 3e6), ("waitall",), ("barrier",)],
    [("irecv", 0, 0, 1e6), ("irecv", 0, 1, 3e6), ("compute", 5e8), ("waitall",), ("barrier",)],
]


def run_traced(tmp_path, writer, replays=0):
    simulation = pm.Simulation(small_platform(tmp_path))
    simulation.add_all(busy_tasks(np.random.default_rng(2), 40))
    hosts = [host.name for host in simulation.platform.hosts[:2]]
    for k in range(replays):
        simulation.add_replay(trace_of_actions(RANKS), hosts, start_s=0.5 * k)
    kept = Kept()
    with Recorder(simulation, [writer, kept]):
        simulation.run()
    return simulation, kept


def rows_of(simulation, kept) -> list[tuple]:
    resource, task, start, end, rate, capacity = (c.tolist() for c in kept.use_table)
    ids = [ref.id for ref in simulation.tasks()]
    names = [simulation.resource_name(r) for r in resource]
    return [
        (name, kind, ids[t], s, e, x, x / c)
        for (kind, name), t, s, e, x, c in zip(names, task, start, end, rate, capacity, strict=True)
    ]


def test_csv_reads_back(tmp_path):
    simulation, kept = run_traced(tmp_path, CsvTrace(tmp_path / "trace.csv"))
    with (tmp_path / "trace.csv").open(newline="") as stream:
        table = list(csv.reader(stream))
    assert table[0] == ["resource", "kind", "task_id", "start_s", "end_s", "rate", "share"]
    found = [(*row[:3], *map(float, row[3:])) for row in table[1:]]
    assert found == rows_of(simulation, kept)


def test_parquet_reads_back_with_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    simulation, kept = run_traced(tmp_path, ParquetTrace(tmp_path / "trace.parquet"))
    frame = pandas.read_parquet(tmp_path / "trace.parquet")
    assert list(frame.itertuples(index=False, name=None)) == rows_of(simulation, kept)


def paje_events(path):
    """A small reader: definitions, then [(event name, {field: value})]."""
    import shlex

    definitions, events, current = {}, [], None
    for line in path.read_text().splitlines():
        if line.startswith("%EventDef"):
            _, name, number = line.split()
            current = definitions[number] = (name, [])
        elif line.startswith("%EndEventDef"):
            current = None
        elif line.startswith("%"):
            current[1].append(line.split()[1])
        else:
            number, *values = shlex.split(line)
            name, fields = definitions[number]
            events.append((name, dict(zip(fields, values, strict=True))))
    return events


@pytest.mark.parametrize("replays", [0, 3])
@pytest.mark.parametrize("gathered", [7, 1 << 15])
def test_paje_is_in_order_and_accounts_for_all_work(tmp_path, monkeypatch, replays, gathered):
    monkeypatch.setattr(intervals, "GATHERED", gathered)
    path = tmp_path / "trace.paje"
    simulation, kept = run_traced(tmp_path, PajeTrace(path), replays)
    ranks = {k for k, ref in enumerate(simulation.tasks()) if k >= 40 and ref.state == "completed"}
    assert len(ranks) == replays
    assert ranks <= set(kept.use_table[1].tolist())
    alive, last, now = {"0"}, {}, 0.0
    found: dict[tuple[int, int], float] = defaultdict(float)
    used: dict[int, float] = defaultdict(float)
    for name, fields in paje_events(path):
        if "Time" in fields:
            assert float(fields["Time"]) >= now
            now = float(fields["Time"])
        if name == "PajeCreateContainer":
            assert fields["Container"] in alive
            assert fields["Alias"] not in alive
            alive.add(fields["Alias"])
        elif name == "PajeDestroyContainer":
            alive.remove(fields["Name"])
        elif name == "PajeSetVariable":
            holder = fields["Container"]
            assert holder in alive
            value, since = last.get((holder, fields["Type"]), (0.0, now))
            if fields["Type"] in ("HR", "LR"):
                task, resource = map(int, holder[1:].split("_"))
                found[task, resource] += value * (now - since)
            elif fields["Type"] in ("HU", "LU"):
                used[int(holder[1:])] += value * (now - since)
            last[holder, fields["Type"]] = (float(fields["Value"]), now)
    assert alive == {"0"}
    by_resource: dict[int, float] = defaultdict(float)
    for key, work in totals(kept).items():
        assert found[key] == pytest.approx(work, rel=1e-9)
        by_resource[key[1]] += work
    assert used == pytest.approx(by_resource, rel=1e-9)


@pytest.mark.skipif(shutil.which("pj_dump") is None, reason="pj_dump (pajeng) is not installed")
def test_paje_is_accepted_by_pj_dump(tmp_path):
    path = tmp_path / "trace.paje"
    _, kept = run_traced(tmp_path, PajeTrace(path))
    done = subprocess.run(["pj_dump", str(path)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    rates = [
        line.split(", ")
        for line in done.stdout.splitlines()
        if line.startswith("Variable") and ", rate, " in line
    ]
    work = sum(float(row[5]) * float(row[6]) for row in rates)
    assert work == pytest.approx(sum(totals(kept).values()), rel=1e-4)  # pj_dump rounds


def test_perfetto_has_a_track_for_each_task_and_resource(tmp_path):
    path = tmp_path / "trace.perfetto.json"
    simulation, kept = run_traced(tmp_path, PerfettoTrace(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "b", "e", "C"}
    for event in events:
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0.0
        assert isinstance(event["name"], str)
        assert ("id" in event) == (event["ph"] in "beC")
    tracks = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert tracks == {ref.id for ref in simulation.tasks() if ref.start_s is not None}
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == len(kept.phase_table[0])
    opened = [e for e in events if e["ph"] == "b"]
    closed = [e for e in events if e["ph"] == "e"]
    work = sum(
        b["args"]["rate"] * (e["ts"] - b["ts"]) / 1e6 for b, e in zip(opened, closed, strict=True)
    )
    assert work == pytest.approx(sum(totals(kept).values()), rel=1e-9)


def test_a_file_appears_only_when_whole(tmp_path):
    simulation = pm.Simulation(small_platform(tmp_path))
    recorder = Recorder(simulation, [CsvTrace(tmp_path / "trace.csv")])
    simulation.add(pm.Execution("n0", 1e9))
    simulation.run()
    assert not (tmp_path / "trace.csv").exists()
    recorder.close()
    assert (tmp_path / "trace.csv").exists()


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(PTaskModelError, match="choose one of csv, parquet, paje, perfetto"):
        trace_file("otf2", tmp_path)


def test_suspended_and_unfinished_tasks(tmp_path):
    simulation = pm.Simulation(small_platform(tmp_path))
    task = simulation.add(pm.Execution("n0", 10e9))
    kept = Kept()
    with Recorder(simulation, [kept]):
        simulation.run(2.0)
        simulation.suspend(task)
        simulation.run(5.0)
        simulation.resume(task)
        simulation.run(6.5)
    assert list(zip(*(c.tolist() for c in kept.use_table[2:5]), strict=True)) == [
        (0.0, 2.0, 1e9),
        (5.0, 6.5, 1e9),
    ]
