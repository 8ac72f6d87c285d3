"""Decisions that a policy may return, events that happen to a batch, and errors of policies.

Decisions concern jobs, hosts, and when to call the policy again. Events are sorted by time,
priority and sequence number. An error of a policy is one line: what it did, where and when.
"""

from __future__ import annotations

import heapq
import sys
import traceback
from collections.abc import Iterable, Sequence
from math import inf
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from ptaskmodel.batch.jobs.execution import KILLED
from ptaskmodel.batch.machine.host_sets import HostSet
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import Work

ON, OFF = "on", "off"
ENDED = "ended"
HOST_DOWN = "host down"
HOST_UP = "host up"
LINK_DOWN = "link down"
LINK_UP = "link up"
MAINTENANCE_BEGINS = "maintenance begins"
MAINTENANCE_ENDS = "maintenance ends"
SUBMITTED = "submitted"
MESSAGE = "message"
WAKE = "wake"
SWITCHED = "switched"
# What happens to the machine.
MACHINE = (HOST_DOWN, HOST_UP, LINK_DOWN, LINK_UP, MAINTENANCE_BEGINS, MAINTENANCE_ENDS)
# Of events of one date: jobs end first; hosts change by their traces, then by hand, then comes the
# rest; the policy is asked when all is told.
BY_HAND, LATER = 1, 2
# A policy goes round in circles that is asked so often at one date.
MAX_DECISIONS_AT_A_DATE = 100_000


class Start(NamedTuple):
    """Start a waiting job: on ``hosts`` if given, else where the allocation says in ``within``.

    hosts: a `HostSet`, host numbers or a mask. cores, with hosts: how many cores of each host,
    hosts ascending (for a job that asks for cores; without it, as many of each as it asks for).
    work, with hosts: what runs there instead of the work of the job, on any number of hosts then.
    """

    job: Job
    hosts: HostSet | int | Iterable[int] | None = None
    within: HostSet | int | None = None
    cores: Sequence[int] | None = None
    work: Work | None = None


class Reject(NamedTuple):
    """Never run a waiting job."""

    job: Job
    reason: str = ""


class Kill(NamedTuple):
    """End a running or suspended job now, for good, in ``state``; the policy is asked again."""

    job: Job
    reason: str = ""
    state: str = KILLED


class Requeue(NamedTuple):
    """Stop a running or suspended job; it waits again, at its place, to begin anew.

    checkpoint: let a running job write a checkpoint first, which takes a while (see `checkpoints`);
    it keeps its hosts meanwhile.
    """

    job: Job
    reason: str = ""
    checkpoint: bool = False


class Suspend(NamedTuple):
    """Freeze a running job: others may use its hosts, but it keeps its memory there.

    Its walltime does not run meanwhile. Named resources and licences stay its own too.
    """

    job: Job


class Resume(NamedTuple):
    """Let a suspended job go on, on the hosts that it had; they must be free."""

    job: Job


class Wake(NamedTuple):
    """Ask the policy again at this date, s, whatever happens until then."""

    date_s: float


class SetPower(NamedTuple):
    """Turn hosts "on" or "off", or give them a performance state (its number).

    A host on which a job runs cannot be turned off.
    """

    hosts: HostSet | int | Iterable[int]
    state: str | int


class Drain(NamedTuple):
    """Start no job on these hosts any more; running jobs continue. ``over``: allow starts again."""

    hosts: HostSet | int | Iterable[int]
    over: bool = False


Decision = Job | Start | Reject | Kill | Requeue | Suspend | Resume | Wake | SetPower | Drain


class Event(NamedTuple):
    """An event that the policy receives: when, what (the names above), and its subject.

    subject: the `Attempt` that ended, the number of the host, the name of the link, the `Window` of
    maintenance, the `Job` submitted (or requeued), the message, the `Switch` of hosts that have
    reached the requested pstate, or None.
    """

    date_s: float
    kind: str
    subject: Any = None


class Agenda:
    """Events to come, but for ends and submissions, which have queues of their own."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, Event]] = []
        self._number = 0
        self.urgent = 0  # events other than wakes
        self.next_date = inf  # of the first event, s

    def add(self, event: Event, priority: int) -> None:
        """Plan an event; priority: of those at one time, the smallest comes first."""
        self._number += 1
        self.urgent += event.kind != WAKE
        heapq.heappush(self._heap, (event.date_s, priority, self._number, event))
        self.next_date = self._heap[0][0]

    def take(self, now: float) -> list[Event]:
        """The events of dates up to ``now``, in order; they are gone then."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            event = heapq.heappop(self._heap)[3]
            self.urgent -= event.kind != WAKE
            found.append(event)
        self.next_date = self._heap[0][0] if self._heap else inf
        return found


PACKAGE = str(Path(__file__).resolve().parents[1])


class PolicyFault(SimulationError):
    """A policy broke a rule or down; the message says how, where and when."""


def policy_name(policy: object) -> str:
    return type(policy).__name__


def raised(policy: object, error: BaseException, now: float, job: Job | None) -> PolicyFault | None:
    """Return the fault of an exception; None if it does not come from a user's policy.

    error: what the policy raised, at the time `now` (s). job: what the policy was about, if it is
    known: else it is looked for where it raised.
    """
    place = _users_frame(policy, error.__traceback__)
    if place is None:
        return None
    frame, line = place
    name = f"{policy_name(policy)} raised {type(error).__name__}"
    about = job or _job_of(frame)
    text = f": {error}{_meant(error)}" if str(error) else ""
    where = f"{Path(frame.f_code.co_filename).name}:{line}"
    what = f"job '{about.id}', " if about is not None else ""
    return PolicyFault(f"policy {name} at {where}{text} ({what}{now:g} s); correct the policy")


def _meant(error: BaseException) -> str:
    """Of an attribute that an object of ours has not, the nearest that it has."""
    if not isinstance(error, AttributeError) or error.name is None:
        return ""
    if not type(error.obj).__module__.startswith("ptaskmodel."):
        return ""
    public = [name for name in dir(error.obj) if not name.startswith("_")]
    import difflib

    near = difflib.get_close_matches(error.name, public, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def misbehaved(policy: object, what: str, now: float, answer: Any = None) -> PolicyFault:
    """Return the fault of a policy that did, at the time `now` (s), something that it may not.

    answer: what it yields from.

    A policy that speaks for somebody else says it itself, with a method ``fault(what)``.
    """
    own = getattr(policy, "fault", None)
    if own is not None:
        fault: PolicyFault = own(what)
        return fault
    name, where = policy_name(policy), _line_of(policy, answer)
    return PolicyFault(f"policy {name} {what} (at {now:g} s{where}); correct the policy")


def _line_of(policy: object, answer: Any) -> str:
    """Where a user's policy is at, as ", file:line"."""
    frame = getattr(answer, "gi_frame", None)
    if frame is not None:
        code, line = frame.f_code, frame.f_lineno
    else:
        code = getattr(getattr(type(policy), "decide", None), "__code__", None)
        line = getattr(code, "co_firstlineno", 0)
    if code is None or code.co_filename.startswith(PACKAGE):
        return ""
    return f", {Path(code.co_filename).name}:{line}"


def _users_frame(policy: object, trace: TracebackType | None) -> tuple[FrameType, int] | None:
    """The innermost frame of the policy's file (else of any file not ours) and its line.

    None for a policy of this package: what it raises is a bug of ours.
    """
    module = type(policy).__module__
    if module.startswith("ptaskmodel."):
        return None
    file = getattr(sys.modules.get(module), "__file__", None)
    frames = list(traceback.walk_tb(trace))
    own = [(frame, line) for frame, line in frames if frame.f_code.co_filename == file]
    others = [
        (frame, line) for frame, line in frames if not frame.f_code.co_filename.startswith(PACKAGE)
    ]
    found = own or others
    return found[-1] if found else None


def _job_of(frame: FrameType) -> Job | None:
    """The job that a frame is at: a local variable that holds one."""
    held = [value for value in frame.f_locals.values() if isinstance(value, Job)]
    return held[-1] if held else None
