"""Read the loops of tasks.json: how often a client asks, how many requests wait, how it thinks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.amounts import FieldError, check_number
from ptaskmodel.workload.formats.json import Fields
from ptaskmodel.workload.tasks import Task, closed_loop, exponential, uniform

# Fields of a loop besides those of its requests; what tells its think times.
LOOP_FIELDS = ("count", "at_once", "think", "seed")
THINKING = ("exponential", "uniform", "file")
CHOICE = ", ".join(THINKING)
# What a request has of the task that it is.
OPTIONS = ("start_s", "walltime_s", "weight", "rate_bound", "competitors")


def read_loop(
    entry: dict[str, Any], pointer: str, fields: Fields, request: Task, folder: Path
) -> tuple[list[Task], list[Path]]:
    """Return the tasks of a loop, and the files that were read for it.

    entry: of the loop, at the JSON ``pointer``. fields: of its file. request: the task that each
    request is. folder: where files that it names are. Raises WorkloadError.
    """
    if "count" not in entry:
        fields.fail(pointer, "has no count; give the number of its requests")
    count, at_once, seed = (
        fields.whole(entry.get(name, default), f"{pointer}/{name}")
        for name, default in (("count", 1), ("at_once", 1), ("seed", 0))
    )
    name, options = str(request.id), {each: getattr(request, each) for each in OPTIONS}
    if "connection" in entry:
        options["connection"] = request.connection
    think = entry.get("think", 0)
    think_s, paths = _think_times(think, f"{seed} {name}", f"{pointer}/think", fields, folder)
    try:
        tasks = closed_loop(name, request.hosts, request.work, count, think_s, at_once, **options)
    except WorkloadError as error:
        fields.fail(pointer, error.message)
    return tasks, paths


def _think_times(
    value: Any, seed: str, pointer: str, fields: Fields, folder: Path
) -> tuple[Iterable[float], list[Path]]:
    """A number, {"exponential": mean}, {"uniform": [least, most]} or {"file": name}; its files."""

    def seconds(given: Any, where: str) -> float:
        try:
            return check_number("think", fields.number(given, where))
        except FieldError as error:
            fields.fail(where, error.problem)

    if type(value) in (int, float):
        return (seconds(value, pointer),), []
    if type(value) is not dict:
        fields.fail(pointer, f"is {shown(value)}; give seconds, or an object with one of {CHOICE}")
    fields.object_of(value, pointer, THINKING, "think times")
    if len(value) != 1:
        fields.fail(pointer, f"gives {len(value)} kinds of think times; give one of {CHOICE}")
    ((kind, given),) = value.items()
    where = f"{pointer}/{kind}"
    if kind == "exponential":
        return exponential(seconds(given, where), seed), []
    if kind == "uniform":
        if type(given) is not list or len(given) != 2:
            fields.fail(where, f"is {shown(given)}; give [least, most] in seconds")
        low, high = (seconds(each, f"{where}/{k}") for k, each in enumerate(given))
        if low > high:
            fields.fail(where, "has its least above its most; exchange them")
        return uniform(low, high, seed), []
    path = folder / fields.text(given, where, "the name of a file")
    try:
        return _read_times(path), [path]
    except WorkloadError as error:
        fields.fail(where, f"{error.message}; name a text file with seconds, one a line")


@reader(WorkloadError)
def _read_times(path: AnyPath, account: Account) -> list[float]:
    """The seconds in the file at a `path`, one a line. Raises WorkloadError."""
    times = []
    lines = read_text(path, error=WorkloadError).splitlines()
    for line, text in enumerate(lines, 1):
        try:
            times += [check_number("think", float(text))] if text.strip() else []
        except (ValueError, FieldError):
            account.bad_row(f"{shown(text)} is no time; give seconds", line)
    account.check_rows(len(lines))
    if not times:
        account.problem("has no numbers")
    return times
