"""Where the nodes of a platform graph are drawn: trees radially, fat trees in rows."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

Places = dict[str, tuple[float, float]]


def place_nodes(graph: Any) -> Places:
    """A place per node; the same for equal graphs. Unconnected parts stand side by side."""
    import networkx

    levels = Counter(level for _, level in graph.nodes(data="level"))
    if None not in levels and len(levels) > 1:
        return _rows(graph, levels)
    places: Places = {}
    right = 0.0
    for component in sorted(networkx.connected_components(graph), key=len, reverse=True):
        part = graph.subgraph(sorted(component))
        if networkx.is_tree(part):
            found = _radial(part)
        else:
            layout = networkx.kamada_kawai_layout(part, weight=None, scale=math.sqrt(len(part)))
            found = {node: (float(x), float(y)) for node, (x, y) in layout.items()}
        found = _lie_down(found)
        left = min(x for x, _ in found.values())
        places |= {node: (x - left + right, y) for node, (x, y) in found.items()}
        right = max(x for x, _ in places.values()) + 1.5
    return places


def _rows(graph: Any, levels: Counter[int]) -> Places:
    """Levels of a fat tree, hosts at the bottom, rows of one width."""
    widest = max(levels.values())
    places = {}
    for level, count in levels.items():
        row = [node for node, at in graph.nodes(data="level") if at == level]
        step = widest / count
        for rank, node in enumerate(row):
            places[node] = ((rank + 0.5) * step, 0.5 * widest * level / max(levels))
    return places


def _radial(tree: Any) -> Places:
    """The centre in the middle; every subtree gets an angle by its number of leaves."""
    import networkx

    root = networkx.center(tree)[0]
    order = list(networkx.bfs_tree(tree, root))
    children: dict[str, list[str]] = {node: [] for node in order}
    depth = {root: 0}
    for node in order:
        for other in tree.neighbors(node):
            if other not in depth:
                depth[other] = depth[node] + 1
                children[node].append(other)
    leaves: dict[str, int] = {}
    for node in reversed(order):
        leaves[node] = sum(leaves[child] for child in children[node]) or 1
    places, start = {root: (0.0, 0.0)}, {root: 0.0}
    for node in order:
        angle = start[node]
        for child in children[node]:
            share = 2 * math.pi * leaves[child] / leaves[root]
            start[child] = angle
            middle = angle + share / 2
            places[child] = (depth[child] * math.cos(middle), depth[child] * math.sin(middle))
            angle += share
    return places


def _lie_down(places: Places) -> Places:
    """Turn the picture so that its longest direction is horizontal; centre it."""
    points = np.array(list(places.values()))
    points -= points.mean(axis=0)
    if len(points) > 1:
        spread, axes = np.linalg.eigh(points.T @ points)
        if spread[1] > 1.2 * spread[0]:
            points = points @ axes[:, ::-1]
    return {node: (float(x), float(y)) for node, (x, y) in zip(places, points, strict=True)}
