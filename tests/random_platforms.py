"""Random nested platforms, as SimGrid XML, for comparisons: same seed, same text."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

HEADER = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n'
)
FOOTER = "</platform>\n"


def random_platform(seed: int, depth: int = 3) -> str:
    """A platform of up to ``depth`` levels of zones, with some dozens of hosts."""
    maker = _Maker(random.Random(seed))
    maker.zone(depth if maker.random.random() < 0.8 else 0)
    return HEADER + "\n".join(maker.lines) + "\n" + FOOTER


@dataclass
class _Link:
    name: str
    split: bool


@dataclass
class _Zone:
    """``gateways``: its hosts and routers at any depth; ``inside``: itself and all zones below."""

    name: str
    gateways: list[str]
    below: list[_Zone] = field(default_factory=list)

    @property
    def inside(self) -> list[_Zone]:
        return [self, *(zone for child in self.below for zone in child.inside)]


@dataclass
class _Maker:
    random: random.Random
    lines: list[str] = field(default_factory=list)
    count: int = 0
    links: list[_Link] = field(default_factory=list)

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def add(self, text: str) -> None:
        self.lines.append(text)

    def zone(self, depth: int) -> _Zone:
        """Write one zone."""
        if depth > 0:
            return self.internal(depth)
        makers = [self.routed, self.routed, self.star, self.cluster, self.cluster]
        return self.random.choice(makers)()

    def internal(self, depth: int) -> _Zone:
        name = self.name("z")
        kind = self.random.choice(["Full", "Full", "Floyd", "Dijkstra", "DijkstraCache"])
        self.add(f'<zone id="{name}" routing="{kind}">')
        children = [
            self.zone(self.random.choice([0, depth - 1]))
            for _ in range(self.random.randint(2, 3 if depth > 1 else 4))
        ]
        self.declare_links(self.random.randint(2, 4))
        # Where paths are composed, SimGrid's Dijkstra wants one gateway per zone.
        fixed = [self.random.choice(child.gateways) for child in children]
        for a, b, symmetrical in self.pairs(len(children), kind):
            ways = (fixed[a], fixed[b])
            if not kind.startswith("Dijkstra"):
                ways = tuple(self.random.choice(children[end].gateways) for end in (a, b))
            attributes = f'src="{children[a].name}" dst="{children[b].name}" '
            attributes += f'gw_src="{ways[0]}" gw_dst="{ways[1]}" symmetrical="{symmetrical}"'
            self.route("zoneRoute", attributes)
        if self.random.random() < 0.4:
            self.zone_bypasses(children)
        self.add("</zone>")
        return _Zone(name, [gateway for child in children for gateway in child.gateways], children)

    def zone_bypasses(self, children: list[_Zone]) -> None:
        done: set[tuple[str, ...]] = set()
        for _ in range(self.random.randint(1, 3)):
            a, b = self.random.sample(range(len(children)), 2)
            ends = [self.random.choice(children[end].inside) for end in (a, b)]
            names = tuple(end.name for end in ends)
            if names in done:
                continue
            done.add(names)
            ways = tuple(self.random.choice(end.gateways) for end in ends)
            attributes = f'src="{names[0]}" dst="{names[1]}" gw_src="{ways[0]}" gw_dst="{ways[1]}"'
            self.route("bypassZoneRoute", attributes)

    def pairs(self, size: int, kind: str) -> list[tuple[int, int, str]]:
        """Declared routes: all pairs for Full, a connected part of them otherwise."""
        every = [(a, b) for a in range(size) for b in range(a + 1, size)]
        self.random.shuffle(every)
        if kind != "Full":
            tree = [(self.random.randrange(b), b) for b in range(1, size)]
            extra = [pair for pair in every if pair not in tree]
            every = tree + extra[: self.random.randint(0, 2)]
            self.random.shuffle(every)
        declared = []
        for pair in every:
            a, b = pair if self.random.random() < 0.5 else pair[::-1]
            if self.random.random() < 0.7:
                declared.append((a, b, self.random.choice(["YES", "yes"])))
            else:
                declared += [(a, b, "NO"), (b, a, "NO")]
        return declared

    def routed(self) -> _Zone:
        """A leaf zone with declared routes."""
        name = self.name("z")
        kind = self.random.choice(["Full", "Floyd", "Dijkstra", "DijkstraCache"])
        self.add(f'<zone id="{name}" routing="{kind}">')
        points = []
        for _ in range(self.random.randint(2, 5)):
            point = self.name("p")
            is_host = self.random.random() < 0.8 or not points
            self.add(f'<host id="{point}" speed="1Gf"/>' if is_host else f'<router id="{point}"/>')
            points.append(point)
        self.declare_links(self.random.randint(2, 5))
        for a, b, symmetrical in self.pairs(len(points), kind):
            attributes = f'src="{points[a]}" dst="{points[b]}" symmetrical="{symmetrical}"'
            self.route("route", attributes)
        if self.random.random() < 0.3:
            a, b = self.random.sample(points, 2)
            self.route("bypassRoute", f'src="{a}" dst="{b}"')
        if self.random.random() < 0.2:
            self.route("bypassRoute", f'src="{points[0]}" dst="{points[0]}"')
        self.add("</zone>")
        return _Zone(name, points)

    def star(self) -> _Zone:
        """A zone of routing Cluster with host_link, cabinet, backbone, router."""
        name = self.name("z")
        self.add(f'<zone id="{name}" routing="Cluster">')
        points = [self.name("p") for _ in range(self.random.randint(1, 4))]
        for point in points:
            self.add(f'<host id="{point}" speed="1Gf"/>')
        router = self.name("r")
        self.add(f'<router id="{router}"/>')
        first = len(self.links)
        self.declare_links(self.random.randint(2, 4))
        halves = [
            half
            for link in self.links[first:]
            for half in ([f"{link.name}_UP", f"{link.name}_DOWN"] if link.split else [link.name])
        ]
        for point in points:
            if self.random.random() < 0.8:
                up, down = self.random.choice(halves), self.random.choice(halves)
                self.add(f'<host_link id="{point}" up="{up}" down="{down}"/>')
        if self.random.random() < 0.5:
            self.add(
                f'<backbone id="{self.name("b")}" bandwidth="1GBps" latency="{self.latency()}"/>'
            )
        if self.random.random() < 0.5:
            cabinet = self.name("c")
            self.add(
                f'<cabinet id="{cabinet}" prefix="{cabinet}-" suffix=".x" '
                f'radical="{self.radical(3)}" speed="1Gf" bw="1GBps" lat="{self.latency()}"/>'
            )
        self.add("</zone>")
        return _Zone(name, [*points, router])

    def cluster(self) -> _Zone:
        name = self.name("k")
        topology, parameters, nodes = self.topology()
        radical = self.radical(nodes)
        attributes = {
            "id": name,
            "prefix": f"{name}-",
            "suffix": self.random.choice(["", ".s"]),
            "radical": radical,
            "speed": "1Gf",
            "bw": "1GBps",
            "lat": self.latency(),
            "topology": topology,
            "topo_parameters": parameters,
        }
        policies = ["SPLITDUPLEX", "SHARED", "FATPIPE", None]
        optional = {
            "sharing_policy": self.random.choice(policies),
            "limiter_link": self.random.choice(["1GBps", None, None]),
            "loopback_bw": self.random.choice(["1GBps", None]),
            "loopback_lat": self.random.choice([self.latency(), None]),
            "bb_bw": self.random.choice(["1GBps", None]),
            "bb_lat": self.random.choice([self.latency(), None]),
        }
        attributes |= {key: value for key, value in optional.items() if value is not None}
        if topology == "FLAT":
            attributes.pop("topo_parameters")
            if self.random.random() < 0.5:
                attributes["router_id"] = self.name("r")
        written = " ".join(f'{key}="{value}"' for key, value in attributes.items())
        self.add(f"<cluster {written}/>")
        points = [f"{name}-{r}{attributes['suffix']}" for r in _expand(radical)[:nodes]]
        if topology == "FLAT":
            points.append(
                attributes.get("router_id", f"{name}-{name}_router{attributes['suffix']}")
            )
        return _Zone(name, points)

    def topology(self) -> tuple[str, str, int]:
        """Topology, parameters, number of nodes."""
        pick = self.random.randint
        kind = self.random.choice(["FLAT", "TORUS", "FAT_TREE", "DRAGONFLY"])
        if kind == "TORUS":
            sizes = [pick(2, 5) for _ in range(pick(1, 3))]
            nodes = 1
            for size in sizes:
                nodes *= size
            return kind, ",".join(map(str, sizes)), nodes
        if kind == "FAT_TREE":
            levels = pick(1, 3)
            children = [pick(2, 4) for _ in range(levels)]
            parents = [pick(1, 2) for _ in range(levels)]
            cables = [pick(1, 3) for _ in range(levels)]
            nodes = 1
            for child in children:
                nodes *= child
            parts = [[levels], children, parents, cables]
            return kind, ";".join(",".join(map(str, part)) for part in parts), nodes
        if kind == "DRAGONFLY":
            groups, chassis, per = pick(1, 3), pick(1, 3), pick(1, 2)
            blades = pick(groups, 4)
            text = f"{groups},{pick(1, 3)};{chassis},{pick(1, 3)};{blades},{pick(1, 3)};{per}"
            return kind, text, groups * chassis * blades * per
        return kind, "", pick(1, 6)

    def radical(self, nodes: int) -> str:
        """Some ``nodes`` values, in groups of random order."""
        start = self.random.randint(0, 5)
        if nodes >= 3 and self.random.random() < 0.5:
            cut = self.random.randint(1, nodes - 1)
            groups = [f"{start}-{start + cut - 1}", f"{start + cut}-{start + nodes - 1}"]
            self.random.shuffle(groups)
            return ",".join(groups)
        return f"{start}-{start + nodes - 1}"

    def latency(self) -> str:
        return f"{self.random.randint(1, 10**9)}ns"

    def declare_links(self, number: int) -> None:
        for _ in range(number):
            policy = self.random.choice(["SHARED", "SPLITDUPLEX", "FATPIPE"])
            name = self.name("l")
            self.add(
                f'<link id="{name}" bandwidth="1GBps" latency="{self.latency()}" '
                f'sharing_policy="{policy}"/>'
            )
            self.links.append(_Link(name, policy == "SPLITDUPLEX"))

    def route(self, tag: str, attributes: str) -> None:
        """A route over one to three links declared so far, of this zone or another."""
        inner = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            link = self.random.choice(self.links)
            if not link.split:
                inner.append(f'<link_ctn id="{link.name}"/>')
            elif self.random.random() < 0.2:
                inner.append(f'<link_ctn id="{link.name}_UP"/>')
            else:
                direction = self.random.choice(["UP", "DOWN"])
                inner.append(f'<link_ctn id="{link.name}" direction="{direction}"/>')
        self.add(f"<{tag} {attributes}>{''.join(inner)}</{tag}>")


def _expand(radical: str) -> list[int]:
    values: list[int] = []
    for group in radical.split(","):
        first, _, last = group.partition("-")
        values.extend(range(int(first), int(last or first) + 1))
    return values
