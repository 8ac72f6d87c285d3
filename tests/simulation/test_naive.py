"""The simulation against the naive simulator, which shares no code with it."""

from __future__ import annotations

import engine_runner
import naive
import pytest
import scenarios

import ptaskmodel as pm


def facts_of(platform: pm.Platform, hosts: set[str]) -> dict:
    """What the naive simulator knows of a platform: these hosts and the routes between them."""
    facts: dict = {"hosts": {}, "links": {}, "routes": {}}
    for name in hosts:
        host = platform.host(name)
        facts["hosts"][name] = {
            "speeds": list(host.speeds_flops),
            "pstate": host.pstate,
            "cores": host.cores,
        }
        for other in hosts:
            route = platform.route(name, other)
            facts["routes"][name, other] = (list(route.links), route.latency_s)
    for link in platform.all_links:
        facts["links"][link.name] = {
            "bandwidth": link.bandwidth_Bps,
            "latency": link.latency_s,
            "fatpipe": link.policy == "FATPIPE",
        }
    return facts


def both(seed: int) -> tuple[dict, dict]:
    scenario = scenarios.random_scenario(seed)
    simulation = engine_runner.prepare(scenario, solver="fairbottleneck")
    hosts = {host for task in scenario["tasks"] for host in task["hosts"]}
    try:
        expected = naive.simulate(
            facts_of(simulation.platform, hosts),
            scenario["tasks"],
            profiles=scenario["profiles"],
            events=scenario["events"],
            gamma=scenario["gamma"],
        )
    except naive.Hang:
        pytest.skip("the plain rounds of fair bottleneck do not end on this one")
    return expected, engine_runner.finish(scenario, simulation)


@pytest.mark.parametrize("seed", range(200_000, 200_060))
def test_same_dates_and_states(seed: int) -> None:
    expected, found = both(seed)
    assert engine_runner.differences(expected, found) == []
