"""Compiled routes inside a cluster zone: star, torus, fat tree, dragonfly.

``walk(kind, table, a, b, out)`` writes the link indices of the route from node ``a`` to node ``b``
(local numbers) in ``out`` and returns their number, or -1 if the route is undefined. ``out`` must
hold at least ``table[LONGEST]`` values. Each zone has one flat int64 table, written by
``cluster_tables.py``; all tables start with

    LONGEST  an upper bound of the number of links of a route
    NODES    the number of nodes n

and those of the three topologies go on with

    DUPLEX   1 if links have two halves (UP at index i, DOWN at i + 1), else 0
    FIRST    index of the first link of the topology
    LIMITER  index of the first limiter (nodes, then switches), or -1
    LOOPBACK index of the first loopback (one per node), or -1
    PARAMS   parameters of the topology

The rules, odd ones included, are those of SimGrid (order and choice of links are equal to its).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptaskmodel.jit import entry, jit

Table = np.ndarray[Any, np.dtype[np.int64]]

STAR, TORUS, FAT_TREE, DRAGONFLY = 0, 1, 2, 3
LONGEST, NODES, DUPLEX, FIRST, LIMITER, LOOPBACK, PARAMS = 0, 1, 2, 3, 4, 5, 6


@entry
def walk(kind: int, table: Table, a: int, b: int, out: Table) -> int:
    """Route from node a to node b of a cluster zone; see the module."""
    if kind == STAR:
        return _star(table, a, b, out)
    if a == b and table[LOOPBACK] >= 0:
        out[0] = table[LOOPBACK] + a
        return 1
    if kind == TORUS:
        return _torus(table, a, b, out)
    if kind == FAT_TREE:
        return _fat_tree(table, a, b, out)
    return _dragonfly(table, a, b, out)


@jit
def _append_once(table: Table, row: int, out: Table, count: int) -> int:
    """Append the links of a row of a star table, skipping those already there."""
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
def _star(table: Table, a: int, b: int, out: Table) -> int:
    """Up-path of a, then down-path of b, each link once; a self-route is the loopback if any.

    Table: LONGEST, NODES, n flags (1: up and down are undefined), then compressed rows
    (3 n + 1 offsets, links): up, down and loopback of node 0, of node 1, ...
    """
    if a == b:
        count = _append_once(table, 3 * a + 2, out, 0)
        if count > 0:
            return count
    if table[2 + a] != 0 or table[2 + b] != 0:
        return -1
    return _append_once(table, 3 * b + 1, out, _append_once(table, 3 * a, out, 0))


@jit
def _torus(table: Table, a: int, b: int, out: Table) -> int:
    """Dimension by dimension; PARAMS: number of dimensions k, d1 ... dk.

    The way round each dimension is chosen once, from the coordinates of a and b. Link j of node i
    (its next node in dimension j) has index FIRST + (i k + j) (1 + DUPLEX).
    """
    dimensions, duplex, limiter = table[PARAMS], table[DUPLEX], table[LIMITER]
    count, node, stride = 0, a, 1
    for j in range(dimensions):
        size = table[PARAMS + 1 + j]
        here, there, half = (a // stride) % size, (b // stride) % size, size // 2
        upwards = (there > here and there <= here + half) or (
            here > half and (here + half) % size >= there
        )
        while here != there:
            if limiter >= 0:
                out[count] = limiter + node
                count += 1
            step = 1 if upwards else -1
            after = (here + step + size) % size
            neighbour = node + (after - here) * stride
            owner = node if upwards else neighbour
            link = table[FIRST] + (owner * dimensions + j) * (1 + duplex)
            out[count] = link if upwards else link + duplex
            count += 1
            node, here = neighbour, after
        stride *= size
    if limiter >= 0:
        out[count] = limiter + b
        count += 1
    return count


@jit
def _fat_tree(table: Table, a: int, b: int, out: Table) -> int:
    """Up by destination modulo ports (D-mod-K) to a common ancestor, then down.

    PARAMS: levels L, shift of positions, then per level l = 1..L in groups of six: children c,
    parents p, cables k, p1...p_{l-1}, c1...c_{l-1}, first link below (in number of links); then
    the number of the first switch of each level. A node of level l at position x has digits; digit
    j has radix p_j if j <= l, else c_j. Positions in port formulas are counted over all fat trees
    of the platform, hence the shift. Going down, the scan of ports goes on in the child where it
    stopped in the parent.
    """
    levels, shift, duplex, limiter = table[PARAMS], table[PARAMS + 1], table[DUPLEX], table[LIMITER]
    groups = PARAMS + 2
    switches = groups + 6 * levels
    count, level, node = 0, 0, a
    while True:
        g = groups + 6 * level
        c, p, k, below = table[g], table[g + 1], table[g + 2], table[g + 3]
        if limiter >= 0:
            number = node if level == 0 else table[NODES] + table[switches + level - 1] + node
            out[count] = limiter + number
            count += 1
        port = ((b + shift) // below) % (p * k)
        link = table[g + 5] + node * (p * k) + (port % p) * k + port // p
        out[count] = table[FIRST] + link * (1 + duplex)
        count += 1
        node = node % below + below * (port % p + p * (node // (below * c)))
        level += 1
        if node // (below * p) == b // (table[g + 4] * c):
            break
    while level > 0:
        g = groups + 6 * (level - 1)
        port = ((a + shift) % table[g + 2]) * table[g]
        while level > 0 and port < table[g] * table[g + 2]:
            c, p, k, below = table[g], table[g + 1], table[g + 2], table[g + 3]
            digit = (b // table[g + 4]) % c
            if port % c == digit:
                own = (node // below) % p
                child = node % below + below * (digit + c * (node // (below * p)))
                link = table[g + 5] + child * (p * k) + own * k + port // c
                out[count] = table[FIRST] + link * (1 + duplex) + duplex
                count += 1
                if limiter >= 0:
                    out[count] = limiter + table[NODES] + table[switches + level - 1] + node
                    count += 1
                node = child
                level -= 1
                g -= 6
            port += 1
    if limiter >= 0:
        out[count] = limiter + b
        count += 1
    return count


@jit
def _pair(j: int, k: int, n: int) -> int:
    """Rank of (j, k), j < k < n, in lexicographic order."""
    return j * (2 * n - j - 1) // 2 + k - j - 1


@jit
def _hop(table: Table, first: int, j: int, k: int, n: int, times: int, plus: int) -> int:
    """The half link from j to k among all pairs of n; j < k owns the UP half."""
    rank = _pair(min(j, k), max(j, k), n) * times + plus
    down = table[DUPLEX] if j > k else 0
    return table[FIRST] + (first + rank) * (1 + table[DUPLEX]) + down


@jit
def _dragonfly(table: Table, a: int, b: int, out: Table) -> int:
    """Minimal route of a dragonfly; PARAMS: groups G, chassis C, blades B, nodes N per blade.

    Links are numbered local, green (chassis by chassis), black, blue. After the last green hop the
    current router is taken to be in chassis 0, whatever its chassis really was.
    """
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
