"""Spreads blocks of a sketch over the page so that linked ones are near and none overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ptaskmodel.platform.sketch_blocks import BOX_HEIGHT, GAP, Block, Point

MAX_BY_DISTANCES = 400
MAX_BY_FORCES = 1500
PUSHES = 300
MAX_CLEARED = 40  # blocks of which lines are kept off racks


def spread(sizes: Sequence[tuple[float, float]], pairs: Sequence[tuple[int, int]]) -> list[Point]:
    """The middles of blocks of (width, height), of which ``pairs`` are linked.

    Up to 400 blocks lie at distances like those in the graph (Kamada and Kawai 1989), up to 1,500
    where springs push them (Fruchterman and Reingold 1991), more in rows. Parts that are not linked
    with each other stand side by side.
    """
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(len(sizes)))
    radius = [math.hypot(*size) / 2 for size in sizes]
    for a, b in pairs:
        graph.add_edge(a, b, length=radius[a] + radius[b] + 2 * GAP)
    places: dict[int, Point] = {}
    right = 0.0
    parts = sorted((sorted(part) for part in networkx.connected_components(graph)), key=len)
    for part in reversed(parts):
        found = _spread_part(graph.subgraph(part), part, sizes)
        left = min(found[k][0] - sizes[k][0] / 2 for k in part)
        middle = _middle([found[k][1] for k in part])
        places |= {k: (x - left + right, y - middle) for k, (x, y) in found.items()}
        right = max(places[k][0] + sizes[k][0] / 2 for k in part) + 2 * GAP
    return [places[k] for k in range(len(sizes))]


def spread_clear(
    blocks: Sequence[Block], pairs: Sequence[tuple[int, int]]
) -> tuple[list[Point], list[float]]:
    """The middles of linked blocks, and which are turned upside down (-1.0; 1.0 for others).

    Hubs turn to what they are linked with, their racks away from it. Where lines would still pass
    behind racks, the picture stands up instead of lying down if fewer do then.
    """
    sizes = [(block.width, block.height) for block in blocks]
    found = spread(sizes, pairs)
    turned = _turns(blocks, pairs, found)
    if len(blocks) > MAX_CLEARED or not (behind := _behind(blocks, pairs, found, turned)):
        return found, turned
    upright = [(x, y) for y, x in spread([(high, wide) for wide, high in sizes], pairs)]
    turned_upright = _turns(blocks, pairs, upright)
    if _behind(blocks, pairs, upright, turned_upright) < behind:
        return upright, turned_upright
    return found, turned


def _turns(
    blocks: Sequence[Block], pairs: Sequence[tuple[int, int]], middles: Sequence[Point]
) -> list[float]:
    linked: list[list[float]] = [[] for _ in blocks]
    for a, b in pairs:
        linked[a].append(middles[b][1])
        linked[b].append(middles[a][1])
    return [
        -1.0 if not block.fixed and ys and math.fsum(ys) / len(ys) < y - GAP else 1.0
        for block, ys, (_, y) in zip(blocks, linked, middles, strict=True)
    ]


def _behind(
    blocks: Sequence[Block],
    pairs: Sequence[tuple[int, int]],
    middles: Sequence[Point],
    turned: Sequence[float],
) -> int:
    """How often a line between two blocks passes behind hosts, its own or others."""
    ends, racks = [], []
    for block, (x, y), up in zip(blocks, middles, turned, strict=True):
        hub = 0.0 if block.fixed else next(iter(block.places.values()))[1]
        ends.append((x, y + up * hub))
        low, high = -block.height / 2, (block.height / 2 if block.fixed else hub - BOX_HEIGHT)
        low, high = sorted((y + up * low, y + up * high))
        racks.append((x - block.width / 2, low, x + block.width / 2, high))
    return sum(
        _crosses(ends[a], ends[b], racks[k])
        for a, b in pairs
        for k, block in enumerate(blocks)
        if not (block.fixed and k in (a, b))
    )


def _crosses(start: Point, end: Point, box: tuple[float, float, float, float]) -> bool:
    """Whether a line passes through a box of (left, bottom, right, top) (Liang and Barsky 1984)."""
    first, last = 0.0, 1.0
    for k in (0, 1):
        way = end[k] - start[k]
        bounds = (box[k] - start[k], box[k + 2] - start[k])
        if way == 0.0:
            if bounds[0] >= 0.0 or bounds[1] <= 0.0:
                return False
            continue
        enters, leaves = sorted(bound / way for bound in bounds)
        first, last = max(first, enters), min(last, leaves)
    return first < last


def _spread_part(
    graph: object, part: Sequence[int], sizes: Sequence[tuple[float, float]]
) -> dict[int, Point]:
    import networkx

    if len(part) == 1:
        return {part[0]: (0.0, 0.0)}
    if len(part) > MAX_BY_FORCES:
        return _rows(part, sizes)
    if len(part) > MAX_BY_DISTANCES:
        side = math.sqrt(math.fsum((sizes[k][0] + GAP) * (sizes[k][1] + GAP) for k in part))
        found = networkx.spring_layout(graph, seed=1, scale=2.0 * side)
    else:
        lengths = dict(networkx.all_pairs_dijkstra_path_length(graph, weight="length"))
        found = networkx.kamada_kawai_layout(graph, dist=lengths, weight=None, scale=1.0)
        far = max(max(row.values()) for row in lengths.values())
        wide = max(math.dist(found[a], found[b]) for a in part for b in part)
        found = {k: place * (far / max(wide, 1e-9)) for k, place in found.items()}
    points = _lie_down(np.array([found[k] for k in part], dtype=np.float64))
    points = _part(points, np.array([sizes[k] for k in part]))
    return {k: (float(x), float(y)) for k, (x, y) in zip(part, points, strict=True)}


def _rows(part: Sequence[int], sizes: Sequence[tuple[float, float]]) -> dict[int, Point]:
    """In rows: nothing can be seen of the links of so many."""
    columns = math.ceil(math.sqrt(2 * len(part)))
    wide = max(sizes[k][0] for k in part) + GAP
    high = max(sizes[k][1] for k in part) + GAP
    return {k: (i % columns * wide, -(i // columns) * high) for i, k in enumerate(part)}


def _lie_down(points: np.ndarray) -> np.ndarray:
    """Turn the picture so that its longest direction is horizontal; centre it."""
    points = points - points.mean(axis=0)
    spans, axes = np.linalg.eigh(points.T @ points)
    if spans[1] > 1.2 * spans[0]:
        points = points @ axes[:, ::-1]
        # The sign of an eigenvector is not given: let the first block be at the left and above.
        for k, sign in ((0, -1.0), (1, 1.0)):
            clear = points[np.abs(points[:, k]) > 1e-6, k]
            if len(clear) and clear[0] * sign < 0.0:
                points[:, k] *= -1.0
    return points


def _part(points: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Places at which no two blocks overlap: pushed apart, and if that does not end, scaled."""
    needed = (sizes[:, None] + sizes[None]) / 2 + GAP
    for _ in range(PUSHES):
        apart = points[:, None] - points[None]
        inside = needed - np.abs(apart)
        hidden = (inside > 1e-9).all(axis=2)
        np.fill_diagonal(hidden, False)
        if not hidden.any():
            return points
        # Each of two goes half the way, in the direction that is shorter.
        sideways = hidden & (inside[..., 0] <= inside[..., 1])
        ways = np.where(np.stack([sideways, hidden & ~sideways], axis=2), 0.55 * inside, 0.0)
        places = np.arange(len(points))
        signs = np.where(apart == 0.0, np.sign(places[:, None] - places)[..., None], np.sign(apart))
        points = points + (ways * signs).sum(axis=1) / np.maximum(hidden.sum(axis=1), 1)[:, None]
    apart = np.maximum(np.abs(points[:, None] - points[None]), 1e-9)
    grown = (needed / apart).min(axis=2)
    np.fill_diagonal(grown, 1.0)
    return points * max(1.0, float(grown.max()))


def _middle(values: Sequence[float]) -> float:
    return (min(values) + max(values)) / 2
