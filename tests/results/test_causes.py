"""What bounds a task by itself is named: one core, the TCP window of a route, its rate bound."""

from __future__ import annotations

import csv
import io
import itertools

import numpy as np
import pytest

import ptaskmodel as pm
from ptaskmodel.cli import main
from ptaskmodel.recording.intervals import Recorder
from ptaskmodel.recording.recorded import narrowest_window
from ptaskmodel.results.traces.attribution import Attribution

HOSTS = ("a", "b", "c", "d")
GAMMA = 4194304.0
HEAD = '<?xml version="1.0"?><platform version="4.1">'


def wide(latencies_s, cores=4, bandwidth="100GBps"):
    """A platform of which only what bounds single tasks is scarce."""
    pairs = list(itertools.combinations(HOSTS, 2))
    links = "".join(
        f'<link id="{a}{b}" bandwidth="{bandwidth}" latency="{latency!r}s"/>'
        for (a, b), latency in zip(pairs, latencies_s, strict=True)
    )
    routes = "".join(
        f'<route src="{a}" dst="{b}"><link_ctn id="{a}{b}"/></route>' for a, b in pairs
    )
    hosts = "".join(f'<host id="{h}" speed="1Gf" core="{cores}"/>' for h in HOSTS)
    return f'{HEAD}<zone id="z" routing="Full">{hosts}{links}{routes}</zone></platform>'


def limits_of(tmp_path, text, tasks, **options):
    (tmp_path / "p.xml").write_text(text)
    simulation = pm.Simulation(pm.load_platform(tmp_path / "p.xml"), **options)
    simulation.add_all(tasks)
    attribution = Attribution()
    with Recorder(simulation, [attribution]):
        simulation.run()
    return attribution


@pytest.mark.parametrize("seed", range(12))
def test_the_tightest_of_all_bounds_is_named(tmp_path, seed):
    rng = np.random.default_rng(seed)
    latencies = rng.uniform(1e-3, 2e-2, 6).tolist()
    latency = {
        frozenset(pair): s
        for pair, s in zip(itertools.combinations(HOSTS, 2), latencies, strict=True)
    }
    flops, com = rng.uniform(1e8, 3e9, 4), rng.uniform(1e7, 3e8, (4, 4))
    rate_bound = float(rng.uniform(0.2, 1.0))
    work = pm.ParallelWork.of(4, flops, com)
    attribution = limits_of(
        tmp_path, wide(latencies), [pm.Task(HOSTS, work, id="t", rate_bound=rate_bound)]
    )
    bounds = {("rate_bound", ""): rate_bound}
    bounds |= {("core", host): 1e9 / f for host, f in zip(HOSTS, flops, strict=True)}
    for i, j in itertools.permutations(range(4), 2):
        route = f"{HOSTS[i]}->{HOSTS[j]}"
        product = com[i, j] * latency[frozenset((HOSTS[i], HOSTS[j]))]
        bounds["window", route] = GAMMA / (2.0 * product)
    cause = min(bounds, key=lambda key: bounds[key])
    waited, limit = attribution.limits()
    assert waited.limited_by == "latency"
    assert (limit.limited_by, limit.resource) == cause
    assert limit.end_s - limit.start_s == pytest.approx(1.0 / bounds[cause], rel=1e-9)
    if cause[0] == "window":
        ends = frozenset(cause[1].split("->"))
        assert (limit.latency_s, limit.tcp_gamma_bytes) == (latency[ends], GAMMA)
    else:
        assert (limit.latency_s, limit.tcp_gamma_bytes) == (None, None)


@pytest.mark.parametrize("model", ["CM02", "LV08"])
def test_flows_are_limited_by_the_narrowest_link_or_the_window(tmp_path, model):
    text = wide([1e-6] * 5 + [1e-2]).replace(
        'id="ab" bandwidth="100GBps"', 'id="ab" bandwidth="1GBps"'
    )
    tasks = [pm.Flow("a", "b", 1e9, id="near"), pm.Flow("d", "c", 1e9, id="far")]
    tasks.append(pm.Execution("a", 1e9, id="alone"))
    attribution = limits_of(tmp_path, text, tasks, network_model=model)
    last = {limit.task_id: limit for limit in attribution.limits()}
    found = {name: (limit.limited_by, limit.resource) for name, limit in last.items()}
    assert found == {"near": ("link", "ab"), "far": ("window", "d->c"), "alone": ("core", "a")}
    assert last["far"].latency_s == 1e-2


def test_a_core_that_is_the_whole_host_is_that_host(tmp_path):
    text = wide([1e-3] * 6, cores=1)
    attribution = limits_of(tmp_path, text, [pm.Execution("b", 1e9, id="t")])
    assert [limit[3:5] for limit in attribution.limits()] == [("host", "b")]


def test_the_cause_changes_with_what_sets_it(tmp_path):
    (tmp_path / "p.xml").write_text(wide([1e-2] * 6))
    simulation = pm.Simulation(pm.load_platform(tmp_path / "p.xml"))
    work = pm.ParallelWork.of(2, [1e9, 0.0], [[0.0, 1e9], [0.0, 0.0]])
    simulation.add(pm.Task(("a", "b"), work, id="t"))
    attribution = Attribution()
    with Recorder(simulation, [attribution]):
        simulation.run(1.0)
        simulation.set_latency("ab", 1e-4)
        simulation.run(1.5)
        simulation.set_bandwidth("ab", 1e8)
        simulation.run()
    found = [limit[3:5] for limit in attribution.limits()]
    assert found == [("latency", ""), ("window", "a->b"), ("core", "a"), ("link", "ab")]


@pytest.mark.parametrize("at_once", [4, 1 << 16])
def test_the_narrowest_window_of_large_works(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("ptaskmodel.recording.recorded.PAIRS_AT_ONCE", at_once)
    (tmp_path / "p.xml").write_text(wide([1e-3, 2e-3, 3e-3, 9e-3, 4e-3, 5e-3]))
    simulation = pm.Simulation(pm.load_platform(tmp_path / "p.xml"))
    router = simulation.core.router
    shape, _ = router.shape(pm.HomogeneousWork(0.0, 1e6), (0, 1, 2, 3), None)
    found = narrowest_window(router, shape, 9e3)
    assert {found.source, found.target} == {"b", "c"}
    assert found.latency_s == 9e-3
    sent = np.zeros((4, 4))
    sent[0, 1], sent[2, 1], sent[3, 2] = 5e6, 1e5, 2e6
    shape, _ = router.shape(pm.ParallelWork.of(4, 0.0, sent), (0, 1, 2, 3), None)
    assert narrowest_window(router, shape, 1e4) == ("d", "c", 5e-3)


def test_the_files_name_causes_and_sum_them_up(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.xml").write_text(wide([1e-2] * 6))
    (tmp_path / "t.json").write_text(
        '{"tasks": [{"id": "c", "hosts": ["a"], "cpu": 1e9},'
        '{"id": "w", "hosts": ["a", "b"], "flows": [[0, 1, 1e9]]},'
        '{"id": "r", "hosts": ["d"], "cpu": 1e9, "rate_bound": 0.5}]}'
    )
    arguments = "simulate p.xml t.json --attribution --trace paje --trace perfetto --output out"
    assert main(arguments.split()) == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out/attribution.csv").read_text())))
    main_limits = {row["task_id"]: (row["main_limit"], row["main_resource"]) for row in rows}
    assert main_limits == {"c": ("core", "a"), "w": ("window", "a->b"), "r": ("rate_bound", "")}
    by_id = {row["task_id"]: row for row in rows}
    assert float(by_id["r"]["rate_bound_s"]) == 2.0
    assert float(by_id["w"]["window_s"]) == pytest.approx(1e9 * 2e-2 / GAMMA)
    assert "window a->b" in (tmp_path / "out/trace.paje").read_text()
    assert "window a->b" in (tmp_path / "out/trace.perfetto.json").read_text()
    assert main(["report", "out"]) == 0
    assert main(["compare", "out", "out"]) == 0
    assert "bound" not in {row["main_limit"] for row in rows}
    capsys.readouterr()
