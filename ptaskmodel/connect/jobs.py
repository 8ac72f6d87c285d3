"""The registry of jobs and profiles by their names in the protocol.

Jobs may exchange messages with their scheduler: profiles that send and receive run step by step.
Source: Batsim's documentation of the profiles ``send`` and ``recv``.
"""

from __future__ import annotations

import math
import re
import signal
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from ptaskmodel.batch.jobs.execution import FAILED, SUCCESS, WALLTIME, Attempt, Progress
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import AnyPath, only_below
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.formats.batsim import batsim_document, read_job, workload_of
from ptaskmodel.workload.formats.batsim_profiles import Fields, Reader, amount
from ptaskmodel.workload.formats.batsim_works import Profiles
from ptaskmodel.workload.formats.json import read_json
from ptaskmodel.workload.jobs import Job, Workload, sorted_jobs
from ptaskmodel.workload.reading import format_of, read_workload
from ptaskmodel.workload.tasks import in_order
from ptaskmodel.workload.works import SequenceWork, Work

SLEEP_S, POLL_S = 1e-7, 5e-3
MAX_STEPS = 1_000_000
MAX_REGEX = 1000
MATCH_S = 1.0  # of processor time, for one message
SUBMITTED, RUNNING, ENDED, REJECTED = "SUBMITTED", "RUNNING", "COMPLETED", "REJECTED"
MARK = "!"


@dataclass(frozen=True, slots=True, eq=False)
class SendWork(Work):
    """Sends an object to the scheduler, then sleeps."""

    message: Mapping[str, Any]
    sleep_s: float

    @property
    def duration_s(self) -> float:
        return self.sleep_s


@dataclass(frozen=True, slots=True, eq=False)
class ReceiveWork(Work):
    """Takes the first message for its job, then does a profile by what it says ("": none).

    Without a message it does the profile ``timeout`` or, if that is "", looks every ``poll_s``.
    """

    pattern: re.Pattern[str]
    success: str
    failure: str
    timeout: str
    poll_s: float

    @property
    def duration_s(self) -> float:
        """Without waiting and what comes then: how long that takes is up to the scheduler."""
        return 0.0

    @property
    def outcomes(self) -> list[str]:
        return [name for name in (self.success, self.failure, self.timeout) if name]


def talks(work: Work) -> bool:
    """Whether a work sends or receives messages."""
    return any(isinstance(part, SendWork | ReceiveWork) for part in work.parts())


# --- reading --------------------------------------------------------------------------------------


def _read_send(fields: Fields, spot: str, directory: Path) -> Work:
    message = fields.get("msg")
    if not isinstance(message, Mapping):
        raise WorkloadError(f"{spot}/msg: is missing or not an object; give the object to send")
    return SendWork(message, amount(fields, "sleeptime", spot, SLEEP_S))


def _read_receive(fields: Fields, spot: str, directory: Path) -> Work:
    texts = {"regex": ".*", "success": "", "failure": "", "timeout": ""}
    for key in texts:
        texts[key] = fields.get(key, texts[key])
        if not isinstance(texts[key], str):
            raise WorkloadError(f"{spot}/{key}: {shown(texts[key])} is not a string")
    if len(texts["regex"]) > MAX_REGEX:
        raise WorkloadError(f"{spot}/regex: it has more than {MAX_REGEX} characters; shorten it")
    try:
        pattern = re.compile(texts.pop("regex"))
    except (re.error, RecursionError, OverflowError) as error:
        raise WorkloadError(f"{spot}/regex: it is not a regular expression: {error}") from None
    poll_s = amount(fields, "polltime", spot, POLL_S)
    if poll_s == 0:
        raise WorkloadError(f"{spot}/polltime: is 0; give a time above 0 s")
    return ReceiveWork(pattern, **texts, poll_s=poll_s)


MESSAGE_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("send", "SCHEDULER_SEND"), _read_send),
    **dict.fromkeys(("recv", "SCHEDULER_RECV"), _read_receive),
}


def check_messages(shelf: Profiles, where: str) -> None:
    """Profiles that talk lead to profiles that are there, only to delays, and to an end.

    where: what errors begin with. Raises WorkloadError.
    """
    works = shelf.works
    leads: dict[str, list[str]] = {}
    for name, work in works.items():
        spot = f"{where}profile {shown(name)}"
        if isinstance(work, ReceiveWork):
            leads[name] = work.outcomes
        else:
            leads[name] = shelf.stage_names(shelf.fields[name], spot, works)
        for other in leads[name]:
            if other not in works:
                raise WorkloadError(f"{spot}: there is no profile {shown(other)}; define it")
    order, circles = in_order(leads)
    if circles:
        raise WorkloadError(
            f"{where}profile {shown(circles[0][0])} leads back to itself; let jobs that receive "
            "messages end ('polltime' makes them wait for a message)"
        )
    steps: dict[str, float] = {}
    talking = set[str]()
    for name in order:
        work, others = works[name], leads[name]
        spot = f"{where}profile {shown(name)}"
        counts = [steps[other] for other in others]
        if isinstance(work, ReceiveWork):
            steps[name] = 1 + max(counts, default=0)
        else:
            steps[name] = (sum(counts) or 1) * work.rounds
        if not (talking.intersection(others) or isinstance(work, SendWork | ReceiveWork)):
            continue
        talking.add(name)
        for other in others:
            if works[other].duration_s is None:
                raise WorkloadError(
                    f"{spot}: {shown(other)} is not a delay; make jobs that exchange messages "
                    "only of messages and delays"
                )
        if steps[name] > MAX_STEPS:
            raise WorkloadError(f"{spot}: more than {MAX_STEPS} steps; repeat it less often")


# --- running --------------------------------------------------------------------------------------


class Entry:
    """A job in the protocol.

    id: with the name of its workload. fields: its object there. state: one of the names above, and
    None until it is submitted. killed: whether the scheduler killed it; reported: whether it was
    told that the job ended; by_hand: whether the scheduler simulates it itself. inbox: messages for
    it that it has not taken; conversation: if it exchanges messages, while it runs; code: its
    return code.
    """

    __slots__ = (
        "attempt",
        "by_hand",
        "code",
        "conversation",
        "fields",
        "id",
        "inbox",
        "is_static",
        "job",
        "killed",
        "metadata",
        "profiles",
        "reported",
        "state",
    )

    def __init__(
        self, name: str, job: Job, fields: dict[str, Any], profiles: Profiles, is_static: bool
    ) -> None:
        self.id = name
        self.job = job
        self.fields = {**fields, "id": name}
        self.profiles = profiles
        self.is_static = is_static
        self.state: str | None = None
        self.attempt: Attempt | None = None
        self.killed = False
        self.reported = False
        self.by_hand = False
        self.metadata: str | None = None
        self.inbox: deque[str] = deque()
        self.conversation: Conversation | None = None
        self.code = job.return_code

    @property
    def profile_fields(self) -> Mapping[str, Any]:
        """The object of its profile."""
        return self.profiles.fields[self.job.profile]

    @property
    def profile_id(self) -> str:
        """The name of its profile, with that of its workload."""
        return f"{self.id.partition(MARK)[0]}{MARK}{self.job.profile}"


class Conversation:
    """A running job that exchanges messages.

    due: when it goes on by itself, s; inf while it waits for a message. limit: when its walltime is
    over. wake: the date for which it was last planned to go on. state: how it ended, None before.
    """

    def __init__(self, entry: Entry, now: float) -> None:
        walltime_s = entry.job.walltime_s
        self.entry = entry
        self.due = now
        self.limit = inf if walltime_s is None else now + walltime_s
        self.wake = -1.0
        self.state: str | None = None
        self.code = entry.job.return_code
        self._own = _steps(entry.job.work)
        self._ways = [self._own]
        self._doing: Work | None = None
        self._is_own = False
        self._since = now
        self._begun = 0

    def advance(self, now: float) -> Iterator[Mapping[str, Any]]:
        """Do all that is due; yields what is sent."""
        while self.state is None and self.due <= now < self.limit:
            if isinstance(self._doing, ReceiveWork):
                self._receive(self._doing)
            self._doing, self._since = self._next(), now
            if self._doing is None:
                self.state = FAILED if self.code else SUCCESS
            elif isinstance(self._doing, ReceiveWork):
                self.due = now if self.entry.inbox or self._doing.timeout else inf
            else:
                self.due = now + (self._doing.duration_s or 0.0)
                if isinstance(self._doing, SendWork):
                    yield self._doing.message
        if self.state is None and now >= self.limit:
            self.state = WALLTIME

    def notice(self, now: float) -> None:
        """There is a message for the job: it sees it when it looks next."""
        if isinstance(self._doing, ReceiveWork) and self.due == inf:
            looks = math.ceil((now - self._since) / self._doing.poll_s)
            self.due = max(now, self._since + looks * self._doing.poll_s)

    def progress(self, now: float) -> Progress:
        """Works of the job's own profile that are done, and the part of the next that is."""
        lasts_s = self._doing.duration_s if self._doing is not None and self._is_own else None
        part = (now - self._since) / lasts_s if lasts_s else 0.0
        return Progress(max(self._begun - 1, 0), min(part, 1.0))

    def _next(self) -> Work | None:
        while self._ways:
            work = next(self._ways[-1], None)
            if work is not None:
                self._is_own = self._ways[-1] is self._own
                self._begun += self._is_own
                return work
            self._ways.pop()
        return None

    def _receive(self, work: ReceiveWork) -> None:
        """Go the way that the first message says; one with a return code is the last."""
        inbox = self.entry.inbox
        name = work.timeout
        if inbox:
            name = work.success if _matches(work.pattern, inbox.popleft()) else work.failure
        if not name:
            return
        shelf = self.entry.profiles
        if shelf.codes[name]:
            self._ways.clear()
            self.code = shelf.codes[name]
        self._ways.append(_steps(shelf.works[name]))


def _matches(pattern: re.Pattern[str], message: str) -> bool:
    """Whether all of a message matches. Raises WorkloadError if that takes too long to find out.

    Matching goes on for ever on some patterns and messages, but lets signals in; those, in turn,
    come to the main thread alone, where commands run.
    """
    if threading.current_thread() is not threading.main_thread():
        return pattern.fullmatch(message) is not None

    def give_up(*_: object) -> None:
        raise WorkloadError(
            f"regular expression {shown(pattern.pattern)} takes more than {MATCH_S:g} s to match a "
            f"message of {len(message)} characters; simplify it"
        )

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, MATCH_S)
    try:
        return pattern.fullmatch(message) is not None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _steps(work: Work) -> Iterator[Work]:
    """The simple works of a work, in order, as they come."""
    if not isinstance(work, SequenceWork):
        yield work
        return
    for _ in range(work.rounds):
        yield from work.one_round()


@reader(WorkloadError)
def _read_shelf(
    path: AnyPath, account: Account, cleaning: Cleaning | None
) -> tuple[Workload, Profiles, dict[str, Any]]:
    """The workload at a `path`, its profiles, and the fields of its jobs by their ids."""
    path = Path(path)
    if format_of(path) == "batsim":
        document = read_json(path, writable=True)
    else:
        document = batsim_document(read_workload(path, cleaning), 4)
    workload, shelf = workload_of(document, path, account, MESSAGE_READERS)
    if any(talks(work) for work in shelf.works.values()):
        check_messages(shelf, f"{path}: ")
    return workload, shelf, {str(job["id"]): job for job in document["jobs"]}


class Book:
    """The workloads ``w0``, ``w1`` ... of some files, and what a scheduler registers.

    workload: all jobs of the files, in order of submission; with one file, jobs have the ids that
    they have there, else those of the protocol (``w1!3``). paths: of the files, by workload; sizes:
    of the machines that they were made for. Raises WorkloadError.
    """

    def __init__(self, files: Sequence[Path], cleaning: Cleaning | None = None) -> None:
        self._one = len(files) == 1
        # Of the first file: what a scheduler names stands below.
        self._folder = files[0].resolve().parent if files else Path()
        self.shelves: dict[str, Profiles] = {}
        self.paths: dict[str, str] = {}
        self.entries: dict[str, Entry] = {}
        self.of_job: dict[Job, Entry] = {}
        found = [self._read(f"w{k}", path, cleaning) for k, path in enumerate(files)]
        self.static_jobs = len(self.entries)
        self.sizes = [workload.num_hosts for workload in found]
        # By date, those of one date by workload and id.
        jobs = sorted_jobs([job for workload in found for job in workload.jobs])
        first = found[0] if found else Workload((), {})
        self.workload = replace(
            first,
            jobs=jobs,
            profiles={
                f"{name}{MARK}{profile}" if len(found) > 1 else profile: work
                for name, shelf in self.shelves.items()
                for profile, work in shelf.works.items()
            },
            remarks=tuple(each for workload in found for each in workload.remarks),
        )

    def _read(self, name: str, path: Path, cleaning: Cleaning | None) -> Workload:
        workload, shelf, fields = _read_shelf(path, cleaning)
        jobs = []
        for job in workload.jobs:
            if MARK in job.id:
                raise WorkloadError(
                    f"{path}: job {shown(job.id)}: the id contains '{MARK}'; rename it"
                )
            full = f"{name}{MARK}{job.id}"
            mine = job if self._one else replace(job, id=full)
            jobs.append(mine)
            self._enter(Entry(full, mine, fields[job.id], shelf, True))
        self.shelves[name] = shelf
        self.paths[name] = str(path.resolve())
        return replace(workload, jobs=tuple(jobs))

    def _enter(self, entry: Entry) -> None:
        self.entries[entry.id] = self.of_job[entry.job] = entry

    def waiting(self) -> Iterator[Entry]:
        """The jobs that are submitted and neither started nor rejected."""
        return (entry for entry in self.entries.values() if entry.state == SUBMITTED)

    def metadata(self) -> dict[str, str]:
        """What the scheduler noted of jobs, by their ids here."""
        known = self.entries.values()
        return {each.job.id: each.metadata for each in known if each.metadata is not None}

    # --- what schedulers register -----------------------------------------------------------

    def register_profile(self, workload: str, name: str, fields: Mapping[str, Any]) -> None:
        """Register a profile `name` with JSON `fields` in a `workload`, created if it is new.

        Raises WorkloadError.
        """
        if MARK in workload:
            raise WorkloadError(f"/data/workload_name: contains '{MARK}'; rename it")
        shelf = self.shelves.get(workload) or Profiles(self._folder, MESSAGE_READERS)
        if name in shelf.works:
            raise WorkloadError(
                f"/data/profile_name: {shown(name)} already exists; give it a new name"
            )
        self.add_profile(shelf, name, fields, "/data/profile")
        if talks(shelf.works[name]):
            check_messages(shelf, "/data/profile: ")
        self.shelves[workload] = shelf

    def add_profile(self, shelf: Profiles, name: str, fields: Mapping[str, Any], spot: str) -> None:
        """Read a profile of the scheduler; its traces stand below the workload. See `Profiles`."""
        with only_below(self._folder):
            shelf.add(name, fields, spot)

    def register_job(self, full: str, given: Mapping[str, Any], now: float) -> Entry:
        """Register the job `full` (WORKLOAD!JOB) with JSON fields `given`, submitted at `now` (s).

        Raises WorkloadError.
        """
        workload, mark, short = full.partition(MARK)
        if not mark or not short:
            raise WorkloadError(
                f"/data/job_id: {shown(full)} is not an id; write WORKLOAD{MARK}JOB"
            )
        if full in self.entries:
            raise WorkloadError(f"/data/job_id: job {shown(full)} already exists; give it a new id")
        if str(given.get("id")) not in (full, short):
            raise WorkloadError(f"/data/job/id: {shown(given.get('id'))} is not {shown(full)}")
        if workload not in self.shelves:
            raise WorkloadError(
                f"/data/job_id: there is no workload {shown(workload)}; register its profile first"
            )
        shelf = self.shelves[workload]
        fields = {"subtime": now, **given, "id": short}
        job = read_job(fields, shelf, "/data/job")
        name = short if self._one and workload == "w0" else full
        entry = Entry(full, replace(job, id=name, submit_time_s=now), fields, shelf, False)
        self._enter(entry)
        return entry
