"""Write resource use during a run as tables (CSV, Parquet) of intervals.

Each row says that a task used a resource from start_s to end_s at a constant ``rate`` (flop/s of a
host, B/s of a link), which was ``share`` of its capacity. Rows of one task on one resource come in
order of time and do not overlap. Memory does not grow with the number of rows.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_path
from ptaskmodel.results.traces.writing import TextTrace, Trace, numbers, quoted

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Recorder, Uses

# Batches that may wait to be written.
PENDING = 2
COLUMNS = ("resource", "kind", "task_id", "start_s", "end_s", "rate", "share")


class CsvTrace(TextTrace):
    """Rows of COLUMNS as CSV, numbers to the last digit."""

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self._resources = [
            f"{quoted(name)},{recorder.names.kind(number)}"
            for number, name in enumerate(recorder.names.resources)
        ]
        self.stream.write(",".join(COLUMNS) + "\n")

    def uses(self, uses: Uses) -> None:
        resources = self._resources
        tasks = self.recorder.names.tasks()
        columns: list[Iterable[str]] = [
            [resources[number] for number in uses.resource.tolist()],
            [quoted(tasks[number]) for number in uses.task.tolist()],
        ]
        columns += [numbers(c) for c in (uses.start, uses.end, uses.rate, uses.share)]
        self.stream.write("\n".join(map(",".join, zip(*columns, strict=True))))
        self.stream.write("\n")


class ParquetTrace(Trace):
    """Rows of COLUMNS in Apache Parquet, names as dictionaries. Needs pyarrow.

    A second thread writes, so that the simulation goes on meanwhile; at most PENDING batches wait.

    Raises PTaskModelError if pyarrow is not installed or the file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._arrow, self._parquet = _pyarrow()
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._pending: deque[Future[None]] = deque()
        self._file = whole_path(self.path)

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        arrow = self._arrow
        name = arrow.dictionary(arrow.int32(), arrow.string())
        real = arrow.float64()
        types = (name, name, name, real, real, real, real)
        self._schema = arrow.schema(list(zip(COLUMNS, types, strict=True)))
        names = recorder.names
        self._kinds = arrow.array(["host", "link"])
        self._resources = arrow.array(names.resources, arrow.string())
        self._writer = self._parquet.ParquetWriter(
            self._file.__enter__(),
            self._schema,
            # Looking for equal numbers costs more than it saves.
            use_dictionary=["resource", "kind", "task_id"],
            write_statistics=False,
        )

    def uses(self, uses: Uses) -> None:
        arrow = self._arrow
        kind = (uses.resource >= self.recorder.names.n_hosts).astype(np.int32)
        dictionary = arrow.DictionaryArray.from_arrays
        resources, resource = numbered(uses.resource)
        tasks, task = numbered(uses.task)
        ids = self.recorder.names.tasks()
        columns = [
            dictionary(resource, self._resources.take(arrow.array(resources))),
            dictionary(kind, self._kinds),
            dictionary(task, arrow.array([ids[k] for k in tasks.tolist()])),
            *(arrow.array(c) for c in (uses.start, uses.end, uses.rate, uses.share)),
        ]
        table = arrow.Table.from_arrays(columns, schema=self._schema)
        self._pending.append(self._thread.submit(self._writer.write_table, table))
        self._wait(PENDING)

    def _wait(self, pending: int) -> None:
        """Let at most so many batches be unwritten."""
        while len(self._pending) > pending:
            self._pending.popleft().result()

    def end(self) -> None:
        self._wait(0)
        self._thread.shutdown()
        self._writer.close()
        self._file.__exit__(None, None, None)

    def abandon(self, error: BaseException) -> None:
        self._thread.shutdown(cancel_futures=True)
        with contextlib.suppress(BaseException):  # it comes back
            self._writer.close()
            self._file.__exit__(type(error), error, error.__traceback__)


def numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the different values, in increasing order; the place of each value there)."""
    lowest = int(values.min())
    met = np.zeros(int(values.max()) - lowest + 1, dtype=np.bool_)
    met[values - lowest] = True
    place = np.cumsum(met, dtype=np.int32) - 1
    return np.flatnonzero(met) + lowest, place[values - lowest].astype(np.int32)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise PTaskModelError(
            "Parquet needs pyarrow; run: pip install pyarrow, or choose csv"
        ) from None
    return pyarrow, pyarrow.parquet
