"""Who waited in a batch, as classes.csv says: jobs by their size, their length and their user."""

from __future__ import annotations

from pathlib import Path

from ptaskmodel.results.csv_reading import finite, readable, rows
from ptaskmodel.results.loading import Results

CLASSES = "classes.csv"
COLUMNS = ("kind", "class", "jobs", "host_seconds", "mean_waiting", "max_waiting",
           "mean_execution", "mean_bounded_slowdown")  # fmt: skip
# Kinds of classes, and the head of their column.
SHOWN = {"size": "hosts asked for", "length": "time of execution", "user": "user"}
MOST_USERS = 20
MADE_ANEW = "make the batch anew"
# The only class of users where a workload names none.
UNKNOWN = "unknown"


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
            for row in classes_of(path)["user"]
        ]


def classes_of(path: Path) -> dict[str, list[dict[str, str]]]:
    """The lines of classes.csv at ``path`` of the kinds shown; of users those that are known."""
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
