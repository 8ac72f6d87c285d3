"""A picture of a platform whose hosts and links are coloured by how much they were used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import digest
from ptaskmodel.results.drawing import HEAT, NEEDS_ATTRIBUTION, natural, new_figure
from ptaskmodel.results.loading import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ptaskmodel.platform import Platform

MAX_NODES = 400
MAX_NAMES = 40


def topology(results: Results, platform: Platform | None = None) -> Figure:
    """The platform with each host and link in the colour of its mean use over the run.

    platform: the one that the run was on; None: read again from the file that the summary names.

    Raises PTaskModelError if that file has changed, or the results have no utilisation.
    """
    from ptaskmodel.platform.graph_layout import place_nodes

    if not results.utilisation:
        raise PTaskModelError(f"{results.directory}: {NEEDS_ATTRIBUTION}")
    platform = platform or _platform_of(results)
    hosts, links = _mean_use(results, "host"), _mean_use(results, "link")
    graph = platform.graph
    total = graph.number_of_nodes()
    graph, note = _most_used(graph, hosts)
    places = place_nodes(graph)
    figure = new_figure(10.0, 7.0)
    axes = figure.add_subplot()
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    scale = Normalize(0.0, 100.0)
    colours = colormaps[HEAT]
    lines, uses = [], []
    kinds = dict(graph.nodes(data="kind"))
    for a, b, data in graph.edges(data=True):
        shared = [node.removeprefix("link:") for node in (a, b) if kinds[node] == "link"]
        if len(shared) == 2:
            continue  # two links that follow each other on routes: no cable joins them
        lines.append([places[a], places[b]])
        crossed = [*data["links"], *shared]
        uses.append(100.0 * max((_use(links, name) for name in crossed), default=0.0))
    widths = [1.0 + 5.0 * float(scale(use)) for use in uses]
    axes.add_collection(
        LineCollection(lines, colors=colours(scale(uses)), linewidths=widths, zorder=1)
    )
    few = graph.number_of_nodes() <= MAX_NAMES
    for kind, marker, size in (("host", "o", 90), ("link", "h", 70), ("router", "D", 45),
                               ("switch", "s", 45)):  # fmt: skip
        _draw_nodes(axes, graph, places, kind, marker, size if few else size / 2.5,
                    hosts if kind == "host" else links, colours, scale)  # fmt: skip
    if few:
        for node, (x, y) in places.items():
            axes.annotate(node.removeprefix("link:"), (x, y), xytext=(0, -9), fontsize=7,
                          textcoords="offset points", ha="center", va="top")  # fmt: skip
    figure.colorbar(ScalarMappable(scale, colours), ax=axes, pad=0.01,
                    label="mean use over the run (% of the capacity)")  # fmt: skip
    worst = sorted(links, key=lambda name: (-links[name], natural(name)))[:3]
    title = f"{platform.path.name}: {total:,} nodes{note}\nmost used links: "
    title += ", ".join(f"{name} ({100 * links[name]:.3g} %)" for name in worst)
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_axis_off()
    axes.margins(0.08)
    _draw_legend(figure, graph)
    return figure


def _draw_nodes(
    axes: Any,
    graph: Any,
    places: dict[str, Any],
    kind: str,
    marker: str,
    size: float,
    use: dict[str, float],
    colours: Any,
    scale: Any,
) -> None:
    nodes = [node for node, its in graph.nodes(data="kind") if its == kind]
    if not nodes:
        return
    xs, ys = zip(*(places[node] for node in nodes), strict=True)
    style: dict[str, Any] = {"marker": marker, "s": size, "zorder": 3, "edgecolors": "#444444"}
    if kind in ("host", "link"):
        values = [100.0 * _use(use, node.removeprefix("link:")) for node in nodes]
        axes.scatter(xs, ys, c=values, cmap=colours, norm=scale, linewidths=0.6, **style)
    else:
        axes.scatter(xs, ys, c="white", linewidths=1.0, **style)


def _draw_legend(figure: Any, graph: Any) -> None:
    from matplotlib.lines import Line2D

    kinds = {kind for _, kind in graph.nodes(data="kind")}
    signs = {"host": "o", "link": "h", "router": "D", "switch": "s"}
    names = {"link": "shared link"}
    handles = [
        Line2D([], [], marker=sign, color="white", markeredgecolor="#444444", linestyle="",
               label=names.get(kind, kind))
        for kind, sign in signs.items()
        if kind in kinds
    ]  # fmt: skip
    handles.append(Line2D([], [], color="#444444", linewidth=2, label="link (thicker: more used)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def _most_used(graph: Any, use: dict[str, float]) -> tuple[Any, str]:
    """The graph with its most used hosts only, if it is large, and a note that says so."""
    if graph.number_of_nodes() <= MAX_NODES:
        return graph, ""
    hosts = [node for node, kind in graph.nodes(data="kind") if kind == "host"]
    room = max(MAX_NODES - (graph.number_of_nodes() - len(hosts)), 50)
    kept = set(sorted(hosts, key=lambda name: (-use.get(name, 0.0), natural(name)))[:room])
    chosen = [node for node, kind in graph.nodes(data="kind") if kind != "host" or node in kept]
    note = f", of the {len(hosts):,} hosts only the {len(kept)} most used are drawn"
    return graph.subgraph(chosen), note


def _use(uses: dict[str, float], name: str) -> float:
    """The use of a link, or of the more used of its two halves."""
    return max(uses.get(each, 0.0) for each in (name, f"{name}_UP", f"{name}_DOWN"))


def _mean_use(results: Results, kind: str) -> dict[str, float]:
    span = results.end_s or 1.0
    return {
        name: sum((b - a) * share for a, b, share in spans) / span
        for (name, its), spans in results.utilisation.items()
        if its == kind
    }


def _platform_of(results: Results) -> Platform:
    from ptaskmodel.platform import load_platform

    inputs = results.summary.get("inputs") or []
    if not inputs:
        raise PTaskModelError(f"{results.directory}: its summary names no platform file")
    path = Path(inputs[0]["path"])
    if digest(path) != inputs[0]["sha256"]:
        raise PTaskModelError(f"{path}: has changed since the run; give the file of the run")
    return load_platform(path)
