"""Pictures of the use of links and hosts over time: by level and direction, and one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.charts import Track, heat_rows, time_panel
from ptaskmodel.results.pictures.drawing import (
    NEEDS_ATTRIBUTION,
    finished,
    natural,
    picture,
)
from ptaskmodel.results.pictures.topology import platform_of
from ptaskmodel.results.tables.places import UP, Place, level_of, link_places
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
MAX_ROWS = 60
MOST_USED = 16  # links below the levels
FULL = 99.0  # per cent


@picture
def links(results: Results) -> Figure:
    """The use of links over time: of each level and direction the most and the mean, then the most
    used ones; without levels those alone.

    results: of a run with attribution.
    """
    table, names, cell_s = _use(results, "link")
    places = _places(results)
    levels: dict[str, list[str]] = {}
    for name in dict.fromkeys([*places, *names]) if places else ():
        place = level_of(name, places)
        levels.setdefault(f"{place.level} {place.way}".rstrip(), []).append(name)
    row_of = {name: k for k, name in enumerate(names)}
    nothing = np.zeros(table.shape[1])
    rows, labels, said = [], [], {}
    for level in sorted(levels, key=lambda level: not level.endswith(UP)):
        own = [table[row_of[name]] if name in row_of else nothing for name in levels[level]]
        most, mean = np.max(own, axis=0), np.mean(own, axis=0)
        if not most.any():
            continue
        rows += [most, mean]
        labels += [f"{level} ({count(len(own))})  max", "mean"]
        full = float((most >= FULL).mean())
        text = f"{level} are {_percent(mean)} used on average, one is full "
        said[f"{text}{number(full, 'share')} of the time"] = full, float(mean.mean())
    if not rows:
        return _one_by_one(results, "link", table, names, cell_s)
    busiest = sorted(names, key=lambda name: (-table[row_of[name]].sum(), natural(name)))
    busiest = busiest[:MOST_USED]
    end_s = _end_s(table, cell_s)

    def by_level(axes: object) -> None:
        heat_rows(axes, labels, np.array(rows), end_s, "use of its capacity; grey: none")

    def one_by_one(axes: object) -> None:
        shown = [level_of(name, places).name or name for name in busiest]
        heat_rows(axes, shown, np.array([table[row_of[name]] for name in busiest]), end_s, " ")

    tracks = [
        Track(by_level, 0.25 + 0.17 * len(rows)),
        Track(one_by_one, 0.25 + 0.17 * len(busiest)),
    ]
    figure = time_panel(tracks, end_s, results)
    figure.axes[1].set_title(f"The {len(busiest)} most used of {count(len(names), 'used link')}")
    ordered = sorted(said, key=lambda text: said[text], reverse=True)
    note = f"Links by level and direction, a cell is {duration(cell_s)}; max: the fullest of them"
    return finished(figure, f"Links {ordered[0]}", note, f"Links {'; '.join(ordered)}.")


@picture
def hosts(results: Results) -> Figure:
    """What part of each host is used over time; of many, the most used.

    results: of a run with attribution.
    """
    return _one_by_one(results, "host", *_use(results, "host"))


def _one_by_one(
    results: Results, kind: str, table: FloatArray, names: list[str], cell_s: float
) -> Figure:
    order = sorted(range(len(names)), key=lambda k: (-table[k].sum(), natural(names[k])))
    shown = sorted(order[:MAX_ROWS], key=lambda k: natural(names[k]))
    end_s = _end_s(table, cell_s)

    def draw(axes: object) -> None:
        label = "use of its capacity; grey: none"
        heat_rows(axes, [names[k] for k in shown], table[shown], end_s, label)

    figure = time_panel([Track(draw, 0.4 + 0.14 * len(shown))], end_s, results)
    title = f"{kind.capitalize()}s are used {_percent(table)} on average, one at most "
    title += _percent(table[order[0]])
    of = f"the {len(shown)} most used of {count(len(names), kind)}"
    what = count(len(names), kind) if len(shown) == len(names) else of
    note = f"Use of {what}, a cell is {duration(cell_s)}"
    return finished(figure, title, note, f"{what}: {title[0].lower()}{title[1:]}.")


def _percent(values: FloatArray) -> str:
    return number(float(values.mean()) / 100.0, "share")


def _end_s(table: FloatArray, cell_s: float) -> float:
    return float(table.shape[1] * cell_s)


def _use(results: Results, kind: str) -> tuple[FloatArray, list[str], float]:
    """(per cent of the capacity, names of its rows, s of its columns) of all that were used."""
    if not results.utilisation:
        raise PTaskModelError(f"{results.directory}: {NEEDS_ATTRIBUTION}")
    spans = {name: its for (name, its_kind), its in results.utilisation.items() if its_kind == kind}
    if not spans:
        raise PTaskModelError(f"{results.directory}: no {kind} was used; nothing to draw")
    names = sorted(spans, key=natural)
    cell_s = min(b - a for its in spans.values() for a, b, _ in its)
    end_s = max(results.end_s, *(its[-1][1] for its in spans.values()))
    cells = max(math.ceil(end_s / cell_s - 1e-6), 1)
    table = np.zeros((len(names), cells))
    for row, name in enumerate(names):
        for a, _, share in spans[name]:
            table[row, min(round(a / cell_s), cells - 1)] = 100 * share
    return table, names, cell_s


def _places(results: Results) -> Mapping[str, Place]:
    """Where the links are; empty where the platform cannot be read again."""
    try:
        return link_places(platform_of(results))
    except PTaskModelError:
        return {}
