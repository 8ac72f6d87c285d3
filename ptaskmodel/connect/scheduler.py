"""The policy that represents an external scheduler: it sends events and executes the replies.

A request reports the events up to its time. The decisions of the reply take effect at their own
times. Until the end of the reply the scheduler is busy, and events wait for the next request.
`served` runs a batch from files and a socket to a result.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from ptaskmodel import interrupts
from ptaskmodel.batch.jobs.execution import Attempt, Execution, Progress
from ptaskmodel.batch.jobs.metering import MeteredExecution
from ptaskmodel.batch.loop.decisions import (
    HOST_DOWN,
    HOST_UP,
    MESSAGE,
    SWITCHED,
    Decision,
    Drain,
    Kill,
)
from ptaskmodel.batch.loop.loop import BatchSimulation
from ptaskmodel.batch.loop.view import View
from ptaskmodel.batch.machine.host_sets import HostSet, mask_of, text
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.batch.plan import machine_with
from ptaskmodel.connect.commands import Orders, Refused
from ptaskmodel.connect.events import (
    AVAILABLE,
    COMPLETED_FIRST,
    THEN_CALLS,
    THEN_MESSAGES,
    THEN_NOTIFY,
    THEN_SUBMITTED,
    UNAVAILABLE,
    ExternalEvent,
    Storages,
    job_completed,
    job_submitted,
    read_external_events,
    simulation_begins,
)
from ptaskmodel.connect.jobs import ENDED, RUNNING, SUBMITTED, Book, Conversation, Entry
from ptaskmodel.connect.messages import RegisterJob, RegisterProfile, Said, SchedulerFault, kind_of
from ptaskmodel.connect.options import ENDPOINT, ConnectionOptions, SessionOptions
from ptaskmodel.connect.transport import (
    PLACE,
    RedisStore,
    ReplayingWire,
    SocketWire,
    Talk,
    Wire,
    free_endpoint,
    recorded,
)
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.interrupts import Interrupted
from ptaskmodel.platform.platform import Platform

# Messages of the simulation to this policy, besides external events.
CALL, TURN, NO_MORE_JOBS = "call", "turn", "no more jobs"


class ExternalScheduler:
    """Asks a scheduler in a conversation; `served` runs a batch with it.

    external: what happens by itself, by date.
    """

    def __init__(
        self,
        talk: Talk,
        book: Book,
        machine: Machine,
        options: SessionOptions,
        external: list[ExternalEvent],
    ) -> None:
        self.machine = machine
        self._talk = talk
        self._book = book
        self._options = options
        self._external = external
        self._left_to_happen = len(external)
        self._left_to_submit = book.static_jobs
        self._storages = Storages(machine)
        self._orders = Orders(self, book, options, self._storages)
        redis = options.redis_server()
        self._redis = None if redis is None else RedisStore(*redis)
        self._outbox: list[tuple[float, int, int, dict[str, Any]]] = []
        self._unreported: list[Entry] = []
        # Decisions to come, with their numbers in the reply; the scheduler is busy until a date.
        self._pending: deque[tuple[int, Said]] = deque()
        self._busy_until = 0.0
        self._turn_at = -1.0
        self._coming: set[Entry] = set()  # registered, not yet in the queue
        self._current: tuple[int, Said] | None = None
        self._now = 0.0

    # --- the conversation -------------------------------------------------------------------

    def begin(
        self,
        simulation: BatchSimulation,
        execution: Execution,
        metered: MeteredExecution | None,
    ) -> None:
        """Say that the simulation begins. Raises SchedulerFault."""
        self._simulation = simulation
        self._execution = execution
        self._metered = metered
        for event in self._external:
            simulation.send(event, event.date_s)
        if not self._left_to_submit:
            simulation.send(NO_MORE_JOBS, 0.0)
        data = simulation_begins(self._options, self.machine, self._storages, self._book)
        self._ask([{"timestamp": 0.0, "type": "SIMULATION_BEGINS", "data": data}])
        self._plan_turn()

    def end(self) -> None:
        """Say that the simulation ends; nothing will happen any more. Raises SchedulerFault."""
        if self._left_to_submit or any(self._book.waiting()) or self._orders.registering:
            raise SchedulerFault(self._stuck(), now=self._now)
        running = next((e for e in self._book.entries.values() if e.state == RUNNING), None)
        if running is not None:
            what = "which the scheduler simulates, still runs; end it by CHANGE_JOB_STATE"
            if running.conversation is not None:
                what = "which runs, waits for a message; send it by TO_JOB_MSG, or kill it"
            raise SchedulerFault(
                f"no event is left, and job {shown(running.id)}, {what}",
                now=self._now,
            )
        self._now = max(self._now, self._busy_until)
        self._ask([{"timestamp": self._now, "type": "SIMULATION_ENDS", "data": {}}])
        for k, event in self._pending:
            raise SchedulerFault(
                "the simulation has ended; reply without events",
                now=self._now,
                event=k,
                kind=kind_of(event),
            )

    def _stuck(self) -> str:
        waiting = list(self._book.waiting())
        jobs = f"{len(waiting)} jobs wait, {shown(waiting[0].id)} first" if waiting else ""
        if self._orders.registering:
            finished = "submission_finished" if self._options.protocol == 2 else ""
            what = f"it has not sent {finished or 'registration_finished'}"
            return f"no event is left and {what}" + (f"; {jobs}" if jobs else "")
        return f"no event is left and {jobs}; execute or reject them"

    def _ask(self, events: list[dict[str, Any]]) -> None:
        reply = self._talk.ask(self._now, events)
        self._pending = deque(enumerate(reply.events))
        self._busy_until = reply.now

    def fault(self, what: str) -> SchedulerFault:
        """The error of a decision that cannot be carried out."""
        return self._refused(Refused(what))

    def _refused(self, error: Refused) -> SchedulerFault:
        assert self._current is not None
        k, event = self._current
        return SchedulerFault(
            str(error), now=self._now, event=k, kind=kind_of(event), field=error.field
        )

    # --- one date ---------------------------------------------------------------------------

    def decide(self, view: View) -> Iterator[Decision]:
        self._now = view.now
        yield from self._hear(view)
        while True:
            yield from self._carry_out(view)
            if self._pending or self._coming or not self._outbox or self._now < self._busy_until:
                break
            events = [entry[3] for entry in sorted(self._outbox, key=lambda entry: entry[:3])]
            self._outbox.clear()
            for each in self._unreported:
                each.reported = True
            self._unreported.clear()
            self._ask(events)
        self._plan_turn()

    def _carry_out(self, view: View) -> Iterator[Decision]:
        """The decisions that take effect now."""
        pending = self._pending
        while pending and pending[0][1].timestamp <= self._now:
            event = pending[0][1]
            if self._coming and not isinstance(event, RegisterJob | RegisterProfile):
                return  # the jobs that were registered enter the queue first
            self._current = pending.popleft()
            try:
                yield from self._orders.carry_out(event, view)
            except Refused as error:
                raise self._refused(error) from None
            except WorkloadError as error:
                raise self._refused(Refused(str(error))) from None

    def _plan_turn(self) -> None:
        """See to it that there is a turn when a decision takes effect, or to tell what happened."""
        if self._coming or not (self._pending or self._outbox):
            return
        date = self._pending[0][1].timestamp if self._pending else self._busy_until
        if date != self._turn_at:
            self._turn_at = date
            self._simulation.send(TURN, date)

    # --- what happens -----------------------------------------------------------------------

    def _hear(self, view: View) -> Iterator[Decision]:
        """Take note of what has happened at this date."""
        for attempt in view.ended:
            entry = self._book.of_job[attempt.job]
            if entry.state != ENDED:  # else the scheduler, or its conversation, ended it
                self.tell_end(entry, attempt)
        for job in view.submitted:
            self._enter(self._book.of_job[job])
        for event in view.events:
            if event.kind == MESSAGE:
                yield from self._hear_message(event.subject)
            elif event.kind == SWITCHED:
                self._orders.arrived(mask_of(event.subject.hosts))
            elif event.kind in (HOST_DOWN, HOST_UP):
                self._tell_machines(1 << event.subject, event.kind == HOST_UP)

    def _enter(self, entry: Entry) -> None:
        entry.state = SUBMITTED
        self._coming.discard(entry)
        if entry.is_static or self._options.acknowledge_dynamic_jobs:
            if self._redis is not None:
                self._redis.put(entry)
            self.tell(THEN_SUBMITTED, "JOB_SUBMITTED", job_submitted(entry, self._options))
        if entry.is_static:
            self._left_to_submit -= 1
            if not self._left_to_submit:
                self._tell_no_more_jobs()

    def _tell_no_more_jobs(self) -> None:
        if self._options.protocol > 2:
            self.tell(THEN_NOTIFY, "NOTIFY", {"type": "no_more_static_job_to_submit"})

    def _hear_message(self, message: Any) -> Iterator[Decision]:
        if message is CALL:
            self.tell(THEN_CALLS, "REQUESTED_CALL", {})
        elif message is NO_MORE_JOBS:
            self._tell_no_more_jobs()
        elif isinstance(message, Conversation):
            yield from self.advance(message)
        elif isinstance(message, ExternalEvent):
            yield from self._happen(message)

    def _happen(self, event: ExternalEvent) -> Iterator[Decision]:
        if event.kind in (UNAVAILABLE, AVAILABLE):
            over = event.kind == AVAILABLE
            yield Drain(HostSet(event.hosts), over)
            self._tell_machines(event.hosts, over)
        else:
            self.tell(THEN_NOTIFY, "NOTIFY", event.fields)
        self._left_to_happen -= 1
        if not self._left_to_happen:
            self.tell(THEN_NOTIFY, "NOTIFY", {"type": "no_more_external_event_to_occur"})

    def _tell_machines(self, hosts: int, available: bool) -> None:
        kind = f"event_{AVAILABLE if available else UNAVAILABLE}"
        self.tell(THEN_NOTIFY, "NOTIFY", {"type": kind, "resources": text(hosts)})

    # --- for the orders ---------------------------------------------------------------------

    def tell(self, rank: int, kind: str, data: dict[str, Any], order: int = -1) -> None:
        """Let the scheduler know that something happened now."""
        event = {"timestamp": self._now, "type": kind, "data": data}
        number = len(self._outbox) if order < 0 else order
        self._outbox.append((self._now, rank, number, event))

    def tell_end(self, entry: Entry, attempt: Attempt) -> None:
        """A job has ended."""
        entry.state, entry.attempt, entry.conversation = ENDED, attempt, None
        self._unreported.append(entry)
        data = job_completed(entry, attempt, self._options)
        self.tell(COMPLETED_FIRST, "JOB_COMPLETED", data, attempt.number)

    def call_at(self, date_s: float) -> None:
        self._simulation.send(CALL, date_s)

    def submit(self, entry: Entry) -> None:
        """A job that was registered is submitted now."""
        self._coming.add(entry)
        self._simulation.submit(entry.job)

    def progress(self, entry: Entry) -> Progress:
        """How far a job that runs is now."""
        if entry.conversation is not None:
            return entry.conversation.progress(self._now)
        assert entry.attempt is not None
        return self._execution.progress(entry.attempt, self._now)

    def consumed_J(self) -> float:
        """The energy that the hosts have used, J; 0 without power properties."""
        return 0.0 if self._metered is None else self._metered.hosts_J(self._now)

    def given(self, fields: dict[str, Any] | None, kind: str, name: str) -> dict[str, Any]:
        """The object of a job or profile that is registered; Refused if there is none."""
        if fields is not None:
            return fields
        if self._redis is None:
            raise Refused("is missing", f"/data/{kind}")
        return self._redis.get(kind, name)

    def converse(self, entry: Entry) -> Iterator[Decision]:
        """A job that exchanges messages has started."""
        entry.conversation = Conversation(entry, self._now)
        return self.advance(entry.conversation)

    def advance(self, conversation: Conversation) -> Iterator[Decision]:
        """What is due of a job that exchanges messages, if it runs still, and when the rest is."""
        entry = conversation.entry
        if entry.conversation is not conversation:
            return
        try:
            for message in conversation.advance(self._now):
                self.tell(THEN_MESSAGES, "FROM_JOB_MSG", {"job_id": entry.id, "msg": message})
        except WorkloadError as error:
            raise SchedulerFault(f"job {shown(entry.id)}: {error}", now=self._now) from None
        date = min(conversation.due, conversation.limit)
        if conversation.state is not None:
            assert entry.attempt is not None
            entry.code = conversation.code
            yield Kill(entry.job, state=conversation.state)
            self.tell_end(entry, entry.attempt)
        elif date != conversation.wake and date < inf:
            conversation.wake = date
            self._simulation.send(conversation, date)

    def close(self) -> None:
        self._talk.close()
        if self._redis is not None:
            self._redis.close()


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
    connection: ConnectionOptions,
) -> Iterator[Session]:
    """Yield a session with a scheduler, which is closed in any case.

    platform: of the machine. book: the registered jobs. batch, options, connection: of the
    simulation, of the session, and of how the scheduler is reached. Raises PTaskModelError.
    """
    machine = machine_with(batch, platform)
    asked = machine.num_hosts, options.forward_unknown_events
    external = [event for file in connection.events for event in read_external_events(file, *asked)]
    external.sort(key=lambda event: event.date_s)
    wire: Wire
    if connection.replay is not None:
        wire = ReplayingWire(connection.replay)
    else:
        command, timeout_s = connection.scheduler, connection.timeout_s
        is_told = command is not None and PLACE in command
        place = connection.socket or (free_endpoint() if is_told else ENDPOINT)
        wire = SocketWire(place, inf if timeout_s is None else timeout_s, command)
    with contextlib.closing(wire), recorded(wire, connection.record) as recording:
        yield Session(recording, book, machine, options, external)
