"""Run a batch in which an external scheduler decides, and write its directory.

It is a batch (see `runs.batch`) plus a scheduler (see `connect`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.connect.jobs import Book
from ptaskmodel.connect.options import ConnectionOptions, SessionOptions
from ptaskmodel.connect.scheduler import served
from ptaskmodel.options import fields_in, parameters_of, values
from ptaskmodel.platform import load_platform
from ptaskmodel.runs.batch import BatchRun, batch_into
from ptaskmodel.runs.scheduling_options import SERVE, BatchWriting
from ptaskmodel.workload.formats import Cleaning

if TYPE_CHECKING:
    from ptaskmodel.batch.loop.loop import Progress
    from ptaskmodel.connect.messages import SchedulerFault
    from ptaskmodel.interrupts import Interrupted
    from ptaskmodel.platform import Platform


class ServeInputs(NamedTuple):
    """What `serve_into` takes, from parameters; inputs: the files that were read."""

    platform: Platform
    book: Book
    options: BatchOptions
    writing: BatchWriting
    session: SessionOptions
    connection: ConnectionOptions
    inputs: tuple[Path, ...]
    parameters: Mapping[str, Any]


def serve_inputs(parameters: Mapping[str, Any]) -> ServeInputs:
    """Read what a batch with an external scheduler needs. Raises PTaskModelError.

    parameters: the file platform and the files workloads; of the options in `SERVE` any.
    """
    given = values(SERVE, parameters)
    connection = ConnectionOptions(**fields_in(ConnectionOptions, given))
    session = SessionOptions(**fields_in(SessionOptions, given))
    options = BatchOptions(estimates="walltime", **fields_in(BatchOptions, given))
    workloads: Sequence[Path] = parameters["workloads"]
    platform = load_platform(parameters["platform"])
    book = Book(workloads, Cleaning(given["processors_per_host"]))
    replayed = [] if connection.replay is None else [connection.replay]
    files = [parameters["platform"], *workloads, *connection.events, *replayed]
    return ServeInputs(
        platform,
        book,
        options,
        BatchWriting(**fields_in(BatchWriting, given)),
        session,
        connection,
        tuple(map(Path, files)),
        parameters_of(SERVE, given),
    )


def serve_into(
    directory: str | Path | None,
    platform: Platform,
    book: Book,
    options: BatchOptions,
    writing: BatchWriting | None = None,
    session: SessionOptions | None = None,
    connection: ConnectionOptions | None = None,
    *,
    inputs: Iterable[str | Path] = (),
    parameters: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> tuple[BatchRun, SchedulerFault | Interrupted | None]:
    """Let an external scheduler start the jobs of a book, and write a directory of results.

    directory, platform, options, writing, inputs, parameters, progress: as of `batch_into`. book:
    the registered jobs. session: what is agreed with the scheduler. connection: how it is reached;
    None: the defaults.

    Returns the run, and how the scheduler or a signal ended it before its time, None if it ended
    well. Raises PTaskModelError as `batch_into` does, and if the scheduler cannot be reached.
    """
    session, connection = session or SessionOptions(), connection or ConnectionOptions()
    with served(platform, book, options, session, connection) as driver:
        run = batch_into(
            directory,
            platform,
            book.workload,
            options,
            writing,
            inputs=inputs,
            parameters=parameters,
            progress=progress,
            driver=driver,
        )
    return run, driver.fault
