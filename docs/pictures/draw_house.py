"""Draw the pictures of docs/background/design.md: house, data, date and nodes, as SVG.

The last two are its tables of files: a box a row, an arrow to each file that the row goes on with.

Run from anywhere: python docs/pictures/draw_house.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "background" / "design.md"
TITLES = {"date": "The life of one date", "nodes": "Where a job of Slurm gets its nodes"}

INK, SOFT, PAPER = "#23313f", "#5d6b78", "#ffffff"
# Colours of layers, and of kinds of boxes.
WARM, COOL, GREEN, GREY = "#f6e3d0", "#d8e6f5", "#dcefdd", "#eceff2"

COLOURS = {"simulation": GREEN, "engine": COOL, "sharing": WARM, "slurm": WARM}

# Layers from the top down: the colour, and (name, purpose) of each package.
LAYERS = (
    (GREY, (("cli", "one thin module a command"),)),
    (GREY, (("campaign", "many runs: factors, workers, statistics"),)),
    (GREY, (("runs", "each kind of run: inputs, execution, output directory"),)),
    (GREY, (("results", "tables, traces, pictures, comparisons, pages"),)),
    (
        GREEN,
        (
            ("slurm", "Slurm, simulated or real"),
            ("connect", "SimPy, schedulers for Batsim"),
        ),
    ),
    (
        GREEN,
        (
            ("apps", "applications as parallel tasks"),
            ("calibration", "fitted parameters"),
            ("batch", "jobs and policies"),
        ),
    ),
    (
        COOL,
        (
            ("mpi", "ranks, messages"),
            ("simulation", "tasks"),
            ("packets", "packets in queues"),
            ("recording", "exact intervals"),
            ("energy", "energy, power"),
        ),
    ),
    (COOL, (("engine", "time: activities, event queue, stream of events"),)),
    (
        WARM,
        (
            ("platform", "hosts, links, routes"),
            ("workload", "works, tasks, jobs"),
            ("sharing", "rates of tasks"),
        ),
    ),
    (
        WARM,
        (
            ("kernels", "Python functions as machine code"),
            ("style", "numbers, colours"),
        ),
    ),
    (GREY, (("", "used by all: errors, units, names, files"),)),
)


class Drawing:
    """Boxes, arrows and text, as SVG."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="Helvetica, Arial, sans-serif">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">'
            f'<path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        ]

    def shape(self, points: str, fill: str) -> None:
        self._parts.append(f'<polygon points="{points}" fill="{fill}" stroke="{INK}"/>')

    def text(self, x: float, y: float, words: str, size: int = 13, **more: str) -> None:
        style = {"anchor": "middle", "weight": "normal", "fill": INK} | more
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{style["anchor"]}" '
            f'font-weight="{style["weight"]}" fill="{style["fill"]}">{escape(words)}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *lines: str, r: int = 3
    ) -> None:
        """Draw a box; its first line is bold unless empty."""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{r}" '
            f'fill="{fill}" stroke="{INK}"/>'
        )
        shown = [line for line in lines if line]
        top = y + height / 2 - 8.5 * (len(shown) - 1) + 4.5
        for k, line in enumerate(shown):
            first = k == 0 and bool(lines[0])
            style = {"weight": "bold"} if first else {"fill": SOFT}
            self.text(x + width / 2, top + 17 * k, line, 14 if first else 12, **style)

    def arrow(self, *points: tuple[float, float]) -> None:
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.4" '
            'marker-end="url(#tip)"/>'
        )

    def write(self, path: Path) -> None:
        path.write_text("\n".join([*self._parts, "</svg>", ""]), encoding="utf-8")


def draw_house(path: Path) -> None:
    left, width, height, gap, top = 60, 640, 48, 6, 74
    drawing = Drawing(760, top + len(LAYERS) * (height + gap) + 16, "The packages of ptaskmodel")
    middle = left + width / 2
    drawing.shape(f"{left - 24},{top - 6} {middle},14 {left + width + 24},{top - 6}", GREY)
    drawing.text(middle, 48, "ptaskmodel", 16, weight="bold")
    for k, (colour, packages) in enumerate(LAYERS):
        y = top + k * (height + gap)
        each = (width - gap * (len(packages) - 1)) / len(packages)
        for i, (name, purpose) in enumerate(packages):
            drawing.box(left + i * (each + gap), y, each, height, colour, name, purpose)
    bottom = top + len(LAYERS) * (height + gap)
    drawing.arrow((left + width + 24, top), (left + width + 24, bottom - gap))
    drawing.text(left + width + 24, bottom + 10, "imports", 12, fill=SOFT)
    drawing.write(path)


def draw_data(path: Path) -> None:
    drawing = Drawing(900, 330, "The data flow")
    drawing.box(10, 30, 120, 44, PAPER, "", "platform.xml, or", "Platform.build", r=14)
    drawing.box(10, 140, 120, 44, PAPER, "", "tasks.json, jobs,", "or your program", r=14)
    drawing.box(175, 26, 130, 52, WARM, "Platform", "hosts, links, routes")
    drawing.box(175, 136, 130, 52, WARM, "Task", "a work on hosts")
    drawing.box(350, 82, 130, 52, COOL, "Usage vector", "uses of resources")
    drawing.box(525, 82, 140, 52, COOL, "Loop", "one event queue")
    drawing.box(525, 220, 140, 52, WARM, "Solver", "one component")
    drawing.box(725, 26, 165, 52, COOL, "Stream", "time, kind, subject, value")
    drawing.box(725, 136, 165, 52, COOL, "Listeners", "observers, recorders")
    drawing.box(725, 246, 165, 52, GREY, "Records, intervals", "tables, pictures, report")
    drawing.arrow((130, 52), (173, 52))
    drawing.arrow((130, 162), (173, 162))
    drawing.arrow((305, 52), (328, 52), (328, 98), (348, 98))
    drawing.arrow((305, 162), (328, 162), (328, 118), (348, 118))
    drawing.arrow((480, 108), (523, 108))
    drawing.arrow((570, 134), (570, 218))
    drawing.arrow((620, 220), (620, 136))
    drawing.arrow((665, 108), (695, 108), (695, 52), (723, 52))
    drawing.arrow((807, 78), (807, 134))
    drawing.arrow((807, 188), (807, 244))
    drawing.text(562, 181, "uses", 12, anchor="end", fill=SOFT)
    drawing.text(628, 181, "rates", 12, anchor="start", fill=SOFT)
    drawing.text(415, 152, "routed once for each", 12, fill=SOFT)
    drawing.text(415, 168, "work and its hosts", 12, fill=SOFT)
    drawing.text(595, 296, "what an event affects,", 12, fill=SOFT)
    drawing.text(595, 312, "no more", 12, fill=SOFT)
    drawing.write(path)


class Row(NamedTuple):
    """A row of a table of files: what a file does, and which files it goes on with."""

    file: str
    what: str
    then: tuple[str, ...]


def tables_of_files() -> dict[str, list[Row]]:
    """Return the tables of files of the page, by the name of the picture above each."""
    found: dict[str, list[Row]] = {}
    rows: list[Row] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        picture = re.match(r"!\[.*\]\(\.\./pictures/(\w+)\.svg\)", line)
        row = re.match(r"\| `([\w/]+\.py)` \| (.+?) \|(.*)\|$", line)
        if picture:
            rows = found.setdefault(picture[1], [])
        elif row:
            rows.append(Row(row[1], row[2], tuple(re.findall(r"`(.+?)`", row[3]))))
    return {name: rows for name, rows in found.items() if rows}


def levels_of(rows: Sequence[Row]) -> dict[str, int]:
    """Return how far down each file is: below all files that go on with it."""
    found = dict.fromkeys((row.file for row in rows), 0)
    for _ in rows:
        for row in rows:
            for file in row.then:
                found[file] = max(found[file], found[row.file] + 1)
    return found


def draw_files(path: Path, rows: Sequence[Row], title: str) -> None:
    width, height, gap, space = 288, 74, 16, 36
    levels = levels_of(rows)
    floors = [[row for row in rows if levels[row.file] == k] for k in sorted(set(levels.values()))]
    whole = max(map(len, floors)) * (width + gap) + gap
    drawing = Drawing(whole, len(floors) * (height + space) - space + 2 * gap, title)
    corner: dict[str, tuple[float, float]] = {}
    for k, floor in enumerate(floors):
        left = (whole - len(floor) * (width + gap) + gap) / 2
        for i, row in enumerate(floor):
            corner[row.file] = (left + i * (width + gap), gap + k * (height + space))
    for row in rows:
        for i, file in enumerate(row.then):
            (x, y), (to_x, to_y) = corner[row.file], corner[file]
            start = x + width * (i + 1) / (len(row.then) + 1)
            middle = to_x + width / 2
            into = middle + max(-width / 3, min(width / 3, (start - middle) / 6))
            drawing.arrow((start, y + height), (into, to_y - 2))
    for row in rows:
        colour = COLOURS[row.file.partition("/")[0]]
        drawing.box(*corner[row.file], width, height, colour, row.file, *wrap(row.what, 42))
    drawing.write(path)


if __name__ == "__main__":
    draw_house(HERE / "house.svg")
    draw_data(HERE / "data.svg")
    for name, rows in tables_of_files().items():
        draw_files(HERE / f"{name}.svg", rows, TITLES[name])
