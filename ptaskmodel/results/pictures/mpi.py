"""Pictures of replays: what each rank did when, and the matrix of traffic between ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.directory import finite, read_table
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.charts import Matrix, areas
from ptaskmodel.results.pictures.drawing import time_axis, unit_axis
from ptaskmodel.results.pictures.tracks import in_cells
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
from ptaskmodel.style.figures import LIGHT, WIDE, finished, new_figure, picture, role_colour
from ptaskmodel.style.text import count as counted
from ptaskmodel.style.text import number
from ptaskmodel.workload.actions import NUMBER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The roles of the colours of what ranks do.
ROLES = {
    "computing": "use",
    "sleeping": "nothing",
    "sending": "transfer",
    "receiving": "transfer",
    "exchanging": "transfer-text",
    "waiting": "wait",
    "in collectives": "transfer-text",
}
COLOURS = {name: role_colour(role) for name, role in ROLES.items()}
PATH_COLOUR = LIGHT.ink
MOST_BARS = 64  # ranks drawn with the exact dates of their actions
MOST_LINES = 1000  # messages: more would cover what ranks do
PLAIN_LINES = 300  # more lines are paler, so that what is below stays visible
MOST_CELLS = 256  # in a row of a matrix
MOST_NUMBERS = 16  # of more rows cells have a colour and no number
CELLS = 1600  # of time, where there are more ranks
REMEDY = "replay anew"
NEEDS_TIMELINE = "this picture needs a replay with --timeline"


@picture
def ranks(
    results: Results,
    since_s: float | None = None,
    until_s: float | None = None,
    messages: bool = True,
) -> Figure:
    """What each rank did when, and messages, if not too many: lines from sender to receiver.

    results: of a replay. since_s, until_s: draw only this part. messages: whether to draw them.
    """
    directory, count = results.directory, len(results.tasks)
    since_s, last_s = since_s or 0.0, math.inf if until_s is None else until_s
    spans = spans_of(directory)
    inside = (spans[3] > since_s) & (spans[2] < last_s)
    if not inside.any():
        problem = "no action took time"
        if len(inside):
            problem += f" there: the run is from 0 to {spans[3].max():.9g} s"
        raise PTaskModelError(f"{directory / SPANS}: {problem}; nothing to draw")
    rank, state, begin, end = (each[inside] for each in spans)
    span_s = float(end.max()) if until_s is None else until_s
    figure = new_figure(WIDE, min(max(2.4, 1.2 + 0.22 * count), 9.0))
    axes = figure.add_subplot()
    if count <= MOST_BARS:
        _bars(axes, rank, state, begin, end)
    else:
        from matplotlib.colors import to_rgb

        window, inside = (since_s, span_s), (np.maximum(begin, since_s), np.minimum(end, span_s))
        cells = mostly(count, rank, state, *inside, window, CELLS)
        colours = np.array([to_rgb(COLOURS[name]) for name in STATES] + [(1.0, 1.0, 1.0)])
        extent = (*window, count - 0.5, -0.5)
        axes.imshow(colours[cells], aspect="auto", interpolation="nearest", extent=extent)
    sent = messages_of(directory) if messages else []
    lines = _draw_messages(axes, [((begin, source), (end, target)) for source, target, begin, end
                                  in sent if end > since_s and begin < last_s])  # fmt: skip
    path = _draw_path(axes, directory)
    _legend(axes, state, lines, path)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_ylabel("rank")
    axes.grid(visible=False, axis="y")
    if count <= 16:
        axes.set_yticks(range(count))
    time_axis(axes, span_s, since_s)
    spent = (np.minimum(end, span_s) - np.maximum(begin, since_s)).clip(0.0)
    shares = _shares([spent[state == k].sum() for k in range(len(STATES))])
    title = f"{counted(count, 'rank')}: {shares}"
    return finished(figure, title, "", f"{title}.")


def spans_of(directory: Path) -> tuple[Any, Any, Any, Any]:
    """Return the rank, the state, the begin and the end of all that ranks did, as arrays.

    directory: of results.
    """
    found = _table(directory, SPANS, rank=int, action=_state, start_s=finite, end_s=finite)
    rank, state, begin, end = np.array(found, dtype=np.float64).reshape(-1, 4).T
    return rank.astype(np.int64), state.astype(np.int64), begin, end


def _state(action: str) -> int:
    if action not in NUMBER:
        raise ValueError(f"{action!r} is no action")
    return STATES.index(doing(NUMBER[action]))


def messages_of(directory: Path) -> list[tuple[Any, ...]]:
    """Return (source, target, begin, end) of each message, from a ``directory`` of results."""
    return _table(directory, MESSAGES, source=int, target=int, start_s=finite, end_s=finite)


def _shares(seconds: Sequence[float]) -> str:
    """What ranks do, in parts of their time, most first."""
    whole = sum(seconds) or 1.0
    order = sorted(range(len(seconds)), key=lambda k: -seconds[k])
    named = [f"{STATES[k]} {number(seconds[k] / whole, 'share')}" for k in order if seconds[k]]
    return ", ".join(named[:4])


def _bars(
    axes: Any, rank: np.ndarray, state: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> None:
    """Draw each action as a bar."""
    from matplotlib.collections import PolyCollection

    corners = np.stack([begin, rank - 0.4, end, rank - 0.4, end, rank + 0.4, begin, rank + 0.4])
    colours = [COLOURS[STATES[k]] for k in state.tolist()]
    shapes = PolyCollection(list(corners.T.reshape(-1, 4, 2)), facecolors=colours, linewidths=0)
    axes.add_collection(shapes)


def mostly(
    ranks: int, rank: Any, state: Any, begin: Any, end: Any, window: tuple[float, float], cells: int
) -> np.ndarray:
    """Return the state in which each rank spends most of each cell of a ``window`` of time.

    rank, state, begin, end: arrays, of each span. Shape (``ranks``, ``cells``); -1: in none.
    """
    begin, end = ((each - window[0]) / (window[1] - window[0]) * cells for each in (begin, end))
    best = np.zeros((ranks, cells))
    found = np.full((ranks, cells), -1)
    for k in range(len(STATES)):
        own = state == k
        spent = in_cells(rank[own], begin[own], end[own], 1.0, best.shape)
        found[spent > best] = k
        best = np.maximum(best, spent)
    return found


def _draw_messages(axes: Any, lines: list[Any]) -> str:
    """Draw messages; what the legend says of them, empty if there are none."""
    if len(lines) > MOST_LINES:
        return f"{len(lines):,} messages, not drawn: choose a shorter time"
    _draw_lines(axes, lines, LIGHT.ink, 0.6, 0.5)
    return f"message ({len(lines):,})" if lines else ""


def _draw_lines(axes: Any, lines: list[Any], colour: str, width: float, opacity: float) -> None:
    """Draw lines: the more there are, the paler."""
    from matplotlib.collections import LineCollection

    alpha = max(opacity * min(1.0, PLAIN_LINES / max(len(lines), 1)) ** 0.5, 0.25)
    axes.add_collection(
        LineCollection(lines, colors=colour, linewidths=width, alpha=alpha, zorder=2)
    )


def _draw_path(axes: Any, directory: Path) -> str:
    """Draw the critical path: along ranks, and messages from one to the next; its legend."""
    if not (directory / CRITICAL_PATH).exists() or not (parts := path_of(directory)):
        return ""
    points = [at for rank, to, begin, end, _ in parts for at in ((begin, rank), (end, to))]
    for colour, width in (("white", 3.2), (PATH_COLOUR, 1.6)):
        _draw_lines(axes, list(pairwise(points)), colour, width, 1.0)
    count = len({message for *_, message in parts} - {""})
    return f"critical path ({count:,} message{'' if count == 1 else 's'})"


def path_of(directory: Path) -> list[tuple[int, int, float, float, str]]:
    """Return (rank, to which, begin, end, message) of the critical path, a message in one part.

    directory: of results.
    """
    found: list[tuple[int, int, float, float, str]] = []
    parts = _table(directory, CRITICAL_PATH, rank=int, to_rank=str, start_s=finite, end_s=finite,
                   message=str)  # fmt: skip
    for rank, to, begin, end, message in parts:
        target = int(to or rank)
        if message and found and message == found[-1][4]:
            rank, _, begin, *_ = found.pop()
        found.append((rank, target, begin, end, message))
    return found


def _legend(axes: Any, state: np.ndarray, lines: str, path: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    there = set(state.tolist())
    handles: list[Any] = [
        Patch(color=COLOURS[name], label=name) for k, name in enumerate(STATES) if k in there
    ]
    if lines:
        handles.append(Line2D([], [], color=LIGHT.ink, linewidth=0.6, alpha=0.5, label=lines))
    if path:
        handles.append(Line2D([], [], color=PATH_COLOUR, linewidth=1.6, label=path))
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=9,
    )  # fmt: skip


def message_matrix(directory: Path, ranks: int, most: int) -> Matrix | None:
    """Return who sent how much to whom, of more than ``most`` ranks in blocks; None: nothing sent.

    ranks: how many there are.
    """
    side = -(-ranks // most)
    blocks = -(-ranks // side)
    cells = np.zeros((blocks, blocks))
    total, largest = 0.0, (0, 0, 0.0)
    for source, target, sent in _table(directory, MATRIX, source=int, target=int, bytes=finite):
        cells[source // side, target // side] += sent
        total += sent
        largest = max(largest, (source, target, sent), key=lambda one: one[2])
    if not total:
        return None
    members = [list(range(k * side, min((k + 1) * side, ranks))) for k in range(blocks)]
    names = [str(of[0]) if len(of) == 1 else f"{of[0]}-{of[-1]}" for of in members]
    sentence = (
        f"{counted(ranks, 'rank')} send {number(total, 'bytes')} to each other; rank {largest[0]} "
        f"sends rank {largest[1]} most, {number(largest[2], 'bytes')}."
    )
    return Matrix(
        "bytes", "Sent", "from rank ↓ to rank →", sentence, names, [*names, "sum"],
        [[*row, sum(row)] for row in cells.tolist()],
        members=[[*([*a, *b] for b in members), a] for a in members],
        note=f"A cell is {side} by {side} ranks." if side > 1 else "", plain=blocks > MOST_NUMBERS,
    )  # fmt: skip


@picture
def matrix(results: Results) -> Figure:
    """How many bytes each rank sent to each other; with many ranks, some of them to some."""
    found = message_matrix(results.directory, len(results.tasks), MOST_CELLS)
    if found is None:
        raise PTaskModelError(f"{results.directory / MATRIX}: no message was sent; nothing to draw")
    return found.figure(found.sentence.partition(";")[0])


@picture
def times(results: Results) -> Figure:
    """How long each rank did what: states on each other, ranks side by side."""
    directory = results.directory
    columns = {column_of(name): finite for name in STATES}
    lines = read_table(directory / RANKS, REMEDY, **columns)
    spent = np.array(lines, dtype=np.float64).reshape(-1, len(STATES))
    if not spent.sum() > 0.0:
        raise PTaskModelError(f"{directory / RANKS}: no rank took any time; nothing to draw")
    edges = np.arange(len(spent) + 1, dtype=np.float64) - 0.5
    figure = new_figure(WIDE, 3.0)
    axes = figure.add_subplot()
    layers = [
        (name, np.append(spent[:, k], spent[-1:, k]), COLOURS[name])
        for k, name in enumerate(STATES)
    ]
    unit_axis(axes, "time", "time", areas(axes, edges, layers))
    axes.set_xlim(edges[0], edges[-1])
    if len(spent) <= 16:
        axes.set_xticks(range(len(spent)))
    axes.set_xlabel("rank")
    title = f"{counted(len(spent), 'rank')}: {_shares(spent.sum(axis=0).tolist())}"
    return finished(figure, title, "How long each rank does what", f"{title}.")


def _table(directory: Path, name: str, **columns: Callable[[str], Any]) -> list[tuple[Any, ...]]:
    if not (directory / name).exists():
        raise PTaskModelError(f"{directory / name}: is not there; {NEEDS_TIMELINE}")
    return read_table(directory / name, REMEDY, **columns)
