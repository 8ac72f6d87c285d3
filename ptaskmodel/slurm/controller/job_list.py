"""The job list: the records of all jobs, of running jobs, and of jobs that are over."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.controller.limits import Ended
from ptaskmodel.slurm.controller.running import nodes_of
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest


class JobList:
    """The records of a controller's jobs.

    conf: of the cluster. all: the records, in order of submission. running: those that run or are
    suspended, each (end of its limit, place in Slurm's list, record), sorted. heads: the place of
    each job, or of what is left of an array, by the array's id. requeued: jobs that begin anew,
    until `forget_requeued`.
    """

    def __init__(self, conf: Conf) -> None:
        self._conf = conf
        self.all: list[JobRecord] = []
        self.running: list[tuple[float, int, JobRecord]] = []
        self.heads: dict[str, int] = {}
        self.requeued: list[JobRecord] = []
        self._last_place = 0
        self._ended = Ended()

    # --- places -----------------------------------------------------------------------------

    def add(self, request: JobRequest, now: int, partitions: Sequence[Partition]) -> JobRecord:
        """Make the record of a `request` for `partitions` that arrives at `now`."""
        job = JobRecord(request, self._conf.first_job_id + len(self.all), now, partitions)
        self.all.append(job)
        return job

    def first_place(self, job: JobRecord) -> int:
        """Return the place of a `job` that arrives: its own, or that of its array."""
        return self.heads.setdefault(job.request.array_id, self._new_place())

    def place(self, job: JobRecord) -> int:
        """Return the place of a `job` that waits."""
        return job.listed if job.restarts else self.heads[job.request.array_id]

    def place_at_start(self, job: JobRecord) -> int:
        """Return the place of a `job` that starts.

        A task takes the record of its array; the rest of the array goes to the end of the list.
        """
        if job.request.array is None or job.restarts:
            return job.listed
        place = self.heads[job.request.array_id]
        self.heads[job.request.array_id] = self._new_place()
        return place

    def _new_place(self) -> int:
        self._last_place += 1
        return self._last_place

    # --- who runs ---------------------------------------------------------------------------

    def run(self, job: JobRecord) -> None:
        """Add a `job` to those that run, by its place and the end of its limit."""
        insort(self.running, (job.end_s, job.listed, job))

    def stop(self, job: JobRecord) -> None:
        """Take a `job` off those that run; its end and its place are still those of `run`."""
        del self.running[bisect_left(self.running, (job.end_s, job.listed))]

    def ends(self) -> list[tuple[float, int, JobRecord]]:
        """Return a copy of `running`."""
        return self.running.copy()

    def on_node(self, node: int) -> list[JobRecord]:
        """Return the jobs that run or are suspended on a `node`, by the end of their limits."""
        return [job for _, _, job in self.running if nodes_of(job) >> node & 1]

    # --- who is over ------------------------------------------------------------------------

    @property
    def ended(self) -> int:
        """How many records of jobs that are over are kept."""
        return len(self._ended)

    @property
    def remembers(self) -> bool:
        """Whether some record of a job that is over will be forgotten."""
        return bool(self._ended) and self._conf.min_job_age_s > 0

    def end(self, job: JobRecord, now: int) -> None:
        """Keep the record of a `job` that is over at `now` for MinJobAge."""
        self._ended.add(now, job)

    def forget(self, now: int) -> list[JobRecord]:
        """Return the jobs whose records are forgotten at `now`."""
        age_s = self._conf.min_job_age_s
        return self._ended.forget(now - age_s) if age_s else []

    def requeue(self, job: JobRecord) -> None:
        """Note that a `job` begins anew."""
        self.requeued.append(job)

    def forget_requeued(self) -> None:
        """Empty `requeued`, after it has been read."""
        self.requeued.clear()
