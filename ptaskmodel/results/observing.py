"""Records a simulation into a directory of results: traces, attribution, utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from ptaskmodel.recording.intervals import Listener, Recorder
    from ptaskmodel.recording.owners import Recorded
    from ptaskmodel.results.attribution import Attribution
    from ptaskmodel.results.link_users import LinkUsers, Users
    from ptaskmodel.results.traces.writing import Trace
    from ptaskmodel.results.utilisation import Utilisation


class Observation:
    """A context manager around a run; its files are in the directory on a normal exit.

    traces: names of formats (see `names.TRACE_FORMATS`); trace_limit_GB: their largest size
    together (about), above which the run is stopped. attribution: whether to write
    bottlenecks.csv, attribution.csv, utilisation.csv and link_users.csv. files: the names of
    what is written. users: for whom tasks send, in link_users.csv; None: each for itself.

    Raises PTaskModelError for a format that is unknown or needs a library that is not installed.
    """

    def __init__(
        self,
        simulation: Recorded,
        directory: str | Path,
        traces: Sequence[str] = (),
        attribution: bool = False,
        trace_limit_GB: float | None = None,
        users: Users | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.files: list[str] = []
        self._writers: list[Trace] = []
        self._attribution: Attribution | None = None
        self._tables: dict[str, Utilisation | LinkUsers] = {}
        self._recorder: Recorder | None = None
        listeners: list[Listener] = []
        if traces:
            listeners += self._trace_writers(list(dict.fromkeys(traces)), trace_limit_GB)
        if attribution:
            from ptaskmodel.results.attribution import ATTRIBUTION, BOTTLENECKS, Attribution
            from ptaskmodel.results.link_users import LINK_USERS, LinkUsers
            from ptaskmodel.results.utilisation import UTILISATION, Utilisation

            self._attribution = Attribution()
            self._tables = {UTILISATION: Utilisation(), LINK_USERS: LinkUsers(users)}
            listeners += [self._attribution, *self._tables.values()]
            self.files += [BOTTLENECKS, ATTRIBUTION, *self._tables]
        if listeners:
            from ptaskmodel.recording.intervals import Recorder

            self._recorder = Recorder(simulation, listeners)

    def _trace_writers(self, formats: list[str], limit_GB: float | None) -> list[Listener]:
        """What writes traces, and looks how large they become."""
        from ptaskmodel.results.traces.files import trace_file
        from ptaskmodel.results.traces.growth import TraceGrowth

        for format_ in formats:
            name, writer = trace_file(format_, self.directory)
            self.files.append(name)
            self._writers.append(writer)
        return [*self._writers, TraceGrowth(formats, limit_GB)]

    def __enter__(self) -> Observation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._abandon(error)
        if error is not None or self._recorder is None:
            return
        try:
            self._recorder.close()
        except BaseException as late:
            self._abandon(late)
            raise
        if self._attribution is not None:
            from ptaskmodel.results.attribution import ATTRIBUTION, BOTTLENECKS

            place = self.directory
            with (
                (place / BOTTLENECKS).open("w", encoding="utf-8", newline="") as limits,
                (place / ATTRIBUTION).open("w", encoding="utf-8", newline="") as summary,
            ):
                self._attribution.write(limits, summary)
        for name, table in self._tables.items():
            with (self.directory / name).open("w", encoding="utf-8", newline="") as stream:
                table.write(stream)

    def _abandon(self, error: BaseException) -> None:
        for writer in self._writers:
            writer.abandon(error)
