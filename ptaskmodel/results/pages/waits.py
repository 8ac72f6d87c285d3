"""Charts of a batch: how long classes of jobs waited, and how slow jobs were."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.pages.page import Section
from ptaskmodel.results.states import KILLED, outcome_of
from ptaskmodel.style.quantities import count, duration, number

# With fewer jobs of a class each is a dot.
FEW = 30
# Waits up to this are called none; the axis begins here.
AT_ONCE_S = 1.0
MOST_USERS = 12
# Points of a cumulative curve.
POINTS = 300
LEAST_RANGE = 10.0
LENGTHS = ((60.0, "up to 1 min"), (600.0, "1 to 10 min"), (3600.0, "10 min to 1 h"),
           (21600.0, "1 to 6 h"), (86400.0, "6 to 24 h"), (np.inf, "over 1 d"))  # fmt: skip
QUANTILES = (0.25, 0.5, 0.75, 0.95, 1.0)


def waiting_sections(results: Results, users: Mapping[str, str]) -> list[Section]:
    """Return strips of the waits of a batch's `results` by size, length and user.

    users: of jobs, where they are known.
    """
    started = [task for task in results.tasks if task.waiting_s is not None]
    if len(started) < 2:
        return []
    waited = [task.waiting_s or 0.0 for task in started]
    if not max(waited):
        return []
    kinds: list[tuple[str, Callable[[ShownTask], tuple[int, str] | None]]] = [
        ("hosts", _size),
        ("run time", _length),
    ]
    if len(set(users.values())) > 1:
        most = _largest(started, users)
        kinds.append(("user", lambda task: most.get(users.get(task.task_id, ""))))
    charts = [_strips(label, started, of) for label, of in kinds]
    return [Section("Who waited how long", charts=tuple(c for c in charts if c is not None))]


def _size(task: ShownTask) -> tuple[int, str] | None:
    """The class of the hosts that a job had: 1, 2, 3-4, 5-8, ..."""
    hosts = len(task.hosts)
    if not hosts:
        return None
    k = (hosts - 1).bit_length()
    low, high = (1 << k - 1) + 1 if k else 1, 1 << k
    return k, f"{low:,}" if low == high else f"{low:,}-{high:,}"


def _length(task: ShownTask) -> tuple[int, str] | None:
    if task.duration_s is None:
        return None
    return next((k, name) for k, (most, name) in enumerate(LENGTHS) if task.duration_s <= most)


def _largest(started: Iterable[ShownTask], users: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """The users with most host time, in this order."""
    used: dict[str, float] = {}
    for task in started:
        name = users.get(task.task_id, "")
        used[name] = used.get(name, 0.0) + len(task.hosts) * (task.duration_s or 0.0)
    used.pop("", None)
    order = sorted(used, key=lambda name: -used[name])[:MOST_USERS]
    return {name: (k, name) for k, name in enumerate(order)}


def _strips(
    label: str,
    started: Sequence[ShownTask],
    class_of: Callable[[ShownTask], tuple[int, str] | None],
) -> dict[str, Any] | None:
    classes: dict[tuple[int, str], list[ShownTask]] = {}
    for task in started:
        if (key := class_of(task)) is not None:
            classes.setdefault(key, []).append(task)
    if not classes:
        return None
    rows, halves = [], {}
    for (_, name), members in sorted(classes.items()):
        waits = np.array([task.waiting_s for task in members], dtype=float)
        some = np.sort(waits[waits > AT_ONCE_S])
        halves[name] = float(np.quantile(waits, 0.5, method="inverted_cdf"))
        rows.append(
            {
                "name": name,
                "jobs": len(members),
                "zero": 1.0 - len(some) / len(members),
                "killed": sum(outcome_of(task.state) == KILLED for task in members),
                "quantiles": np.quantile(some, QUANTILES, method="inverted_cdf").tolist()
                if len(some) else [],
                "dots": some.tolist() if 0 < len(some) < FEW else None,
            }
        )  # fmt: skip
    worst = max(halves, key=lambda name: halves[name])
    whose = f"of {count(len(started), 'job')} the median wait is longest for {worst}"
    sentence = f"By {label}: {whose}, {duration(halves[worst])}"
    killed = [row for row in rows if row["killed"]]
    if killed:
        most = max(killed, key=lambda row: row["killed"] / row["jobs"])
        sentence += (
            f"; most of a class are killed of {most['name']}: "
            f"{most['killed']:,} of {most['jobs']:,}"
        )
    return {
        "chart": "strip",
        "label": label,
        "sentence": f"{sentence}.",
        "killed": bool(killed),
        "rows": rows,
    }


def slowdown_sections(results: Results) -> list[Section]:
    """Return the cumulative slowdowns of `results`, of those killed a curve of its own.

    The axis begins at 1 and ends at 10 or more, so that pages can be held side by side.
    """
    title = "Slowdowns"
    what = results.what
    if what == "rank" or len(results.tasks) < 2:
        return []
    sections = []
    slow = {"ended": _slowdowns(results, False), "killed": _slowdowns(results, True)}
    known = sum(map(len, slow.values()))
    if known:
        every = np.concatenate(list(slow.values()))
        half, tail = np.quantile(every, (0.5, 0.95), method="inverted_cdf")
        sentence = (
            f"Contention slows half of {count(known, what)} by a factor of at most {number(half)}, "
            f"5 % by more than {number(tail)}, one by {number(float(every.max()))}."
        )
        series = [
            {"name": f"{name}: {count(len(values), what)}", "role": role,
             "dashed": name == "killed", "at": _curve(values)}
            for (name, values), role in zip(slow.items(), ("use", "lost"), strict=True)
            if len(values)
        ]  # fmt: skip
        sections.append(_cumulative("contention slowdown", sentence, series))
    tau = results.summary.get("tau_s")
    if what == "job" and not known and isinstance(tau, int | float):
        values = np.array(
            [
                max((task.waiting_s + task.duration_s) / max(task.duration_s, tau), 1.0)
                for task in results.tasks
                if task.waiting_s is not None and task.duration_s is not None
            ]
        )
        if len(values):
            half, tail = np.quantile(values, (0.5, 0.95), method="inverted_cdf")
            sentence = (
                f"Half of {count(len(values), what)} have a bounded slowdown of at most "
                f"{number(half)}, 5 % more than {number(tail)}."
            )
            series = [{"name": f"bounded slowdown: {count(len(values), what)}", "role": "wait-text",
                       "dashed": False, "at": _curve(values)}]  # fmt: skip
            sections.append(_cumulative("bounded slowdown", sentence, series))
    return [Section(title, charts=tuple(sections))] if sections else []


def _slowdowns(results: Results, killed: bool) -> np.ndarray:
    return np.array(
        [
            task.slowdown
            for task in results.tasks
            if task.slowdown is not None and (outcome_of(task.state) == KILLED) == killed
        ]
    )


def _cumulative(label: str, sentence: str, series: list[dict[str, Any]]) -> dict[str, Any]:
    return {"chart": "cumulative", "axis": "number", "label": label, "sentence": sentence,
            "from": 1.0, "to": LEAST_RANGE, "series": series}  # fmt: skip


def _curve(values: np.ndarray) -> list[list[float]]:
    """[value, part of those that are at most so large] at POINTS of them."""
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, min(POINTS, len(ordered))).round().astype(int))
    return [[float(f"{ordered[k]:.5g}"), round((k + 1) / len(ordered), 4)] for k in at.tolist()]
