"""Reads a directory of results, of ``simulate`` or ``batch``, for whoever shows them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.output import SUMMARY

if TYPE_CHECKING:
    import pandas

TASKS, JOBS, MACHINES = "tasks.csv", "jobs.csv", "machines.csv"


@dataclass(frozen=True, slots=True)
class ShownTask:
    """A task, or a job, of a directory of results. Dates in s; None for what did not happen."""

    task_id: str
    profile: str | None
    start_s: float | None
    finish_s: float | None
    state: str
    hosts: tuple[str, ...]
    slowdown: float | None

    @property
    def duration_s(self) -> float | None:
        if self.start_s is None or self.finish_s is None:
            return None
        return self.finish_s - self.start_s


@dataclass(frozen=True, slots=True)
class ShownSpell:
    """A line of bottlenecks.csv."""

    task_id: str
    start_s: float
    end_s: float
    limited_by: str
    resource: str
    progress: float
    sharers: int
    shared_with: str


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """What a directory of results holds.

    what: "task" or "job". spells and utilisation ((resource, kind): list of (start_s, end_s, share)
    in order of time) are empty where the run was made without ``--attribution``.
    """

    directory: Path
    what: str
    summary: dict[str, Any]
    tasks: list[ShownTask]
    spells: list[ShownSpell] = field(default_factory=list)
    utilisation: dict[tuple[str, str], list[tuple[float, float, float]]] = field(
        default_factory=dict
    )

    def frame(self) -> pandas.DataFrame:
        """The tasks as a table, one row each: dates in s (nan for what did not happen)."""
        import pandas

        names = [each.name for each in fields(ShownTask)]
        rows = [[getattr(task, name) for name in names] for task in self.tasks]
        dates = dict.fromkeys(("start_s", "finish_s", "slowdown"), "float64")
        return pandas.DataFrame(rows, columns=names).astype(dates)

    @property
    def end_s(self) -> float:
        """The last date that is known, s."""
        dates = [t.finish_s for t in self.tasks if t.finish_s is not None]
        dates += [t.start_s for t in self.tasks if t.start_s is not None]
        dates += [float(self.summary[key]) for key in ("end_date",) if key in self.summary]
        return max(dates, default=0.0)


def results_of(results: Results | str | Path) -> Results:
    """Results, or those in a directory. Raises PTaskModelError as `load_results` does."""
    return results if isinstance(results, Results) else load_results(results)


def load_results(directory: str | Path) -> Results:
    """The results in a directory.

    Raises PTaskModelError if there are none or they cannot be read.
    """
    place = Path(directory)
    try:
        summary = json.loads((place / SUMMARY).read_text(encoding="utf-8"))
        what = "job" if (place / JOBS).exists() else "task"
        tasks = list(_jobs(place) if what == "job" else _tasks(place))
        spells = [_spell(row) for row in _rows(place / "bottlenecks.csv", optional=True)]
        utilisation: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        for row in _rows(place / "utilisation.csv", optional=True):
            span = float(row["start_s"]), float(row["end_s"]), float(row["share"])
            utilisation.setdefault((row["resource"], row["kind"]), []).append(span)
    except FileNotFoundError as error:
        raise PTaskModelError(
            f"{place}: holds no results ({Path(error.filename).name} is missing); give the "
            "--output directory of a run"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PTaskModelError(f"{place}: results that cannot be read ({error!r})") from None
    return Results(place, what, summary, tasks, spells, utilisation)


def _rows(path: Path, optional: bool = False) -> Iterator[dict[str, str]]:
    if optional and not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)


def _number(text: str | None) -> float | None:
    return float(text) if text else None


def _tasks(place: Path) -> Iterator[ShownTask]:
    for row in _rows(place / TASKS):
        yield ShownTask(
            row["task_id"],
            row["profile"] or None,
            _number(row["start_time"]),
            _number(row["finish_time"]),
            row["final_state"],
            tuple(row["hosts"].split()),
            _number(row.get("slowdown")),
        )


def _jobs(place: Path) -> Iterator[ShownTask]:
    names = {row["id"]: row["name"] for row in _rows(place / MACHINES, optional=True)}
    for row in _rows(place / JOBS):
        numbers = _host_numbers(row["allocated_resources"])
        alone, lasted = _number(row.get("time_alone")), _number(row["execution_time"])
        completed = row["final_state"] == "COMPLETED_SUCCESSFULLY"
        yield ShownTask(
            row["job_id"],
            row["profile"] or None,
            _number(row["starting_time"]),
            _number(row["finish_time"]),
            row["final_state"],
            tuple(names.get(number, number) for number in numbers),
            lasted / alone if completed and lasted is not None and alone else None,
        )


def _host_numbers(text: str) -> list[str]:
    """Numbers of hosts in a text such as "0-3 7" or "0-3,7"."""
    found: list[str] = []
    for part in text.replace(",", " ").split():
        first, _, last = part.partition("-")
        found += [str(k) for k in range(int(first), int(last or first) + 1)]
    return found


def _spell(row: dict[str, str]) -> ShownSpell:
    return ShownSpell(
        row["task_id"],
        float(row["start_s"]),
        float(row["end_s"]),
        row["limited_by"],
        row["resource"],
        float(row["progress"]),
        int(row["sharers"]),
        row["shared_with"],
    )
