"""A batch that a scheduler elsewhere decides: from files and a wire to a result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from ptaskmodel import interrupts
from ptaskmodel.batch.execution import Execution
from ptaskmodel.batch.machine import Machine
from ptaskmodel.batch.metering import MeteredExecution
from ptaskmodel.batch.plan import BatchOptions, machine_with
from ptaskmodel.batch.simulator import BatchSimulation
from ptaskmodel.bridges.batsim.book import Book
from ptaskmodel.bridges.batsim.external_events import ExternalEvent, read_external_events
from ptaskmodel.bridges.batsim.faults import SchedulerFault
from ptaskmodel.bridges.batsim.scheduler import ExternalScheduler
from ptaskmodel.bridges.batsim.talk import Talk, Wire
from ptaskmodel.bridges.batsim.telling import SessionOptions
from ptaskmodel.bridges.batsim.wires import (
    ENDPOINT,
    PLACE,
    ReplayingWire,
    SocketWire,
    free_endpoint,
    recorded,
)
from ptaskmodel.interrupts import Interrupted
from ptaskmodel.platform.platform import Platform


@dataclass
class Session:
    """Drives a batch (see `batch.run.Driver`) by what a scheduler says.

    fault: how the scheduler or a signal ended the run, None if it ended well; what happened until
    then is in the schedule.
    """

    wire: Wire
    book: Book
    machine: Machine
    options: SessionOptions
    external: Sequence[ExternalEvent] = ()
    ptasks: bool = field(init=False)
    fault: SchedulerFault | Interrupted | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.ptasks = self.options.dynamic_jobs
        self._talk = Talk(self.wire, self.options.protocol)
        self.policy = ExternalScheduler(
            self._talk, self.book, self.machine, self.options, list(self.external)
        )

    def metadata(self) -> Mapping[str, str]:
        return self.book.metadata()

    def notes(self) -> tuple[str, ...]:
        return self._talk.notes()

    def run(
        self, simulation: BatchSimulation, execution: Execution, metered: MeteredExecution | None
    ) -> Mapping[str, Any]:
        stopped = None
        try:
            with interrupts.held():
                self._converse(simulation, execution, metered)
                interrupts.check()
        except SchedulerFault as fault:
            self.fault, stopped = fault, str(fault)
        except Interrupted as fault:
            self.fault, stopped = fault, f"{fault} at {simulation.now!r} s"
        talk = self._talk
        return {
            "protocol": self.options.protocol,
            "exchanges": talk.exchanges,
            "early_replies": talk.early,
            "scheduler_wall_time_s": talk.scheduler_s,
            "longest_exchange_wall_time_s": talk.longest_s,
            "stopped": stopped,
        }

    def _converse(
        self, simulation: BatchSimulation, execution: Execution, metered: MeteredExecution | None
    ) -> None:
        """Step to the end. Raises SchedulerFault, Interrupted."""
        try:
            self.policy.begin(simulation, execution, metered)
            while simulation.step():
                interrupts.check()
            self.policy.end()
        finally:
            self.policy.close()


@contextlib.contextmanager
def served(
    platform: Platform,
    book: Book,
    batch: BatchOptions,
    options: SessionOptions,
    *,
    endpoint: str | None = None,
    command: str | None = None,
    timeout_s: float = inf,
    events: Sequence[Path] = (),
    record: Path | None = None,
    replay: Path | None = None,
) -> Iterator[Session]:
    """A session with a scheduler at an endpoint, which is closed whatever happens.

    command: starts the scheduler (see `wires.start_scheduler`). events: files of external events.
    record: where to write all messages; replay: a record to take the place of the scheduler.

    Raises PTaskModelError.
    """
    machine = machine_with(batch, platform)
    external = read_external_events(events, machine.num_hosts, options.forward_unknown_events)
    wire: Wire
    if replay is not None:
        wire = ReplayingWire(replay)
    else:
        place = endpoint or (free_endpoint() if command and PLACE in command else ENDPOINT)
        wire = SocketWire(place, timeout_s, command)
    with contextlib.closing(wire), recorded(wire, record) as recording:
        yield Session(recording, book, machine, options, external)
