"""Jobs of a live run: as submitted, as Slurm started them, and as the simulation executes them.

The cores of a job are read from slurmctld's log, which reports them with DebugFlags=CPU_Bind.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from ptaskmodel.batch.jobs.execution import FAILED, KILLED, Attempt, Execution
from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.slurm.conf.facts import LINEAR, Conf, Nodes
from ptaskmodel.slurm.conf.values import hosts
from ptaskmodel.slurm.jobs.record import PENDING, REFUSED, RUNNING, Allocation, JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.live.cluster import Cluster
from ptaskmodel.slurm.live.programs import LiveFault
from ptaskmodel.slurm.live.reading import (
    KILL,
    REQUEUE,
    RESUME,
    START,
    SUSPEND,
    Event,
    Over,
    Tail,
    event_of,
    over_of,
)
from ptaskmodel.workload.jobs import Job

_LINE = re.compile(
    r"\[\S+\] (?:"
    r"JobId=(?P<array>\d+)(?:_(?P<index>\d+)\(\d+\))? nhosts:"
    r"|(?P<node>Node\[\d+\]:)"
    r"|\s+Mem\(MB\):(?P<memory>\d+):\d+ .*CPUs:(?P<cpus>\d+):"
    r"|\s+Socket\[(?P<socket>\d+)\] Core\[(?P<core>\d+)\] is allocated"
    r")"
)
# Reasons of squeue: GrpTRESMins and GrpWall, but not GrpTRESRunMins.
_SPENT = re.compile(r"Grp(?!\w*Run)\w*Minutes|GrpWall")
ENDED, LOG = "ended.txt", "slurmctld.log"


@dataclass(slots=True)
class _Choice:
    """Of each node of a job, in order: CPUs, MiB, and (socket, core) of its cores."""

    cpus: list[int] = field(default_factory=list)
    memory_MiB: list[int] = field(default_factory=list)
    cores: list[list[tuple[int, int]]] = field(default_factory=list)


class Placements:
    """The last choice of each job that has not started, from the lines of a log."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._choices: dict[tuple[int, int | None], _Choice] = {}
        self._choice = _Choice()

    def take(self, line: str) -> None:
        """Hear a line of slurmctld's log."""
        found = _LINE.match(line)
        if found is None:
            return
        if found["array"] is not None:
            self._choice = _Choice()
            index = None if found["index"] is None else int(found["index"])
            self._choices[int(found["array"]), index] = self._choice
        elif found["node"] is not None:
            self._choice.cores.append([])
        elif found["cpus"] is not None:
            self._choice.cpus.append(int(found["cpus"]))
            self._choice.memory_MiB.append(int(found["memory"]))
        elif self._choice.cores:
            self._choice.cores[-1].append((int(found["socket"]), int(found["core"])))

    def allocation(self, number: int, task: tuple[int, int] | None, nodes_text: str) -> Allocation:
        """What a job that starts on these nodes holds; whole nodes if no choice was told."""
        names = hosts(nodes_text)
        mask = self._nodes.mask(names)
        choice = self._choices.pop((number, None) if task is None else task, None)
        if choice is None or len(choice.cpus) != len(names):
            return Allocation(mask, len(names))
        cores = []
        for name, taken in zip(names, choice.cores, strict=True):
            per_socket = self._nodes.lines[self._nodes.index[name]].cores_per_socket
            cores.append(sum(1 << socket * per_socket + core for socket, core in taken))
        memory = tuple(choice.memory_MiB) if any(choice.memory_MiB) else ()
        return Allocation(mask, len(names), tuple(cores), tuple(choice.cpus), memory)


class Book:
    """Records of jobs by id; starts, suspends and ends them in the execution as Slurm does.

    numbers: Slurm's, by id (of an array's tasks: of the array). waiting: ids of jobs that are not
    over. over: how many are. last_s: when something last happened to a job.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        cluster: Cluster,
        execution: Execution,
        on_end: Callable[[JobRecord], None] | None,
    ) -> None:
        self.records: dict[str, JobRecord] = {}
        self.numbers: dict[str, int] = {}
        self.waiting: set[str] = set()
        self.over = 0
        self.last_s = 0.0
        self._conf = conf
        self._nodes = nodes
        self._cluster = cluster
        self._execution = execution
        self._on_end = on_end
        self._partitions = {partition.name: partition for partition in conf.partitions}
        self._of_number: dict[int, JobRecord] = {}
        self._of_task: dict[tuple[int, int], JobRecord] = {}
        self._attempts: list[tuple[Attempt, JobRecord]] = []
        self.events: list[Event] = []
        # Of scripts that run, and of jobs whose work is done, those that no script has heard of.
        self._cpus: dict[str, int] = {}
        self._scripts: set[int] = set()
        self._done: dict[int, int] = {}
        # Whom the gang scheduler stops as they start: that is told before.
        self._stopped: set[int] = set()
        self._ends: deque[tuple[int, int]] = deque()  # of scripts, to be told of
        # The first nodes of the jobs that were killed last, at one date, and when.
        self._killed: list[str] = []
        self._killed_s = 0.0
        self._placements = None if conf.select_type == LINEAR else Placements(nodes)
        self._over, self._log = (Tail(cluster.path("log", name)) for name in (ENDED, LOG))
        cluster.watch(self._log.path, self.hear, self.advance)

    def running(self) -> bool:
        """Whether Slurm runs some job: that will end, by itself or at its limit."""
        return any(self.records[job].state == RUNNING for job in self.waiting)

    def queued(self) -> int:
        """How many jobs wait to be started."""
        return sum(self.records[job].state != RUNNING for job in self.waiting)

    # --- time -------------------------------------------------------------------------------

    def advance(self, until: float) -> bool:
        """Let time pass until a date, or until something has happened; whether it is that date."""
        due = self._execution.next_date()
        if self._ends:  # one at a time, by number: the order in which Slurm hears of them is ours
            end = min(self._ends)
            self._ends.remove(end)
            self._cluster.end_job(*end)
            self._cluster.settle()
            return False
        soonest = min(until, due)
        if not self._cluster.advance(soonest):
            return False
        if due > until:
            return True
        _, ended = self._execution.advance(max(due, self._cluster.now))
        for attempt, state in ended:
            attempt.end_s, attempt.state = self._cluster.now, state
            record = self._attempts[attempt.number][1]
            self._done[record.number] = int(state == FAILED or record.request.fails)
            self._tell_end(record.number)
        return False

    def _tell_end(self, number: int) -> None:
        """Let the script of a job end, once its work is done and it has begun."""
        if number in self._scripts and number in self._done:
            self._ends.append((number, self._done.pop(number)))

    # --- submissions ------------------------------------------------------------------------

    def submitted(self, batch: Sequence[JobRequest], number: int) -> None:
        """sbatch has given a job, or an array, its number."""
        for request in batch:
            record = self._record(request, number)
            self.numbers[request.array_id] = self.numbers[request.id] = number
            self.waiting.add(request.id)
            if request.array is None:
                self._of_number[number] = record
            else:
                self._of_task[number, request.array.index] = record
        self.last_s = self._cluster.now

    def refused(self, batch: Sequence[JobRequest], why: str) -> None:
        """sbatch has refused a job."""
        for request in batch:
            record = self._record(request, 0)
            record.state, record.reason = REFUSED, why
            self.over += 1

    def _record(self, request: JobRequest, number: int) -> JobRecord:
        named = [self._partitions[name] for name in request.partitions if name in self._partitions]
        default = self._conf.default_partition or self._conf.partitions[0]
        submit_s = self._cluster.t0 + int(self._cluster.now)
        record = JobRecord(request, number, submit_s, named or [default])
        self.records[request.id] = record
        return record

    def number_of(self, request: JobRequest) -> str | None:
        """Slurm's name of a job or of an array's task; None: it has none."""
        number = self.numbers.get(request.id)
        if number is None or request.array is None:
            return None if number is None else str(number)
        return f"{number}_{request.array.index}"

    # --- what happens -----------------------------------------------------------------------

    def hear(self) -> None:
        """Take note of what Slurm's log tells, of scripts, and of what is over."""
        for line in self._log.lines():
            if self._placements is not None:
                self._placements.take(line)
            event = event_of(line)
            if event is not None:
                if event.what != KILL:
                    self.events.append(event)
                self._take(event)
        for line in self._over.lines():
            over = over_of(line)
            if over is not None:
                self._is_over(over)
        begun, gone = self._cluster.sleepers.hear()
        for number, _ in begun:
            self._scripts.add(number)
            record = self._of_number.get(number)
            if record is None or record.attempt is None:
                raise LiveFault(f"Slurm has started job {number} without a word in its log")
            if record.request.stubborn:
                self._cluster.let_ignore_term(number)
            self._tell_end(number)
        self._scripts.difference_update(gone)

    def _take(self, event: Event) -> None:
        record = self._find(event.number, event.task)
        if record is None:
            return
        self.last_s = self._cluster.now
        if event.what == START:
            self._start(record, event)
        elif event.what == SUSPEND:
            self._suspend(record)
        elif event.what == RESUME:
            self._resume(record)
        elif event.what == REQUEUE:
            self._wait_again(record)
        elif event.what == KILL:
            self._is_killed(record, event.date_s)

    def _is_killed(self, record: JobRecord, date_s: float) -> None:
        """Slurm kills a job. Which of several at one date is gone first is up to the machine, and
        here it is the first of them.
        """
        if record.allocation is None:
            return
        if date_s != self._killed_s:
            self._killed, self._killed_s = [], date_s
        first = members(record.allocation.nodes)[0]
        self._killed.append(self._nodes.names[first])
        self._cluster.clean_in_order(self._killed)

    def _find(self, number: int, task: tuple[int, int] | None) -> JobRecord | None:
        """The record of a job by Slurm's number, or by the task of the array that it is."""
        record = self._of_number.get(number) if task is None else self._of_task.get(task)
        if record is not None and task is not None:
            self._of_number[number] = record
            record.number = number
        return record

    def _found(self, cells: Sequence[str]) -> JobRecord | None:
        """The record of a line of squeue that begins with number, index and number of the array."""
        if len(cells) < 3 or not cells[0].isdigit():
            return None
        is_task = cells[1].isdigit() and cells[2].isdigit()
        return self._find(int(cells[0]), (int(cells[2]), int(cells[1])) if is_task else None)

    def _start(self, record: JobRecord, event: Event) -> None:
        """Slurm starts a job: its work begins, whenever its script does."""
        now = self._cluster.now
        if self._placements is None:
            nodes = self._nodes.mask(hosts(event.nodes))
            held = Allocation(nodes, nodes.bit_count())
        else:
            held = self._placements.allocation(event.number, event.task, event.nodes)
        record.allocation = held
        record.by, record.state = event.who, RUNNING
        record.start_s = self._cluster.t0 + int(now)
        record.suspensions = []
        run = Job(record.id, now, held.size, record.id, record.request.work)
        attempt = Attempt(run, held.nodes, now, now, len(self._attempts))
        if held.cpus:
            attempt.cores = held.cpus
        if record.attempt is not None:
            record.restarts += 1
        attempt.ordinal = record.restarts
        record.attempt = attempt
        self._attempts.append((attempt, record))
        self._done.pop(record.number, None)
        self._execution.start(attempt, now)
        if record.number in self._stopped:
            self._stopped.remove(record.number)
            self._suspend(record)

    def _suspend(self, record: JobRecord) -> None:
        attempt, now = record.attempt, self._cluster.now
        if attempt is None or attempt.end_s is not None:
            self._stopped.add(record.number)
        elif not _is_frozen(record):
            self._execution.suspend(attempt, now)
            record.suspensions = [*record.suspensions, [now, inf]]

    def _resume(self, record: JobRecord) -> None:
        attempt, now = record.attempt, self._cluster.now
        if attempt is not None and attempt.end_s is None and _is_frozen(record):
            self._execution.resume(attempt, now)
            record.suspensions[-1][1] = now

    def _stop(self, record: JobRecord) -> None:
        """A job does no more work."""
        attempt, now = record.attempt, self._cluster.now
        if attempt is None or attempt.end_s is not None:
            return
        if _is_frozen(record):
            record.suspensions[-1][1] = now
        attempt.end_s, attempt.state = now, KILLED
        self._execution.stop(attempt, now)

    def _is_over(self, over: Over) -> None:
        """Slurm says that a job, or an execution of it, is over."""
        record = self._find(over.number, over.task)
        if record is None:
            return
        self.last_s = self._cluster.now
        self._stop(record)
        self._done.pop(record.number, None)
        self._stopped.discard(record.number)
        record.state = over.state
        record.submit_s = over.submit_s or record.submit_s
        record.eligible_s = over.eligible_s
        record.start_s = over.start_s or 0
        record.end_s = over.end_s or 0.0
        record.partition = self._partitions.get(over.partition, record.partition)
        if over.limit_min is not None:
            record.limit_s = over.limit_min * 60.0
        self._cpus[record.id] = over.cpus
        if record.id in self.waiting:
            self.waiting.discard(record.id)
            self.over += 1
            if self._on_end is not None:
                self._on_end(record)

    def node_died(self, name: str) -> None:
        """Jobs that have this node do no more work, whenever Slurm sees that."""
        node = self._nodes.index[name]
        for attempt, record in self._attempts:
            if attempt.end_s is None and attempt.is_on(node):
                self._stop(record)

    def _wait_again(self, record: JobRecord) -> None:
        """A job that was over is in the queue again."""
        self._stop(record)
        if record.id not in self.waiting:
            self.waiting.add(record.id)
            self.over -= 1
        record.state = PENDING

    def cpus_of(self, record: JobRecord) -> int:
        """How many CPUs a job had, as Slurm says."""
        return self._cpus.get(record.id, 0)

    # --- the end ----------------------------------------------------------------------------

    def still_there(self) -> bool:
        """Whether jobs are left, also among those that seemed to be over."""
        if not self.waiting:
            answer = self._cluster.client("squeue", "-h", "-r", "-o", "%A|%K|%F|%t")
            for line in answer.text.splitlines():
                record = self._found(line.split("|"))
                if record is not None and not line.endswith("|CG"):
                    self._wait_again(record)
        return bool(self.waiting)

    def note_reasons(self) -> None:
        """Why those that wait do so, as squeue says."""
        answer = self._cluster.client("squeue", "-h", "-r", "-o", "%A|%K|%F|%r")
        for line in answer.text.splitlines():
            record = self._found(line.split("|"))
            if record is not None:
                record.reason = line.rpartition("|")[2]

    def waits_for_decay(self) -> bool:
        """Whether the reason of a job that waits is a limit to usage, which decays."""
        priority = self._conf.priority
        if not priority.decay_half_life_s and priority.usage_reset_period == "NONE":
            return False
        return any(_SPENT.search(self.records[job].reason or "") for job in self.waiting)


def _is_frozen(record: JobRecord) -> bool:
    return bool(record.suspensions) and record.suspensions[-1][1] == inf
