"""Measure shares by input port, which pauses by port would give, in a naive fluid model of RoCE.

    python experiments/wires/ports.py CASES ...

CASES are as of judge.py, with routes; those of RoCE count. A switch that pauses its inputs serves
them in turn, so at a full link each input link gets an equal share, which its flows divide. Here a
flow has the weight 1 / (active flows that come over the same input link to its first full link).
Which link that is follows from the rates, so they are solved several times at each event. With
equal weights the durations must be those of the product.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from judge import FLUID, Case, cases_in, errors, predict

from ptaskmodel.engine.usage.network_models import Wire, read_wire
from ptaskmodel.platform import load_platform
from ptaskmodel.platform.routing.choice import read_routes
from ptaskmodel.workload.formats.tasks_json import load_tasks

ROUNDS = 3
FULL = 1.0 - 1e-9


class Flows(NamedTuple):
    """The flows of a case: start and what follows the last byte, s; bytes; links of the route."""

    ids: list[str]
    start_s: np.ndarray
    tail_s: np.ndarray
    size_B: np.ndarray
    routes: list[tuple[int, ...]]
    capacity_Bps: np.ndarray


def read_flows(case: Case, wire: Wire) -> Flows:
    """The flows of a case on its true routes, as bytes on the wire."""
    platform = load_platform(case.place / "platform.xml")
    routes = read_routes(case.place / "routes.csv")
    fabric = platform.fabric
    capacity = np.array([link.bandwidth_Bps for link in platform.all_links])
    found: list[tuple[str, float, float, float, tuple[int, ...]]] = []
    for task in load_tasks(case.place / "tasks.json"):
        ends = [fabric.node[platform.host(name).index] for name in task.hosts]
        way = routes.way(fabric, str(task.id), 0, *ends)
        size_B = wire.wire_bytes(float(task.work.demand(2).flow_bytes[0]))
        latency_s = sum(platform.all_links[link].latency_s for link in (*way.there, *way.back))
        per_byte = (1.0 / capacity[list(way.there)]).sum() - 1.0 / capacity[list(way.there)].min()
        tail_s = latency_s + per_byte * min(wire.packet_B, size_B)
        tail_s += (wire.ack_B / capacity[list(way.back)]).sum()
        found.append((str(task.id), task.start_s, tail_s, size_B, way.there))
    ids, start_s, tails_s, sizes_B, ways = zip(*found, strict=True)
    return Flows(list(ids), *map(np.array, (start_s, tails_s, sizes_B)), list(ways), capacity)


def max_min(uses: np.ndarray, weight: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Weighted max-min fair rates; uses: shape (links, flows), whether a flow crosses a link."""
    rate = np.zeros(len(weight))
    active = np.ones(len(weight), dtype=bool)
    while active.any():
        asked = uses @ (weight * active)
        left = capacity - uses @ (rate * ~active)
        level = np.divide(left, asked, out=np.full(len(left), np.inf), where=asked > 0.0)
        tight = uses[level <= level.min() * (1.0 + 1e-12)].any(axis=0) & active
        rate[tight] = weight[tight] * level.min()
        active &= ~tight
    return rate


def rates(flows: Flows, chosen: np.ndarray, by_port: bool) -> np.ndarray:
    """The rates of the chosen flows, B/s."""
    routes = [flows.routes[k] for k in chosen.tolist()]
    links = sorted({link for route in routes for link in route})
    place = {link: k for k, link in enumerate(links)}
    uses = np.zeros((len(links), len(routes)))
    for k, route in enumerate(routes):
        uses[[place[link] for link in route], k] = 1.0
    capacity = flows.capacity_Bps[links]
    rate = max_min(uses, np.ones(len(routes)), capacity)
    for _ in range(ROUNDS if by_port else 0):
        full = uses @ rate >= FULL * capacity
        ports = []
        for k, route in enumerate(routes):
            hop = next((h for h, link in enumerate(route) if full[place[link]]), 0)
            # At the sender's own link each flow is an input of its own.
            ports.append((route[hop], route[hop - 1] if hop else -1 - k))
        count = {
            port: sum(
                any(pair == port for pair in zip(route[1:], route, strict=False))
                for route in routes
            )
            for port in set(ports)
            if port[1] >= 0
        }
        weight = np.array([1.0 / count.get(port, 1) for port in ports])
        rate = max_min(uses, weight, capacity)
    return rate


def durations(flows: Flows, by_port: bool) -> np.ndarray:
    """How long each flow lasts, s."""
    left = flows.size_B.copy()
    end = np.full(len(left), np.nan)
    now = 0.0
    while np.isnan(end).any():
        chosen = np.flatnonzero((flows.start_s <= now) & (left > 0.0))
        later = flows.start_s[flows.start_s > now]
        until = later.min(initial=np.inf)
        if len(chosen):
            rate = rates(flows, chosen, by_port)
            last = now + left[chosen] / rate
            until = min(until, last.min())
            over = chosen[last <= until * (1.0 + 1e-12)]
            left[chosen] -= rate * (until - now)
            left[over] = 0.0
            end[over] = until
        now = until
    return end + flows.tail_s - flows.start_s


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", type=Path)
    given = parser.parse_args()
    told: dict[bool, list[np.ndarray]] = {False: [], True: []}
    print("case: median error by flows, by ports; largest difference from the product by flows")
    with tempfile.TemporaryDirectory() as scratch:
        for case in cases_in(given.cases):
            if case.kind != "ROCE":
                continue
            flows = read_flows(case, read_wire(case.place / "wire.json"))
            product = predict(case, FLUID, Path(scratch), repeats=1)[0]
            true_s = np.array([case.measured_s[name] for name in flows.ids])
            found = {by_port: durations(flows, by_port) for by_port in told}
            for by_port, own in found.items():
                told[by_port].append(errors(own, true_s))
            off = errors(found[False], np.array([product[name] for name in flows.ids])).max()
            medians = [np.median(told[by_port][-1]) for by_port in told]
            print(f"{case.place.name}: {medians[0]:.3f}, {medians[1]:.3f}; {off:.1e}", flush=True)
    for by_port, all_own in told.items():
        together = np.concatenate(all_own)
        mean = np.mean([np.median(own) for own in all_own])
        print(
            f"{'by ports' if by_port else 'by flows'}: {np.median(together):.3f} / "
            f"{np.quantile(together, 0.9):.3f} [{mean:.3f}]"
        )


if __name__ == "__main__":
    main()
