"""The pictures of the study, of the rows of its tables."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from ptaskmodel.style.figures import CATEGORIES, LIGHT, new_figure, picture, plain_log

MODELS = ("bundle", "collectives", "1 window", "10 windows", "100 windows")
COLOURS = dict(zip(MODELS, CATEGORIES, strict=False))
MARKERS = "osD^v"
Rows = list[dict[str, Any]]


def distinct(rows: Rows, key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


@picture
def alone_figure(rows: Rows) -> Figure:
    """Error of each model alone, a panel a kind; dots: against a replay without SMPI's factors."""
    kinds, programs = distinct(rows, "kind"), distinct(rows, "program")
    models = [model for model in COLOURS if model != "1 window"]  # it has none, as it is made
    figure = new_figure(11.0, 8.0)
    width = 0.8 / len(models)
    panels = figure.subplots(len(kinds), 1, sharex=True)
    for axes, kind in zip(panels, kinds, strict=True):
        for k, model in enumerate(models):
            for network in ("SMPI", "L07"):
                found = {
                    row["program"]: 100 * row["error"]
                    for row in rows
                    if (row["kind"], row["model"], row["network"]) == (kind, model, network)
                }
                places = [programs.index(name) + (k - (len(models) - 1) / 2) * width
                          for name in found]  # fmt: skip
                if not found:
                    continue
                if network == "SMPI":
                    axes.bar(places, found.values(), width, color=COLOURS[model], label=model)
                else:
                    axes.plot(places, found.values(), ".", color=LIGHT.ink, markersize=5,
                              label=None if k else "against a replay by L07")  # fmt: skip
        axes.axhline(0.0, color=LIGHT.ink, linewidth=0.8)
        axes.set_title(kind)
        axes.set_ylabel("error (%)")
        axes.grid(visible=False, axis="x")
    panels[0].legend(ncols=6, loc="lower left", bbox_to_anchor=(0, 1.1))
    panels[-1].set_xticks(range(len(programs)), programs)
    return figure


@picture
def ratio_figure(rows: Rows) -> Figure:
    """Error of the bundle alone by the size of messages, a line a program."""
    figure = new_figure(8.0, 4.0)
    axes = figure.add_subplot()
    for name, marker, colour in zip(
        distinct(rows, "program"), MARKERS, COLOURS.values(), strict=False
    ):
        for model, style in (("bundle", "-"), ("collectives", "--")):
            found = [row for row in rows if (row["program"], row["model"]) == (name, model)]
            if found:
                axes.plot([row["factor"] for row in found], [100 * row["error"] for row in found],
                          marker=marker, color=colour, linestyle=style,
                          label=name if model == "bundle" else f"{name}, {model}")  # fmt: skip
    axes.axhline(0.0, color=LIGHT.ink, linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("time to send over time to compute, about")
    axes.set_ylabel("error alone (%)")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


@picture
def disturbed_figure(rows: Rows) -> Figure:
    """Slowdown by the number of flows, a panel a program and place; black: the replay."""
    programs, places = distinct(rows, "program"), distinct(rows, "where")
    figure = new_figure(15.0, 6.6)
    for line, where in zip(
        figure.subplots(len(places), len(programs), squeeze=False), places, strict=True
    ):
        for axes, name in zip(line, programs, strict=True):
            own = [row for row in rows if (row["program"], row["where"]) == (name, where)]
            _line(axes, own, "replay", "", color=LIGHT.ink, linewidth=3.0, label="replay")
            for model in ("bundle", "collectives", "1 window", "10 windows"):
                for count, style in (("task", "-"), ("flow", "--")):
                    _line(axes, own, model, count, color=COLOURS[model], linestyle=style,
                          marker="o", markersize=3, label=f"{model}, count {count}")  # fmt: skip
            axes.set_title(f"{name}, {where}")
            axes.set_xlabel("endless flows of each pair")
            axes.set_ylim(bottom=0.9, top=max(2.0, axes.get_ylim()[1]))
        line[0].set_ylabel("slowdown")
    lines = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
    figure.legend(lines.values(), lines.keys(), ncols=5,
                  loc="outside upper left")  # fmt: skip
    return figure


def _line(axes: Any, rows: Rows, model: str, count: str, **style: Any) -> None:
    found = [row for row in rows if (row["model"], row["count"]) == (model, count)]
    if found:
        places = range(len(found))
        axes.plot(places, [row["slowdown"] for row in found], **style)
        axes.set_xticks(places, [row["flows"] for row in found])


@picture
def cost_figure(rows: Rows) -> Figure:
    """Error against processor time of all models and programs alone, each over the replay's."""
    figure = new_figure(8.0, 5.0)
    axes = figure.add_subplot()
    markers = dict(zip(distinct(rows, "program"), MARKERS, strict=False))
    rows = [row for row in rows if row["network"] == "SMPI"]
    cost = {(row["program"], row["kind"]): row["cpu_s"] for row in rows if row["model"] == "replay"}
    for row in rows:
        if row["model"] in COLOURS:
            part = row["cpu_s"] / cost[row["program"], row["kind"]]
            axes.plot(part, 100 * abs(row["error"]), markers[row["program"]],
                      color=COLOURS[row["model"]], alpha=0.8)  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("symlog", linthresh=1.0)
    plain_log(axes.xaxis)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.axvline(1.0, color=LIGHT.ink, linewidth=0.8)
    axes.set_xlabel("processor time, of that of the replay")
    axes.set_ylabel("size of the error alone (%)")
    handles = [axes.plot([], [], "o", color=colour)[0] for colour in COLOURS.values()]
    handles += [axes.plot([], [], marker, color=LIGHT.ink)[0] for marker in markers.values()]
    axes.legend(handles, [*COLOURS, *markers], frameon=False,
                loc="center left", bbox_to_anchor=(1, 0.5))  # fmt: skip
    return figure
