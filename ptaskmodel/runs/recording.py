"""Record a simulation into a directory of results: traces, attribution, utilisation.

Here is also the checkpoint of a run, which lies beside the directory until the run has ended.
"""

from __future__ import annotations

import hashlib
import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.works import Work

if TYPE_CHECKING:
    from types import TracebackType

    from ptaskmodel.platform import Platform
    from ptaskmodel.recording.intervals import Listener, Recorder
    from ptaskmodel.recording.recorded import Recorded
    from ptaskmodel.results.traces.attribution import Attribution, LinkUsers, Users, Utilisation
    from ptaskmodel.results.traces.tables import Trace
    from ptaskmodel.simulation.simulation import Simulation
    from ptaskmodel.workload.tasks import Task


class Observation:
    """A context manager around a run; its files are in the directory on a normal exit.

    simulation: what is recorded. traces: names of formats (see `results.TRACE_FORMATS`);
    trace_limit_GB: their largest size together (about), above which the run is stopped.
    attribution: whether to write bottlenecks.csv, attribution.csv, utilisation.csv and
    link_users.csv. files: the names of what is written. users: for whom tasks send, in
    link_users.csv; None: each for itself.

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
            from ptaskmodel.results.traces.attribution import (
                ATTRIBUTION,
                BOTTLENECKS,
                LINK_USERS,
                UTILISATION,
                Attribution,
                LinkUsers,
                Utilisation,
            )

            self._attribution = Attribution()
            self._tables = {UTILISATION: Utilisation(), LINK_USERS: LinkUsers(users)}
            listeners += [self._attribution, *self._tables.values()]
            self.files += [BOTTLENECKS, ATTRIBUTION, *self._tables]
        if listeners:
            from ptaskmodel.recording.intervals import Recorder

            self._recorder = Recorder(simulation, listeners)

    def _trace_writers(self, formats: list[str], limit_GB: float | None) -> list[Listener]:
        """What writes traces, and looks how large they become."""
        from ptaskmodel.results.traces import trace_file
        from ptaskmodel.results.traces.tables import TraceGrowth

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
            from ptaskmodel.results.traces.attribution import ATTRIBUTION, BOTTLENECKS

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


Progress = Callable[[float, int, int], None]


class Wanted(Protocol):
    """The options of a run that matter to its checkpoints."""

    @property
    def solver(self) -> str | None: ...
    @property
    def network_model(self) -> object: ...
    @property
    def count(self) -> str: ...
    @property
    def routing(self) -> object: ...
    @property
    def traces(self) -> tuple[str, ...]: ...
    @property
    def attribution(self) -> bool: ...
    @property
    def energy(self) -> bool: ...
    @property
    def neighbours(self) -> bool: ...
    @property
    def checkpoint_every_s(self) -> float | None: ...
    @property
    def resume(self) -> bool: ...
    @property
    def until_s(self) -> float | None: ...


class Checkpoints:
    """Writes, finds and removes the checkpoint of a run.

    A run that goes on must have the platform, tasks and options of the one that wrote the
    checkpoint: what was read, whatever files it came from.

    Raises SimulationError where checkpoints make no sense.
    """

    def __init__(
        self,
        directory: str | Path | None,
        options: Wanted,
        platform: Platform,
        tasks: Sequence[Task],
    ) -> None:
        self._every_s = options.checkpoint_every_s
        self._resume, self._until_s = options.resume, options.until_s
        if self._every_s is None and not self._resume:
            return
        if directory is None:
            raise SimulationError("checkpoints are written beside the results; give --output DIR")
        if options.traces or options.attribution or options.energy or options.neighbours:
            raise SimulationError(
                "a run that continues from a checkpoint cannot record what happened before; "
                "leave out "
                "--trace, --attribution, --neighbours and --energy, or the checkpoints"
            )
        place = Path(directory)
        self.path = place.with_name(place.name + ".checkpoint")
        self._about: dict[str, Any] = {
            "platform": _digest(platform.facts.__getstate__() | {"path": None}),
            "tasks": _digest(tasks),
            "solver": options.solver,
            "network_model": None if options.network_model is None else str(options.network_model),
            "count": options.count,
            "routing": str(options.routing),
        }

    def found(self) -> Simulation | None:
        """The simulation to go on with, if that is asked for and there is one.

        Raises SimulationError if it is damaged, or of another platform, other tasks or options.
        """
        if not self._resume or not self.path.exists():
            return None
        from ptaskmodel.simulation.checkpoint import load_checkpoint

        simulation, about = load_checkpoint(self.path)
        if about != self._about:
            changed = [key for key, value in self._about.items() if about.get(key) != value]
            raise SimulationError(
                f"{self.path}: belongs to another run (different {', '.join(changed)}); "
                "remove it, or run "
                "with the inputs and options that wrote it"
            )
        if self._until_s is not None and self._until_s < simulation.now:
            raise SimulationError(
                f"{self.path}: is of {simulation.now:g} s, past --until {self._until_s:g}; give a "
                "later date, or run without --resume from the beginning"
            )
        return simulation

    def watching(self, simulation: Simulation, progress: Progress | None) -> Progress | None:
        """Return a function to call now and then in a simulation.

        It writes checkpoints, and calls ``progress``.
        """
        every_s = self._every_s
        if every_s is None:
            return progress
        from ptaskmodel.simulation.checkpoint import save_checkpoint

        written = time.monotonic()

        def tell(now_s: float, ended: int, tasks: int) -> None:
            nonlocal written
            if time.monotonic() - written >= every_s:
                save_checkpoint(simulation, self.path, self._about)
                written = time.monotonic()
            if progress is not None:
                progress(now_s, ended, tasks)

        return tell

    def remove(self) -> None:
        """The run is over and its results are written."""
        if self._every_s is not None or self._resume:
            self.path.unlink(missing_ok=True)


class _Digester(pickle.Pickler):
    """Writes what facts hold, also where several of them are one object; a shared work once."""

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=5)
        self.fast = True  # what was written before is written again, not named by its number
        self._works: dict[int, int] = {}

    def persistent_id(self, item: Any) -> int | None:
        """The number of a work that was written before."""
        if not isinstance(item, Work):
            return None
        known = self._works.get(id(item))
        self._works.setdefault(id(item), len(self._works))
        return known


class _Hash:
    """A file that keeps nothing but the digest of what is written."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self.write = self._sha256.update

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def _digest(facts: Any) -> str:
    """SHA-256 of what facts hold."""
    file = _Hash()
    _Digester(file).dump(facts)
    return file.hexdigest()
