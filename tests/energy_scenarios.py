"""Random scenarios (see :mod:`scenarios`) on platforms that say what they draw; their joules."""

from __future__ import annotations

import random
import re

import engine_runner
import numpy as np
import scenarios
from simgrid_driver import Joules

from ptaskmodel.energy.tasks import TaskEnergy

FAMILIES = ("full", "full", "cluster", "structured", "graph", "two-clusters")
_ELEMENT = re.compile(r"<(host|link|cluster) ([^>]*)/>")


def random_scenario(seed: int) -> dict:
    """A scenario whose hosts and links draw power."""
    rng = random.Random(f"energy scenario {seed}")
    scenario = scenarios.random_scenario(seed, rng.choice(FAMILIES))
    text = scenario["platform_xml"]
    scenario["platform_xml"] = _ELEMENT.sub(lambda found: _with_power(rng, found), text)
    return scenario


def _with_power(rng: random.Random, found: re.Match[str]) -> str:
    kind, attributes = found.groups()
    if kind == "link":
        idle = rng.choice([0.0, 3.0, rng.uniform(0, 9)])
        properties = {"wattage_range": f"{idle!r}:{idle + rng.uniform(0, 20)!r}"}
    else:
        pstates = re.search(r' speed="([^"]*)"', " " + attributes)[1].count(",") + 1
        states = [sorted(rng.uniform(0, 200) for _ in range(3)) for _ in range(pstates)]
        states = [state if rng.random() < 0.7 else state[1:] for state in states]
        text = ",".join(":".join(map(repr, state)) for state in states)
        properties = {"wattage_per_state": text}
        if rng.random() < 0.5:
            properties["wattage_off"] = repr(rng.uniform(0, 20))
    inside = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in properties.items())
    return f"<{kind} {attributes}>{inside}</{kind}>"


class Curve:
    """Keeps the power curve."""

    def __init__(self) -> None:
        self.dates: list[float] = []

    def __call__(self, rows: np.ndarray) -> None:
        self.dates += rows["date"].tolist()


def own_joules(scenario: dict) -> tuple[list[float], Joules]:
    """(dates at which power changes, joules at the end) by the package, rule fairbottleneck."""
    simulation = engine_runner.prepare(scenario, solver="fairbottleneck")
    curve = Curve()
    energy = TaskEnergy(simulation, curve)
    times = engine_runner.finish(scenario, simulation).values()
    platform = simulation.platform
    hosts, links = [h.name for h in platform.hosts], [x.name for x in platform.all_links]
    found = {
        "host": dict(zip(hosts, energy.hosts_J.tolist(), strict=True)),
        "link": dict(zip(links, energy.links_J.tolist(), strict=True)),
    }
    # The curve does not tell that one host takes over from another one that draws the same.
    lives = {date for start, end, _ in times for date in (start, end) if date is not None}
    return sorted({*curve.dates, *lives, simulation.now}), found


def passed_over(scenario: dict) -> set[str]:
    """Names of links whose power is another one on purpose (docs/differences_from_simgrid.md)."""
    names: set[str] = set()
    for name, attributes in re.findall(r'<link id="([^"]*)"([^>]*)', scenario["platform_xml"]):
        if "FATPIPE" in attributes:
            names.add(name)
        if "SPLITDUPLEX" in attributes:
            names |= {f"{name}_UP", f"{name}_DOWN"}
    return names


def differences(
    scenario: dict, expected: Joules, found: Joules, relative: float = 1e-9
) -> list[str]:
    """One line per host or link whose joules are not the expected ones."""
    others, lines = passed_over(scenario), []
    for kind in ("host", "link"):
        for name, joules in expected[kind].items():
            ours = found[kind].get(name, 0.0)
            if name not in others and not engine_runner.close(joules, ours, relative):
                lines.append(f"{kind} {name}: expected {joules!r}, found {ours!r}")
    return lines
