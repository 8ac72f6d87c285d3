"""Who waited, on the page of a batch: jobs by their size, their length and their user."""

from __future__ import annotations

from pathlib import Path

from ptaskmodel.results.csv_reading import finite, readable, rows
from ptaskmodel.results.drawing import lasting
from ptaskmodel.results.loading import Results
from ptaskmodel.results.report_sections import Section, Table

CLASSES = "classes.csv"
COLUMNS = ("kind", "class", "jobs", "host_seconds", "mean_waiting", "max_waiting",
           "mean_execution", "mean_bounded_slowdown")  # fmt: skip
# Kinds of classes, and the head of their column.
SHOWN = {"size": "hosts asked for", "length": "time of execution", "user": "user"}
MOST_USERS = 20
MADE_ANEW = "make the batch anew"
# The only class of users where a workload names none.
UNKNOWN = "unknown"
NOTE = "Of the jobs that ran, in classes: how long they waited, and how slow that made them."


def waiting_sections(results: Results) -> list[Section]:
    """One section with a table for each kind of class; none if the results are of no batch.

    Raises PTaskModelError if classes.csv is not as it was written.
    """
    path = results.directory / CLASSES
    with readable(path, MADE_ANEW):
        found = _classes(path)
        users = found["user"]
        tables = tuple(_table(SHOWN[kind], found[kind][:MOST_USERS]) for kind in SHOWN)
    tables = tuple(table for table in tables if table.rows)
    if not tables:
        return []
    note = NOTE
    if len(users) > MOST_USERS:
        note += f" The {MOST_USERS} of {len(users):,} users who used most are here."
    return [Section("Waiting in classes of jobs", note, tables)]


def users_of(results: Results) -> list[tuple[str, int, float, float]]:
    """(user, jobs, mean waiting in s, longest in s), who used most first; empty if not known.

    Raises PTaskModelError if classes.csv is not as it was written.
    """
    path = results.directory / CLASSES
    with readable(path, MADE_ANEW):
        return [
            (
                row["class"],
                int(row["jobs"]),
                finite(row["mean_waiting"]),
                finite(row["max_waiting"]),
            )
            for row in _classes(path)["user"]
        ]


def _classes(path: Path) -> dict[str, list[dict[str, str]]]:
    """The lines of classes.csv of the kinds that are shown; of users those that are known."""
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in SHOWN}
    for row in rows(path, *COLUMNS, optional=True):
        if row["kind"] in found:
            found[row["kind"]].append(row)
    found["user"] = _known(found["user"])
    return found


def _known(users: list[dict[str, str]]) -> list[dict[str, str]]:
    """Users by what they used; none where all there is is a class of those unknown."""
    if [row["class"] for row in users] == [UNKNOWN]:
        return []
    return sorted(users, key=lambda row: -finite(row["host_seconds"]))


def _table(name: str, classes: list[dict[str, str]]) -> Table:
    header = (name, "jobs", "mean waiting", "longest", "mean execution", "mean bounded slowdown")
    texts = [
        (
            row["class"],
            f"{int(row['jobs']):,}",
            lasting(finite(row["mean_waiting"])),
            lasting(finite(row["max_waiting"])),
            lasting(finite(row["mean_execution"])),
            f"{finite(row['mean_bounded_slowdown']):,.4g}",
        )
        for row in classes
    ]
    return Table(header, texts, (1, 2, 3, 4, 5))
