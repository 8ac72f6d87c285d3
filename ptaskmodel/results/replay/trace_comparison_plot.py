"""The picture of a comparison of a replay with parallel tasks: times by disturbance, and costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.results.drawing import colour_of, new_figure, time_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ptaskmodel.results.replay.trace_comparison import TraceComparison

MARKERS = "osDv^<>P"


def comparison_figure(comparisons: Sequence[TraceComparison]) -> Figure:
    """A row for each comparison: when the application ends by each model, and what that costs."""
    figure = new_figure(10.0, 0.6 + 2.9 * len(comparisons))
    for row, made in enumerate(figure.subplots(len(comparisons), 2, squeeze=False)):
        times, costs = made
        _times(times, comparisons[row])
        _costs(costs, comparisons[row])
    return figure


def _times(axes: Any, made: TraceComparison) -> None:
    """Makespan over the number of flows, a line a model; the replay is black and thick."""
    numbers = [row.flows for row in made.rows if row.model == made.rows[0].model]
    span_s = max(row.makespan_s for row in made.rows)
    unit, unit_name = time_unit(span_s)
    for k, model in enumerate(made.models):
        dates = [row.makespan_s / unit for row in made.of(model)]
        axes.plot(range(len(numbers)), dates, label=model, **_style(k))
    axes.set_xticks(range(len(numbers)), [str(number) for number in numbers])
    axes.set_xlabel("endless flows of each pair of hosts beside it")
    axes.set_ylabel(f"ends at ({unit_name})")
    axes.set_ylim(0.0, 1.08 * span_s / unit)
    axes.set_title(made.what, fontsize=10, loc="left")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)


def _style(k: int) -> dict[str, Any]:
    if k == 0:
        return {"color": "black", "linewidth": 2.5, "marker": "o", "markersize": 4, "zorder": 1}
    marker = MARKERS[k % len(MARKERS)]
    return {"color": colour_of(k - 1), "linewidth": 1.2, "marker": marker, "markersize": 6,
            "fillstyle": "none", "zorder": 2}  # fmt: skip


def _costs(axes: Any, made: TraceComparison) -> None:
    """Processor time of each model, the mean over the numbers of flows, on a logarithmic axis."""
    means = []
    for model in made.models:
        rows = made.of(model)
        means.append(sum(row.cpu_s for row in rows) / len(rows))
    for k, mean in enumerate(means):
        axes.barh(k, mean, color=_style(k)["color"], height=0.6)
        times = means[0] / mean if mean > 0 else float("inf")
        told = f"{mean:.2g} s" if k == 0 else f"{mean:.2g} s, replay / {times:.2g}"
        axes.annotate(told, (mean, k), xytext=(4, 0), textcoords="offset points", va="center",
                      fontsize=8)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(min(means) / 3, max(means) * 30)
    axes.set_yticks(range(len(means)), made.models)
    axes.invert_yaxis()
    axes.set_xlabel("processor time of the simulation (s)")
