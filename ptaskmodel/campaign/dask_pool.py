"""Distribute the runs of a campaign to the workers of a Dask cluster.

Each worker gets parts of the runs in advance, about a second of work each, so that no worker waits
for the scheduler. The outcome of each run arrives at once. When a worker dies, its runs go to other
workers. A run whose process or worker dies is tried once more, on another worker if there is one;
then it has failed, and the other runs continue. When a worker dies during a part of several runs,
the run to blame is unknown. Each of these runs is then sent alone, so that the next death
identifies the run.
"""

from __future__ import annotations

import collections
import contextlib
import json
import math
import queue
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptaskmodel import __version__
from ptaskmodel.campaign.dask_cluster import FUNCTION, Cluster, Part, Said, keep_there, make_there
from ptaskmodel.campaign.plan import Input, Plan, Run, content_of, input_at
from ptaskmodel.campaign.pool import TRIES, Tell, call_of, died, failed, tell_of
from ptaskmodel.campaign.store import TOKEN, Store
from ptaskmodel.errors import CampaignError, PTaskModelError
from ptaskmodel.files import write_bytes

# Parts that each thread of a worker has: one is made, one is there.
AHEAD = 2
# How much work a part is, s: at least so much, and so much for each thread, so that the scheduler
# and this process, which hand out one part after the other, keep up with all of them.
TOGETHER_S = 1.0
THREAD_S = 0.01
MOST_TOGETHER = 500
# What is left is shared out in so many parts a thread, so that all end together.
SHARES = 3
# How many of the last runs tell how long one takes.
REMEMBERED = 20
# After so long, what a worker has not begun is given to one that has nothing to do, s.
STALE_S = 1.0
# How often is looked which workers there are, if nothing is said, s, and how long to listen.
LOOK_S = 5.0
WAIT_S = 1.0
# How long the client may take to know that the scheduler is gone, s.
NOTICE_S = 3.0
# How long the first worker may take to join, or another when none is left, s.
JOIN_S = 300.0
# An input that a run lacks this often is not kept there.
MOST_SENT = 20


@dataclass(slots=True, eq=False)
class _Flight:
    """A run handed out: how often it was tried and lacked an input, where it died, who has it.

    alone: to be handed out in a part of its own, and never taken back again, as a worker may have
    died of it that was not charged to it.
    """

    run: Run
    tries: int = 1
    sent: int = 0
    alone: bool = False
    without: frozenset[str] = frozenset()
    share: str | None = None


@dataclass(slots=True, eq=False)
class _Share:
    """What a worker has: runs not heard of yet, in the order in which they are made.

    single: it was handed out with one run, so that this run alone can have taken its worker down.
    begun: heard before any of its runs is made, and before its worker's death is.
    """

    worker: str
    flights: dict[str, _Flight]
    single: bool
    since: float
    future: Any
    begun: bool = False
    lacking: list[_Flight] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)


class ClusterPool:
    """Makes runs of a plan on a cluster."""

    def __init__(self, plan: Plan, store: Store, cluster: Cluster) -> None:
        self._plan = plan
        self._store = store
        self._cluster = cluster
        self._shared = secrets.token_hex(16)
        self._inputs: dict[str, Input] = {}
        self._sent: dict[tuple[str, str], Any] = {}
        self._waiting: collections.deque[Run] = collections.deque()
        self._flights: dict[str, _Flight] = {}
        self._shares: dict[str, _Share] = {}
        self._threads: dict[str, int] = {}
        self._loads: collections.Counter[str] = collections.Counter()
        self._run_s: float | None = None
        self._handed = 0
        self._heard: queue.SimpleQueue[tuple[Callable[[Any], None], Any]] = queue.SimpleQueue()
        self._client: Any = None

    def make(self, runs: Iterable[Run], tell: Tell) -> None:
        """Make runs; each is saved by the worker that made it, or here if that has no access.

        Raises CampaignError if there is no scheduler, no worker, or the scheduler goes away.
        """
        write_bytes(self._store.directory / TOKEN, self._shared.encode(), error=CampaignError)
        self._waiting.extend(runs)
        self._tell = tell
        with self._cluster.client() as self._client:
            try:
                self._make()
            except PTaskModelError:
                raise
            except Exception as fault:
                if not self._is_gone():
                    raise
                raise CampaignError(self._gone()) from fault
            finally:
                if self._client.status == "running":
                    for topic in (self._client.id, "all"):
                        self._client.unsubscribe_topic(topic)

    def _make(self) -> None:
        # Workers' words come under our own name, which the scheduler forgets when we are gone.
        heard = self._heard
        self._client.subscribe_topic(
            self._client.id, lambda event: heard.put((self._hear, event[1]))
        )
        self._client.subscribe_topic("all", lambda event: heard.put((self._see, event[1])))
        seen = joined = time.monotonic()
        self._look()
        while self._waiting or self._flights:
            now = time.monotonic()
            if now - seen > LOOK_S:
                seen = now
                self._look()
            if self._threads:
                joined = now
            elif now - joined > JOIN_S:
                raise CampaignError(
                    f"{self._cluster.address}: no worker joined within {JOIN_S:g} s; start workers"
                )
            self._hand_out()
            for hear, what in self._news():
                hear(what)
            if self._client.status != "running":
                raise CampaignError(self._gone())

    def _news(self) -> Iterator[tuple[Callable[[Any], None], Any]]:
        """All that was heard, or will be soon."""
        with contextlib.suppress(queue.Empty):
            yield self._heard.get(timeout=WAIT_S)
            while True:
                yield self._heard.get_nowait()

    # Who has what

    def _hand_out(self) -> None:
        """Give every thread parts ahead, while there are runs."""
        self._even_out()
        while self._waiting and (worker := self._freest()) is not None:
            self._give(worker, self._next_part())

    def _next_part(self) -> list[_Flight]:
        """The runs that wait longest, as many as make a part."""
        flights: list[_Flight] = []
        size = self._size()
        while self._waiting and len(flights) < size:
            run = self._waiting[0]
            flight = self._flights.setdefault(run.id, _Flight(run))
            if flight.alone and flights:
                break
            flights.append(flight)
            self._waiting.popleft()
            if flight.alone:
                break
        return flights

    def _even_out(self) -> None:
        """Take back what waits behind something long, where nothing else is left for others."""
        idle = sum(max(0, count - self._loads[who]) for who, count in self._threads.items())
        if self._waiting or not idle:
            return
        behind = []
        so_far: collections.Counter[str] = collections.Counter()
        for share in self._shares.values():
            so_far[share.worker] += 1
            if (
                not share.begun
                and so_far[share.worker] > self._threads.get(share.worker, 0)
                and time.monotonic() - share.since > STALE_S
                and not any(flight.alone or flight.sent for flight in share.flights.values())
            ):
                behind.append(share)
        for share in behind[:idle]:
            self._take_back(share, alone=True)  # it may have begun just now

    def _freest(self) -> str | None:
        """The worker that has least to do, if any has room for another part."""
        free = [who for who, count in self._threads.items() if self._loads[who] < AHEAD * count]
        return self._least(free) if free else None

    def _least(self, workers: Iterable[str]) -> str:
        return min(workers, key=lambda who: self._loads[who] / self._threads[who])

    def _together_s(self) -> float:
        return max(TOGETHER_S, THREAD_S * sum(self._threads.values()))

    def _size(self) -> int:
        """How many runs make a part."""
        if self._run_s is None:
            return 1
        share = math.ceil(len(self._waiting) / (SHARES * sum(self._threads.values())))
        return max(1, min(int(self._together_s() / self._run_s), share, MOST_TOGETHER))

    def _give(self, worker: str, flights: list[_Flight], after: Iterable[Any] = ()) -> None:
        """Hand runs to a worker, after some futures."""
        self._handed += 1
        key = f"run-{self._shared[:12]}-{self._handed}"
        future = self._client.submit(
            make_there, self._part(key, [flight.run for flight in flights]), *after,
            key=key, pure=False, workers=[worker], allow_other_workers=False,
        )  # fmt: skip
        for flight in flights:
            flight.share = key
        named = {flight.run.id: flight for flight in flights}
        self._shares[key] = _Share(worker, named, len(flights) == 1, time.monotonic(), future)
        self._loads[worker] += 1
        future.add_done_callback(lambda _: self._heard.put((self._end, key)))

    def _drop(self, share: _Share) -> None:
        """A part is no longer made; its runs are nowhere."""
        del self._shares[share.future.key]
        self._loads[share.worker] -= 1
        for flight in share.flights.values():
            flight.share = None

    def _again(self, flight: _Flight) -> None:
        """Hand out a run alone once more, to another worker if there is one."""
        others = [who for who in self._threads if who not in flight.without] or list(self._threads)
        if others:
            self._give(self._least(others), [flight])
        else:
            self._waiting.appendleft(flight.run)

    # What is heard

    def _look(self) -> None:
        """See which workers there are.

        Who is gone is said to ourselves, so that it is heard after all that it said before.
        """
        there = dict(self._client.nthreads())
        for worker in self._threads.keys() - there:
            self._client.log_event(self._client.id, {"gone": worker})
        self._threads = there

    def _see(self, event: Any) -> None:
        """Something happened to a worker."""
        action = event.get("action") if isinstance(event, dict) else None
        if action == "add-worker":
            self._look()
        elif action == "remove-worker":
            self._lose(event["worker"], expected=event.get("expected", False))

    def _lose(self, worker: str, *, expected: bool) -> None:
        """A worker is gone, which is the fault of what it was making, unless that was expected."""
        self._threads.pop(worker, None)
        for share in [share for share in self._shares.values() if share.worker == worker]:
            suspected = share.begun and not expected
            flights = list(share.flights.values())
            if suspected and share.single and flights and not share.lacking:
                self._drop(share)
                share.future.cancel()
                self._died(flights[0], worker, f"its Dask workers died, {worker} last", "")
            else:
                self._take_back(share, alone=suspected)

    def _take_back(self, share: _Share, *, alone: bool) -> None:
        """Give the runs of a worker to others; alone: a worker may die of it, or has."""
        self._drop(share)
        share.future.cancel()
        for flight in share.flights.values():
            flight.alone = flight.alone or alone
        self._waiting.extendleft(flight.run for flight in reversed(share.flights.values()))

    def _hear(self, said: Any) -> None:
        """Take what a worker says of a part, or of a run."""
        if not isinstance(said, dict):
            return
        if "gone" in said:
            self._lose(said["gone"], expected=False)
        if "part" not in said:
            return  # the scheduler's own words of us
        share = self._shares.get(said["part"])
        if "began" in said:
            if share is not None:
                share.begun = True
            return
        flight = self._flights.get(said["run"])
        if flight is None:
            return  # made elsewhere after it was taken back here
        if "record" in said:
            self._keep(flight, said)
        elif share is not None and flight.share == said["part"]:
            if "lacks" in said:
                self._send(flight, share, said["lacks"])
            else:
                del share.flights[flight.run.id]
                self._died(flight, share.worker, died(said["died"]), said["log"])

    def _end(self, key: str) -> None:
        """A part has ended: what was not heard of is left, or something is wrong there."""
        share = self._shares.get(key)
        if share is None:
            return
        status = share.future.status
        if status == "error":
            self._fault(share)
        elif status != "finished":
            if self._is_gone():
                raise CampaignError(self._gone())
            self._take_back(share, alone=True)  # its worker died just after it
        else:
            self._drop(share)
            lacking = [flight for flight in share.lacking if flight.run.id in share.flights]
            if lacking and share.worker in self._threads:
                for flight in lacking:
                    del share.flights[flight.run.id]
                self._give(share.worker, lacking, share.after)
            self._waiting.extendleft(flight.run for flight in reversed(share.flights.values()))

    def _fault(self, share: _Share) -> None:
        """Dask says why a part cannot be made."""
        from distributed.scheduler import KilledWorker

        error = share.future.exception()
        if isinstance(error, KilledWorker):
            self._lose(share.worker, expected=False)
        elif isinstance(error, PTaskModelError):
            raise error
        else:
            raise CampaignError(
                f"{self._cluster.address}: a worker cannot execute runs: "
                f"{type(error).__name__}: {error}"
            )

    # What becomes of a run

    def _keep(self, flight: _Flight, said: Said) -> None:
        record = json.loads(said["record"])
        took_s = record["wall_s"]
        if self._run_s is None:
            self._run_s = max(took_s, 1e-6)
        self._run_s += (took_s - self._run_s) / REMEMBERED
        if not said["kept"]:
            self._store.write(flight.run.id, record)
        self._done(flight, record)

    def _died(self, flight: _Flight, worker: str, error: str, log: str) -> None:
        """A run took its process or worker with it; it is in no share."""
        flight.without |= {worker}
        flight.alone = True
        if flight.tries < TRIES:
            flight.tries += 1
            self._again(flight)
            return
        record = failed(self._plan.kind.name, call_of(flight.run), error, 0.0, log)
        self._store.write(flight.run.id, record)
        self._done(flight, record)

    def _done(self, flight: _Flight, record: dict[str, Any]) -> None:
        """Wherever a run is by now: it is made."""
        del self._flights[flight.run.id]
        if flight.share is not None:
            self._shares[flight.share].flights.pop(flight.run.id, None)
        elif flight.run in self._waiting:  # taken back too late
            self._waiting.remove(flight.run)
        tell_of(self._tell, flight.run, record)

    def _send(self, flight: _Flight, share: _Share, lacks: list[str]) -> None:
        """Send inputs to the worker that lacks them, unless they are on their way."""
        flight.sent += 1
        if flight.sent > MOST_SENT:
            raise CampaignError(
                f"{share.worker}: cannot store input files; check its free disk space"
            )
        share.lacking.append(flight)
        for name in lacks:
            one = self._inputs_of(flight.run)[name]
            found = self._sent.get((share.worker, one.digest))
            if found is None or (found.done() and flight.sent > 1):
                found = self._client.submit(
                    keep_there, one, content_of(Path(one.path)), workers=[share.worker], pure=False
                )
                self._sent[share.worker, one.digest] = found
            if found not in share.after:
                share.after.append(found)

    # What is handed out

    def _part(self, key: str, runs: list[Run]) -> Part:
        plan = self._plan
        return Part(
            key, __version__, plan.kind.name, tuple(map(call_of, runs)),
            tuple(map(self._inputs_of, runs)), str(self._store.directory.absolute()), self._shared,
            plan.timeout_s, plan.memory_MB, self._client.id, 2 * self._together_s(),
        )  # fmt: skip

    def _inputs_of(self, run: Run) -> dict[str, Input]:
        """The files that a run reads, by parameter."""
        paths = {
            name: path
            for name, value in run.parameters.items()
            if (path := self._plan.kind.file_in(name, value)) is not None
        }
        source, mark, _ = self._plan.kind.name.rpartition(":")
        if mark:
            paths[FUNCTION] = str(self._plan.folder / source)
        for name, path in paths.items():
            if path not in self._inputs:
                self._inputs[path] = input_at(Path(path), name)
        return {name: self._inputs[path] for name, path in paths.items()}

    def _is_gone(self) -> bool:
        """Whether the scheduler is; what is asked of it may fail before the client knows."""
        deadline = time.monotonic() + NOTICE_S
        while self._client.status == "running" and time.monotonic() < deadline:
            time.sleep(WAIT_S)
        return bool(self._client.status != "running")

    def _gone(self) -> str:
        return (
            f"{self._cluster.address}: the scheduler is gone; start it and its workers again, then "
            f"ptaskmodel campaign resume {self._store.directory} --on ADDRESS"
        )
