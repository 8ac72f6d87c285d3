"""The event log of a Slurm simulation: events, reasons to wait, and the history of one job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from ptaskmodel.slurm.conf.phases import BACKFILL_CYCLE, FULL, Turn
from ptaskmodel.slurm.controller.controller import Controller
from ptaskmodel.slurm.controller.priority import FACTORS
from ptaskmodel.slurm.jobs.record import DEADLINE, PENDING, JobRecord, is_account_limit

# What the events of a recorded run are called, by pass.
PASSES = {FULL: "full queue", "default": "default depth"}

NODE = "node"
# What a job waits for to which no scheduler has given a reason.
WITHOUT_REASON = "the next look"


class Event(NamedTuple):
    """As in the events.csv of a recorded run."""

    date_s: float
    who: str
    what: str
    job: str = ""


class CycleLine(NamedTuple):
    """A backfill cycle: its end, jobs in the queue then, tested, started, how long, why over."""

    date_s: float
    queue: int
    tested: int
    started: int
    lasted_s: float
    end: str


class PriorityLine(NamedTuple):
    """The weighted factors of a job that waits, rounded as sprio shows them."""

    date_s: float
    job: str
    partition: str
    priority: int
    factors: tuple[int, ...]


class Watch:
    """Notes events and cycles as they come; reasons at full passes, ``sample_s`` apart at least.

    explained: the ids of jobs whose story is told: lines of text by id. priorities_s: how often the
    priorities of those who wait are noted, s; None: never.
    """

    def __init__(
        self,
        explained: Collection[str] = (),
        sample_s: float = 60.0,
        priorities_s: float | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.reasons: list[tuple[float, str, int]] = []
        self.cycles: list[CycleLine] = []
        self.priorities: list[PriorityLine] = []
        self.stories: dict[str, list[str]] = {job: [] for job in explained}
        self._sample_s = sample_s
        self._sampled_s = float("-inf")
        self._priorities_s = priorities_s
        self._priorities_due_s = float("-inf")
        self._started = 0
        self._last: dict[str, tuple[object, ...]] = {}
        # Of those who wait: since when for which reason, the time for each before, and how many
        # were before them at least.
        self._since: dict[str, tuple[float, str]] = {}
        self._waited: dict[str, dict[str, float]] = {}
        self._fewest: dict[str, int] = {}

    @property
    def looks_at_plans(self) -> bool:
        """Whether it reads which starts backfill has planned."""
        return bool(self.stories)

    def note(self, date: float, what: str, job: JobRecord) -> None:
        """A job is submitted, starts (what: the scheduler), ends, is suspended or resumed.

        Or it is cancelled while it waits, of which only its story tells.
        """
        if what == "cancel":
            pass
        elif what in ("submit", "end"):
            self.events.append(Event(date, "job", what, job.id))
        elif what in ("suspend", "resume"):
            self.events.append(Event(date, "gang", what, job.id))
        else:
            self.events.append(Event(date, what, "start", job.id))
            self._started += what == BACKFILL_CYCLE
        if job.id in self.stories:
            self._tell(date, _said(what, job), job)
            self._count(date, what, job)

    def of_node(self, date: float, what: str, name: str) -> None:
        """A node dies, is set down, answers again, or returns to service."""
        self.events.append(Event(date, NODE, what, name))

    def turned(self, controller: Controller, turn: Turn) -> None:
        """A pass or cycle has been made."""
        date, what, queue = turn.date_s, turn.what, controller.queue
        if what == BACKFILL_CYCLE:
            self.events.append(Event(date, what, f"tested {turn.tested}"))
            found = len(queue), turn.tested, self._started, turn.lasted_s, turn.end
            self.cycles.append(CycleLine(date, *found))
            self._started = 0
        else:
            self.events.append(Event(date, "main", PASSES[what]))
        if what == FULL and date - self._sampled_s >= self._sample_s - 1e-6 and queue.jobs:
            self._sampled_s = date
            counts = Counter(job.reason for job in queue.jobs)
            self.reasons += [(date, reason, count) for reason, count in sorted(counts.items())]
        if self._priorities_s is not None and date >= self._priorities_due_s and queue.jobs:
            self._priorities_due_s = date + self._priorities_s
            self._note_priorities(controller, date)
        if self.stories:
            for job in queue.jobs:
                if job.id in self.stories:
                    self._look(controller, date, what, job)

    def _note_priorities(self, controller: Controller, date: float) -> None:
        """The factors of all who wait, as of the last refresh."""
        table = controller.rules.priorities.table()
        if not table:
            return
        columns = [table[name].tolist() for name in (*FACTORS, "nice")]
        first = controller.conf.first_job_id
        for k, (number, entry, priority) in enumerate(
            zip(*(table[name].tolist() for name in ("number", "entry", "priority")), strict=True)
        ):
            job = controller.jobs.all[number - first]
            factors = tuple(round(column[k]) for column in columns)
            where = job.partitions[entry].name
            self.priorities.append(PriorityLine(date, job.id, where, int(priority), factors))

    def _look(self, controller: Controller, date: float, what: str, job: JobRecord) -> None:
        """Tell how a job stands after a pass, if that has changed, or fewer are before it."""
        if job.state != PENDING:
            return
        self._count(date, job.reason, job)
        entries = controller.queue.entries
        ahead = next((k for k, entry in enumerate(entries) if entry.job is job), None)
        state = (job.reason, ahead is None, job.planned_s)
        fewer = ahead is not None and ahead < self._fewest.get(job.id, len(entries))
        if self._last.get(job.id) == state and not fewer:
            return
        self._last[job.id] = state
        if fewer:
            self._fewest[job.id] = ahead or 0
        name = "backfill" if what == BACKFILL_CYCLE else f"main pass ({PASSES[what]})"
        if ahead is None:
            self._tell(date, f"{name}: not looked at: {job.reason}", job)
            return
        text = f"{name}: waits for {job.reason}"
        if ahead:
            text += f", {ahead} before it in the queue"
            # Whom a limit of an account keeps, others do not block.
            first = next((e.job for e in entries if e.job.reason == "Resources"), entries[0].job)
            if first is not job and not is_account_limit(job.reason):
                text += f", blocked by {first.id}"
        if job.planned_s is not None:
            planned = job.planned_s - controller.phases.t0
            where = hostlist(controller.nodes.names_of(job.planned))
            text += f"; planned for {planned:g} s on {where}"
        self._tell(date, text, job)

    def _count(self, date: float, what: str, job: JobRecord) -> None:
        """For what a job has waited until now; what: for what from now on, or what happens."""
        if what == "submit":
            self._since[job.id] = date, "None"
            self._waited[job.id] = {}
        if job.id not in self._since:
            return
        since, reason = self._since[job.id]
        spent = self._waited[job.id]
        spent[reason] = spent.get(reason, 0.0) + date - since
        self._since[job.id] = date, job.reason
        if job.state == PENDING:
            return
        del self._since[job.id]
        longest_first = sorted(spent.items(), key=lambda item: -item[1])
        found = [
            f"{seconds:.0f} s for {WITHOUT_REASON if reason == 'None' else reason}"
            for reason, seconds in longest_first
            if seconds >= 1
        ]
        if found:
            self.stories[job.id].append(f"{'':16}waited {', '.join(found)}")

    def _tell(self, date: float, text: str, job: JobRecord) -> None:
        self.stories[job.id].append(f"{date:12.3f} s  {text}")


def _said(what: str, job: JobRecord) -> str:
    """A sentence on what happens to a job."""
    if what == "submit":
        priority = "/".join(str(int(value)) for value in job.priorities)
        names = ",".join(partition.name for partition in job.partitions)
        return f"submitted to {names}, priority {priority}"
    if what == "cancel":
        return f"{'misses its deadline' if job.state == DEADLINE else 'cancelled'} while it waits"
    if what == "end":
        return f"ends: {job.state}"
    if what in ("suspend", "resume"):
        return {"suspend": "suspended by the gang scheduler", "resume": "resumed"}[what]
    waited = job.start_s - job.submit_s
    return f"started by {what} in {job.partition.name} after {waited} s"


def hostlist(names: Collection[str]) -> str:
    """Names of nodes as Slurm writes them, such as "n[1-3,7]"; names in Slurm's order."""
    groups: list[tuple[str, int, list[tuple[int, int]]]] = []
    for name in names:
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        if not digits:
            groups.append((name, -1, []))
            continue
        number = int(digits)
        last = groups[-1] if groups else ("", -1, [])
        if last[0] != stem or last[1] != width:
            groups.append((stem, width, [(number, number)]))
        elif last[2][-1][1] == number - 1:
            last[2][-1] = (last[2][-1][0], number)
        else:
            last[2].append((number, number))
    return ",".join(_group(*group) for group in groups)


def _group(stem: str, width: int, ranges: list[tuple[int, int]]) -> str:
    if not ranges:
        return stem
    texts = [
        f"{a:0{max(width, 0)}d}" + (f"-{b:0{max(width, 0)}d}" if b > a else "") for a, b in ranges
    ]
    single = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return stem + (texts[0] if single else f"[{','.join(texts)}]")
