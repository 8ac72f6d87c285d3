"""What the studies published, beside the tables of these runs.

[J] Jokanovic, D'Amico, Corbalan 2018; [M] Simakov et al. 2018; [T] Barberato 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from math import inf

import numpy as np
from common import Row
from parameters import AT_LOAD, HALF
from scipy import stats
from suspension import EXACT, LONGER, ORDERS

from ptaskmodel.campaign import Finding, between, near, ordered, stated

MANY_JOBS = 40
REST = 0.2  # of a difference may stay where what is named as its cause is absent
# [T], tables 4.4 to 4.6, in the orders of `ORDERS`.
SUSPENSION = {
    "waiting_s": (1415.5, 1450.3, 1699.0, 1975.8, 2470.9),
    "response_s": (1543.6, 1578.4, 1910.3, 2103.8, 2649.0),
    "slowdown": (71.5, 73.4, 80.0, 83.1, 109.0),
    "weighted_slowdown": (102.4, 111.1, 113.2, 128.8, 143.9),
}
# [T], figures 5.2 and 5.3: CPUs suspended over those needed, and how near ours must be.
SUSPENDED = {"linear": (1.0, 0.05), "cons": (2.0, 0.25)}
# [M]: mean waits (h) by kind of nodes, of one controller and of two, and parts started by backfill.
WAITS = {"knl": (9.8, 9.7), "slx": (14.7, 9.5)}
BACKFILLED = {"knl": (18.0, 34.0), "slx": (44.0, 51.0)}
AT_LIMIT = {"knl": (77.0, 54.0), "slx": (77.0, 51.0)}
PHASES, JOBS = "threads' phases", "jobs and their cores"
# [M]: deviations of five runs over their means, %, with one controller.
DEVIATIONS = {"knl": 100 * 0.01 / 9.76, "slx": 100 * 0.27 / 14.87}
TIMES_JOBS = 300  # [M] had so many times the jobs of the full size
# [M]: waits on SLX with shared nodes, and parts started by backfill; one controller.
SHARED = {"none": (14.7, 44.0), "sockets": (12.3, 56.0), "cores": (12.8, 58.0)}
# [J]: how much worse (below 0: better) measures become, %, by the change of the nodes.
BACKFILL_OF_HALF = 5.5 / 2, 0.25  # [J]: its time over that with all nodes; how near ours must be
NODES = {-0.25: (100, 140), -0.125: (40, 60), 0.125: (-40, -30), 0.25: (-70, -50)}


def found(tables: Mapping[str, Sequence[Row]]) -> list[Finding]:
    """A line for each published figure that the tables have something of."""
    parts = PARTS | {
        "separate": partial(_separate, draws=tables.get("phases", ())),
        "suspension": partial(_suspension, longer=tables.get("queue", ())),
        "victims": partial(_victims, snapshots=tables.get("snapshots", ())),
    }
    return [line for name, of in parts.items() if tables.get(name) for line in of(tables[name])]


def _of(rows: Sequence[Row], column: str, **fixed: object) -> np.ndarray:
    """The numbers of a column in the rows with these values."""
    chosen = [row for row in rows if all(row[key] == value for key, value in fixed.items())]
    return np.array([row[column] for row in chosen], dtype=float)


def _mean(rows: Sequence[Row], column: str, **fixed: object) -> float:
    return float(_of(rows, column, **fixed).mean())


def _chance(what: str, published: float, drawn: np.ndarray) -> str:
    """Whether a published figure is in the 95 % interval of the mean of draws (Student's t)."""
    if len(drawn) < 2:
        return "unknown: one draw"
    half = float(stats.t.ppf(0.975, len(drawn) - 1) * drawn.std(ddof=1) / len(drawn) ** 0.5)
    shown = f"{what}: {drawn.mean():.2f} ± {half:.2f} in {len(drawn)} draws"
    found = (
        "chance of the" if abs(published - drawn.mean()) <= half else "unknown, not chance of the"
    )
    return f"{found} {shown}"


def _how_often(what: str, holds: Sequence[bool]) -> str:
    """Whether a relation holds in most of some draws."""
    if len(holds) < 2:
        return "unknown: one draw"
    found = "chance of the" if 2 * sum(holds) > len(holds) else "unknown, not chance of the"
    return f"{found} {what}: it holds in {sum(holds)} of {len(holds)} draws"


def _accuracy(rows: Sequence[Row]) -> list[Finding]:
    large = [row for row in rows if row["jobs"] >= MANY_JOBS]
    names = {"waiting": "wait", "response": "response", "slowdown": "slowdown"}
    lines = []
    for key, name in names.items() if large else ():
        worst = max(large, key=lambda row: abs(row[f"{key}_off_%"]))
        ours, real = worst["largest_gap_s"], worst["real_largest_gap_s"]
        found = "real runs branch, further than ours from them" if real >= ours else "unknown"
        cause = f"{found}: a start by {real:,.0f} s, ours by {ours:,.0f} s"
        what = f"[J] mean {name} off real runs, workloads of {MANY_JOBS} jobs and more"
        lines.append(between(what, -inf, 1.7, abs(worst[f"{key}_off_%"]), unit="%", cause=cause))
    return lines


def _speed(rows: Sequence[Row]) -> list[Finding]:
    lines = []
    for row in rows:
        for who, speed in (("[M]", 1.2), ("[J]", 10.0)):
            what = f"{who} simulated days an hour, {row['log']}, {row['jobs']:,} jobs"
            lines.append(between(what, speed, inf, row["days_an_hour"], cause="a slow computer"))
    return lines


def _log(rows: Sequence[Row]) -> list[Finding]:
    return [
        near(
            f"[T] {row['log']}: {row['table']}: {row['what']}",
            row["published"],
            row["here"],
            0.25,
            cause="another machine and its users",
        )
        for row in rows
        if row["published"] is not None
    ]


def _parameters(rows: Sequence[Row]) -> list[Finding]:
    lines = []
    for interval in (7, 15):
        better = -_mean(rows, "waiting_s_off_%", setting="bf_interval", value=interval)
        what = f"[J] wait better with bf_interval {interval} s than with 30 s"
        lines.append(between(what, -inf, 1.0, better, unit="%", cause="unknown"))
    usual = sorted(row["value"] for row in rows if row["setting"] == "nodes")[len(NODES) // 2]
    loads = dict.fromkeys(row["setting"] for row in rows if row["setting"].startswith(AT_LOAD))
    for change, (low, high) in NODES.items():
        for key in ("waiting_s", "response_s"):
            at = {"value": round(usual * (1 + change))}
            here = _mean(rows, f"{key}_off_%", setting="nodes", **at)
            others = {name: _mean(rows, f"{key}_off_%", setting=name, **at) for name in loads}
            shown = ", ".join(
                f"{value:.3g} % at a load of {name.removeprefix(AT_LOAD)}"
                for name, value in others.items()
            )
            queue = any(low <= value <= high for value in others.values())
            cause = f"the queue: {shown}" if queue else f"unknown, not the queue: {shown}"
            what = f"[J] {key.removesuffix('_s')} with {100 * change:+g} % nodes"
            lines.append(between(what, low, high, here, unit="%", cause=cause))
    more = {}
    for name in dict.fromkeys(row["setting"] for row in rows if row["setting"].startswith(HALF)):
        all_nodes, half = (row["tests"] for row in rows if row["setting"] == name)
        more[name.removeprefix(HALF)] = half / all_nodes if all_nodes else inf
    here, (published, within) = more.pop(""), BACKFILL_OF_HALF
    shown = ", ".join(f"{value:.3g}{name}" for name, value in more.items())
    low, high = min(more.values()), max(more.values())
    queue = low <= (1 + within) * published and high >= (1 - within) * published
    cause = f"the queue: {shown}" if queue else f"unknown, not the queue: {shown}"
    what = "[J] time in backfill with half the nodes over that with all; here tests"
    lines.append(near(what, published, here, within, cause=cause))
    return lines


def _separate(rows: Sequence[Row], draws: Sequence[Row]) -> list[Finding]:
    """draws: with costs, of the threads' phases."""
    lines, test_s = [], max(row["test_s"] for row in rows)
    for kind in WAITS:
        one, two = ({"test_s": test_s, "kind": kind, "controllers": n} for n in (1, 2))
        theirs = WAITS[kind][1] / WAITS[kind][0]
        here = _mean(rows, "waiting_h", **two) / _mean(rows, "waiting_h", **one)
        what = f"[M] {kind}: wait with two controllers over that with one"
        cause = _chance(PHASES, theirs, _of_draws(draws, "waiting_h", kind, np.divide))
        lines.append(near(what, theirs, here, 0.1, cause=cause))
        for column, title, pair in (
            ("backfilled_%", "jobs started by backfill", BACKFILLED[kind]),
            ("at_limit_%", "cycles at bf_max_time", AT_LIMIT[kind]),
        ):
            here_by = {"one": _mean(rows, column, **one), "two": _mean(rows, column, **two)}
            by = dict(sorted(zip(("one", "two"), pair, strict=True), key=lambda each: each[1]))
            what = f"[M] {kind}: {title}, by controllers"
            more = _of_draws(draws, column, kind, np.subtract) * (pair[1] - pair[0])
            cause = _how_often(PHASES, (more > 0).tolist())
            lines.append(ordered(what, by, here_by, unit="%", cause=cause))
    return lines


def _of_draws(draws: Sequence[Row], column: str, kind: str, how: np.ufunc) -> np.ndarray:
    """By draw: a column of one kind of nodes with two controllers, ``how`` with one."""
    one, two = (_of(draws, column, kind=kind, controllers=n) for n in (1, 2))
    return how(two, one)


def _phases(rows: Sequence[Row]) -> list[Finding]:
    lines = []
    for kind, deviation in DEVIATIONS.items():
        waits = _of(rows, "waiting_h", kind=kind, controllers=1)
        here = 100 * float(waits.std() / waits.mean())
        what = (
            f"[M] {kind}: deviation of the mean wait ({waits.mean():.2f} h), {len(waits)} draws "
            "of the threads' phases"
        )
        scaled = here / TIMES_JOBS**0.5
        found = "fewer jobs" if scaled <= deviation else "unknown, not fewer jobs alone"
        cause = f"{found}: {scaled:.2g} % if it falls as the root of {TIMES_JOBS} times as many"
        lines.append(between(what, -inf, deviation, here, unit="%", cause=cause))
    return lines


def _sharing(rows: Sequence[Row]) -> list[Finding]:
    mine = [row for row in rows if row["memory"] == rows[0]["memory"]]  # the least contention
    lines = []
    for way, (wait, _) in SHARED.items():
        if way != "none":
            here = _mean(mine, "waiting_h", sharing=way) / _mean(mine, "waiting_h", sharing="none")
            what = f"[M] wait with nodes shared by {way} over that with none"
            theirs = wait / SHARED["none"][0]
            drawn = [_of(mine, "waiting_h", sharing=each) for each in (way, "none")]
            cause = _chance(JOBS, theirs, np.divide(*drawn))
            lines.append(near(what, theirs, here, 0.1, cause=cause))
    backfilled = {way: _mean(mine, "backfilled_%", sharing=way) for way in SHARED}
    by_way = {way: part for way, (_, part) in SHARED.items()}
    by_draw = np.array([_of(mine, "backfilled_%", sharing=way) for way in SHARED])
    cause = _how_often(JOBS, (np.diff(by_draw, axis=0) > 0).all(axis=0).tolist())
    what = "[M] jobs started by backfill, by sharing"
    lines.append(ordered(what, by_way, backfilled, unit="%", cause=cause))
    return lines


def _suspension(rows: Sequence[Row], longer: Sequence[Row]) -> list[Finding]:
    """longer: the same with a longer queue."""
    lines = []
    for log in dict.fromkeys(row["log"] for row in rows):
        for measure, order in ORDERS.items():
            here, then = (
                {name: _mean(table, measure, log=log, policy=name) for name in order}
                for table in (rows, longer)
            )
            theirs = dict(zip(order, SUSPENSION[measure], strict=True))
            unit = "s" if measure.endswith("_s") else ""
            what = f"[T] {log}: {measure.removesuffix('_s').replace('_', ' ')}"
            cause = _queue(order, here, then)
            lines.append(ordered(what, theirs, here, unit=unit, cause=cause))
        rest = {
            name: _mean(rows, "response_s", log=log, policy=name)
            - _mean(rows, "waiting_s", log=log, policy=name)
            for name in ("bf", "bf rand", "bf size")
        }
        what = f"[T] {log}: response less waiting is the same without suspension"
        shown = ", ".join(f"{name} {value:,.0f}" for name, value in rest.items())
        holds = max(rest.values()) - min(rest.values()) < 1
        cause = "limits killed other jobs"
        lines.append(stated(what, f"{shown} s", holds, rule="within 1 s", cause=cause))
    return lines


def _queue(order: Sequence[str], here: Mapping[str, float], longer: Mapping[str, float]) -> str:
    """How many of the inequalities that fail hold with a longer queue."""
    failing = [pair for pair in pairwise(order) if not here[pair[0]] < here[pair[1]]]
    mended = sum(longer[low] < longer[high] for low, high in failing)
    found = "the queue" if mended == len(failing) else "the queue, in part"
    shown = f"{mended} of {len(failing)} that fail hold at a load of {LONGER:g}"
    return f"{found if mended else 'unknown, not the queue'}: {shown}"


def _victims(rows: Sequence[Row], snapshots: Sequence[Row]) -> list[Finding]:
    """snapshots: the same with one large job, on a machine more and less full."""
    lines, by_sizes = [], _stopped(snapshots)
    for log in dict.fromkeys(row["log"] for row in rows):
        ratios = {}
        for select in SUSPENDED:
            stopped, lacked = (
                _of(rows, column, log=log, select=select).sum()
                for column in ("stopped_cpus", "lacked_cpus")
            )
            ratios[select] = float(stopped / lacked) if lacked else float("nan")
        what = f"[T] {log}: CPUs suspended over those needed"
        cause = f"{_fullness(by_sizes.get(log, {}))} busy, one large job (snapshots)"
        lines += [
            near(f"{what}, select/{select}", published, ratios[select], within, cause=cause)
            for select, (published, within) in SUSPENDED.items()
        ]
        theirs = {select: published for select, (published, _) in SUSPENDED.items()}
        lines.append(ordered(f"{what}, by selection", theirs, ratios, cause=cause))
    return lines


def _stopped(rows: Sequence[Row]) -> dict[str, dict[float, float]]:
    """Of snapshots, by sizes: CPUs stopped over those lacked, by how busy the machine was, %."""
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        at = {"sizes": row["sizes"], "asked": row["asked"]}
        if lacked := _of(rows, "lacked_cpus", **at).sum():
            of = found.setdefault(row["sizes"], {})
            of[_mean(rows, "busy_%", **at)] = float(_of(rows, "stopped_cpus", **at).sum() / lacked)
    return found


def _fullness(by_busy: Mapping[float, float]) -> str:
    """Whether more is stopped beside what is lacked where the machine is emptier."""
    shown = ", ".join(f"{value:.2g} at {busy:.0f} %" for busy, value in sorted(by_busy.items()))
    if len(by_busy) < 2:
        return f"unknown: {shown}"
    emptiest, *fuller = (value for _, value in sorted(by_busy.items()))
    found = "how full the machine is" if emptiest > max(fuller) else "unknown, not how full it is"
    return f"{found}: {shown}"


def _snapshots(rows: Sequence[Row]) -> list[Finding]:
    lines = []
    for name, by_busy in _stopped(rows).items():
        for busy, here in by_busy.items():
            what = f"[T] CPUs stopped by one large job over those it lacked, sizes of {name}, "
            cause = _fullness(by_busy)
            lines.append(near(f"{what}{busy:.0f} % busy", 2.0, here, 0.25, cause=cause))
    return lines


def _shrunk(rows: Sequence[Row]) -> list[Finding]:
    off = {
        step: {
            factor: _wait(rows, step, factor) / _wait(rows, step, 1.0) - 1
            for factor in dict.fromkeys(row["factor"] for row in rows if row["factor"] < 1)
            if any(row["multiples_of"] == step and row["factor"] == factor for row in rows)
        }
        for step in (1, EXACT)
    }
    exact = max(abs(value) for value in off[EXACT].values())
    lines = []
    for factor, here in off[1].items():
        shown = f"{100 * exact:.2g} % at most where nothing is rounded"
        found = "limits are whole minutes, intervals whole seconds"
        found = found if exact < REST * abs(here) else "unknown, not rounding"
        what = f"[T] wait over the factor, all times and intervals times {factor:g}, to the whole"
        lines.append(near(what, 1.0, 1 + here, 0.05, cause=f"{found}: {shown}"))
    return lines


def _wait(rows: Sequence[Row], step: int, factor: float) -> float:
    """The mean wait over the factor, of times that are multiples of a step."""
    return _mean(rows, "waiting_over_factor_s", multiples_of=step, factor=factor, intervals=factor)


def _filled(rows: Sequence[Row]) -> list[Finding]:
    off = max(abs(row["start_s"] - row["published_s"]) for row in rows)
    what = "[T] starts on a machine filled every 60 s"
    cause = "here starts are at whole seconds"
    return [stated(what, f"{off:.2f} s off at most", off <= 1, rule="within 1 s", cause=cause)]


PARTS: dict[str, Callable[[Sequence[Row]], list[Finding]]] = {
    "accuracy": _accuracy,
    "separate": _separate,
    "phases": _phases,
    "sharing": _sharing,
    "suspension": _suspension,
    "victims": _victims,
    "snapshots": _snapshots,
    "shrunk": _shrunk,
    "filled": _filled,
    "parameters": _parameters,
    "speed": _speed,
    "log": _log,
}
