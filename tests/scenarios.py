"""Random scenarios, seeded: a platform (generated, or a file) and what happens on it.

A scenario is a plain dictionary that goes through JSON unchanged::

    {"seed": int, "family": str, "observer": host,
     "platform_xml": text, "files": {name: text}  or  "platform_path": path,
     "profiles": [[kind, element, [[date, value], ...], period or None], ...],
     "gamma": bytes, "events": [[date, what, target, value], ...], "tasks": [...]}

Tasks, profiles and events are those of :mod:`naive`; a task may also say ``"plain": "comm"`` or
``"exec"`` when SimGrid shall run it as a communication or a sequential execution. ``profiles``
repeats what the platform's files say, for those who do not read platforms. Left out on purpose is
what ``docs/differences_from_simgrid.md`` lists: there nobody wants SimGrid's answer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

HEADER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""


class Place:
    """A platform under construction: its text, its hosts, and the scales of its resources."""

    def __init__(self, rng: random.Random, family: str) -> None:
        self.rng = rng
        self.family = family
        self.round_numbers = rng.random() < 0.4
        self.speed = 10.0 ** rng.choice([0, 2, 6, 9, 9, 11, 12])
        self.bandwidth = 10.0 ** rng.choice([0, 2, 6, 8, 9, 10])
        self.latency_s = rng.choice([0.0, 0.0, 1e-6, 1e-3, 0.5])
        self.gamma = rng.choice([4194304.0, 4194304.0, self.bandwidth])
        self.hosts: list[str] = []
        self.links: list[str] = []
        self.has_fatpipe = False
        self.no_fatpipe = False
        self.profiles: list[list] = []
        self.files: dict[str, str] = {}
        self.loopback_Bps = 10.0 * self.bandwidth
        self.extra_config: dict[str, str | float] = {}
        self.text = ""

    def number(self, scale: float) -> float:
        """A value around ``scale``: round ones make ties, others the general case."""
        if self.round_numbers:
            return scale * self.rng.choice([0.5, 1.0, 1.0, 2.0, 4.0])
        return scale * self.rng.uniform(0.3, 3.0)

    def latency(self) -> str:
        return f"{self.number(self.latency_s)!r}s"

    def rate(self) -> str:
        return f"{self.number(self.bandwidth)!r}Bps"

    def flops(self) -> str:
        return f"{self.number(self.speed)!r}f"

    def policy(self) -> str:
        policies = ["SHARED", "SHARED", "SHARED", "SPLITDUPLEX", "FATPIPE"]
        policy = self.rng.choice(policies[: 4 if self.no_fatpipe else 5])
        self.has_fatpipe |= policy == "FATPIPE"
        return policy

    def config(self) -> str:
        settings: dict[str, str | float] = {
            "network/TCP-gamma": self.gamma,
            "network/loopback-bw": self.loopback_Bps,
            "network/loopback-lat": self.rng.choice([0.0, 0.0, self.latency_s]),
        }
        settings |= self.extra_config
        lines = [f'<prop id="{k}" value="{v}"/>' for k, v in settings.items()]
        return '<config id="General">\n' + "\n".join(lines) + "\n</config>\n"

    def finished(self, zones: str) -> str:
        return f"{HEADER}{self.config()}{zones}</platform>\n"


def full_zone(place: Place) -> None:
    """Hosts and links of every kind, each pair of hosts with a route of its own."""
    rng = place.rng
    place.hosts = [f"h{i}" for i in range(rng.randint(2, 6))]
    names = [f"l{i}" for i in range(rng.randint(1, 7))]
    lines, plain = ['<zone id="world" routing="Full">', '<host id="observer" speed="1f"/>'], []
    for host in place.hosts:
        speeds = ",".join(place.flops() for _ in range(rng.choice([1, 1, 1, 3])))
        pstate = rng.randint(0, speeds.count(","))
        speed_file = _maybe_profile(place, "speed", host, 1.0)
        lines.append(
            f'<host id="{host}" speed="{speeds}" pstate="{pstate}" '
            f'core="{rng.choice([1, 1, 1, 2, 4])}"{speed_file}/>'
        )
    policies = {}
    for name in names:
        policies[name] = place.policy()
        files = ""
        if policies[name] != "SPLITDUPLEX":
            plain.append(name)
            files = _maybe_profile(place, "bandwidth", name, place.bandwidth)
            if not place.extra_config:  # flows are freed early by a change of latency
                files += _maybe_profile(place, "latency", name, place.latency_s)
        lines.append(
            f'<link id="{name}" bandwidth="{place.rate()}" latency="{place.latency()}" '
            f'sharing_policy="{policies[name]}"{files}/>'
        )
    for i, src in enumerate(place.hosts):
        for dst in place.hosts[i if rng.random() < 0.3 else i + 1 :]:
            chosen = [rng.choice(names) for _ in range(rng.randint(1, 4))]
            if place.extra_config and place.profiles:
                # SimGrid's weights forget repetitions when a bandwidth changes.
                chosen = list(dict.fromkeys(chosen))
            if src == dst and any(policies[name] == "SPLITDUPLEX" for name in chosen):
                continue
            lines.append(f'<route src="{src}" dst="{dst}">')
            for name in chosen:
                way = ' direction="UP"' if policies[name] == "SPLITDUPLEX" else ""
                lines.append(f'<link_ctn id="{name}"{way}/>')
            lines.append("</route>")
    place.links = plain
    place.text = place.finished("\n".join(lines) + "\n</zone>\n")


def _maybe_profile(place: Place, kind: str, element: str, scale: float) -> str:
    """With some luck, an attribute that gives the element a profile (and remembers it)."""
    rng = place.rng
    if rng.random() > 0.12:
        return ""
    if place.extra_config and kind == "bandwidth" and not place.no_fatpipe:
        return ""
    dates = sorted(
        {round(rng.uniform(0, 30), rng.choice([0, 3])) for _ in range(rng.randint(1, 5))}
    )
    points = [[date, place.number(scale)] for date in dates]
    period = rng.choice([None, None, 37.5])
    lines = [f"PERIODICITY {period}"] if period else []
    lines += [f"{date!r} {value!r}" for date, value in points]
    name = f"{kind}_{element}.profile"
    place.files[name] = "\n".join(lines) + "\n"
    place.profiles.append([kind, element, points, period])
    return f' {kind}_file="{name}"'


def flat_cluster(place: Place) -> None:
    """One flat cluster, with or without backbone, loopback, limiter."""
    rng = place.rng
    place.hosts = [f"n{i}" for i in range(rng.randint(3, 12))]
    place.text = place.finished(_cluster(place, "c", "n", len(place.hosts)))


def _cluster(place: Place, name: str, prefix: str, size: int, topology: str = "") -> str:
    rng = place.rng
    policy = rng.choice(["SHARED", "SPLITDUPLEX", "SPLITDUPLEX", "FATPIPE"])
    place.has_fatpipe |= policy == "FATPIPE"
    extra = ""
    if not topology and rng.random() < 0.5:
        bb_policy = rng.choice(["SHARED", "FATPIPE"])
        place.has_fatpipe |= bb_policy == "FATPIPE"
        extra += (
            f' bb_bw="{place.rate()}" bb_lat="{place.latency()}" bb_sharing_policy="{bb_policy}"'
        )
    if rng.random() < 0.4:
        place.has_fatpipe = True
        extra += f' loopback_bw="{place.rate()}" loopback_lat="{place.latency()}"'
    if rng.random() < 0.3:
        extra += f' limiter_link="{place.rate()}"'
    return (
        f'<cluster id="{name}" prefix="{prefix}" suffix="" radical="0-{size - 1}" '
        f'speed="{place.flops()}" core="{rng.choice([1, 1, 2, 4])}" bw="{place.rate()}" '
        f'lat="{place.latency()}" sharing_policy="{policy}"{extra}{topology}/>\n'
    )


def structured_cluster(place: Place) -> None:
    """A torus, a fat tree or a dragonfly."""
    rng = place.rng
    kind = rng.choice(["TORUS", "FAT_TREE", "DRAGONFLY"])
    if kind == "TORUS":
        sides = [rng.randint(2, 4) for _ in range(rng.randint(1, 3))]
        size, parameters = math.prod(sides), ",".join(map(str, sides))
    elif kind == "FAT_TREE":
        down = [rng.randint(2, 4), rng.randint(2, 4)]
        up = [1, rng.randint(1, 2)]
        cables = [rng.randint(1, 2), rng.randint(1, 2)]
        parts = [",".join(map(str, part)) for part in (down, up, cables)]
        size, parameters = math.prod(down), "2;" + ";".join(parts)
    else:
        groups, chassis, nodes = rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, 2)
        blades = rng.randint(groups, 3)
        size = groups * chassis * blades * nodes
        parameters = f"{groups},2;{chassis},1;{blades},2;{nodes}"
    place.hosts = [f"n{i}" for i in range(size)]
    topology = f' topology="{kind}" topo_parameters="{parameters}"'
    # SimGrid 4 wants such a cluster below a zone.
    cluster = _cluster(place, "c", "n", size, topology)
    place.text = place.finished(f'<zone id="world" routing="Full">\n{cluster}</zone>\n')


def graph_zone(place: Place) -> None:
    """A connected graph of routers and hosts in a Floyd or Dijkstra zone."""
    rng = place.rng
    place.hosts = [f"h{i}" for i in range(rng.randint(2, 7))]
    routers = [f"r{i}" for i in range(rng.randint(1, 4))]
    routing = rng.choice(["Floyd", "Dijkstra", "DijkstraCache"])
    lines = [f'<zone id="world" routing="{routing}">']
    for host in place.hosts:
        lines.append(f'<host id="{host}" speed="{place.flops()}" core="{rng.choice([1, 1, 2])}"/>')
    lines += [f'<router id="{router}"/>' for router in routers]
    edges = [(router, rng.choice(routers[:k])) for k, router in enumerate(routers) if k]
    edges += [(host, rng.choice(routers)) for host in place.hosts]
    for k in range(len(edges)):
        policy = rng.choice(["SHARED", "SHARED", "FATPIPE"])
        place.has_fatpipe |= policy == "FATPIPE"
        place.links.append(f"l{k}")
        lines.append(
            f'<link id="l{k}" bandwidth="{place.rate()}" latency="{place.latency()}" '
            f'sharing_policy="{policy}"/>'
        )
    for k, (src, dst) in enumerate(edges):
        lines.append(f'<route src="{src}" dst="{dst}"><link_ctn id="l{k}"/></route>')
    place.text = place.finished("\n".join(lines) + "\n</zone>\n")


def two_clusters(place: Place) -> None:
    """Two clusters below one zone, joined by a link, each entered at its router."""
    rng = place.rng
    sizes = [rng.randint(2, 5), rng.randint(2, 5)]
    place.hosts = [f"{p}{i}" for p, size in zip("ab", sizes, strict=True) for i in range(size)]
    zones = _cluster(place, "za", "a", sizes[0]) + _cluster(place, "zb", "b", sizes[1])
    link = f'<link id="wan" bandwidth="{place.rate()}" latency="{place.latency()}"/>\n'
    # A flat cluster's router is named prefix, cluster name, "_router", suffix.
    route = (
        '<zoneRoute src="za" dst="zb" gw_src="aza_router" gw_dst="bzb_router">'
        '<link_ctn id="wan"/></zoneRoute>\n'
    )
    place.links = ["wan"]
    place.text = place.finished(f'<zone id="world" routing="Full">\n{zones}{link}{route}</zone>\n')


def vivaldi_zone(place: Place) -> None:
    """Peers or hosts whose latencies come from coordinates."""
    rng = place.rng
    place.hosts = [f"p{i}" for i in range(rng.randint(2, 6))]
    lines = ['<zone id="world" routing="Vivaldi">']
    for host in place.hosts:
        spot = f"{rng.uniform(0, 300):.3f} {rng.uniform(0, 300):.3f} {rng.uniform(0, 9):.3f}"
        lines.append(
            f'<peer id="{host}" speed="{place.flops()}" bw_in="{place.rate()}" '
            f'bw_out="{place.rate()}" coordinates="{spot}"/>'
        )
    place.text = place.finished("\n".join(lines) + "\n</zone>\n")


FAMILIES: dict[str, Callable[[Place], None]] = {
    "full": full_zone,
    "cluster": flat_cluster,
    "structured": structured_cluster,
    "graph": graph_zone,
    "two-clusters": two_clusters,
    "vivaldi": vivaldi_zone,
}


def random_scenario(seed: int, family: str | None = None) -> dict:
    """A scenario on a generated platform."""
    rng = random.Random(f"scenario {seed}")
    family = family or rng.choice(["full", "full", *FAMILIES])
    place = Place(rng, family)
    FAMILIES[family](place)
    scenario = _scenario(seed, family, place, random_tasks(place))
    if family == "full":
        _add_trouble(place, scenario)
    return scenario


def _scenario(seed: int, family: str, place: Place, tasks: list[dict]) -> dict:
    """Tasks on a generated platform, where nothing happens to its resources so far."""
    return {
        "seed": seed,
        "family": family,
        "platform_xml": place.text,
        "files": place.files,
        "profiles": place.profiles,
        "gamma": place.gamma,
        "events": [],
        "tasks": tasks,
        **({"observer": "observer"} if family == "full" else {}),
    }


def random_flow_scenario(seed: int) -> dict:
    """Communications and executions only, for the flow-level network models."""
    rng = random.Random(f"flow scenario {seed}")
    family = rng.choice(["full", *FAMILIES])
    place = Place(rng, family)
    # Below, the absolute precisions of SimGrid's max-min solver decide, not the model.
    place.bandwidth = 10.0 ** rng.choice([6, 8, 9, 10])
    place.loopback_Bps = 10.0 * place.bandwidth
    # A bandwidth that changes during SimGrid's latency phase ends that phase: keep it short.
    place.latency_s = rng.choice([1e-6, 1e-5, 1e-4])
    place.extra_config = {"network/crosstraffic": rng.choice(["yes", "no"])}
    # On a FATPIPE, max-min meets a tie that the last digit of a weight decides; SimGrid's weights
    # gather rounding errors as bandwidths change: not both.
    place.no_fatpipe = rng.random() < 0.5
    if rng.random() < 0.3:
        place.extra_config["network/weight-S"] = rng.choice([0.0, 1000.0, 8775.0])
    if rng.random() < 0.3:
        place.extra_config["network/latency-factor"] = rng.choice([1.0, 10.4])
        place.extra_config["network/bandwidth-factor"] = rng.choice([1.0, 0.92])
    FAMILIES[family](place)
    starts = [0.0, *[place.number(3.0) for _ in range(rng.randint(0, 4))]]
    # SimGrid sleeps until a start and may wake up one rounding early: not on a change of bandwidth,
    # since what a flow meets at its start stays its bound.
    changes = {date for _, _, events, _ in place.profiles for date, _ in events}
    starts = [start + 0.0625 if start in changes else start for start in starts]
    tasks = []
    for k in range(rng.randint(1, 12)):
        task = {"id": f"t{k}", "start": rng.choice(starts)}
        if rng.random() < 0.2:
            flops = [place.number(5.0 * place.speed)]
            task |= {"plain": "exec", "hosts": [rng.choice(place.hosts)], "flops": flops}
        else:
            task |= _communication(place)
        tasks.append(task)
    return _scenario(seed, family, place, tasks)


def scenario_on_file(seed: int, path: str, facts: dict) -> dict:
    """A scenario on a platform that exists; ``facts`` as :mod:`naive` takes them (some hosts)."""
    rng = random.Random(f"file scenario {seed}")
    place = Place(rng, "file")
    place.hosts = list(facts["hosts"])
    speeds = [h["speeds"][h["pstate"]] for h in facts["hosts"].values()]
    rates = [link["bandwidth"] for name, link in facts["links"].items() if name != "__loopback__"]
    place.speed = sorted(speeds)[len(speeds) // 2]
    place.bandwidth = sorted(rates)[len(rates) // 2] if rates else 1e8
    routes = {pair for pair, (links, _) in facts["routes"].items() if links}
    fatpipes = {name for name, link in facts["links"].items() if link["fatpipe"]}
    safe = {p for p in routes if not fatpipes & set(facts["routes"][p][0]) or p[0] != p[1]}
    tasks = random_tasks(place, safe)
    return {
        "seed": seed,
        "family": "file",
        "platform_path": path,
        "profiles": [],
        "events": [],
        "gamma": 4194304.0,
        "tasks": tasks,
    }


def random_tasks(place: Place, routes: set[tuple[str, str]] | None = None) -> list[dict]:
    """Some tasks that meet on the platform's resources; only these pairs of hosts communicate."""
    rng = place.rng
    starts = [0.0] + [place.number(5.0) for _ in range(rng.randint(0, 4))]
    tasks: list[dict] = []
    for k in range(rng.randint(1, 12)):
        task: dict = {"id": f"t{k}", "start": rng.choice(starts)}
        kind = rng.random()
        if kind < 0.08:
            task |= {"hosts": [rng.choice(place.hosts)], "seconds": place.number(4.0)}
        elif kind < 0.25:
            flops = 0.0 if rng.random() < 0.05 else place.number(5.0 * place.speed)
            task |= {"plain": "exec", "hosts": [rng.choice(place.hosts)], "flops": [flops]}
        elif kind < 0.4:
            task |= _communication(place)
        else:
            task |= _parallel(place)
        if routes is not None:
            task["flows"] = [
                [i, j, b]
                for i, j, b in task.get("flows", [])
                if (task["hosts"][i], task["hosts"][j]) in routes
            ]
            if task.get("plain") == "comm" and not task["flows"]:
                continue
        if tasks and rng.random() < 0.2:
            chosen = rng.sample(tasks, min(len(tasks), rng.randint(1, 2)))
            task["after"] = [other["id"] for other in chosen]
        tasks.append(task)
    return tasks


def _communication(place: Place) -> dict:
    src, dst = place.rng.choice(place.hosts), place.rng.choice(place.hosts)
    if src == dst:
        dst = place.hosts[(place.hosts.index(src) + 1) % len(place.hosts)]
    amount = float(max(1, round(place.number(5.0 * place.bandwidth))))
    return {"plain": "comm", "hosts": [src, dst], "flops": [0.0, 0.0], "flows": [[0, 1, amount]]}


def _parallel(place: Place) -> dict:
    rng = place.rng
    n = rng.randint(2, 6)
    if rng.random() < 0.6 and n <= len(place.hosts):
        hosts = rng.sample(place.hosts, n)
    else:
        hosts = [rng.choice(place.hosts) for _ in range(n)]
    flops = [0.0 if rng.random() < 0.25 else place.number(3.0 * place.speed) for _ in range(n)]
    if rng.random() < 0.2:
        flops = [0.0] * n
    pattern = rng.choice(["none", "all", "ring", "some", "some", "self"])
    same = place.number(2.0 * place.bandwidth)
    pairs = [(i, j) for i in range(n) for j in range(n)]
    if pattern == "all":
        flows = [[i, j, same] for i, j in pairs if i != j]
    elif pattern == "ring":
        flows = [[i, (i + 1) % n, same] for i in range(n)]
    elif pattern == "none":
        flows = []
    else:
        kept = rng.sample(pairs, rng.randint(1, min(6, n * n)))
        flows = [[i, j, place.number(2.0 * place.bandwidth)] for i, j in sorted(kept)]
    if pattern != "self":
        flows = [[i, j, b] for i, j, b in flows if hosts[i] != hosts[j]]
    return {"hosts": hosts, "flops": flops, "flows": flows}


def _add_trouble(place: Place, scenario: dict) -> None:
    """Walltimes, cancellations, changes of capacity, breakdowns."""
    rng = place.rng
    tasks, events = scenario["tasks"], scenario["events"]
    if rng.random() < 0.3:
        for task in tasks:
            if rng.random() < 0.3 and "seconds" not in task and not task.get("after"):
                task["walltime"] = place.number(6.0)
    for _ in range(rng.choice([0, 0, 1, 3])):
        date = place.number(7.0)
        what = rng.choice(["bandwidth", "latency", "pstate", "cancel", "suspend"])
        if what in ("bandwidth", "latency") and place.links:
            scale = place.bandwidth if what == "bandwidth" else place.latency_s
            events.append([date, what, rng.choice(place.links), place.number(scale)])
        elif what == "pstate":
            events.append([date, what, rng.choice(place.hosts), 0])
        elif what in ("cancel", "suspend"):
            chosen = rng.choice(tasks)
            if (
                "walltime" in chosen
                or "seconds" in chosen
                or chosen.get("flows")
                or chosen["start"] >= date
            ):
                continue
            events.append([date, what, chosen["id"]])
            if what == "suspend":
                events.append([date + place.number(2.0), "resume", chosen["id"]])
    chained = any(task.get("after") for task in tasks)
    if rng.random() < 0.25 and not chained:
        _add_breakdown(place, scenario)


def _add_breakdown(place: Place, scenario: dict) -> None:
    """A host or a link goes down after every task has started."""
    date = max(task["start"] for task in scenario["tasks"]) + place.number(3.0)
    if place.links and place.rng.random() < 0.5:
        scenario["events"].append([date, "link_off", place.rng.choice(place.links)])
    else:
        scenario["events"].append([date, "host_off", place.rng.choice(place.hosts)])
