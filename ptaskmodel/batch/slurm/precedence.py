"""The order of a queue some of whose jobs may preempt others.

Slurm compares two waiting jobs by whether one may preempt the other before it looks at anything
else. That need not be an order: where A preempts C, but B stands between them by priority, who is
first depends on how they are sorted. glibc's qsort merges halves, and so does `Precedence`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from ptaskmodel.batch.slurm.conf.facts import BY_QOS, BY_TIER
from ptaskmodel.batch.slurm.preemption import Preemption, Standing
from ptaskmodel.batch.slurm.queueing import RESERVED, Entry
from ptaskmodel.batch.slurm.record import JobRecord

# Who waits, and the entries of a job or of what waits of an array.
Record = tuple[Standing, list[Entry]]


class Precedence:
    """Puts entries into the order of Slurm's sort_job_queue2 (src/slurmctld/job_scheduler.c).

    listed: the place in the list of all jobs of the record that a waiting job belongs to; what
    waits of an array is one record.
    """

    def __init__(self, preemption: Preemption, listed: Callable[[JobRecord], int]) -> None:
        self._preemption = preemption
        self._listed = listed
        self._known: dict[frozenset[str | None], dict[str | None, int] | None] = {}

    def order(self, entries: list[Entry]) -> list[Entry]:
        """The entries, which come in the order of their keys, in the order of the queue."""
        kind = self._preemption.kind
        if kind == BY_TIER:
            plain = not entries or entries[0].key[RESERVED] == entries[-1].key[RESERVED]
            return entries if plain else self._merged(entries)
        if kind != BY_QOS:
            return entries
        qos_of = self._preemption.qos_name
        present = frozenset(qos_of(entry.job) for entry in entries)
        if present not in self._known:
            self._known[present] = self._preemption.levels(present)
        levels = self._known[present]
        if levels is None:
            return self._merged(entries)
        return sorted(entries, key=lambda entry: -levels[qos_of(entry.job)])

    def _merged(self, entries: list[Entry]) -> list[Entry]:
        def record(entry: Entry) -> tuple[int, int]:
            return self._listed(entry.job), entry.which

        ordered = sorted(entries, key=record)  # stable: the tasks of an array stay in their order
        records = []
        for _, tasks in groupby(ordered, record):
            entries = list(tasks)
            records.append((self._preemption.standing(entries[0]), entries))
        return [entry for _, entries in self._sorted(records) for entry in entries]

    def _sorted(self, records: list[Record]) -> list[Record]:
        if len(records) < 2:
            return records
        half = len(records) // 2
        first, second = self._sorted(records[:half]), self._sorted(records[half:])
        merged = []
        left, right = 0, 0
        while left < len(first) and right < len(second):
            if self._is_before(first[left], second[right]):
                merged.append(first[left])
                left += 1
            else:
                merged.append(second[right])
                right += 1
        return merged + first[left:] + second[right:]

    def _is_before(self, record: Record, other: Record) -> bool:
        may, mine, its = self._preemption.may, record[0], other[0]
        if may(mine, its):
            return True
        return not may(its, mine) and record[1][0].key < other[1][0].key
