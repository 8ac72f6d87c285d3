"""A picture of a platform: all of a small one, a large one with its hosts grouped."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel import units
from ptaskmodel.errors import PlatformError
from ptaskmodel.files import whole_path
from ptaskmodel.platform.graph_layout import place_nodes
from ptaskmodel.platform.grouping import grouped_graph

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform

MAX_NODE_LABELS = 70
MAX_EDGE_LABELS = 30
CROWDED_ROW = 8
# kind: name in the legend, colour, marker, relative size
STYLES = {
    "link": ("shared link", "#9D9D9D", "h", 0.7),
    "router": ("router", "#E0A030", "D", 0.7),
    "switch": ("switch", "#E0A030", "D", 0.7),
    "host": ("host", "#4C78A8", "o", 1.0),
    "hosts": ("group of hosts", "#4C78A8", "s", 2.0),
    "zone": ("zone", "#5AA79F", "s", 3.0),
}
_BOX: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.8}


def draw_platform(platform: Platform, path: Path) -> None:
    """Write a picture (.png, .svg or .pdf). Raises PlatformError if it cannot be written."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise PlatformError("drawing needs matplotlib; run: pip install matplotlib") from None

    graph = grouped_graph(platform)
    places = place_nodes(graph)
    side = min(11.0, 3.6 + 0.7 * math.sqrt(graph.number_of_nodes()))
    xs, ys = zip(*places.values(), strict=True)
    flatness = (max(ys) - min(ys)) / max(max(xs) - min(xs), 1e-9)
    figure = Figure(figsize=(side * 1.3, side * min(1.0, max(0.45, 0.2 + flatness))))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    title = [f"{platform.path.name}: {len(platform.hosts):,} hosts"]
    title[0] += f", {len(platform.links) - 1:,} links"
    # Large pictures are looked at from as far as small ones: everything grows with them.
    zoom = side / 6.0
    title += _draw_edges(axes, graph, places, zoom)
    title += _draw_nodes(axes, graph, places, zoom)
    axes.set_title("\n".join(title), fontsize=10 * zoom)
    axes.set_axis_off()
    axes.margins(0.13)
    axes.set_aspect("equal", adjustable="datalim")
    _draw_legend(figure, graph, zoom)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Whole or not at all; without a date inside, so that equal inputs give equal files."""
    suffix = path.suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    with whole_path(path, error=PlatformError) as partial:
        figure.savefig(partial, format=suffix[1:], dpi=150, metadata=metadata, facecolor="white")


def _draw_edges(axes: Any, graph: Any, places: dict[str, Any], zoom: float) -> list[str]:
    """Lines, thicker with bandwidth; what all have in common is returned, for the title."""
    real = [data for _, _, data in graph.edges(data=True) if data["links"]]
    rates = [max(data["bandwidth_Bps"], 1e-9) for data in real] or [1.0]
    span = math.log(max(rates) / min(rates))
    thin = zoom * (0.5 if graph.number_of_edges() > 200 else 1.0)
    for a, b, data in graph.edges(data=True):
        (xa, ya), (xb, yb) = places[a], places[b]
        width, style = 0.8, ":"
        if data["links"]:
            rank = math.log(max(data["bandwidth_Bps"], 1e-9) / min(rates))
            width, style = (0.9 + 2.5 * rank / span if span > 0 else 1.2), "-"
        axes.plot([xa, xb], [ya, yb], style, color="#888888", linewidth=width * thin, zorder=1)
    labels = {_edge_label(data) for data in real}
    if len(labels) == 1 and len(real) > 1:
        return ["every line: " + labels.pop().replace("\n", ", ")]
    if len(real) <= 4 * MAX_EDGE_LABELS:
        _label_edges(axes, graph, places, zoom)
    return []


def _label_edges(axes: Any, graph: Any, places: dict[str, Any], zoom: float) -> None:
    """Of many equal lines to the leaves around one node, only one gets its label."""
    chosen: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for a, b, data in graph.edges(data=True):
        if data["links"]:
            leaf, hub = (a, b) if graph.degree(a) == 1 else (b, a)
            key = (hub, _edge_label(data)) if graph.degree(leaf) == 1 else (a, b)
            chosen.setdefault(key, []).append((a, b))
    edges = [edge for alike in chosen.values() for edge in alike[: 1 if len(alike) > 3 else 3]]
    if len(edges) > MAX_EDGE_LABELS:
        return
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "fontsize": 7 * zoom,
        "color": "#444444",
    }
    for a, b in edges:
        middle = [(x + y) / 2 for x, y in zip(places[a], places[b], strict=True)]
        axes.text(*middle, _edge_label(graph.edges[a, b]), bbox=_BOX, zorder=2, **style)


def _edge_label(data: dict[str, Any]) -> str:
    cables = f"{data['cables']} x " if data["cables"] > 1 else ""
    rate = units.format_bandwidth(data["bandwidth_Bps"], 3)
    return f"{cables}{rate}\n{units.format_time(data['latency_s'], 3)}"


def _draw_nodes(axes: Any, graph: Any, places: dict[str, Any], zoom: float) -> list[str]:
    """Signs by kind, labels where there is room; what all groups have in common is returned."""
    common = []
    count = graph.number_of_nodes()
    size = max(36.0, 170.0 - count) * zoom**2
    rows: dict[float, int] = {}
    for _, y in places.values():
        rows[round(y, 6)] = rows.get(round(y, 6), 0) + 1
    for kind, (_, colour, marker, scale) in STYLES.items():
        chosen = [node for node, its in graph.nodes(data="kind") if its == kind]
        if not chosen:
            continue
        xs, ys = zip(*(places[node] for node in chosen), strict=True)
        area = size * scale
        axes.scatter(xs, ys, s=area, c=colour, marker=marker, edgecolors="white", zorder=3)
        if count > MAX_NODE_LABELS and kind not in ("hosts", "zone"):
            continue
        labels = {_node_label(node, graph.nodes[node]) for node in chosen}
        if kind == "hosts" and len(labels) == 1 and len(chosen) > CROWDED_ROW:
            common.append("every group: " + labels.pop().replace("\n", ", "))
            continue
        for node in chosen:
            crowded = rows[round(places[node][1], 6)] > CROWDED_ROW and "level" in graph.nodes[node]
            axes.annotate(
                _node_label(node, graph.nodes[node]),
                places[node],
                xytext=(0, -math.sqrt(area) / 2 - 3),
                textcoords="offset points",
                ha="center",
                va="top",
                rotation=90 if crowded else 0,
                fontsize=7 * zoom,
                bbox=_BOX,
                zorder=4,
            )
    return common


def _node_label(name: str, data: dict[str, Any]) -> str:
    if "label" in data:
        return str(data["label"])
    name = name.removeprefix("link:").removeprefix(f"{data['zone']} ")
    if len(name) > 16:
        name = name.partition(".")[0]
    name = name if len(name) <= 24 else f"{name[:21]}..."
    if data["kind"] == "link":
        return f"{name}\n{units.format_bandwidth(data['bandwidth_Bps'], 3)}"
    if data["kind"] == "host":
        cores = f"{data['cores']} x " if data["cores"] > 1 else ""
        return f"{name}\n{cores}{units.format_speed(data['speed_flops'], 3)}"
    return name


def _draw_legend(figure: Any, graph: Any, zoom: float) -> None:
    """Below the picture, where nothing is hidden."""
    from matplotlib.lines import Line2D

    kinds = {kind for _, kind in graph.nodes(data="kind")}
    style: dict[str, Any] = {"linestyle": "", "markersize": 8 * zoom, "markeredgecolor": "white"}
    handles = [
        Line2D([], [], marker=marker, color=colour, label=name, **style)
        for kind, (name, colour, marker, _) in STYLES.items()
        if kind in kinds
    ]
    place: dict[str, Any] = {
        "loc": "lower center",
        "ncols": len(handles),
        "frameon": False,
        "fontsize": 8 * zoom,
    }
    figure.legend(handles=handles, **place)
