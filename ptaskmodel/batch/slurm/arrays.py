"""What is known of the arrays of a workload before their first task comes."""

from __future__ import annotations

from collections.abc import Iterable

from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.requests.request import JobRequest


class Arrays:
    """How many tasks each array has, and how high its indices go."""

    def __init__(self, conf: Conf, requests: Iterable[JobRequest]) -> None:
        self._most_tasks, self._most = conf.scheduler.max_array_tasks, conf.max_array_size
        self._sizes: dict[str, int] = {}
        self._highest: dict[str, int] = {}
        for request in requests:
            if request.array is not None:
                name, index = request.array.job, request.array.index
                self._sizes[name] = self._sizes.get(name, 0) + 1
                self._highest[name] = max(self._highest.get(name, 0), index)

    def size(self, request: JobRequest) -> int:
        """How many jobs are submitted at once with this one."""
        return 1 if request.array is None else self._sizes.get(request.array_id, 1)

    def refuses(self, request: JobRequest) -> bool:
        """Whether a job is of an array that has an index, or more tasks, than there may be."""
        if request.array is None:
            return False
        too_many = self._most_tasks is not None and self.size(request) > self._most_tasks
        return too_many or self._highest.get(request.array_id, 0) >= self._most
