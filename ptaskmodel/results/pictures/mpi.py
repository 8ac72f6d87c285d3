"""Pictures of replays: what each rank did when, and the matrix of traffic between ranks."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    YELLOW,
    heat,
    new_figure,
    prefix_of,
    time_unit,
)
from ptaskmodel.results.tables.mpi import (
    CRITICAL_PATH,
    MATRIX,
    MESSAGES,
    RANKS,
    SPANS,
    STATES,
    column_of,
    doing,
)
from ptaskmodel.workload.actions import NUMBER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = dict(zip(STATES, (BLUE, GREY, ORANGE, SKY, PINK, RED, YELLOW), strict=True))
PATH_COLOUR = GREEN
MOST_BARS = 64  # ranks drawn with the exact dates of their actions
MOST_LINES = 1000  # messages: more would cover what ranks do
PLAIN_LINES = 300  # more lines are drawn thinner and paler, so that what is below stays visible
MOST_CELLS = 256  # in a row of a matrix
CELLS = 1600  # of time, where there are more ranks
NEEDS_TIMELINE = "this picture needs a replay with --timeline"


def ranks(
    directory: Path,
    since_s: float | None = None,
    until_s: float | None = None,
    messages: bool = True,
) -> Figure:
    """What each rank did when, and messages, if not too many: lines from sender to receiver.

    since_s, until_s: draw only this part of the run. messages: whether to draw them at all.
    """
    count = len(_rows(directory, RANKS))
    whole = _rows(directory, SPANS)
    since_s = 0.0 if since_s is None else since_s
    spans = _within(whole, since_s, until_s)
    if not spans:
        problem = "no action took time"
        if whole:
            problem += f" there: the run is from 0 to {max(float(r['end_s']) for r in whole):.9g} s"
        raise PTaskModelError(f"{directory / SPANS}: {problem}; nothing to draw")
    rank = np.array([int(row["rank"]) for row in spans])
    state = np.array([STATES.index(doing(NUMBER[row["action"]])) for row in spans])
    begin = np.array([float(row["start_s"]) for row in spans])
    end = np.array([float(row["end_s"]) for row in spans])
    span_s = float(end.max()) if until_s is None else until_s
    unit, unit_name = time_unit(span_s)
    figure = new_figure(12.0, min(max(3.0, 1.5 + 0.22 * count), 10.0))
    axes = figure.add_subplot()
    if count <= MOST_BARS:
        _bars(axes, rank, state, begin / unit, end / unit)
    else:
        begin, end = np.maximum(begin, since_s), np.minimum(end, span_s)
        _raster(axes, count, rank, state, begin, end, (since_s, span_s), unit)
    sent = _within(_rows(directory, MESSAGES), since_s, until_s) if messages else []
    lines = _draw_messages(axes, sent, unit)
    path = _draw_path(axes, directory, unit)
    _legend(axes, state, lines, path)
    axes.set_xlim(since_s / unit, span_s / unit)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_ylabel("rank")
    if count <= 16:
        axes.set_yticks(range(count))
    return figure


def _within(
    rows: list[dict[str, str]], since_s: float, until_s: float | None
) -> list[dict[str, str]]:
    """The rows of what lasts, at least in part, from one date to another."""
    return [
        row
        for row in rows
        if float(row["end_s"]) > since_s and (until_s is None or float(row["start_s"]) < until_s)
    ]


def _bars(
    axes: Any, rank: np.ndarray, state: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> None:
    """Draw each action as a bar."""
    from matplotlib.collections import PolyCollection

    for k, name in enumerate(STATES):
        own = state == k
        y = rank[own]
        a, b = begin[own], end[own]
        low, high = y - 0.4, y + 0.4
        corners = np.stack(
            [np.stack([a, b, b, a], axis=1), np.stack([low, low, high, high], axis=1)], axis=2
        )
        axes.add_collection(PolyCollection(list(corners), facecolors=COLOURS[name], linewidths=0))


def _raster(
    axes: Any,
    count: int,
    rank: np.ndarray,
    state: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    window: tuple[float, float],
    unit: float,
) -> None:
    """Draw the state in which each rank spends most of each cell of time; white: in none."""
    from matplotlib.colors import to_rgb

    cell = (window[1] - window[0]) / CELLS
    begin, end = begin - window[0], end - window[0]
    first = np.minimum((begin / cell).astype(np.int64), CELLS - 1)
    last = np.minimum((end / cell).astype(np.int64), CELLS - 1)
    best = np.zeros((count, CELLS))
    image = np.ones((count, CELLS, 3))
    for k, name in enumerate(STATES):
        own = np.flatnonzero(state == k)
        if not len(own):
            continue
        spent = np.zeros((count, CELLS + 1))
        # Whole cells between the two ends, by differences; then what is missing of the ends.
        np.add.at(spent, (rank[own], first[own]), cell)
        np.add.at(spent, (rank[own], last[own] + 1), -cell)
        spent = np.cumsum(spent, axis=1)[:, :CELLS]
        np.add.at(spent, (rank[own], first[own]), first[own] * cell - begin[own])
        np.add.at(spent, (rank[own], last[own]), end[own] - (last[own] + 1) * cell)
        more = spent > best
        best = np.maximum(best, spent)
        image[more] = to_rgb(COLOURS[name])
    axes.imshow(
        image, aspect="auto", interpolation="nearest",
        extent=(window[0] / unit, window[1] / unit, count - 0.5, -0.5),
    )  # fmt: skip


def _draw_messages(axes: Any, rows: list[dict[str, str]], unit: float) -> str:
    """Draw messages; what the legend says of them, empty if there are none."""
    if len(rows) > MOST_LINES:
        return f"{len(rows):,} messages, not drawn: choose a shorter time"
    lines = [
        (
            (float(row["start_s"]) / unit, int(row["source"])),
            (float(row["end_s"]) / unit, int(row["target"])),
        )
        for row in rows
    ]
    _draw_lines(axes, lines, "black", 0.6, 0.5)
    return f"message ({len(rows):,})" if lines else ""


def _draw_lines(axes: Any, lines: list[Any], colour: str, width: float, opacity: float) -> None:
    """Draw lines: the more there are, the thinner and paler."""
    from matplotlib.collections import LineCollection

    part = min(1.0, PLAIN_LINES / max(len(lines), 1))
    axes.add_collection(
        LineCollection(
            lines, colors=colour, linewidths=max(width * part**0.5, 0.4),
            alpha=max(opacity * part**0.5, 0.25), zorder=2,
        )
    )  # fmt: skip


def _draw_path(axes: Any, directory: Path, unit: float) -> str:
    """Draw the critical path: along ranks, and messages from one to the next; its legend."""
    if not (directory / CRITICAL_PATH).exists():
        return ""
    dates: list[float] = []
    places: list[float] = []
    message = ""
    rows = _rows(directory, CRITICAL_PATH)
    for row in rows:
        if row["message"] and row["message"] == message:  # up to three parts, one line
            del dates[-1], places[-1]
        else:
            dates.append(float(row["start_s"]) / unit)
            places.append(float(row["rank"]))
        message = row["message"]
        dates.append(float(row["end_s"]) / unit)
        places.append(float(row["to_rank"] or row["rank"]))
    points = list(zip(dates, places, strict=True))
    pairs = list(pairwise(points))
    between = [pair for pair in pairs if pair[0][1] != pair[1][1]]
    if len(between) <= PLAIN_LINES:
        axes.plot(dates, places, color="white", linewidth=3.2, solid_joinstyle="round")
        axes.plot(dates, places, color=PATH_COLOUR, linewidth=1.6, solid_joinstyle="round")
    else:
        from matplotlib.collections import LineCollection

        along = [pair for pair in pairs if pair[0][1] == pair[1][1]]
        _draw_lines(axes, between, PATH_COLOUR, 1.6, 1.0)
        axes.add_collection(LineCollection(along, colors=PATH_COLOUR, linewidths=1.6, zorder=3))
    count = len({row["message"] for row in rows} - {""})
    return f"critical path ({count:,} message{'' if count == 1 else 's'})" if dates else ""


def _legend(axes: Any, state: np.ndarray, lines: str, path: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    there = set(state.tolist())
    handles: list[Any] = [
        Patch(color=COLOURS[name], label=name) for k, name in enumerate(STATES) if k in there
    ]
    if lines:
        handles.append(Line2D([], [], color="black", linewidth=0.8, label=lines))
    if path:
        handles.append(Line2D([], [], color=PATH_COLOUR, linewidth=1.6, label=path))
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=8, frameon=False,
        fontsize=9,
    )  # fmt: skip


def matrix(directory: Path) -> Figure:
    """How many bytes each rank sent to each other; with many ranks, some of them to some."""
    count = len(_rows(directory, RANKS))
    side = -(-count // MOST_CELLS)  # ranks in a row or column of cells
    cells = -(-count // side)
    table = np.full((cells, cells), np.nan)
    for row in _rows(directory, MATRIX):
        cell = int(row["source"]) // side, int(row["target"]) // side
        table[cell] = np.nansum((table[cell], float(row["bytes"])))
    if np.isnan(table).all():
        raise PTaskModelError(f"{directory / MATRIX}: no message was sent; nothing to draw")
    figure = new_figure(7.5, 6.5)  # first: it says what is missing
    from matplotlib.colors import LogNorm, Normalize

    whole, letter = prefix_of(float(np.nansum(table)))
    title = f"Who sends to whom (white: nothing); {np.nansum(table) / whole:.4g} {letter}B in all"
    scale, prefix = prefix_of(float(np.nanmax(table)))
    table /= scale
    low, high = max(float(np.nanmin(table)), 1.0 / scale), float(np.nanmax(table))
    norm = LogNorm(low, high) if high > 10 * low else Normalize(0.0, max(high, 1.0 / scale))
    axes = figure.add_subplot()
    edge = cells * side - 0.5
    image = axes.imshow(
        table, cmap=heat(), norm=norm, interpolation="nearest",
        extent=(-0.5, edge, edge, -0.5),
    )  # fmt: skip
    axes.set_xlim(-0.5, count - 0.5)
    axes.set_ylim(count - 0.5, -0.5)
    figure.colorbar(image, ax=axes, label=f"sent ({prefix}B)", pad=0.02)
    axes.set_xlabel("to rank")
    axes.set_ylabel("from rank")
    if side > 1:
        title += f"; a cell is {side} by {side} ranks"
    axes.set_title(title, fontsize=10, loc="left")
    return figure


def times(directory: Path) -> Figure:
    """How long each rank did what: states on each other, ranks side by side."""
    lines = _rows(directory, RANKS)
    try:
        spent = np.array(
            [[float(row[column_of(name)]) for name in STATES] for row in lines]
        ).reshape(-1, len(STATES))
    except (KeyError, ValueError, TypeError) as fault:
        raise PTaskModelError(
            f"{directory / RANKS}: cannot be read ({fault}); replay anew"
        ) from None
    if not spent.sum() > 0.0:
        raise PTaskModelError(f"{directory / RANKS}: no rank took any time; nothing to draw")
    unit, unit_name = time_unit(float(spent.sum(axis=1).max()))
    edges = np.arange(len(spent) + 1) - 0.5
    figure = new_figure(10.0, 3.6)
    axes = figure.add_subplot()
    below = np.zeros(len(spent))
    for k, name in enumerate(STATES):
        if spent[:, k].any():
            above = below + spent[:, k] / unit
            axes.stairs(above, edges, baseline=below, fill=True, color=COLOURS[name], label=name)
            below = above
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0.0)
    if len(spent) <= 16:
        axes.set_xticks(range(len(spent)))
    axes.set_xlabel("rank")
    axes.set_ylabel(f"time ({unit_name})")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=8, frameon=False, fontsize=9)
    return figure


def _rows(directory: Path, name: str) -> list[dict[str, str]]:
    try:
        with (directory / name).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except (FileNotFoundError, NotADirectoryError):
        raise PTaskModelError(f"{directory / name}: is not there; {NEEDS_TIMELINE}") from None
    except (OSError, ValueError, csv.Error) as fault:
        raise PTaskModelError(f"{directory / name}: cannot be read: {fault}") from None
