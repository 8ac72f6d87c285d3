"""The controller: its parts, and the actions that need several of them.

The event loop calls it; the schedulers query its parts and start jobs through it. Each part changes
only its own fields. Nodes that fail, and what then happens to jobs, are here too.

A node that fails does no more work and gets no more jobs. The controller pings nodes every third of
SlurmdTimeout. It sets a node DOWN that has not answered for longer than SlurmdTimeout; the jobs on
it end as NODE_FAIL or, with JobRequeue, wait again. If a node answers again before that, the
controller finds that it has lost the jobs of which it was the first node.
Source: observed on Slurm 22.05.8.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from math import floor, inf
from pathlib import Path

from ptaskmodel.batch.machine.failures import FailureLaw, Outages, read_failures
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.errors import SlurmError, shown
from ptaskmodel.slurm.conf.facts import REQUEUE, Conf, Nodes
from ptaskmodel.slurm.conf.phases import Phases
from ptaskmodel.slurm.controller.allocations import Allocations, Reservations
from ptaskmodel.slurm.controller.job_list import Events, JobList, Note, Running
from ptaskmodel.slurm.controller.preemption import Precedence, Preemption
from ptaskmodel.slurm.controller.queue import HELD_ADMIN, Queue
from ptaskmodel.slurm.controller.rules import Rules
from ptaskmodel.slurm.controller.start_and_end import Runs, Submission, Suspension
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.record import Allocation, JobRecord, nodes_of, outstaying, over_limit


class Controller:
    """Jobs, nodes and the rules of a configuration.

    conf, nodes, phases, rules: of the cluster. running: the execution. note: called for each event
    of a job. keeps_plans: whether somebody looks at planned starts.

    Its parts: events, jobs (their list), queue, preemption (which jobs may preempt which),
    allocations, reservations, submission, runs (start and end of jobs), suspension.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        phases: Phases,
        running: Running,
        rules: Rules,
        note: Note | None = None,
        *,
        keeps_plans: bool = False,
    ) -> None:
        self.conf = conf
        self.nodes = nodes
        self.phases = phases
        self.rules = rules
        self.events = events = Events(phases, note)
        self.jobs = jobs = JobList(conf)
        self.preemption = preemption = Preemption(conf, rules.accounts)
        self.queue = queue = Queue(
            rules.dependencies.state,
            rules.priorities.accrue,
            events.change_at,
            rules.arrays.is_full,
            lambda entry: rules.takes_whole(entry.job, entry.job.partitions[entry.which]),
            Precedence(preemption, jobs.place).order if preemption.active else None,
            conf.first_job_id,
            tests_first=phases.tests_first,
        )
        self.allocations = allocations = Allocations(conf, nodes, rules, preemption, jobs)
        self.reservations = Reservations(
            rules.reserved, nodes, conf.scheduler, keeps_plans=keeps_plans
        )
        self.submission = submission = Submission(conf, rules, events, jobs, queue, allocations)
        self.suspension = suspension = Suspension(conf, nodes, events, jobs, allocations, running)
        self.runs = Runs(
            *(conf, phases, rules, events, jobs, queue, allocations, running),
            *(submission, suspension),
        )

    @property
    def unfinished(self) -> bool:
        """Whether some job waits or runs."""
        return bool(self.queue.jobs or self.busy)

    @property
    def over(self) -> int:
        """How many jobs are over."""
        under_way = len(self.jobs.running) + len(self.allocations.cleaning)
        return max(len(self.jobs.all) - len(self.queue.jobs) - under_way, 0)

    @property
    def busy(self) -> bool:
        """Whether some job holds nodes."""
        return bool(self.jobs.running or self.allocations.cleaning)

    @property
    def idle(self) -> Mask:
        """Nodes whose state is IDLE: no job runs on them, though some may be suspended there."""
        if not self.conf.gang:
            return self.allocations.idle
        busy = 0
        for _, _, job in self.jobs.running:
            if job.state == record.RUNNING:
                busy |= nodes_of(job)
        return self.nodes.up & ~busy

    def check_limits(self, date: float) -> None:
        """Kill jobs that exceed their limits at a `date`, and purge reservations."""
        now, running = self.events.second(date), self.jobs.running
        over = over_limit(self.conf, running, now)
        reserves = not self.rules.reserved.empty
        if reserves:
            over += outstaying(self.conf, running, now, over)
        ending = over
        if self.rules.limits.kills:
            ending = [job for _, _, job in running if job.state == record.RUNNING]
        for job in sorted(ending, key=lambda job: job.listed) if ending else ():
            if job.victim and job in over:
                again = self.preemption.mode_of(job) == REQUEUE
                self.runs.kill(job, date, record.PREEMPTED, requeued=again)
            elif not job.victim and (job in over or self.rules.must_end(job, now)):
                self.runs.kill(job, date, record.TIMEOUT)
        if reserves:
            self.reservations.purge(self.jobs, self.queue, self.events, now)

    def end_victims(self, date: float) -> Mask:
        """Kill at a `date` the victims that preemption has named; return their nodes."""
        nodes = 0
        for job, mode in self.allocations.victims.take_doomed():
            nodes |= nodes_of(job)
            if job.state in record.LIVE:
                self.runs.kill(job, date, record.PREEMPTED, requeued=mode == REQUEUE)
        return nodes

    def purge(self, date: float) -> None:
        """Forget jobs that ended long before a `date`, which counts as a change.

        Before that, find the jobs that depend on them in vain.
        """
        now = self.events.second(date)
        self.queue.test_dependencies(now)
        gone = self.jobs.forget(now)
        for job in gone:
            self.rules.dependencies.forget(job)
        if gone:
            self.events.change(date)

    def refresh(self, date: float) -> None:
        """Compute all priorities anew at a `date`, and order the queue by them."""
        changed = self.rules.refresh(self.events.second(date), self.jobs.heads)
        flags = self.conf.priority.flags
        if "CALCULATE_RUNNING" in flags:  # by Fair Tree even of jobs that are over
            classic = not flags.isdisjoint(("NO_FAIR_TREE", "DEPTH_OBLIVIOUS"))
            changed |= bool(self.jobs.running or (self.jobs.ended and not classic))
        if self.queue.jobs:
            self.queue.sort()
        if changed:
            self.events.change(date)

    def command(self, job: JobRecord, action: str, date: float) -> None:
        """Do to a `job` what a user asks for at a `date`; action: such as "hold"."""
        if action == "cancel":
            self._cancel(job, date)
        elif action in ("hold", "release"):
            self.submission.hold(job, action == "hold", date)
        elif action == "suspend" and job.state == record.RUNNING:
            self.suspension.suspend(job, date)
        elif action == "resume" and job.state == record.SUSPENDED:
            self.suspension.resume(job, date)
        elif action == "requeue" and job.state in record.LIVE:
            self.runs.kill(job, date, record.CANCELLED, requeued=True)

    def holds(self, job: JobRecord, found: Allocation | None, date: float) -> bool:
        """Return whether a `job` is held at a `date`, as its GPUs leave its tasks too few cores.

        found: what it would get.
        """
        if found is None or all(found.cores) or not any(need.asks for need in job.needs):
            return False
        for each in self.rules.arrays.of_one_record(job):
            self.queue.hold(each, held=True)
            self.queue.waits_because(each, HELD_ADMIN)
        self.events.change(date)
        return True

    def _cancel(self, job: JobRecord, date: float) -> None:
        if job.state == record.PENDING:
            self.submission.cancel(job, date)
        elif job.state in record.LIVE:
            self.runs.kill(job, date, record.CANCELLED)
        else:
            self.events.change(date)  # whoever asks for a job that is over


Changes = Iterable[tuple[float, bool]]
# From the controller's start to the first ping; pings by SlurmdTimeout; and until a message to a
# node that does not answer is given up, s.
FIRST_PING_S = 4
PINGS = 3
UNREACHED_S = 11
DIES, DOWN, ANSWERS, RETURNS = "dies", "set down", "answers", "returns to service"
Tell = Callable[[float, str, str], None]


def failures_of_nodes(
    conf: Conf, *, file: str | Path | None = None, law: FailureLaw | None = None
) -> dict[str, Changes]:
    """Return when the nodes of `conf` fail and recover: (time in s, whether it is up), by name.

    file: as of ``ptaskmodel batch --failures``. law: draws the failures of nodes that the file does
    not name. Raises SlurmError for an unknown node and a law for links, SimulationError with file
    and line for wrong values.
    """
    names = {name for line in conf.nodes for name in line.names}
    found: dict[str, Changes] = {}
    if law is not None:
        if law.link_mtbf is not None or law.mtbf is None:
            raise SlurmError("--failure-law: only nodes fail here; give mtbf, and no link_mtbf")
        found |= {name: law.stream(name) for name in sorted(names)}
    if file is not None:
        given = read_failures(file)
        stray = next((name for name in given if name not in names), None)
        if stray is not None:
            raise SlurmError(f"{file}: the slurm.conf has no node {shown(stray)}; correct it")
        found |= given
    return found


class NodeFailures:
    """The nodes of a controller that fail and come back; the loop asks when something is due.

    died: how many times a node did; set_down: how many times the controller noticed by itself.
    """

    def __init__(
        self, controller: Controller, failures: Mapping[str, Changes], tell: Tell | None = None
    ) -> None:
        self._controller, self._tell = controller, tell
        index, conf = controller.nodes.index, controller.conf
        mine = [(index[name], changes) for name, changes in failures.items() if name in index]
        self._coming = Outages({}, mine)
        self._timeout_s = conf.slurmd_timeout_s
        self._period_s = max(1, conf.slurmd_timeout_s // PINGS)
        self._first_s = controller.phases.boot_s + FIRST_PING_S
        self._noticed: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}
        self._down = self._dead = 0
        self.died = self.set_down = 0

    @property
    def next_date(self) -> float:
        """When something happens next, s; inf: never."""
        return min(self._coming.next_date, self._noticed[0][0] if self._noticed else inf)

    @property
    def stay_down(self) -> list[str]:
        """Return the nodes that answer again but stay down until an administrator resumes them."""
        return self._controller.nodes.names_of(self._down & ~self._dead)

    def act(self, date: float) -> None:
        """Whatever is due at a date happens."""
        for outage in self._coming.take(date):
            node = outage.subject
            assert isinstance(node, int)
            if outage.up:
                self._answers(node, date)
            else:
                self._dies(node, date)
        while self._noticed and self._noticed[0][0] <= date:
            due, node = heapq.heappop(self._noticed)
            if self._due.get(node) == due:
                self._is_set_down(node, date)

    def _dies(self, node: int, date: float) -> None:
        controller = self._controller
        self.died += 1
        self._say(date, DIES, node)
        self._dead |= 1 << node
        controller.nodes.fail(node)
        for job in controller.jobs.on_node(node):
            controller.runs.stop_working(job, date)
        if self._timeout_s and not self._down >> node & 1:
            self._due[node] = self._silent_too_long(date)
            heapq.heappush(self._noticed, (self._due[node], node))

    def _silent_too_long(self, date: float) -> float:
        """The ping that finds a node that dies at a date to have been silent for too long."""
        pings = floor((date - self._first_s) / self._period_s)
        answered = self._first_s + pings * self._period_s
        return answered + (self._timeout_s // self._period_s + 1) * self._period_s

    def _is_set_down(self, node: int, date: float) -> None:
        controller = self._controller
        self.set_down += 1
        self._say(date, DOWN, node)
        del self._due[node]
        self._down |= 1 << node
        for job in controller.jobs.on_node(node):
            alone = nodes_of(job).bit_count() == 1
            controller.runs.lose(job, date, 0 if alone else UNREACHED_S)
        controller.events.change(date)

    def _answers(self, node: int, date: float) -> None:
        controller = self._controller
        self._dead &= ~(1 << node)
        self._say(date, ANSWERS, node)
        if self._down >> node & 1:
            if not controller.conf.return_to_service:
                return
            self._down &= ~(1 << node)
            self._say(date, RETURNS, node)
        else:
            self._due.pop(node, None)
            for job in controller.jobs.on_node(node):
                first = not nodes_of(job) & ((1 << node) - 1)
                if first or job.limit_s == inf:
                    controller.runs.lose(job, date)
        controller.nodes.return_to_service(node)
        controller.events.ask_for_pass()
        controller.events.change(date)

    def _say(self, date: float, what: str, node: int) -> None:
        if self._tell is not None:
            self._tell(date, what, self._controller.nodes.names[node])
