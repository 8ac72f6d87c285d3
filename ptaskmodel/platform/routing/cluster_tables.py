"""Tables of the cluster families for ``walks.py``, from the parameters of each topology."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

# Kinds as in walks.py, repeated here because that module imports the compiler.
STAR, TORUS, FAT_TREE, DRAGONFLY = 0, 1, 2, 3


class WalkTable(NamedTuple):
    """One zone for ``walks.walk``: its kind and its flat table (``table[0]``: longest route)."""

    kind: int
    table: IntArray


class LinkBlock(NamedTuple):
    """Where the links of a topology start: ``-1`` for limiters or loopbacks that do not exist."""

    duplex: bool
    first: int
    limiter: int
    loopback: int


def star_table(
    up: Sequence[Sequence[int] | None],
    down: Sequence[Sequence[int] | None],
    loopback: Sequence[Sequence[int]],
) -> WalkTable:
    """Star zone: per point its up-path, down-path (None: undefined) and loopback (may be empty)."""
    rows = [path or () for three in zip(up, down, loopback, strict=True) for path in three]
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    undefined = np.fromiter((path is None for path in up), np.int64, len(up))
    links = np.fromiter((link for row in rows for link in row), np.int64, int(lengths.sum()))
    return WalkTable(STAR, _star(undefined, lengths, links))


def flat_cluster_table(
    nodes: int, limiter: int, private: tuple[int, int], backbone: int, loopback: int
) -> WalkTable:
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
    return WalkTable(STAR, _star(np.zeros(nodes + 1, np.int64), lengths.ravel(), links))


def star_rows(walk: WalkTable) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Up-path and down-path of each point of a star table."""
    table = walk.table.tolist()
    size = table[1]
    rows, links = 2 + size, 3 + 4 * size
    starts = table[rows:links]
    return [
        (
            tuple(table[links + starts[row] : links + starts[row + 1]]),
            tuple(table[links + starts[row + 1] : links + starts[row + 2]]),
        )
        for row in range(0, 3 * size, 3)
    ]


def _star(undefined: IntArray, lengths: IntArray, links: IntArray) -> IntArray:
    """LONGEST, NODES, flags, offsets, links."""
    per_point = lengths.reshape(-1, 3)
    longest = 1
    if len(per_point):
        ways = per_point[:, 0].max() + per_point[:, 1].max()
        longest = max(int(ways), int(per_point[:, 2].max()), 1)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    head = np.array([longest, len(undefined)], np.int64)
    return np.concatenate((head, undefined, starts, links)).astype(np.int64)


def torus_table(sizes: Sequence[int], links: LinkBlock) -> WalkTable:
    """Torus of ``sizes``; link j of node i has number i k + j."""
    hops = sum(size // 2 + 1 for size in sizes)
    return _topology(TORUS, hops, math.prod(sizes), links, [len(sizes), *sizes])


def fat_tree_table(
    children: Sequence[int],
    parents: Sequence[int],
    cables: Sequence[int],
    shift: int,
    links: LinkBlock,
) -> WalkTable:
    """Fat tree; ``shift``: number of hosts of the fat trees before it in the platform."""
    levels = len(children)
    params = [levels, shift]
    nodes = math.prod(children)
    first_link = 0
    first_switch = [0]
    for level in range(levels):
        low = math.prod(parents[:level])
        at_level = low * math.prod(children[level:])
        params += [children[level], parents[level], cables[level], low]
        params += [math.prod(children[:level]), first_link]
        first_link += at_level * parents[level] * cables[level]
        above = low * parents[level] * math.prod(children[level + 1 :])
        first_switch.append(first_switch[-1] + above)
    return _topology(FAT_TREE, 2 * levels, nodes, links, params + first_switch[:-1])


def dragonfly_table(
    groups: int, chassis: int, blades: int, per: int, links: LinkBlock
) -> WalkTable:
    """Dragonfly of ``groups`` x ``chassis`` x ``blades`` routers with ``per`` nodes each."""
    nodes = groups * chassis * blades * per
    return _topology(DRAGONFLY, 7, nodes, links, [groups, chassis, blades, per])


def _topology(
    kind: int, hops: int, nodes: int, links: LinkBlock, params: Sequence[int]
) -> WalkTable:
    longest = max(1, hops if links.limiter < 0 else 2 * hops + 2)
    head = [longest, nodes, int(links.duplex), links.first, links.limiter, links.loopback]
    return WalkTable(kind, np.array([*head, *params], np.int64))
