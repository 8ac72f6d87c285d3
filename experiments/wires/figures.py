"""Pictures of `judge`: predicted over measured by size, and error against cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.style.figures import CATEGORIES, LIGHT, picture, plain_log

COLOURS = {
    "L07": CATEGORIES[1],
    "CM02": CATEGORIES[2],
    "LV08": CATEGORIES[3],
    "wire, fluid": CATEGORIES[0],
    "wire, packets": CATEGORIES[4],
    "the simulator itself": LIGHT.soft,
}
LIMITS = (0.2, 5.0)


@picture
def draw(output: Path, judged: list[Any], rows: list[dict[str, Any]]) -> list[Path]:
    """Draw all pictures; returns their paths."""
    import matplotlib as mpl

    mpl.use("Agg")
    made = [_by_size(output, judged, kind) for kind in sorted({each.case.kind for each in judged})]
    made.append(_cost(output, rows))
    return made


def _by_size(output: Path, judged: list[Any], kind: str) -> Path:
    """Predicted over measured duration of each flow, by its size: a panel a model."""
    import matplotlib.pyplot as plt

    own = [each for each in judged if each.case.kind == kind]
    models = list(dict.fromkeys(each.model for each in own))
    figure, axes = plt.subplots(
        1, len(models), figsize=(2.6 * len(models), 3.2), sharey=True, squeeze=False
    )
    for axis, model in zip(axes[0], models, strict=True):
        some = [each for each in own if each.model == model]
        size = np.concatenate([each.size_B for each in some])
        ratio = np.concatenate([each.predicted_s / each.measured_s for each in some])
        axis.axhline(1.0, color=LIGHT.ink, linewidth=0.8)
        axis.scatter(
            size, np.clip(ratio, *LIMITS), s=4, alpha=0.35, color=COLOURS[model], linewidth=0
        )
        axis.set(xscale="log", yscale="log", ylim=LIMITS, xlabel="bytes")
        axis.set_yticks([0.2, 0.5, 1.0, 2.0, 5.0], ["0.2", "0.5", "1", "2", "5"])
        axis.minorticks_off()
        axis.set_title(f"{model}\nmedian error {np.median(np.abs(ratio - 1)):.3f}")
    axes[0][0].set_ylabel(f"{kind}: predicted / measured")
    return _saved(figure, output / f"by_size_{kind.lower()}.png")


def _cost(output: Path, rows: list[dict[str, Any]]) -> Path:
    """Median error against processor time, over that of the packet simulator."""
    import matplotlib.pyplot as plt

    kinds = sorted({row["protocol"] for row in rows})
    figure, axes = plt.subplots(1, len(kinds), figsize=(4.2 * len(kinds), 3.4), squeeze=False)
    for axis, kind in zip(axes[0], kinds, strict=True):
        for row in rows:
            if row["protocol"] != kind or not row["simulator_over_it"] > 0.0:
                continue
            at = 1.0 / row["simulator_over_it"], row["median"]
            axis.scatter(*at, color=COLOURS[row["model"]], zorder=3, clip_on=False)
            left = at[0] >= 1.0
            axis.annotate(
                row["model"], at, xytext=(-5 if left else 5, 4), textcoords="offset points",
                ha="right" if left else "left",
            )  # fmt: skip
        axis.set(xscale="log", title=kind)
        axis.set_xlabel("processor time / that of the packet simulator")
        axis.margins(x=0.3, y=0.1)
        plain_log(axis.xaxis)
        axis.set_ylim(bottom=0.0)
    axes[0][0].set_ylabel("median error of a flow")
    return _saved(figure, output / "cost.png")


def _saved(figure: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path
