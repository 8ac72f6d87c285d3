# mypy: allow-untyped-defs, allow-incomplete-defs
"""Dragonflies: groups of chassis of routers with a few hosts each.

All routers of a chassis are linked (green cables), routers at the same place in the chassis of a
group are linked (black), and all groups are linked (blue). The table has the parameters G groups, C
chassis in each, B routers (blades) in each, N hosts at each. Links are numbered local, green
(chassis by chassis), black, blue.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.platform.facts import short
from ptaskmodel.platform.topologies.topology import (
    DUPLEX,
    FIRST,
    LIMITER,
    LOOPBACK,
    NODES,
    PARAMS,
    BoolArray,
    Edge,
    IntArray,
    LinkBlock,
    ParameterError,
    Site,
    Survey,
    Topology,
    block_table,
    check_positive,
    integers,
    joined,
    own_loops,
    own_ports,
)


@jit
def _pair(j, k, n):
    """Rank of (j, k), j < k < n, in lexicographic order."""
    return j * (2 * n - j - 1) // 2 + k - j - 1


@jit
def _hop(table, first, j, k, n, times, plus):
    """The half link from j to k among all pairs of n; j < k owns the UP half."""
    rank = _pair(min(j, k), max(j, k), n) * times + plus
    down = table[DUPLEX] if j > k else 0
    return table[FIRST] + (first + rank) * (1 + table[DUPLEX]) + down


@jit
def _walk(table, a, b, out):
    """The minimal route, by SimGrid's rules.

    After the last green hop the current router is taken to be in chassis 0, whatever its chassis
    really was.
    """
    if a == b and table[LOOPBACK] >= 0:
        out[0] = table[LOOPBACK] + a
        return 1
    G, C, B, N = table[PARAMS], table[PARAMS + 1], table[PARAMS + 2], table[PARAMS + 3]
    duplex, limiter, nodes = table[DUPLEX], table[LIMITER], table[NODES]
    green = G * C * B * N
    black = green + G * C * (B * (B - 1) // 2)
    blue = black + G * (C * (C - 1) // 2) * B
    limited = 1 if limiter >= 0 else 0
    routers = limiter + nodes
    group, chassis, blade = a // (C * B * N), (a // (B * N)) % C, (a // N) % B
    to_group, to_chassis, to_blade = b // (C * B * N), (b // (B * N)) % C, (b // N) % B
    count = 0
    if limited:
        out[count] = limiter + a
        count += 1
    out[count] = table[FIRST] + a * (1 + duplex)
    count += 1
    if a // N != b // N:
        if group != to_group:
            if blade != to_group:
                if limited:
                    out[count] = routers + (group * C + chassis) * B + blade
                pairs = (group * C + chassis) * (B * (B - 1) // 2)
                out[count + limited] = _hop(table, green + pairs, blade, to_group, B, 1, 0)
                count += 1 + limited
                blade = to_group
            if chassis != 0:
                if limited:
                    out[count] = routers + (group * C + chassis) * B + blade
                pairs = group * (C * (C - 1) // 2) * B
                out[count + limited] = _hop(table, black + pairs, chassis, 0, C, B, blade)
                count += 1 + limited
                chassis = 0
            out[count] = _hop(table, blue, group, to_group, G, 1, 0)
            count += 1
            if limited:
                out[count] = routers + (group * C + chassis) * B + blade
                count += 1
            group, blade = to_group, group
        if blade != to_blade:
            if limited:
                out[count] = routers + (group * C + chassis) * B + blade
            pairs = (group * C + chassis) * (B * (B - 1) // 2)
            out[count + limited] = _hop(table, green + pairs, blade, to_blade, B, 1, 0)
            count += 1 + limited
            blade, chassis = to_blade, 0
        if chassis != to_chassis:
            if limited:
                out[count] = routers + (group * C + chassis) * B + blade
            pairs = group * (C * (C - 1) // 2) * B
            out[count + limited] = _hop(table, black + pairs, chassis, to_chassis, C, B, blade)
            count += 1 + limited
    if limited:
        out[count] = routers + b // N
        count += 1
    out[count] = table[FIRST] + b * (1 + duplex) + duplex
    count += 1
    if limited:
        out[count] = limiter + b
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class Dragonfly(Topology):
    """A dragonfly: (groups, blue cables), (chassis, black cables), (routers, green cables), hosts.

    Each of the first three is how many of them the next larger part has, and by how many cables
    two of them are linked, which then count as one link of so many times the bandwidth. ``per``:
    hosts of a router.
    """

    groups: tuple[int, int]
    chassis: tuple[int, int]
    routers: tuple[int, int]
    per: int

    name = "DRAGONFLY"
    walk = _walk

    def __post_init__(self) -> None:
        check_positive(*self.groups, *self.chassis, *self.routers, self.per)
        (groups, _), (routers, _) = self.groups, self.routers
        if routers < groups:
            what = f"topo_parameters: {groups} groups but {routers} blades per chassis; "
            raise ParameterError(f"{what}give at least one blade per group")

    @classmethod
    def parse(cls, text: str, hosts: int) -> Dragonfly:
        """Return the dragonfly of ``topo_parameters`` (`text`). Raises ParameterError unless it has
        `hosts`.
        """
        parts = [integers(part) for part in text.split(";")]
        check_positive(*(number for part in parts for number in part))
        if [len(part) for part in parts] != [2, 2, 2, 1]:
            what = f"topo_parameters {short(text)}; write 'groups,blue cables;"
            what += (
                "chassis,black cables;blades,green cables;nodes per blade', e.g. '2,1;2,1;2,1;4'"
            )
            raise ParameterError(what)
        groups, chassis, routers, (per,) = parts
        return cls((groups[0], groups[1]), (chassis[0], chassis[1]), (routers[0], routers[1]), per)

    @property
    def parameters(self) -> str:
        return ";".join(map(joined, (self.groups, self.chassis, self.routers, (self.per,))))

    @property
    def _n_routers(self) -> int:
        return self.groups[0] * self.chassis[0] * self.routers[0]

    @property
    def hosts(self) -> int:
        return self._n_routers * self.per

    @property
    def links(self) -> int:
        groups, chassis, routers = self.groups[0], self.chassis[0], self.routers[0]
        return self._n_routers * (self.per + routers + chassis) + groups * groups

    def declare(self, site: Site) -> IntArray:
        """Add its links at `site`; return its table."""
        hosts, n_routers = self.hosts, self._n_routers
        loopback = site.add_loopbacks()
        numbers = [*range(hosts), *range(2 * hosts - 1, 2 * hosts - 1 - n_routers, -1)]
        limiter = site.add_limiters(numbers)
        first = -1
        for names, factor in self._names():
            unique = site.counts.get("dragonfly links", 0)
            site.counts["dragonfly links"] = unique + len(names)
            ids = [f"{name}_{number}" for number, name in enumerate(names, unique)]
            begin = site.add_cables(ids, factor)
            first = begin if first < 0 else first
        return dragonfly_table(self, LinkBlock(site.duplex, first, limiter, loopback))

    def _names(self) -> Iterator[tuple[list[str], int]]:
        """Per colour the names of its links, in their order, and cables per link."""
        (groups, blue), (chassis, black), (routers, green) = self.groups, self.chassis, self.routers
        yield (
            [
                f"local_link_from_router_{router}_to_node_{node}"
                for router in range(self._n_routers)
                for node in range(self.per)
            ],
            1,
        )
        yield (
            [
                f"green_link_in_chassis_{c}_between_routers_{j}_and_{k}"
                for _ in range(groups)
                for c in range(chassis)
                for j, k in itertools.combinations(range(routers), 2)
            ],
            green,
        )
        yield (
            [
                f"black_link_in_group_{group}_between_chassis_{j}_and_{k}_blade_{router}"
                for group in range(groups)
                for j, k in itertools.combinations(range(chassis), 2)
                for router in range(routers)
            ],
            black,
        )
        size = chassis * routers
        yield (
            [
                f"blue_link_between_group_{i}_and_{j}_routers_{i * size + j}_and_{j * size + i}"
                for i, j in itertools.combinations(range(groups), 2)
            ],
            blue,
        )

    @classmethod
    def edges(cls, table: Sequence[int]) -> Iterator[Edge]:
        """Yield the links of a zone's `table` in their order; routers come after the hosts."""
        groups, chassis, routers, per = table[PARAMS : PARAMS + 4]
        nodes = table[NODES]
        pairs = [(nodes + node // per, node) for node in range(nodes)]
        for c in range(groups * chassis):
            first = nodes + c * routers
            pairs += itertools.combinations(range(first, first + routers), 2)
        for group in range(groups):
            base = nodes + group * chassis * routers
            for j, k in itertools.combinations(range(chassis), 2):
                pairs += [(base + j * routers + b, base + k * routers + b) for b in range(routers)]
        size = chassis * routers
        for i, j in itertools.combinations(range(groups), 2):
            pairs.append((nodes + i * size + j, nodes + j * size + i))
        for number, (a, b) in enumerate(pairs):
            yield Edge(a, b, table[FIRST] + number * (1 + table[DUPLEX]))

    @classmethod
    def coordinates(cls, table: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield (group, chassis, blade) of the routers of a zone's `table`."""
        groups, chassis, routers = table[PARAMS : PARAMS + 3]
        places = itertools.product(range(groups), range(chassis), range(routers))
        yield from enumerate(places, table[NODES])

    @classmethod
    def survey(
        cls, table: IntArray, nodes: IntArray, hosts: IntArray, owner: IntArray, common: BoolArray
    ) -> Survey:
        """Survey a zone; `Topology.survey` explains table, nodes, hosts, owner and common."""
        own_loops(table, nodes, hosts, owner)
        own_ports(table, nodes, hosts, owner, 1)
        return Survey()


def dragonfly_table(fly: Dragonfly, links: LinkBlock) -> IntArray:
    """The table of a dragonfly."""
    parameters = [fly.groups[0], fly.chassis[0], fly.routers[0], fly.per]
    return block_table(7, fly.hosts, links, parameters)
