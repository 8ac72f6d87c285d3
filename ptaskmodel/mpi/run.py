"""Replay applications on the hosts of a platform, with the compiled loop.

`replay` runs one, and `Replay` runs it step by step. The ``hosts_*`` functions place ranks on
hosts. `Several` reports progress over several replays of one trace. `prepare_kernels` calls the
kernels of replays for the build.

`Activities` numbers and names the computations and messages of a replay for recorders. The event
stream reuses the numbers of ranks and message slots. Here each computation and each
message gets a unique number, and an id: ``rank 3 #7`` is the eighth computation of rank 3, ``3>5
#12`` is message number 12 in order of their beginnings. ``3>5`` names a pair of ranks, by which
messages are also counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import (
    CAPACITY,
    ENDED,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    OK,
    PAUSED,
    RATE,
    STARTED,
)
from ptaskmodel.engine.stream import Listener
from ptaskmodel.errors import PTaskModelError, SimulationError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.mpi.applications import Applications
from ptaskmodel.mpi.loop import look_ahead, move_routes, run
from ptaskmodel.mpi.protocol import protocol_of
from ptaskmodel.mpi.state import SENT, TOLD_FULL, Replays
from ptaskmodel.mpi.traffic import Tally
from ptaskmodel.platform import Platform
from ptaskmodel.platform.routing import Routing
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.formats.host_names import expand
from ptaskmodel.workload.formats.ti_trace import trace_in
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.traces import Trace
from ptaskmodel.workload.works import ParallelWork

# Between two calls of `Progress`: events at most, and about how many actions, so that little of a
# large trace is in memory at a time.
PAUSE_EVENTS = 1 << 18
PAUSE_ACTIONS = 1 << 17

# Takes what a replay tells, a part at a time: spans and flights (see `state`).
OnEvents = Callable[[np.ndarray, np.ndarray], None]
# Told now and then of the date, the number of actions that are over, and their number in all.
Progress = Callable[[float, int, int], None]


def hosts_of_ranks(
    platform: Platform | None,
    ranks: int,
    *,
    hosts: list[str] | None = None,
    per_host: int = 1,
) -> list[str]:
    """The host of each rank: ``per_host`` ranks on each of the hosts, over again if they run out.

    hosts: their names in order; None: all of the platform in the order of their names compared as
    text, as ``smpirun`` takes them (n10 comes before n2). platform: None: whatever names are given.
    """
    if hosts is None:
        if platform is None:
            raise SimulationError("ranks need hosts; name them, or give a platform")
        hosts = sorted(host.name for host in platform.hosts)
    elif platform is not None:
        for name in hosts:
            platform.host(name)
    if not hosts:
        raise SimulationError("the platform has no hosts for the ranks; add hosts")
    return [hosts[rank // per_host % len(hosts)] for rank in range(ranks)]


def hosts_named(text: str, option: str = "--hosts") -> list[str]:
    """The hosts of a text such as ``n[0-15]`` or ``a,b,c``, given by an option.

    Raises SimulationError.
    """
    hosts: list[str] = []
    for name in re.split(r"[\s,]+(?![^\[]*\])", text.strip()):
        try:
            hosts += expand(name)
        except ValueError as fault:
            raise SimulationError(f"{option}: {shown(name)} {fault}") from None
    return hosts


@reader(SimulationError)
def hosts_in_file(path: AnyPath, account: Account, platform: Platform | None = None) -> list[str]:
    """Return the hosts that the hostfile at `path` names, one entry for each slot.

    A line is ``name``, ``name:N`` (``smpirun``) or ``name slots=N`` (``mpirun``; its
    ``max_slots=N`` is ignored); # starts a comment. platform: the hosts must belong to it; None:
    any name. account: of the file.

    Raises SimulationError with every line that cannot be read.
    """
    hosts: list[str] = []
    for number, line in enumerate(read_text(path, error=SimulationError).splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        with account.problems(number):
            hosts += _slots(words, platform)
    account.check()
    if not hosts:
        raise SimulationError(f"{account.file}: names no hosts; give one per line")
    return hosts


def _slots(words: Sequence[str], platform: Platform | None) -> list[str]:
    """The host of a line, once for each slot."""
    name, colon, count = words[0].partition(":")
    counts = [count] if colon else []
    for word in words[1:]:
        key, _, count = word.partition("=")
        if key not in ("slots", "max_slots", "max-slots"):
            raise SimulationError(f"{shown(word)} is not slots=N; write NAME slots=N")
        counts += [count] if key == "slots" else []
    ranks = [_ranks_of(count) for count in counts]
    if platform is not None:
        try:
            platform.host(name)
        except PTaskModelError as fault:
            raise SimulationError(str(fault)) from None
    return [name] * (ranks[-1] if ranks else 1)


def _ranks_of(count: str) -> int:
    if count.isdecimal() and 0 < int(count) <= 10**6:
        return int(count)
    raise SimulationError(f"{shown(count)} is not a number of ranks above 0")


@dataclass(frozen=True, slots=True, eq=False)
class ReplayResult:
    """When each rank ended, and what it did until then.

    hosts: of the ranks. end_s: shape (ranks,). spent_s: seconds in actions of each kind (see
    `ti_actions.ACTIONS`), shape (ranks, kinds). makespan_s: the last end. unmatched: messages that
    were sent and never received. model, solver: what was simulated with. first_unmatched: sender,
    receiver and tag of the first of these (in this order), None if there are none.
    """

    hosts: tuple[str, ...]
    end_s: np.ndarray
    spent_s: np.ndarray
    makespan_s: float
    messages: int
    actions: int
    events: int
    unmatched: int
    model: str
    solver: str
    first_unmatched: tuple[int, int, int] | None = None


def replay(
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str] | None = None,
    *,
    model: str | None = None,
    solver: str | None = None,
    collectives: Mapping[str, str] | None = None,
    routing: Routing | None = None,
    listener: OnEvents | None = None,
    progress: Progress | None = None,
) -> ReplayResult:
    """Replay the ``trace`` of an application on ``platform``, rank k on ``hosts[k]``, from date 0.

    hosts: None for those that ``smpirun`` would take. model: a network model (None: SMPI's, or
    L07 if the platform asks for that). solver: None for max-min fairness, with L07 for SimGrid's
    fair bottleneck. collectives: names of algorithms by names of collectives (see
    `collectives.names.ALGORITHMS`; those left out: as the platform asks, else SMPI's default).
    routing: as of `Replay`.
    listener: takes spans and flights. progress: called with the date (s), the actions that are over
    and all actions.

    Raises SimulationError where ranks wait for each other for ever or a host is off, WorkloadError
    for a wait that makes no sense, RouteError where a message has no way to go.
    """
    if hosts is None:
        hosts = hosts_of_ranks(platform, trace.ranks)
    made = Replay(
        platform, trace, hosts, model=model, solver=solver, collectives=collectives, routing=routing
    )
    return made.run(listener, progress)


class Replay:
    """One MPI application that replays a `trace`, rank k on the host ``hosts[k]`` of a `platform`.

    Model, solver: names of the network model and the sharing rule; None: SMPI's (or those that the
    platform asks for). collectives: algorithm by collective, by SimGrid's names. routing: which
    way messages go from a host to another (a connection, named ``host>host``, of one flow); None:
    the route of the platform.

    Raises SimulationError if the trace does not suit the hosts, or the model the routing.
    """

    def __init__(
        self,
        platform: Platform,
        trace: Trace,
        hosts: Sequence[str],
        *,
        model: str | None = None,
        solver: str | None = None,
        collectives: Mapping[str, str] | None = None,
        routing: Routing | None = None,
    ) -> None:
        if len(hosts) != trace.ranks:
            raise SimulationError(
                f"{trace.origin}: has {trace.ranks} ranks for {len(hosts)} hosts; give one for each"
            )
        self.trace = trace
        self.protocol = protocol = protocol_of(model, platform.config)
        by_default = "fairbottleneck" if protocol.model.parallel else "maxmin"
        if routing is not None and protocol.model.parallel:
            raise SimulationError(
                f"network model {protocol.model.name}: its messages take the platform's routes; "
                "leave out --routing, or give SMPI, CM02 or LV08"
            )
        self.core = Core(platform, protocol.model, solver or by_default, routing=routing)
        self.core.let_gather()
        self.applications = Applications(self.core, protocol)
        self.applications.choose(trace, collectives)
        self.applications.begin(0, trace, [platform.host(name).index for name in hosts])

    @property
    def state(self) -> Replays:
        """The arrays of the ranks."""
        return self.applications.state

    def run(
        self, listener: OnEvents | None = None, progress: Progress | None = None
    ) -> ReplayResult:
        """Replay to the end and return the times of the ranks.

        listener: receives the event stream. progress: called with the simulated time, the actions
        done and the total.
        """
        if listener is not None:
            self.applications.tell()
        core = self.core
        core.expect()
        total = len(self.trace)
        status, events = -2, 1 << 8
        while status != OK:
            actions = int(self.state.counts["actions"][0])
            options = core.options._replace(pause_at=core.events + events)
            with as_compiled():
                status = int(run(core.state, self.state, options))
            core.hand_over()
            self.trace.let_go()
            if status == PAUSED:
                acted = max(int(self.state.counts["actions"][0]) - actions, 1)
                events = min(events * PAUSE_ACTIONS // acted + 1, PAUSE_EVENTS)
            if listener is not None and status in (OK, TOLD_FULL):
                self._hand_over(listener)
            if progress is not None:
                progress(core.now, int(self.state.counts["actions"][0]), total)
            if status in (OK, PAUSED, TOLD_FULL) or core.serve(status):
                continue
            if not self.applications.serve(status):
                raise AssertionError(status)
        x = self.state
        sent = x.messages[: int(x.counts["n_messages"][0])]
        sent = sent[sent["state"] == SENT]
        return ReplayResult(
            tuple(core.platform.hosts[k].name for k in x.ranks["host"].tolist()),
            x.ranks["ended"].copy(),
            x.spent,
            float(x.apps["finished"][0]),
            int(x.counts["messages"][0]),
            int(x.counts["actions"][0]),
            core.events,
            len(sent),
            self.protocol.model.name,
            core.rule,
            min(sent[["source", "target", "tag"]].tolist(), default=None),
        )

    def name_activities(self) -> None:
        """From now on, the event stream says which messages begin, and what ends."""
        self.applications.name_activities()

    def _hand_over(self, listener: OnEvents) -> None:
        counts, x = self.state.counts, self.state
        spans, flights = int(counts["n_spans"][0]), int(counts["n_flights"][0])
        counts["n_spans"] = counts["n_flights"] = 0
        listener(np.array(x.spans[:spans]), np.array(x.flights[:flights]))


class Several:
    """Report the progress of so many `replays` of one `trace` to `progress`, as of one run."""

    def __init__(self, replays: int, trace: Trace, progress: Progress | None) -> None:
        self._each, self._total, self._progress = len(trace), replays * len(trace), progress

    def replay(self, number: int) -> Progress | None:
        """What to tell of the replay with that number, from 0; None: nobody asks."""
        progress = self._progress
        if progress is None:
            return None

        def tell(now_s: float, actions: int, _: int) -> None:
            progress(now_s, number * self._each + actions, self._total)

        return tell


# Without collective operations: what they are made of is compiled elsewhere meanwhile.
TRACE = b"0 init\n0 compute 1\n0 send 1 0 1e6\n1 recv 0 0 1e6\n"


def prepare_kernels() -> None:
    """All of them."""
    prepare_loop()
    prepare_beside()


def prepare_loop() -> None:
    """The loop of a replay, but for what ranks do."""
    made = _replay()
    run.prepare(made.core.state, made.state, made.core.options)


def prepare_beside() -> None:
    """What is done beside the loop: hosts noted ahead, messages spread, traces added up."""
    made = _replay()
    look_ahead.prepare(made.core.state, made.state)
    move_routes.prepare(made.state, made.state.routes)
    made.applications.make_room_for_messages()
    trace = made.trace
    Tally(trace).amounts(trace.first[:-1], trace.first[1:])


def _replay() -> Replay:
    build = Platform.build("world")
    build.cluster("c", 2, prefix="c", speed=1e9, bandwidth=1e9, latency=1e-6)
    return Replay(build.finish(), trace_in(TRACE, "a small trace"), ["c0", "c1"])


# What recorders ask of the task of an activity is nothing that a replay knows.
ANY_TASK = Task(("host",), ParallelWork.of(1), "activity")


class Activity(NamedTuple):
    """A computation or a message, with what recorders ask of a task."""

    id: str
    start_s: float
    end_s: float | None
    state: str
    task: Task


class Activities:
    """Numbers what a replay does from now on, for one listener. No result changes."""

    def __init__(self, made: Replay) -> None:
        self.core: Core = made.core
        self.platform: Platform = made.core.platform
        self._made = made
        self._ids: list[str] = []
        self._starts: list[float] = []
        self._ends: list[float | None] = []
        self._messages = 0
        # The pair of ranks that each activity is for (of computations: any), and their names.
        self._pair = np.zeros(1024, dtype=np.int64)
        self._pairs: dict[str, int] = {}
        # By owner in the stream: the number of what it does now, -1: nothing; of ranks also how
        # many computations it has begun.
        self._now = np.full(0, -1)
        self._computations = [0] * made.trace.ranks

    @property
    def now(self) -> float:
        return self.core.now

    @property
    def applications(self) -> None:
        """Nothing that is handed on is told of ranks: each activity has a number."""

    def listen(self, listener: Listener, ranks: bool = False) -> None:
        self._listener = listener
        self._made.name_activities()
        self.core.listen(self, ranks=True)

    def tasks(self) -> Iterator[Activity]:
        """All that has begun so far, by number."""
        for name, start, end in zip(self._ids, self._starts, self._ends, strict=True):
            yield Activity(name, start, end, "completed", ANY_TASK)

    def users_of(self, tasks: np.ndarray) -> np.ndarray:
        """Return the pair of ranks (its number) of each message of `tasks` (numbers, shape n)."""
        return self._pair[tasks]

    def user_names(self) -> list[str]:
        """Pairs of ranks that have sent, by number."""
        return list(self._pairs)

    def forget(self, patterns: list[int]) -> None:
        self._listener.forget(patterns)

    def take(self, events: np.ndarray) -> None:
        """Pass on `events`, a chunk of the stream, numbered by message and computation."""
        own = np.isin(events["kind"], (STARTED, RATE, ENDED))
        kept = np.ones(len(events), dtype=np.bool_)
        numbered = events.copy()
        # The wait before the bytes of a message is its latency, whatever its factor.
        waits = (events["kind"] == RATE) & (events["limit"] == LIMIT_DELAY)
        numbered["limit"][waits] = LIMIT_LATENCY
        rows = np.flatnonzero(own)
        # Owners of what a replay does are below 0.
        owners = ~events["subject"][rows]
        most = int(owners.max(initial=-1)) + 1
        if most > len(self._now):
            room = np.full(max(most, 2 * len(self._now)) - len(self._now), -1)
            self._now = np.concatenate([self._now, room])
        now = self._now
        columns = [events[name][rows].tolist() for name in ("kind", "value", "limit")]
        dates = events["date"][rows].tolist()
        for row, date, owner, kind, value, limit in zip(
            rows.tolist(), dates, owners.tolist(), *columns, strict=True
        ):
            number = int(now[owner])
            if number < 0 and kind == RATE and value == 0.0 and limit == LIMIT_NOTHING:
                kept[row] = False  # it stops, and has ended already
                continue
            if kind == STARTED or number < 0:
                number = now[owner] = len(self._ids)
                self._ids.append(self._name(owner, value))
                self._starts.append(date)
                self._ends.append(None)
            if kind == ENDED:
                self._ends[number] = date
                now[owner] = -1
            numbered["subject"][row] = number
        self._listener.take(numbered[kept & (own | (events["kind"] == CAPACITY))])

    def _name(self, owner: int, pair: float) -> str:
        rank, is_message = divmod(owner, 2)
        if is_message:
            source, target = divmod(int(pair), len(self._made.state.ranks))
            self._messages += 1
            between = f"{source}>{target}"
            self._note(self._pairs.setdefault(between, len(self._pairs)))
            return f"{between} #{self._messages - 1}"
        self._computations[rank] += 1
        return f"rank {rank} #{self._computations[rank] - 1}"

    def _note(self, pair: int) -> None:
        """The pair that the activity which begins now is for."""
        number = len(self._ids)
        if number >= len(self._pair):
            self._pair = np.concatenate([self._pair, np.zeros_like(self._pair)])
        self._pair[number] = pair
