"""``jobs.csv`` of a recorded run: what was submitted to a real Slurm, and how long it ran."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ptaskmodel.batch.slurm import values
from ptaskmodel.batch.slurm.requests import sbatch
from ptaskmodel.batch.slurm.requests.request import WHOLE_NODES, ArrayTask, JobRequest, Submissions
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path
from ptaskmodel.workload.works import DelayWork

PHASE_S = 0.5
MOST_JOBS = 1_000_000
NEEDED = ("id", "submit", "limit", "run")

Row = Mapping[str, str]


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so may be one."""
    names = start.split(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r").split(",")
    return set(NEEDED) <= set(names)


def read_jobs(path: AnyPath, phase_s: float = PHASE_S) -> Submissions:
    """The jobs of a ``jobs.csv``, each submitted ``phase_s`` after its date there.

    Columns: id, submit (s), nodes (least or least-most), cores (tasks; without them whole nodes,
    exclusively unless ``exclusive`` is 0), limit, run (s), and if need be user, account, qos,
    priority, nice, partition, exclusive, mem, depend, begin (s), deadline (s), extra (more options
    of sbatch).

    Raises SlurmError with file and line.
    """
    where = shown_path(path)
    text = read_text(path, error=SlurmError)
    if not looks_like(text[:4096].encode()):
        raise SlurmError(f"{where}:1: give the columns {', '.join(NEEDED)}, separated by commas")
    rows = csv.DictReader(io.StringIO(text), strict=True)
    found: list[JobRequest] = []
    seen: dict[str, str] = {}
    try:
        for row in rows:
            place = f"{where}:{rows.line_num}"
            if None in row:
                raise SlurmError(f"{place}: has more fields than the first line; take some out")
            fields = {name: (value or "").strip() for name, value in row.items()}
            if (before := seen.setdefault(fields["id"], place)) is not place:
                raise SlurmError(f"{place}: job {shown(fields['id'])} is there twice ({before})")
            found += _jobs(fields, place, phase_s)
            if len(found) > MOST_JOBS:
                raise SlurmError(f"{place}: there are more than {MOST_JOBS:,} jobs; give fewer")
    except csv.Error as fault:
        raise SlurmError(f"{where}:{rows.reader.line_num}: {fault}; write plain CSV") from None
    return Submissions(tuple(sorted(found, key=lambda job: job.submit_s)))


def _jobs(row: Row, where: str, phase_s: float) -> Iterator[JobRequest]:
    """The job of a row, or the tasks of its array."""
    if not row["id"] or not row["id"].isprintable():
        raise SlurmError(f"{where}: id is {shown(row['id'])}: give the job a name")
    fields: dict[str, Any] = {
        "submit_s": _value(row, "submit", where, _seconds) + phase_s,
        "limit_min": math.ceil(_value(row, "limit", where, _seconds) / 60),
        "work": DelayWork(_value(row, "run", where, _seconds)),
        "name": row["id"],
        "where": where,
    }
    for column, (field, read) in _COLUMNS.items():
        if row.get(column):
            fields[field] = _value(row, column, where, read)
    if row.get("nodes"):
        fields |= _value(row, "nodes", where, sbatch.node_range)
    whole = not row.get("cores") and row.get("exclusive") != "0"
    if whole or (row.get("cores") and row.get("exclusive") == "1"):
        fields["exclusive"] = WHOLE_NODES
    fields |= _value(row, "extra", where, sbatch.options) if row.get("extra") else {}
    indices, at_most = fields.pop("array", (None, None))
    if indices is None:
        yield JobRequest(row["id"], **fields)
        return
    for index in indices:
        task = ArrayTask(row["id"], index, at_most)
        yield JobRequest(f"{row['id']}_{index}", array=task, **fields)


def _value(row: Row, column: str, where: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(row[column])
    except ValueError as fault:
        raise SlurmError(f"{where}: {column} is {shown(row[column])}: {fault}") from None


def _seconds(text: str) -> float:
    value = values.number(text)
    if value > values.LONGEST_S:
        raise ValueError("give seconds, less than 20 years")
    return value


_COLUMNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "cores": ("tasks", lambda text: values.whole(text, 1)),
    "user": ("user", str),
    "account": ("account", str),
    "qos": ("qos", str),
    "priority": ("priority", lambda text: values.whole(text, 0, 2**32 - 1)),
    "nice": ("nice", lambda text: values.whole(text, -(2**31), 2**31)),
    "partition": ("partitions", values.names),
    "mem": ("memory_per_node_MiB", values.mebibytes),
    "depend": ("dependency", str),
    "begin": ("begin_s", _seconds),
    "deadline": ("deadline_s", _seconds),
}
