"""Metric-aware scheduling: priorities that balance waiting and length, windows, adaptive tuning.

In a window, the policy tries all orders of the first few jobs and takes the best.
Source: W. Tang, D. Ren, Z. Lan, N. Desai, "Toward balanced and sustainable job scheduling for
production supercomputers", Parallel Computing 39(12), 2013. The guide on scheduling studies says
how this module fills the gaps of the paper.

A forecast is a calendar of the running jobs and their expected ends, on which a policy places jobs
one after the other. A copy is cheap, so that a policy can try several orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from ptaskmodel.batch.loop.decisions import Decision, Start
from ptaskmodel.batch.loop.view import View
from ptaskmodel.batch.machine.capacity import HostCounts, PlaceCalendar
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.batch.policies import Order
from ptaskmodel.batch.policies.tuning import Rule, Tuning, by_queue_depth, by_utilisation
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

BACKFILLS = ("easy", "conservative")
ADAPTIVE = ("none", "balance", "window", "both")
WINDOWS = ("consecutive", "sliding")
# 8! orders at each decision.
LARGEST_WINDOW = 8


class Placed(NamedTuple):
    """A job with its place in a forecast."""

    job: Job
    date_s: float
    duration_s: float
    place: int


def best_order(
    jobs: Sequence[Job], durations_s: Sequence[float], plan: Forecast, *, alike: bool
) -> list[Placed]:
    """The jobs in the order that, each placed as early as possible in turn, ends first.

    Of equal orders the first in lexicographic order of positions. plan: left as it is. alike: jobs
    of equal sizes and durations can take each other's places.

    The orders are walked as a tree, which shares the places of their beginnings. What is cut cannot
    change the answer: branches in which some job, placed now, would end no earlier than the best
    order found; the rest, once an order ends as early as the job that ends last alone; orders that
    exchange jobs that are alike.
    """
    alone = [plan.place(job, duration) for job, duration in zip(jobs, durations_s, strict=True)]
    if len(jobs) == 1:
        return [Placed(jobs[0], alone[0][0], durations_s[0], alone[0][1])]
    bound = max(date + duration for (date, _), duration in zip(alone, durations_s, strict=True))
    best_end = inf
    best: list[tuple[int, float, int]] = []
    kinds = [
        (job.num_hosts, duration) if alike else k
        for k, (job, duration) in enumerate(zip(jobs, durations_s, strict=True))
    ]

    def walk(plan: Forecast, left: list[int], places: list[tuple[float, int]], end: float) -> bool:
        """Try the orders of those that are left, with their places if each is next.

        True: no better order can come.
        """
        nonlocal best_end, best
        ends = [date + durations_s[k] for k, (date, _) in zip(left, places, strict=True)]
        reached = max(end, *ends)
        if best and reached >= best_end:
            return False
        if len(left) == 1:
            best_end = reached
            best = [*chosen, (left[0], *places[0])]
            return best_end <= bound
        seen = set()
        for position, k in enumerate(left):
            if kinds[k] in seen:
                continue
            seen.add(kinds[k])
            date, place = places[position]
            following = plan.copy()
            following.put(jobs[k], date, durations_s[k], place)
            rest = left[:position] + left[position + 1 :]
            then = [following.place(jobs[other], durations_s[other]) for other in rest]
            chosen.append((k, date, place))
            over = walk(following, rest, then, max(end, ends[position]))
            chosen.pop()
            if over:
                return True
        return False

    chosen: list[tuple[int, float, int]] = []
    walk(plan, list(range(len(jobs))), alone, 0.0)
    return [Placed(jobs[k], date, durations_s[k], place) for k, date, place in best]


class MetricAware:
    """The queue by a balance of two scores, placed window by window, the rest backfilled.

    At each decision everything is planned anew. A job's priority is balance * S_w + (1 - balance)
    * S_r, with S_w its waiting time in per cent of the longest in the queue, S_r how much shorter
    than the longest its requested time is, in per cent of the range. The sorted queue is cut in
    windows of ``window`` jobs; of the orders of a window the one that ends first is taken.

    balance: 1 is first come first served, 0 shortest first. backfill: with "easy" the first window
    in which some job does not start keeps its places, and who delays none of them may start; with
    "conservative" every window keeps its places. backfill_order: of easy's candidates. windows:
    "consecutive", or "sliding": after each start, scores and windows are formed anew. order: must
    be None, since the scores order the queue.

    adaptive: which of both follows the run, in checks every ``check_interval_s`` from the first
    submission (+ ``check_offset_s``). Balance: it rises by ``balance_step`` while the queue depth
    is below ``threshold_s``, else it falls, between ``least_balance`` and ``balance``. Window: it
    falls by ``window_step`` while the utilisation of the last 10 h is above that of 24 h, else it
    rises, between ``window`` and ``most_window``. ``tuning.log`` keeps all checks.

    Raises SimulationError for values that make no sense.
    """

    def __init__(
        self,
        balance: float = 1.0,
        window: int = 1,
        *,
        backfill: str = "easy",
        adaptive: str = "none",
        windows: str = "consecutive",
        threshold_s: float = inf,
        check_interval_s: float = 1800.0,
        check_offset_s: float = 0.0,
        balance_step: float = 0.5,
        least_balance: float = 0.5,
        window_step: int = 3,
        most_window: int = 4,
        order: Order | None = None,
        backfill_order: Order | None = None,
    ) -> None:
        if order is not None:
            raise SimulationError("policy 'metric-aware' sets its own order; leave --order out")
        _check_between("balance", balance, 0.0, 1.0)
        _check_between("window", window, 1, LARGEST_WINDOW)
        _check_one("backfill", backfill, BACKFILLS)
        _check_one("adaptive", adaptive, ADAPTIVE)
        _check_one("windows", windows, WINDOWS)
        self.order = None
        self.backfill_order = backfill_order
        self.balance = float(balance)
        self.window = window
        self._easy = backfill == "easy"
        self._sliding = windows == "sliding"
        rules: list[Rule] = []
        if adaptive in ("balance", "both"):
            _check_between("least_balance", least_balance, 0.0, self.balance)
            rules.append(
                by_queue_depth(
                    "balance", threshold_s, least_balance, self.balance, balance_step, self.balance
                )
            )
        if adaptive in ("window", "both"):
            _check_between("most_window", most_window, window, LARGEST_WINDOW)
            rules.append(by_utilisation("window", window, most_window, window_step, window))
        self.tuning = (
            Tuning(rules, interval_s=check_interval_s, offset_s=check_offset_s) if rules else None
        )

    def decide(self, view: View) -> Iterator[Decision]:
        if self.tuning is None:
            return self._decide(view)
        return self.tuning.during(view, self._decide)

    def _decide(self, view: View) -> Iterator[Decision]:
        if self.tuning is not None:
            self.balance = self.tuning.values.get("balance", self.balance)
            self.window = int(self.tuning.values.get("window", self.window))
        if not self._sliding:
            yield from self._starts(view)
            return
        while (start := next(self._starts(view), None)) is not None:
            yield start

    def _starts(self, view: View) -> Iterator[Start]:
        """The jobs that start now, one plan for all."""
        queue = [job for job in view.queue if view.is_waiting(job)]
        smallest = min((job.num_hosts for job in queue), default=0)
        if not queue or _too_few(view, smallest):
            return
        queue = by_priority(queue, self.balance, view)
        plan = forecast(view)
        for first in range(0, len(queue), self.window):
            jobs = queue[first : first + self.window]
            durations = [view.estimate_s(job) for job in jobs]
            all_start = True
            for job, date, duration, place in best_order(
                jobs, durations, plan, alike=isinstance(plan, HostForecast)
            ):
                plan.put(job, date, duration, place)
                if date > view.now:
                    all_start = False
                elif _can_start(job, place, plan, view):
                    yield _start(job, place, plan, view)
                else:
                    return  # it is its turn as soon as a job of 0 s, still there, has ended
            if self._easy and not all_start:
                yield from self._backfill(queue[first + self.window :], plan, view)
                return
            if _too_few(view, smallest):
                return

    def _backfill(
        self, candidates: list[Job], plan: HostForecast | PlaceForecast, view: View
    ) -> Iterator[Start]:
        """Yield jobs that fit now beside what is planned."""
        if self.backfill_order is not None:
            candidates.sort(key=self.backfill_order)
        for job in candidates:
            place = plan.now(job, view.estimate_s(job))
            if place is not None and _can_start(job, place, plan, view):
                plan.put(job, view.now, view.estimate_s(job), place)
                yield _start(job, place, plan, view)


def by_priority(queue: Sequence[Job], balance: float, view: View) -> list[Job]:
    """The queue, in order of submission, by priority: the greatest first, equal ones as they are.

    The requested time of a job is its walltime, else what it is believed to run; a job without
    either does not count in S_r and has none.
    """
    if balance == 1.0:
        return list(queue)
    now = view.now
    longest_wait = now - min(job.submit_time_s for job in queue)
    walls = [view.estimate_s(job) if job.walltime_s is None else job.walltime_s for job in queue]
    known = [wall for wall in walls if wall < inf]
    longest, shortest = max(known, default=0.0), min(known, default=0.0)
    score: dict[Job, float] = {}
    for job, wall in zip(queue, walls, strict=True):
        waited = 100 * (now - job.submit_time_s) / longest_wait if longest_wait > 0 else 0.0
        short = (
            100 * (longest - wall) / (longest - shortest)
            if longest > shortest and wall < inf
            else 0
        )
        score[job] = balance * waited + (1 - balance) * short
    return sorted(queue, key=score.__getitem__, reverse=True)


def _too_few(view: View, smallest: int) -> bool:
    """Whether no job can start, as the smallest asks for more hosts than are free."""
    return not view.counted and view.free < smallest


def _can_start(job: Job, place: int, plan: HostForecast | PlaceForecast, view: View) -> bool:
    """Whether its place is free: a job of 0 s, which takes none in the plan, may be there still."""
    if isinstance(plan, HostForecast):
        return view.free >= job.num_hosts
    return place & ~view.candidates(job) == 0


def _start(job: Job, place: int, plan: HostForecast | PlaceForecast, view: View) -> Start:
    if isinstance(plan, HostForecast):
        return Start(job, None, view.within)
    return Start(job, place)


def _check_between(name: str, value: float, least: float, most: float) -> None:
    if isinstance(value, bool) or not least <= value <= most:
        raise SimulationError(
            f"metric-aware: {name} is {value:g}: it must be between {least:g} and {most:g}"
        )


def _check_one(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise SimulationError(
            f"metric-aware: {name} '{value}' is unknown; use {' or '.join(known)}"
        )


Same = TypeVar("Same", bound="Forecast")


class Forecast(Protocol):
    """What is free from when on, beside what was put there.

    A place is a number of hosts, or a mask where numbers do not say what fits. A job whose date is
    inf waits for jobs that nobody knows the end of: those put after it leave it the room that it
    will need. One that asks for more than is up and on holds up nobody.
    """

    def place(self, job: Job, duration: float) -> tuple[float, int]:
        """The first date at which there is room for ``duration``, and where; inf: not foreseen."""
        ...

    def now(self, job: Job, duration: float) -> int | None:
        """Where there is room for ``duration`` from now on; None: nowhere."""
        ...

    def put(self, job: Job, date: float, duration: float, place: int) -> None:
        """The job is there from ``date`` on."""
        ...

    def copy(self: Same) -> Same: ...


def forecast(view: View) -> HostForecast | PlaceForecast:
    """What the running jobs leave free, by their expected ends."""
    if view.allocation.constrained or view.counted:
        return PlaceForecast.of(view)
    return HostForecast.of(view)


class HostForecast(HostCounts):
    """Numbers of hosts: enough where any free hosts will do."""

    def __init__(self, now: float, available: int) -> None:
        super().__init__(now, available)
        self._beyond = available  # free when all that runs has ended
        self._unknown = False  # whether a job waits for a date that nobody knows

    @classmethod
    def of(cls, view: View) -> HostForecast:
        now, within = view.now, view.within
        made = cls(now, view.num_available)
        times, free = made.times, made.free
        ends = [
            (
                attempt.expected_end_s,
                attempt.job.num_hosts if within is None else (attempt.mask & within).bit_count(),
            )
            for attempt in view.by_expected_end
            if attempt.expected_end_s > now
        ]
        free[0] -= sum(count for _, count in ends)
        for end, count in ends:
            if end == times[-1]:
                free[-1] += count
            elif end < inf:
                times.append(end)
                free.append(free[-1] + count)
        made.at = free.copy()
        return made

    def place(self, job: Job, duration: float) -> tuple[float, int]:
        count = job.num_hosts
        if self._unknown and count > self._beyond:
            return inf, count
        return self.earliest(count, duration)

    def now(self, job: Job, duration: float) -> int | None:
        count = job.num_hosts
        if self._unknown and count > self._beyond:
            return None
        return count if self.fits_now(count, duration) else None

    def put(self, job: Job, date: float, duration: float, place: int) -> None:
        if date < inf:
            self.take(date, date + duration, place)
        if (date == inf or self._unknown) and place <= self._beyond:
            self._beyond -= place
            self._unknown = True

    def copy(self) -> HostForecast:
        other = HostForecast.__new__(HostForecast)
        self._copied_to(other)
        other._beyond, other._unknown = self._beyond, self._unknown
        return other


class PlaceForecast(PlaceCalendar):
    """Sets of hosts, or what is free of each: for choosy allocations, cores and memory."""

    _beyond: Any
    _unknown = False

    @classmethod
    def of(cls, view: View) -> PlaceForecast:
        made = cls(view.now, view.space, view.available_mask, view.allocation.choose)
        for attempt in view.suspended:
            made.keep(attempt.job, attempt.mask, attempt.cores)
        made._beyond = made.free[0]
        for attempt in view.running:
            made.take(view.now, attempt.expected_end_s, attempt.job, attempt.mask, attempt.cores)
        return made

    def place(self, job: Job, duration: float) -> tuple[float, Mask]:
        within = self._left(job)
        for begin, date in enumerate(self.times):
            place = self.room(job, begin, duration, within)
            if place is not None:
                return date, place
        return inf, 0

    def now(self, job: Job, duration: float) -> Mask | None:
        return self.room(job, 0, duration, self._left(job))

    def put(self, job: Job, date: float, duration: float, place: Mask) -> None:
        if date < inf:
            self.take(date, date + duration, job, place)
            if self._unknown:
                self._beyond = self._space.taken(self._beyond, job, place)
            return
        hosts = self._space.candidates(self._beyond, job) & self._usable
        chosen = self._choose(job.num_hosts, hosts) if hosts.bit_count() >= job.num_hosts else None
        if chosen is not None:
            self._beyond = self._space.taken(self._beyond, job, chosen)
            self._unknown = True

    def copy(self) -> PlaceForecast:
        other = PlaceForecast(self.times[0], self._space, self._usable, self._choose)
        self._copied_to(other)
        other._beyond, other._unknown = self._beyond, self._unknown
        return other

    def _left(self, job: Job) -> Mask:
        """The hosts that jobs of unknown date leave to the job."""
        if not self._unknown:
            return self._usable
        return self._space.candidates(self._beyond, job) & self._usable
