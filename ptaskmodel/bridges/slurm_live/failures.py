"""Failures that are injected: daemons that die, and come back."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple

from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.nodes import nodes_of
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.files import AnyPath, read_text, shown_path

DIES, STARTS, RESTARTS = "dies", "starts", "restarts"
CONTROLLER = "slurmctld"
COLUMNS = ("time", "daemon", "what")
LARGEST = 1e12


class Failure(NamedTuple):
    """daemon: the name of a node, whose slurmd is meant, or slurmctld. what: see above."""

    date_s: float
    daemon: str
    what: str


def read_failures(path: AnyPath, conf: Conf) -> tuple[Failure, ...]:
    """The failures of a CSV file, by date. Raises SlurmError with file and line."""
    where = shown_path(path)
    rows = csv.DictReader(io.StringIO(read_text(path, error=SlurmError)))
    if rows.fieldnames is None or tuple(rows.fieldnames) != COLUMNS:
        raise SlurmError(f"{where}:1: give the columns {','.join(COLUMNS)}")
    known = {*nodes_of(conf).names, CONTROLLER}
    found = []
    for row in rows:
        place = f"{where}:{rows.line_num}"
        try:
            date_s = float(row["time"] or "")
        except ValueError:
            date_s = -1.0
        if not 0 <= date_s <= LARGEST:
            raise SlurmError(f"{place}: time is {shown(row['time'])}: give seconds, 0 or more")
        if row["daemon"] not in known:
            raise SlurmError(
                f"{place}: daemon is {shown(row['daemon'])}: give a node or {CONTROLLER}"
            )
        if row["what"] not in (DIES, STARTS, RESTARTS):
            raise SlurmError(
                f"{place}: what is {shown(row['what'])}: give dies, starts or restarts"
            )
        found.append(Failure(date_s, str(row["daemon"]), str(row["what"])))
    return tuple(sorted(found, key=lambda failure: failure.date_s))
