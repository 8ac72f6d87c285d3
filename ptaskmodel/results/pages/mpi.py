"""Sections of a report on a replay: its timeline, time by kind of action, and the critical path."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.directory import finite, readable, rows
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.page import Section, Table
from ptaskmodel.results.pictures import mpi as mpi_pictures
from ptaskmodel.results.tables.mpi import (
    ACTION_TIMES,
    CRITICAL_LINKS,
    CRITICAL_PATH,
    MATRIX,
    MESSAGES,
    RANKS,
    SPANS,
    STATES,
    column_of,
)
from ptaskmodel.results.tables.places import Place, link_name
from ptaskmodel.style.text import count

REPLAYED_ANEW = "replay anew"
MAX_SPANS = 150_000  # of more, cells of time are shown
MAX_MESSAGES = 4_000
MAX_PARTS = 20_000  # of the critical path
MAX_LINKS = 15
MOST_BLOCKS = 32  # rows of the matrix of messages
TICKS = 10_000_000  # of the chart's dates, over the whole run


def replay_sections(results: Results, places: Mapping[str, Place]) -> list[Section]:
    """Return sections on the time of ranks, the critical path, and the traffic between ranks.

    results: of a replay. places: of links, see `places.link_places`. Parts that were not recorded
    are left out. Raises PTaskModelError if a table is damaged.
    """
    place = results.directory
    found = [_time_by_kind(results)]
    path = results.summary.get("critical_path")
    if isinstance(path, dict):
        found.append(_critical_path(place, path, places))
    if (place / MATRIX).exists():
        chart = mpi_pictures.message_matrix(place, len(results.tasks), MOST_BLOCKS)
        if chart is not None:
            found.append(Section("Who sent to whom", charts=(chart.data(),)))
    return found


def _time_by_kind(results: Results) -> Section:
    place = results.directory
    lines = _read(place / ACTION_TIMES, "action", "state", "count", "mean_rank_s", "max_rank_s")
    span = results.end_s or 1.0
    timed = [row for row in lines if finite(row["mean_rank_s"]) > 0.0]
    timed.sort(key=lambda row: -finite(row["mean_rank_s"]))
    shown = [
        (
            row["action"],
            row["state"],
            int(row["count"]),
            finite(row["mean_rank_s"]),
            finite(row["mean_rank_s"]) / span,
            finite(row["max_rank_s"]),
        )
        for row in timed
    ]
    head = ("action", "a rank is", "calls", "mean of a rank", "of the makespan", "most of a rank")
    kinds = ("text", "text", "count", "time", "share", "time")
    table = Table(head, shown, kinds=kinds, key=(3, 4), file=ACTION_TIMES)
    return Section("Where the time goes", "Time of the ranks by what they do.", (table,))


def _critical_path(place: Path, path: dict[str, Any], places: Mapping[str, Place]) -> Section:
    seconds = path.get("seconds") or {}
    whole = sum(seconds.values()) or 1.0
    spent_on = [
        (kind, spent, spent / whole)
        for kind, spent in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    head: tuple[str, ...] = ("on the path", "time", "part")
    tables = [Table(head, spent_on, kinds=("text", "time", "share"), caption="The critical path")]
    links = []
    for row in itertools.islice(_read(place / CRITICAL_LINKS, "link", "bytes"), MAX_LINKS):
        spent = [finite(row[f"{name}_s"]) for name in ("latency", "transfer", "contention")]
        links.append(
            (link_name(row["link"], places), int(row["messages"]), finite(row["bytes"]), *spent)
        )
    if links:
        head = ("link", "messages", "bytes", "latency", "transfer", "contention")
        kinds = ("text", "count", "bytes", "time", "time", "time")
        tables.append(
            Table(head, links, kinds=kinds, key=(2, 5), file=CRITICAL_LINKS, caption="Its links")
        )
    note = (
        f"The chain of computing and of {count(path.get('messages', 0), 'message')} over "
        f"{count(path.get('ranks', 0), 'rank')} that determines the makespan: what is not on it "
        "may be faster without the run ending sooner. Contention: what a message lost to others "
        "on its links. Below: the links that the path crosses, the most time first; a message "
        "counts for each of its links."
    )
    return Section("What determined the end", note, tuple(tables))


def timeline_data(results: Results) -> dict[str, Any] | None:
    """What each rank did when, for the page, as JSON (see ranks.js); None where it is not known.

    Of more than MAX_SPANS spans what each rank did most in cells of time.

    Dates are whole numbers of the run's ten millionths. Raises PTaskModelError if a table is not as
    it was written.
    """
    place = results.directory
    if results.what != "rank" or not _count(place / SPANS):
        return None
    tick = (results.end_s or 1.0) / TICKS
    ranks: list[list[int]] = [[] for _ in results.tasks]
    ends = [0] * len(ranks)
    try:
        for rank, state, begin, until in _spans(results):
            start, end = round(begin / tick), round(until / tick)
            # The gap since the last, how long, what: small numbers make a small page.
            ranks[rank] += (start - ends[rank], end - start, state)
            ends[rank] = end
        messages = []
        if _count(place / MESSAGES) <= MAX_MESSAGES:
            for row in _read(place / MESSAGES, "source", "target", "start_s", "end_s"):
                messages.append([int(row["source"]), int(row["target"]), *_dates(row, tick)])
        path = _path(place, tick)
    except (ValueError, KeyError, IndexError) as error:
        raise PTaskModelError(f"{place}: a timeline that cannot be read ({error})") from None
    return {
        "tick": tick,
        "states": [[name, mpi_pictures.ROLES[name]] for name in STATES],
        "ranks": ranks,
        "messages": messages,
        "path": path,
    }


def _spans(results: Results) -> Iterable[tuple[int, int, float, float]]:
    """(rank, state, begin, end) of what each rank did, of too many spans in cells of time."""
    path = results.directory / SPANS
    columns = mpi_pictures.columns_of(_read(path, "rank", "action", "start_s", "end_s"))
    if len(columns[0]) <= MAX_SPANS:
        yield from zip(*(column.tolist() for column in columns), strict=True)
        return
    ranks, end_s = len(results.tasks), results.end_s
    cells = max(MAX_SPANS // ranks, 1)
    table = mpi_pictures.mostly(ranks, *columns, (0.0, end_s), cells)
    for rank, states in enumerate(table.tolist()):
        at = 0
        for state, its in itertools.groupby(states):
            begin, at = at, at + len(list(its))
            if state >= 0:
                yield rank, state, begin * end_s / cells, at * end_s / cells


def _path(place: Path, tick: float) -> list[list[int]]:
    """The critical path: [rank, to which, start, end], the parts of a message as one."""
    if _count(place / CRITICAL_PATH) > MAX_PARTS:
        return []
    rows = _read(place / CRITICAL_PATH, "start_s", "end_s", "rank", "to_rank", "message")
    return [[rank, to, round(begin / tick), round(end / tick)]
            for rank, to, begin, end, _ in mpi_pictures.path_parts(rows)]  # fmt: skip


def ranks_table(results: Results) -> dict[str, Any] | None:
    """Of a replay: each rank, its host, its end and its seconds in each state that occurs."""
    if results.what != "rank":
        return None
    place = results.directory / RANKS
    columns = {name: column_of(name) for name in STATES}
    lines = list(_read(place, "rank", "host", "end_s", *columns.values()))
    with readable(place, REPLAYED_ANEW):
        shown = {
            name: column
            for name, column in columns.items()
            if any(finite(row[column]) > 0.0 for row in lines)
        }
        values = [
            [f"rank {row['rank']}", row["host"], finite(row["end_s"])]
            + [finite(row[column]) for column in shown.values()]
            for row in lines
        ]
    heads = ["rank", "host", "end (s)", *(f"{name} (s)" for name in shown)]
    return {"heads": heads, "rows": values, "texts": [0, 1], "order": [2, True]}


def _dates(row: dict[str, str], tick: float) -> tuple[int, int]:
    return round(finite(row["start_s"]) / tick), round(finite(row["end_s"]) / tick)


def _read(path: Path, *columns: str) -> Iterable[dict[str, str]]:
    with readable(path, REPLAYED_ANEW):
        yield from rows(path, *columns, optional=True)


def _count(path: Path) -> int:
    """Lines of a table below its head; 0 if there is none."""
    if not path.exists():
        return 0
    with path.open("rb") as stream:
        parts = iter(lambda: stream.read(1 << 20), b"")
        return max(sum(part.count(b"\n") for part in parts) - 1, 0)
