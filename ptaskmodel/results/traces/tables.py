"""Write resource use during a run as tables (CSV, Parquet) of intervals; what all traces share.

Writers of traces, in any format, receive intervals of use (`Trace`), and most write text
(`TextTrace`). A warning says when a trace becomes large: under contention, traces grow with the
square of the number of tasks.

Each row of a table says that a task used a resource from start_s to end_s at a constant ``rate``
(flop/s of a host, B/s of a link), which was ``share`` of its capacity. Rows of one task on one
resource come in order of time and do not overlap. Memory does not grow with the number of rows.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file, whole_path
from ptaskmodel.remarks import warn

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Phases, Recorder, Uses


# About what an interval of use takes in each format, bytes.
BYTES_PER_USE: Mapping[str, float] = {"csv": 75.0, "parquet": 10.0, "paje": 85.0, "perfetto": 470.0}
WARNED_GB = 1.0


class Trace:
    """What the writers of traces have in common: they listen to uses and ignore the rest."""

    recorder: Recorder

    def begin(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def changes(self, events: np.ndarray) -> None:
        pass

    def phases(self, phases: Phases) -> None:
        pass

    def uses(self, uses: Uses) -> None:
        pass

    def end(self) -> None:
        pass

    def abandon(self, error: BaseException) -> None:
        """Called instead of `end` where the run failed."""


class TextTrace(Trace):
    """A trace in a text file, which appears once it is whole."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: AbstractContextManager[IO[str]] = whole_file(self.path)
        self.stream: IO[str]

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self.stream = self._file.__enter__()

    def end(self) -> None:
        self._file.__exit__(None, None, None)

    def abandon(self, error: BaseException) -> None:
        with contextlib.suppress(BaseException):  # it comes back
            self._file.__exit__(type(error), error, error.__traceback__)


def numbers(column: np.ndarray) -> list[str]:
    """Finite floats as text, shortest that reads back equal; runs of equal ones are made once."""
    import msgspec

    if not len(column):
        return []
    new = np.append(True, column[1:] != column[:-1])
    text = msgspec.json.encode(column[new].tolist()).decode()[1:-1].split(",")
    return [text[k] for k in (np.cumsum(new) - 1).tolist()] if not new.all() else text


def quoted(name: str) -> str:
    """A name as a field of a CSV file."""
    if any(c in name for c in ',"\n\r'):
        return '"' + name.replace('"', '""') + '"'
    return name


class TraceGrowth(Trace):
    """Warns once when the traces of these formats reach a gigabyte, and stops them at a limit.

    limit_GB: their largest size together (about); None: none.
    """

    def __init__(self, formats: Sequence[str], limit_GB: float | None = None) -> None:
        self._bytes_per_use = sum(BYTES_PER_USE[name] for name in formats)
        self._limit_GB = limit_GB
        self._uses = 0
        self._told = False

    def uses(self, uses: Uses) -> None:
        self._uses += len(uses.task)
        size_GB = 1e-9 * self._bytes_per_use * self._uses
        now_s = float(uses.end.max())
        if self._limit_GB is not None and size_GB > self._limit_GB:
            raise PTaskModelError(
                f"--trace-limit: the traces reach {self._limit_GB:g} GB at {now_s:g} s; raise it, "
                "or leave --trace out: --attribution sums up"
            )
        if size_GB > WARNED_GB and not self._told:
            self._told = True
            warn(self._warning(size_GB, now_s))

    def _warning(self, size_GB: float, now_s: float) -> str:
        ended = [ref.end_s is not None for ref in self.recorder.simulation.tasks()]
        text = f"the traces have {size_GB:.2g} GB at {now_s:g} s"
        if any(ended):
            text += f", with {sum(ended):,} of {len(ended):,} tasks over: expect about "
            text += f"{size_GB * len(ended) / sum(ended):.2g} GB"
        return (
            f"{text}; parquet is the smallest format, --attribution sums up without a trace, "
            "--trace-limit GB stops them"
        )


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
