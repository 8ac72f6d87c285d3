# mypy: allow-untyped-defs, allow-incomplete-defs
"""Stars: hosts with links of their own, and links that all hosts share, around one centre.

A route is the up-path of its source, then the down-path of its destination, each link once. Flat
clusters have this form, and so do zones with routing Cluster or Vivaldi that are written link by
link.

Table: LONGEST, NODES, n flags (1: up and down are undefined), then compressed rows (3 n + 1
offsets, links): up, down and loopback of node 0, of node 1, ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.platform.topologies.link_loads import add, carry, note_latency
from ptaskmodel.platform.topologies.topology import (
    LONGEST,
    NO_ENDS,
    NODES,
    BoolArray,
    IntArray,
    Site,
    Survey,
    Topology,
)

# Wider tables of paths would take more memory than they save time.
MOST_COLUMNS = 16


@jit
def _append_once(table, row, out, count):
    """Append the links of a row, skipping those already there."""
    rows = 2 + table[NODES]
    links = rows + 3 * table[NODES] + 1
    for position in range(links + table[rows + row], links + table[rows + row + 1]):
        link = table[position]
        known = False
        for k in range(count):
            known = known or out[k] == link
        if not known:
            out[count] = link
            count += 1
    return count


@jit
def _walk(table, a, b, out):
    """Up-path of a, then down-path of b, each link once; a self-route is the loopback if any."""
    if a == b:
        count = _append_once(table, 3 * a + 2, out, 0)
        if count > 0:
            return count
    if table[2 + a] != 0 or table[2 + b] != 0:
        return -1
    return _append_once(table, 3 * b + 1, out, _append_once(table, 3 * a, out, 0))


@jit
def _all_to_all(tally, ways, table, nodes, amount, scratch, counts):
    """A route is an up-path and a down-path: links are common to all nodes, or of one node."""
    fatpipe, latency_s = ways.fatpipe, ways.latency_s
    common, offset = ways.common, ways.offset
    n = nodes.size
    others = n - 1.0
    rows = 2 + table[NODES]
    links = rows + 3 * table[NODES] + 1
    best_down = -1.0
    second_down = -1.0
    best = -1
    shared_latency = 0.0
    for i in range(n):
        row = rows + 3 * nodes[i] + 1
        total = 0.0
        for position in range(links + table[row], links + table[row + 1]):
            link = offset + table[position]
            if not common[link]:
                total += latency_s[link]
                add(tally, fatpipe, link, others * amount, amount, others)
            elif i == 0:
                shared_latency += latency_s[link]
                every = n * others
                add(tally, fatpipe, link, every * amount, amount, every)
        if total > best_down:
            second_down = best_down
            best_down = total
            best = i
        elif total > second_down:
            second_down = total
    for i in range(n):
        row = rows + 3 * nodes[i]
        total = shared_latency
        for position in range(links + table[row], links + table[row + 1]):
            link = offset + table[position]
            if not common[link]:
                total += latency_s[link]
                add(tally, fatpipe, link, others * amount, amount, others)
        if n > 1:
            total += second_down if i == best else best_down
            note_latency(tally, total, amount)
    return True


@jit
def _flows(tally, ways, table, ends, nodes, sources, targets, amount, largest):
    """Up-path of the source, then down-path of the target; see ``_ends``."""
    for f in range(sources.size):
        a, b = nodes[sources[f]], nodes[targets[f]]
        total = 0.0
        if a == b:
            for column in range(ends[a, 1], ends[a, 2]):
                total += carry(tally, ways, ends[a, column], amount[f], largest[f])
        else:
            for column in range(3, ends[a, 0]):
                total += carry(tally, ways, ends[a, column], amount[f], largest[f])
            for column in range(ends[b, 0], ends[b, 1]):
                total += carry(tally, ways, ends[b, column], amount[f], largest[f])
        note_latency(tally, total, largest[f])
    return True


@dataclass(frozen=True, slots=True)
class Star(Topology):
    """A flat cluster of so many hosts."""

    size: int

    name = "FLAT"
    walk = _walk
    all_to_all = _all_to_all
    flows = _flows

    @classmethod
    def parse(cls, text: str, hosts: int) -> Star:
        """Any parameters are ignored."""
        return cls(hosts)

    @property
    def parameters(self) -> str:
        return ""

    @property
    def hosts(self) -> int:
        return self.size

    @property
    def links(self) -> int:
        return self.size

    def declare(self, site: Site) -> IntArray:
        """Per host a cable, perhaps a limiter and a loopback; perhaps a backbone; a router."""
        site.keep_properties()
        loopback = site.add_loopbacks()
        limiter = site.add_limiters(site.numbers)
        private = site.add_cables([f"{site.id}_link_{number}" for number in site.numbers])
        backbone = site.add_backbone()
        site.add_router()
        return flat_table(self.size, limiter, (private, int(site.duplex)), backbone, loopback)

    @classmethod
    def spokes(cls, table: IntArray) -> list[tuple[int, ...]] | None:
        """The up-path of a node, or its down-path backwards if that is empty."""
        return [up or down[::-1] for up, down in star_rows(table)]

    @classmethod
    def survey(
        cls, table: IntArray, nodes: IntArray, hosts: IntArray, owner: IntArray, common: BoolArray
    ) -> Survey:
        """Plain if every link is of one node, or crossed by all both ways."""
        n = int(table[NODES])
        host_of = np.full(n, -1, dtype=np.int64)
        host_of[nodes] = hosts
        rows = 2 + n
        starts = table[rows : rows + 3 * n + 1]
        links = table[rows + 3 * n + 1 :]
        row = np.repeat(np.arange(3 * n), np.diff(starts))
        node, way = row // 3, row % 3
        held = (way < 2) & (host_of[node] >= 0)
        node, way, links = node[held], way[held], links[held]
        used, inverse = np.unique(links, return_inverse=True)
        lowest = np.full(len(used), n)
        highest = np.full(len(used), -1)
        np.minimum.at(lowest, inverse, node)
        np.maximum.at(highest, inverse, node)
        alone = lowest == highest
        owner[used[alone]] = host_of[lowest[alone]]
        times = np.bincount(inverse, minlength=len(used))
        everywhere = times == 2 * len(nodes)
        common[used[everywhere]] = ~alone[everywhere]
        undefined = table[2 + nodes].any()
        ends = np.sort(inverse * (2 * n) + node * 2 + way)
        once = bool((ends[1:] > ends[:-1]).all())
        plain = bool((alone | everywhere).all() and once and not undefined)
        return Survey(plain, ends=_ends(table, used[everywhere & ~alone]) if plain else NO_ENDS)


def _ends(table: IntArray, common: IntArray) -> IntArray:
    """What ``_flows`` reads of a plain star: for each node three ends of columns, then links.

    Up to the first end those of its up-path, then those of its down-path without the ``common``
    ones (every up-path has them), then those of its route to itself. None if a path is long.
    """
    n = int(table[NODES])
    starts, links = table[2 + n : 3 + 4 * n], table[3 + 4 * n :]
    node, way = np.divmod(np.repeat(np.arange(3 * n), np.diff(starts)), 3)
    if len(links) == 0 or 2 * int(table[LONGEST]) > MOST_COLUMNS:
        return NO_ENDS
    looped = np.zeros(n, dtype=np.bool_)
    looped[node[way == 2]] = True
    alone = np.flatnonzero(np.where(looped[node], way == 2, way < 2))
    once = np.unique(node[alone] * (int(links.max()) + 1) + links[alone], return_index=True)[1]
    up, down = way == 0, (way == 1) & ~np.isin(links, common)
    parts = [np.flatnonzero(up), np.flatnonzero(down), alone[np.sort(once)]]
    chosen, part = np.concatenate(parts), np.repeat([0, 1, 2], [len(part) for part in parts])
    order = np.argsort(node[chosen] * 3 + part, kind="stable")
    counts = np.bincount(node[chosen] * 3 + part, minlength=3 * n).reshape(n, 3)
    total = counts.sum(axis=1)
    ends = np.zeros((n, 3 + int(total.max())), np.int64)
    ends[:, :3] = 3 + np.cumsum(counts, axis=1)
    column = 3 + np.arange(len(chosen)) - np.repeat(np.cumsum(total) - total, total)
    ends[node[chosen][order], column] = links[chosen][order]
    return ends


def star_table(
    up: Sequence[Sequence[int] | None],
    down: Sequence[Sequence[int] | None],
    loopback: Sequence[Sequence[int]],
) -> IntArray:
    """Per point its up-path, down-path (None: undefined) and loopback (may be empty)."""
    rows = [path or () for three in zip(up, down, loopback, strict=True) for path in three]
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    undefined = np.fromiter((path is None for path in up), np.int64, len(up))
    links = np.fromiter((link for row in rows for link in row), np.int64, int(lengths.sum()))
    return _table(undefined, lengths, links)


def flat_table(
    nodes: int, limiter: int, private: tuple[int, int], backbone: int, loopback: int
) -> IntArray:
    """Flat cluster of ``nodes`` hosts and one router (the last point, with empty paths).

    Links of host i: ``limiter + i``, ``private[0] + (private[1] + 1) * i`` (UP; DOWN is
    ``private[1]`` further), ``backbone`` (one for all), ``loopback + i``; -1: there is none.
    """
    i = np.arange(nodes, dtype=np.int64)
    first, duplex = private
    up = first + i * (1 + duplex)
    columns = [limiter + i] if limiter >= 0 else []
    columns += [up]
    columns += [np.full(nodes, backbone)] if backbone >= 0 else []
    down_columns = [up + duplex if column is up else column for column in columns][::-1]
    loops = [loopback + i] if loopback >= 0 else []
    links = np.stack(columns + down_columns + loops, axis=1).ravel()
    lengths = np.zeros((nodes + 1, 3), np.int64)
    lengths[:nodes] = (len(columns), len(down_columns), len(loops))
    return _table(np.zeros(nodes + 1, np.int64), lengths.ravel(), links)


def star_links(table: IntArray) -> IntArray:
    """The links that a star table names, each once."""
    return np.unique(table[3 + 4 * int(table[NODES]) :])


def star_rows(table: IntArray) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Up-path and down-path of each point of a star table."""
    flat = table.tolist()
    size = flat[NODES]
    rows, links = 2 + size, 3 + 4 * size
    starts = flat[rows:links]
    return [
        (
            tuple(flat[links + starts[row] : links + starts[row + 1]]),
            tuple(flat[links + starts[row + 1] : links + starts[row + 2]]),
        )
        for row in range(0, 3 * size, 3)
    ]


def _table(undefined: IntArray, lengths: IntArray, links: IntArray) -> IntArray:
    per_point = lengths.reshape(-1, 3)
    longest = 1
    if len(per_point):
        both = per_point[:, 0].max() + per_point[:, 1].max()
        longest = max(int(both), int(per_point[:, 2].max()), 1)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    head = np.array([longest, len(undefined)], np.int64)
    return np.concatenate((head, undefined, starts, links)).astype(np.int64)
