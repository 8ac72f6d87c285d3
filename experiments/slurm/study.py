"""One run of the study of simulated Slurm: the rows of a table.

accuracy: recorded runs of a real Slurm, fed with their dates and free. speed: simulated days an
hour. log: what a log says of its users. parameters: bf_interval, depth and nodes varied. separate:
one controller or two, with and without costs; phases: the same with the threads' phases drawn anew.
sharing: nodes shared by sockets and cores, and what neighbours cost. suspension, shrunk, filled:
suspend/resume against backfilling; queue: suspension with a longer one; victims: how many CPUs it
stops; snapshots: why that many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import accuracy
import logs
import numpy as np
import parameters as settings
import separate
import sharing
import snapshots
import speed
import suspension
import victims
from common import MODEL, Row

HERE = Path(__file__).resolve().parent
KTH_NODES, MODEL_NODES = 100, 64
# The number of each row whose mean is kept: dates and counts, which any machine finds.
TOLD = {
    "accuracy": "mean_gap_s",
    "speed": "cycles",
    "log": "here",
    "parameters": "waiting_s",
    "separate": "waiting_h",
    "phases": "waiting_h",
    "sharing": "waiting_h",
    "suspension": "waiting_s",
    "queue": "waiting_s",
    "victims": "stopped_cpus",
    "snapshots": "stopped_cpus",
    "shrunk": "slowdown",
    "filled": "start_s",
}


def _log(given: Mapping[str, Any]) -> tuple[str | Path, int]:
    """The log and its nodes."""
    return (MODEL, MODEL_NODES) if given["log"] == MODEL else (Path(given["log"]), KTH_NODES)


def _suspension(given: Mapping[str, Any], load: float) -> list[Row]:
    """Those of the model, too."""
    machines = dict.fromkeys([(MODEL, MODEL_NODES), _log(given)])
    every = (suspension.measured(*one, given["jobs"], load, given["orders"]) for one in machines)
    return [row for rows in every for row in rows]


TABLES: dict[str, Callable[[Mapping[str, Any]], list[Row]]] = {
    "accuracy": lambda given: accuracy.compared(HERE / given["recorded"]),
    "speed": lambda given: speed.measured(_log(given)[0], given["speed_jobs"]),
    "log": lambda given: logs.described(*_log(given), given["jobs"]),
    "parameters": lambda given: settings.varied(*_log(given), given["jobs"], 1.0),
    "separate": lambda given: separate.measured(
        *_log(given), given["jobs"], 1.2, 4.0, given["orders"]
    ),
    "phases": lambda given: separate.repeated(
        *_log(given), given["jobs"], 1.2, 4.0, given["phases"]
    ),
    "sharing": lambda given: sharing.measured(
        given["shared_nodes"], given["shared_jobs"], 1.2, given["draws"]
    ),
    "suspension": lambda given: _suspension(given, 1.2),
    "queue": lambda given: _suspension(given, suspension.LONGER),
    "victims": lambda given: victims.measured(
        given["log"], given["victim_jobs"], 1.0, given["orders"]
    ),
    "snapshots": lambda given: snapshots.measured(
        given["log"], given["snapshot_nodes"], given["snapshot_draws"]
    ),
    "shrunk": lambda given: suspension.shrunk(MODEL, MODEL_NODES, given["jobs"], 1.2),
    "filled": lambda given: suspension.filled(),
}


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a table: how many, and the mean of the number that `TOLD` names."""
    table = parameters["table"]
    rows = TABLES[table](parameters)
    told = [row[TOLD[table]] for row in rows]
    return {"rows": len(rows), "mean": float(np.mean(told)) if told else 0.0, "series": rows}
