"""What the published tables say of each other's rows, asked of these runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

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


def relations(rows: Sequence[Row]) -> str:
    """The published relations, and whether they hold here."""
    chosen = picked(rows)
    base = chosen["BF 1, W 1"]

    def less(one: str, other: str, column: str) -> bool:
        return bool(chosen[one][column] < chosen[other][column])

    claims = [
        ("a lower balance shortens the mean wait (BF 0.5 against 1)",
         less("BF 0.5, W 1", "BF 1, W 1", "waiting_min")),
        ("a window shortens the mean wait of FCFS (W 4 against 1)",
         less("BF 1, W 4", "BF 1, W 1", "waiting_min")),
        ("a lower balance makes more jobs unfair",
         less("BF 1, W 1", "BF 0.5, W 1", "unfair_by_runtimes")),
        ("a window makes more jobs unfair",
         less("BF 1, W 1", "BF 1, W 4", "unfair_by_runtimes")),
        ("a window lowers the loss of capacity of FCFS",
         less("BF 1, W 4", "BF 1, W 1", "loss_of_capacity")),
        ("adaptive balance: fewer unfair jobs than BF 0.5, W 4",
         less("BF adaptive", "BF 0.5, W 4", "unfair_by_runtimes")),
        ("adaptive balance: waits nearly as short as BF 0.5 (within 20 %)",
         chosen["BF adaptive"]["waiting_min"] < 1.2 * chosen["BF 0.5, W 1"]["waiting_min"]),
        ("2D adaptive: shorter waits than BF 1, W 1",
         less("2D adaptive", "BF 1, W 1", "waiting_min")),
        ("2D adaptive: less loss of capacity than BF 1, W 1",
         less("2D adaptive", "BF 1, W 1", "loss_of_capacity")),
    ]  # fmt: skip
    lines = [f"\n{base['log']}: published relations"]
    lines += [f"  {'holds' if holds else 'fails'}: {text}" for text, holds in claims]
    for name, by_weight in gains(rows).items():
        both = ", ".join(f"{w} {a:.1f} / {b:.1f}" for w, (a, b) in by_weight.items())
        lines.append(f"  gain of {name} (printed formula / scores): {both}")
    return "\n".join(lines)
