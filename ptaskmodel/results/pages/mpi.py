"""Sections of a report on a replay: its timeline, time by kind of action, and the critical path."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.directory import finite, read_optional, read_table
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.page import Section, Table
from ptaskmodel.results.pictures import mpi as mpi_pictures
from ptaskmodel.results.pictures.mpi import REMEDY
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

MAX_SPANS = 150_000  # of more, cells of time are shown
MAX_MESSAGES = 4_000
MAX_PARTS = 20_000  # of the critical path
MAX_LINKS = 15
MOST_BLOCKS = 32  # rows of the matrix of messages
TICKS = 10_000_000  # of the chart's dates, over the whole run


def replay_sections(results: Results, places: Mapping[str, Place]) -> list[Section]:
    """Return sections on the time of ranks, the critical path, and the traffic between ranks.

    results: of a run, of others than replays there are none. places: of links, see
    `places.link_places`. Parts that were not recorded are left out. Raises PTaskModelError if a
    table is damaged.
    """
    if results.what != "rank":
        return []
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
    span = results.end_s or 1.0
    lines = read_optional(
        results.directory / ACTION_TIMES, REMEDY, action=str, state=str, count=int,
        mean_rank_s=finite, max_rank_s=finite,
    )  # fmt: skip
    timed = sorted((row for row in lines if row[3] > 0.0), key=lambda row: -row[3])
    shown = [(*row[:4], row[3] / span, row[4]) for row in timed]
    columns = {"action": "text", "a rank is": "text", "calls": "count", "mean of a rank": "time",
               "of the makespan": "share", "most of a rank": "time"}  # fmt: skip
    table = Table(columns, shown, key=(3, 4), file=ACTION_TIMES)
    return Section("Where the time goes", "Time of the ranks by what they do.", (table,))


def _critical_path(place: Path, path: dict[str, Any], places: Mapping[str, Place]) -> Section:
    seconds = path.get("seconds") or {}
    whole = sum(seconds.values()) or 1.0
    spent_on = [
        (kind, spent, spent / whole)
        for kind, spent in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    columns = {"on the path": "text", "time": "time", "part": "share"}
    tables = [Table(columns, spent_on, caption="The critical path")]
    links = read_optional(
        place / CRITICAL_LINKS, REMEDY, link=partial(link_name, places=places),
        messages=int, bytes=finite, latency_s=finite, transfer_s=finite, contention_s=finite,
    )[:MAX_LINKS]  # fmt: skip
    if links:
        columns = {"link": "text", "messages": "count", "bytes": "bytes", "latency": "time",
                   "transfer": "time", "contention": "time"}  # fmt: skip
        tables.append(Table(columns, links, key=(2, 5), file=CRITICAL_LINKS, caption="Its links"))
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

    def dated(row: Sequence[Any]) -> list[Any]:
        return [*row[:2], *(round(date / tick) for date in row[2:4])]

    try:
        for rank, state, start, end in map(dated, _spans(results)):
            # The gap since the last, how long, what: small numbers make a small page.
            ranks[rank] += (start - ends[rank], end - start, state)
            ends[rank] = end
    except IndexError:
        raise PTaskModelError(
            f"{place / SPANS}: a timeline that cannot be read; {REMEDY}"
        ) from None
    messages, path = [], []
    if 0 < _count(place / MESSAGES) <= MAX_MESSAGES:
        messages = mpi_pictures.messages_of(place)
    if 0 < _count(place / CRITICAL_PATH) <= MAX_PARTS:
        path = mpi_pictures.path_of(place)
    return {
        "tick": tick,
        "states": [[name, mpi_pictures.ROLES[name]] for name in STATES],
        "ranks": ranks,
        "messages": list(map(dated, messages)),
        "path": list(map(dated, path)),
    }


def _spans(results: Results) -> Iterable[tuple[int, int, float, float]]:
    """(rank, state, begin, end) of what each rank did, of too many spans in cells of time."""
    columns = mpi_pictures.spans_of(results.directory)
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


def ranks_table(results: Results) -> dict[str, Any] | None:
    """Of a replay: each rank, its host, its end and its seconds in each state that occurs."""
    if results.what != "rank":
        return None
    columns = {column_of(name): finite for name in STATES}
    lines = read_table(results.directory / RANKS, REMEDY, rank=str, host=str, end_s=finite,
                       **columns)  # fmt: skip
    shown = [k for k, name in enumerate(STATES, 3) if any(row[k] > 0.0 for row in lines)]
    values = [[f"rank {row[0]}", *row[1:3], *(row[k] for k in shown)] for row in lines]
    heads = {"rank": "text", "host": "text", "end (s)": "number"}
    heads |= {f"{STATES[k - 3]} (s)": "number" for k in shown}
    return Table(heads, values, order=(2, True)).data("Ranks")


def _count(path: Path) -> int:
    """Lines of a table below its head; 0 if there is none."""
    if not path.exists():
        return 0
    with path.open("rb") as stream:
        parts = iter(lambda: stream.read(1 << 20), b"")
        return max(sum(part.count(b"\n") for part in parts) - 1, 0)
