"""What the published tables say of each other's rows, asked of these runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from ptaskmodel.campaign import Finding, between, near, stated

Row = Mapping[str, Any]
# Rows of one sample at one load, and peaks of the queue depth by name of the configuration.
Sample = tuple[Sequence[Row], Mapping[str, float]]

NAMES = {
    (1.0, 1, "none"): "BF 1, W 1",
    (1.0, 4, "none"): "BF 1, W 4",
    (0.5, 1, "none"): "BF 0.5, W 1",
    (0.5, 4, "none"): "BF 0.5, W 4",
    (1.0, 1, "balance"): "BF adaptive",
    (1.0, 1, "window"): "W adaptive",
    (1.0, 1, "both"): "2D adaptive",
}
WEIGHTS = {
    "EQUAL": (1 / 3, 1 / 3, 1 / 3),
    "WAIT+": (0.5, 0.25, 0.25),
    "UNFAIR+": (0.25, 0.5, 0.25),
    "LOC+": (0.25, 0.25, 0.5),
}
BASE = "BF 1, W 1"
# Which configuration has less of what than which other.
LESS = (
    ("BF 0.5, W 1", BASE, "waiting_min", "a lower balance shortens the mean wait"),
    ("BF 1, W 4", BASE, "waiting_min", "a window shortens the mean wait of FCFS"),
    (BASE, "BF 0.5, W 1", "unfair_by_runtimes", "a lower balance makes more jobs unfair"),
    (BASE, "BF 1, W 4", "unfair_by_runtimes", "a window makes more jobs unfair"),
    ("BF 1, W 4", BASE, "loss_of_capacity", "a window lowers the loss of capacity of FCFS"),
    (
        "BF adaptive",
        "BF 0.5, W 4",
        "unfair_by_runtimes",
        "adaptive balance: fewer unfair jobs than BF 0.5, W 4",
    ),
    ("2D adaptive", BASE, "waiting_min", "2D adaptive: shorter waits than BF 1, W 1"),
    ("2D adaptive", BASE, "loss_of_capacity", "2D adaptive: less loss of capacity than BF 1, W 1"),
)
# Published on SDSC SP2, 5,000 jobs, EASY on any hosts: mean wait (min), loss of capacity (%).
SP2 = {
    "waiting_min": dict(
        zip(NAMES.values(), (77.4, 68.4, 55.8, 52.5, 55.2, 64.3, 53.8), strict=True)
    ),
    "loss_of_capacity": dict(
        zip(NAMES.values(), (5.88, 5.38, 4.82, 3.21, 4.29, 3.62, 4.15), strict=True)
    ),
}
# Published on Intrepid: peaks of the queue depth over that of BF 1, W 1; the second is a bound.
PEAKS = {"BF 0.75, W 1": 0.25, "BF 0.5, W 1": 0.125}
TITLES = {"waiting_min": "mean wait", "loss_of_capacity": "loss of capacity"}
COLUMNS = ("waiting_min", "unfair_by_runtimes", "loss_of_capacity")


def picked(rows: Sequence[Row], allocation: str = "") -> dict[str, Row]:
    """The rows of the published table by name."""
    found = {
        (row["balance"], row["window"], row["adaptive"]): row
        for row in rows
        if row["allocation"] == allocation
    }
    return {name: found[key] for key, name in NAMES.items() if key in found}


def table(rows: Sequence[Row]) -> str:
    """Tables 2 and 3, then the same with contention, as Markdown."""
    lines = [
        f"\n{rows[0]['log']}: {rows[0]['jobs']} jobs, {rows[0]['killed']} killed at BF 1, W 1\n",
        "| configuration | wait (min) | bounded slowdown | unfair (run times) | unfair (estimates) "
        "| LoC (%) |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in picked(rows).items():
        lines.append(
            f"| {name} | {row['waiting_min']:.1f} | {row['bounded_slowdown']:.2f} | "
            f"{row['unfair_by_runtimes']} | {row['unfair_by_estimates']} | "
            f"{row['loss_of_capacity']:.2f} |"
        )
    where = sorted({row["allocation"] for row in rows if row["allocation"]})
    if where:
        titles = " | ".join(f"{w}: wait (min), LoC (%), contention, killed" for w in where)
        lines += ["", f"| with contention | {titles} |", "|---" * (len(where) + 1) + "|"]
        by_place = {w: picked(rows, w) for w in where}
        for name in NAMES.values():
            cells = [
                f"{row['waiting_min']:.1f}, {row['loss_of_capacity']:.1f}, "
                f"{row['contention_slowdown']:.3f}, {row['killed']}"
                for row in (by_place[w][name] for w in where)
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def gains(rows: Sequence[Row]) -> dict[str, dict[str, tuple[float, float]]]:
    """Per configuration and weighting: gain over BF 1, W 1 by the printed formula (sum of relative
    gains, %), and by differences of the 0 to 100 scores.
    """
    chosen = picked(rows)
    base = chosen["BF 1, W 1"]
    most = {c: max(float(row[c]) for row in chosen.values()) or 1.0 for c in COLUMNS}
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name, row in chosen.items():
        found[name] = {}
        for weighting, weights in WEIGHTS.items():
            printed = score = 0.0
            for column, weight in zip(COLUMNS, weights, strict=True):
                a, b = float(base[column]), float(row[column])
                printed += weight * (100 * (a - b) / a if a else 0.0)
                score += weight * 100 * (a - b) / most[column]
            found[name][weighting] = printed, score
    return found


def weighted_gains(rows: Sequence[Row]) -> str:
    """The gains of each configuration, a line each."""
    lines = []
    for name, by_weight in gains(rows).items():
        both = ", ".join(f"{w} {a:.1f} / {b:.1f}" for w, (a, b) in by_weight.items())
        lines.append(f"  gain of {name} (printed formula / scores): {both}")
    return "\n".join(lines)


def ratios(rows: Sequence[Row], peaks: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Of one sample each published ratio to BF 1, W 1 by name: theirs and that of these runs.

    peaks: of the queue depth in the first 200 hours, by name of the configuration.
    """
    chosen, found = picked(rows), {}
    wait = chosen["BF adaptive"]["waiting_min"] / chosen["BF 0.5, W 1"]["waiting_min"]
    found["adaptive balance waits nearly as short as BF 0.5; over it"] = 55.2 / 55.8, wait
    for column, theirs in SP2.items():
        own = float(chosen[BASE][column])
        for name, value in theirs.items():
            if name != BASE and own > 0:
                what = f"{TITLES[column]} of {name} over that of {BASE} (SP2)"
                found[what] = value / theirs[BASE], float(chosen[name][column]) / own
    if (base := peaks.get(BASE, 0.0)) > 0:
        for name, published in PEAKS.items():
            what = f"peak of the queue depth, {name} over {BASE} (BG/P, near hour 100)"
            found[what] = published, peaks[name] / base
    return found


def less(rows: Sequence[Row]) -> dict[str, tuple[str, bool]]:
    """Of one sample what `LESS` says: the two figures, and whether it holds; as far as is known."""
    chosen, found = picked(rows), {}
    for smaller, larger, column, what in LESS:
        a, b = (chosen[name][column] for name in (smaller, larger))
        if a is not None and b is not None:
            found[what] = f"{float(a):.4g}, {float(b):.4g}", float(a) < float(b)
    return found


def findings(samples: Sequence[Sample], loads: Sequence[Sample]) -> list[Finding]:
    """Published figures and relations beside those of one log's first sample.

    samples: rows and peaks (see `ratios`) of each; loads: of the first sample at each offered load.
    They say whether a difference is chance, or the queue.
    """
    log = samples[0][0][0]["log"]
    said, told = [less(rows) for rows, _ in samples], [ratios(*each) for each in samples]
    at_loads = [ratios(*each) for each in loads]
    found = []
    for what, (shown, holds) in said[0].items():
        kept = [each[what][1] for each in said if what in each]
        cause = f"holds in {sum(kept)} of {len(kept)} samples of the log"
        cause = f"the sample: {cause}" if 2 * sum(kept) > len(kept) else f"unknown: {cause}"
        if len(kept) == 1:
            cause = "unknown: forks for fairness are not made on other samples"
        found.append(stated(f"{log}: {what}", shown, holds, rule="less", cause=cause))
    for what, (theirs, here) in told[0].items():
        cause = why(theirs, *([e[what][1] for e in each if what in e] for each in (told, at_loads)))
        if theirs == PEAKS["BF 0.5, W 1"]:
            found.append(between(f"{log}: {what}", -inf, theirs, here, cause=cause))
        else:
            found.append(near(f"{log}: {what}", theirs, here, _within(what), cause=cause))
    return found


def why(theirs: float, samples: Sequence[float], loads: Sequence[float]) -> str:
    """Whether other samples or other loads have what was published; both begin with the first."""
    shown, told, refused = [], [], []
    for title, name, every in (("samples", "sample", samples), ("offered loads", "load", loads)):
        if len(every) > 1:
            shown.append(f"{min(every):.2g} to {max(every):.2g} in {len(every)} {title}")
            (told if min(every) <= theirs <= max(every) else refused).append(f"the {name}")
    found = " or ".join(told) or f"unknown, not {' or '.join(refused) or 'asked'}"
    return f"{found}: {', '.join(shown)}"


def _within(what: str) -> float:
    return 0.4 if what.startswith("peak") else 0.2 if "nearly" in what else 0.25
