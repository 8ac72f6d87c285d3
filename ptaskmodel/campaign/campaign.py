"""A campaign: its plan and where its runs are kept; makes those that are missing."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.campaign.cluster import Cluster
from ptaskmodel.campaign.cluster_pool import ClusterPool
from ptaskmodel.campaign.plan import Plan, Run, read_plan
from ptaskmodel.campaign.pool import Pool, processors
from ptaskmodel.campaign.store import DONE, FAILED, MISSING, Store
from ptaskmodel.errors import CampaignError

if TYPE_CHECKING:
    import pandas

# Told of each run that was made: how many are done, how many failed, of how many, the run, its
# seconds, what went wrong.
Progress = Callable[[int, int, int, Run, float, "str | None"], None]


class Status(NamedTuple):
    """How many runs are made, failed, missing."""

    done: int
    failed: int
    missing: int

    @property
    def total(self) -> int:
        return sum(self)


class Estimate(NamedTuple):
    """What all runs take, from some that were made: seconds of one process, bytes on disk.

    failed: why others of those that were tried failed. unseen: what to say of a metric of the plan
    that none of them has.
    """

    runs: int
    tried: int
    seconds: float
    bytes: float
    failed: tuple[str, ...] = ()
    unseen: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Campaign:
    """Runs of a plan, kept in a directory.

    part: (k, n): only every n-th run from the k-th on, from 1; merged with the others later.
    """

    plan: Plan
    store: Store
    runs: Sequence[Run]

    @classmethod
    def of(cls, plan: Plan, directory: str | Path, part: tuple[int, int] = (1, 1)) -> Campaign:
        """The runs of a plan, checked before any is made. Raises CampaignError."""
        k, n = part
        if not 1 <= k <= n:
            raise CampaignError(f"part {k}/{n}: give K/N with K from 1 to N")
        return cls(plan, Store(directory), plan.runs()[k - 1 :: n])

    @classmethod
    def in_directory(cls, directory: str | Path) -> Campaign:
        """The campaign that was begun in a directory. Raises CampaignError."""
        return cls.of(Store(directory).plan(), directory)

    @classmethod
    def in_file(cls, path: str | Path, directory: str | Path, part: tuple[int, int]) -> Campaign:
        """The campaign of a file, kept in a directory. Raises CampaignError."""
        return cls.of(read_plan(path), directory, part)

    def status(self) -> Status:
        """What there is by now."""
        counts = Counter(self.store.state(run) for run in self.runs)
        return Status(counts[DONE], counts[FAILED], counts[MISSING])

    def left_s(self, now: float) -> float | None:
        """How long who makes runs now will take for those that are missing, at the rate so far.

        now: Unix seconds. None if nobody does, or no run was made yet.
        """
        began = self.store.begun_at()
        if began is None:
            return None
        made = self.store.made_since(began, self.runs)
        return self.status().missing * (now - began) / made if made else None

    def make(
        self,
        processes: int | None = None,
        *,
        on: Cluster | None = None,
        again: bool = False,
        progress: Progress | None = None,
    ) -> Status:
        """Make the runs that are missing, and with ``again`` those that failed.

        processes: of this machine (all processors by default); or on a Dask cluster. Raises
        CampaignError if another process does so in this directory, or the cluster cannot be used.
        """
        self.store.begin(self.plan)
        with self.store.locked():
            states = {run.id: self.store.state(run) for run in self.runs}
            redone = {MISSING, FAILED} if again else {MISSING}
            todo = [run for run in self.runs if states[run.id] in redone]
            counts = Counter(state for state in states.values() if state not in redone)

            def tell(run: Run, status: str, seconds: float, error: str | None) -> None:
                counts[status] += 1
                if progress is not None:
                    made = counts[DONE], counts[FAILED], len(self.runs)
                    progress(*made, run, seconds, error)

            if todo and on is not None:
                ClusterPool(self.plan, self.store, on).make(todo, tell)
            elif todo:
                count = min(processes or processors(), len(todo))
                Pool(self.plan, self.store, count).make(todo, tell)
        made = counts[DONE], counts[FAILED]
        return Status(*made, len(self.runs) - sum(made))

    def estimate(self, tried: int) -> Estimate:
        """Make some runs, spread over the campaign, one after the other; say what all will take.

        They are kept as any others. The first of a process, which loads what others find, does not
        count if there are more. Raises CampaignError if all of them fail.
        """
        step = max(1, len(self.runs) // tried)
        some = Campaign(self.plan, self.store, self.runs[step // 2 :: step][:tried])
        some.make(1)
        records = [record for run in some.runs if (record := self.store.read(run.id))]
        good = [record for record in records if record["status"] == DONE]
        if not good:
            raise CampaignError(f"{self.plan.name}: a run fails: {records[0]['error']}")
        warm = [record for record in good if record.get("warm", True)] or good
        seconds = math.fsum(record["wall_s"] for record in warm) / len(warm)
        size = sum(self.store.path(record["id"]).stat().st_size for record in good) / len(good)
        count = len(self.runs)
        failed = tuple(record["error"] for record in records if record["status"] == FAILED)
        known = dict.fromkeys(name for record in good for name in record["metrics"])
        unseen = _unseen(self.plan.metrics, known)
        return Estimate(count, len(good), seconds * count, size * count, failed, unseen)

    def kernels(self) -> tuple[str, ...]:
        """The sets of kernels that the runs need: to be compiled once, before workers do."""
        needed = dict.fromkeys(
            name for run in self.runs for name in self.plan.kind.kernels(run.parameters)
        )
        return tuple(needed)

    def failures(self) -> list[tuple[Run, str]]:
        """The runs that failed, and why."""
        found = []
        for run in self.runs:
            record = self.store.read(run.id)
            if record is not None and record["status"] == FAILED:
                found.append((run, str(record["error"])))
        return found

    def records(self) -> Iterator[tuple[Run, Mapping[str, Any]]]:
        """The runs that are made, each with what is kept of it: `metrics`, `series`, `wall_s`."""
        for run in self.runs:
            record = self.store.read(run.id)
            if record is not None and record["status"] == DONE:
                yield run, record

    def metrics(self) -> tuple[str, ...]:
        """What tables and pictures show: as the plan says, else what the kind is known for."""
        return self.plan.metrics or self.plan.kind.metrics

    def frame(self, every: bool = False) -> pandas.DataFrame:
        """One row a run: the factors, repetition, metrics, status, seconds, id.

        Rows are in the order of the plan. every: all numbers of the runs, not only `metrics`.
        Raises CampaignError for a metric that no run has.
        """
        import pandas

        rows = []
        for run in self.runs:
            record = self.store.read(run.id) or {"status": MISSING}
            numbers = record.get("metrics", {})
            rows.append((run, record, numbers))
        known = dict.fromkeys(name for _, _, numbers in rows for name in numbers)
        chosen = tuple(known) if every or not self.metrics() else self.metrics()
        unseen = _unseen(chosen, known)
        if known and unseen:
            raise CampaignError(f"metrics: {unseen}")
        columns: dict[str, list[object]] = {
            name: [run.point[name] for run, _, _ in rows] for name in self.plan.factors
        }
        columns["repetition"] = [run.repetition for run, _, _ in rows]
        for name in chosen:
            columns[name] = [numbers.get(name, math.nan) for _, _, numbers in rows]
        columns["status"] = [record["status"] for _, record, _ in rows]
        columns["wall_s"] = [record.get("wall_s", math.nan) for _, record, _ in rows]
        columns["run"] = [run.id for run, _, _ in rows]
        return pandas.DataFrame(columns)


def _unseen(chosen: Collection[str], known: Collection[str]) -> str:
    """What to say of the first metric that is not known; empty if all are."""
    strange = next((name for name in chosen if name not in known), None)
    if strange is None:
        return ""
    parts = [name for name in known if name.startswith(f"{strange}.")]
    near = parts or difflib.get_close_matches(strange, known, 5) or sorted(known)
    return f"no run has '{strange}': use some of {', '.join(near)}"
