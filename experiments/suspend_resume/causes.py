"""Why runs differ from what was published: each cause has a test that could have refuted it.

queue: the orders again at a higher load. huge alone: no other job has priority. work orders: each
sample by work in five orders. steady_utilisation: without the empty machine at begin and end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

Row = Mapping[str, Any]

THEIRS = 10  # times the mean run time was the mean wait of the study, with bf
MOST = 0.5  # of a difference must go, for its cause to be named


def values(rows: Sequence[Row], part: str, policy: str, measure: str) -> np.ndarray:
    """One number for each order, sample or factor, in their order."""
    scale = 100.0 if measure.endswith("utilisation") else 1.0
    chosen = [row for row in rows if row["part"] == part and row["policy"] == policy]
    return np.array([scale * row[measure] for row in chosen])


def queue_of(rows: Sequence[Row], part: str) -> float:
    """The mean wait over the mean run time, with bf; of the headline with bf size."""
    name = "bf size" if part == "headline" else "bf"
    waits, responses = (values(rows, part, name, m) for m in ("waiting_s", "response_s"))
    return float(waits.mean() / (responses - waits).mean())


def of_order(rows: Sequence[Row], measure: str, order: Sequence[str]) -> str:
    """Whether a longer queue mends an order of policies by a measure.

    order: names of the policies, the smallest measure first.
    """
    before, after = (
        [
            bool(values(rows, part, a, measure).mean() < values(rows, part, b, measure).mean())
            for a, b in pairwise(order)
        ]
        for part in ("shuffled", "queue")
    )
    mended = [then for now, then in zip(before, after, strict=True) if not now]
    found = "the queue" if mended and all(mended) else "the queue, in part"
    if not any(mended):
        found = "unknown, not the queue"
    return (
        f"{found}: {sum(mended)} of {len(mended)} that fail hold where the mean wait is "
        f"{queue_of(rows, 'queue'):.2g} times the mean run time (here "
        f"{queue_of(rows, 'shuffled'):.2g}, theirs {THEIRS})"
    )


def of_start(rows: Sequence[Row]) -> str:
    """Whether the huge job starts at once where no other job has its priority."""
    waits = values(rows, "huge alone", "sr size", "huge_waits_s")
    at_once = int((waits == 0).sum())
    shown = f"it starts at once in {at_once} of {len(waits)} orders if it alone has priority"
    found = "jobs of its own priority have hosts that it needs"
    return f"{found}: {shown}" if at_once == len(waits) else f"unknown: {shown}"


def of_drop(alone: tuple[bool, str]) -> str:
    """Whether use drops before the huge job if no other job has priority.

    alone: whether it does, and how.
    """
    drops, how = alone
    found = "other large jobs made the machine drain before it, too"
    shown = f"if it alone has priority: {how}"
    return f"{found}; {shown}" if drops else f"unknown, not other large jobs; {shown}"


def of_samples(rows: Sequence[Row]) -> str:
    """Whether samples by work differ by more than the chance of their orders (F test, 95 %)."""
    means, spreads = (
        values(rows, "work orders", "bf", name) for name in ("waiting_s", "spread_waiting_s")
    )
    (orders,) = {int(row["orders"]) for row in rows if row["part"] == "work orders"}
    within = float((spreads**2).mean()) * orders / (orders - 1)  # of single orders
    ratio = orders * float(means.var(ddof=1)) / within
    bound = float(stats.f.ppf(0.95, len(means) - 1, len(means) * (orders - 1)))
    chance = 100 * (within / orders) ** 0.5 / means.mean()
    shown = (
        f"means of {orders} orders deviate by {100 * means.std(ddof=1) / means.mean():.0f} % "
        f"between samples; chance of orders gives {chance:.0f} %"
    )
    found = "samples by work have other jobs; a shuffled order has the same"
    return f"{found}: {shown}" if ratio > bound else f"unknown, not other jobs: {shown}"


def of_use(rows: Sequence[Row], part: str) -> str:
    """How much of a sample's lower use is the empty machine at its begin and end."""
    gap, steady = (
        float(values(rows, "whole", "bf", name)[0] - values(rows, part, "bf", name).mean())
        for name in ("utilisation", "steady_utilisation")
    )
    shown = f"{gap:.1f} points less, {steady:.1f} without begin and end"
    if abs(steady) <= (1 - MOST) * abs(gap):
        return f"a sample begins and ends with an empty machine: {shown}"
    return f"unknown, begin and end in part at most: {shown}"
