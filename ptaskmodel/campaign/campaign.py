"""A campaign: a plan and a store together; it makes the missing runs and returns their table.

The command line and scripts use `Campaign`. `write_table` writes a table as Parquet or CSV.
`told_campaigns` parses the arguments of scripts that make tables and pictures.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.campaign.dask_cluster import Cluster
from ptaskmodel.campaign.dask_pool import ClusterPool
from ptaskmodel.campaign.plan import Plan, Run, read_plan
from ptaskmodel.campaign.pool import Pool, processors
from ptaskmodel.campaign.store import DONE, FAILED, LEVEL, MISSING, PACKED, Index, Store
from ptaskmodel.errors import CampaignError
from ptaskmodel.files import whole_path

if TYPE_CHECKING:
    import pandas


# Told of each run that was made: how many are done, how many failed, of how many, the run, its
# seconds, what went wrong.
Progress = Callable[[int, int, int, Run, float, "str | None"], None]
# A run of less than this, s, is made twice to estimate what all take.
SHORT_S = 10.0
PARQUET = ".parquet"


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

    start_s: what each process needs once, to load what runs find. failed: why others of those that
    were tried failed. unseen: what to say of a metric of the plan that none of them has.
    """

    runs: int
    tried: int
    seconds: float
    start_s: float
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
        """Return the campaign of a plan, its runs checked before any is made.

        directory: where its results are kept. part: (k, n), as of the class. Raises CampaignError.
        """
        k, n = part
        if not 1 <= k <= n:
            raise CampaignError(f"part {k}/{n}; give K/N with K from 1 to N")
        return cls(plan, Store(directory), plan.runs()[k - 1 :: n])

    @classmethod
    def in_directory(cls, directory: str | Path) -> Campaign:
        """The campaign that was begun in a directory. Raises CampaignError."""
        return cls.of(Store(directory).plan(), directory)

    @classmethod
    def in_file(cls, path: str | Path, directory: str | Path, part: tuple[int, int]) -> Campaign:
        """Return the campaign of the plan in the file ``path``; directory, part: as for `of`."""
        return cls.of(read_plan(path), directory, part)

    def status(self) -> Status:
        """What there is by now."""
        counts = Counter(self._states(self.store.index()))
        return Status(counts[DONE], counts[FAILED], counts[MISSING])

    def _states(self, index: Index) -> list[str]:
        """What became of each run."""
        names = np.array([FAILED, DONE, MISSING])
        places = self._places(index)
        known = index.done[places].astype(int) if len(index.ids) else places
        states: list[str] = names[np.where(places < 0, 2, known)].tolist()
        return states

    def _places(self, index: Index) -> np.ndarray:
        return index.places([run.id for run in self.runs])

    def left_s(self, now: float) -> float | None:
        """Return how long the present process will need for the missing runs, at the rate so far.

        now: Unix seconds. None if no process makes runs, or no run is finished yet.
        """
        begun = self.store.begun()
        if begun is None:
            return None
        status = self.status()
        made = status.done + status.failed - begun[1]
        return status.missing * (now - begun[0]) / made if made > 0 else None

    def make(
        self,
        processes: int | None = None,
        *,
        on: Cluster | None = None,
        again: bool = False,
        progress: Progress | None = None,
    ) -> Status:
        """Make the runs that are missing, and with ``again`` those that failed.

        processes: how many of this machine (None: one for each processor). on: a Dask cluster,
        instead of them. progress: called after each run, with how many are done, failed and wanted,
        the run, its seconds and its error, if any. Raises CampaignError if another process does so
        in this directory, or the cluster cannot be used.
        """
        self.store.begin(self.plan)
        with self.store.locked():
            self.store.pack(finished=False)
            states = self._states(self.store.index())
            redone = {MISSING, FAILED} if again else {MISSING}
            todo = [run for run, state in zip(self.runs, states, strict=True) if state in redone]
            counts = Counter(state for state in states if state not in redone)
            self.store.say_begun(counts.total())

            def tell(run: Run, status: str, seconds: float, error: str | None) -> None:
                counts[status] += 1
                if counts.total() % PACKED == 0:
                    self.store.pack(finished=False)
                if progress is not None:
                    made = counts[DONE], counts[FAILED], len(self.runs)
                    progress(*made, run, seconds, error)

            if todo and on is not None:
                ClusterPool(self.plan, self.store, on).make(todo, tell)
            elif todo:
                count = min(processes or processors(), len(todo))
                Pool(self.plan, self.store, count).make(todo, tell)
            self.store.pack(finished=counts.total() == len(self.runs))
        made = counts[DONE], counts[FAILED]
        return Status(*made, len(self.runs) - sum(made))

    def estimate(self, tried: int) -> Estimate:
        """Make ``tried`` runs, spread over the campaign, one by one; return what all will take.

        They are kept as any others. Short ones are made twice, as the first loads what later ones
        find: kernels, platform, workload. Raises CampaignError if all of them fail.
        """
        step = max(1, len(self.runs) // tried)
        some = Campaign(self.plan, self.store, self.runs[step // 2 :: step][:tried])
        took: dict[str, list[float]] = {}
        self.store.begin(self.plan)
        with self.store.locked():

            def tell(run: Run, status: str, seconds: float, error: str | None) -> None:
                if status == DONE:
                    took.setdefault(run.id, []).append(seconds)

            def twice() -> Iterator[Run]:
                for run in some.runs:
                    yield run
                    if took.get(run.id, [SHORT_S])[0] < SHORT_S:
                        yield run

            Pool(self.plan, self.store, 1).make(twice(), tell)
        index = self.store.index()
        records = [index.record(place) for place in some._places(index)]
        good = [record for record in records if record["status"] == DONE]
        if not good:
            raise CampaignError(f"{self.plan.name}: a run failed: {records[0]['error']}")
        count = len(self.runs)
        seconds = math.fsum(times[-1] for times in took.values()) / len(took) * count
        start = math.fsum(max(0.0, times[0] - times[-1]) for times in took.values())
        texts = [json.dumps(record).encode() for record in good]
        size = len(zlib.compress(b"".join(texts), LEVEL)) / len(good) * count
        failed = tuple(record["error"] for record in records if record["status"] == FAILED)
        known = dict.fromkeys(name for record in good for name in record["metrics"])
        unseen = _unseen(self.plan.metrics, known)
        return Estimate(count, len(good), seconds, start, size, failed, unseen)

    def failures(self) -> list[tuple[Run, str]]:
        """The runs that failed, and why."""
        index = self.store.index()
        failed = zip(self.runs, self._places(index), strict=True)
        return [
            (run, str(index.record(place)["error"]))
            for run, place in failed
            if place >= 0 and not index.done[place]
        ]

    def records(self) -> Iterator[tuple[Run, Mapping[str, Any]]]:
        """The runs that are made, each with what is kept of it: `metrics`, `series`, `wall_s`."""
        index = self.store.index()
        for run, place in zip(self.runs, self._places(index), strict=True):
            if place >= 0 and index.done[place]:
                yield run, index.record(place)

    def metrics(self) -> tuple[str, ...]:
        """What tables and pictures show: as the plan says, else what the kind is known for."""
        return self.plan.metrics or self.plan.kind.metrics

    def frame(self, every: bool = False) -> pandas.DataFrame:
        """One row a run: the factors, repetition, metrics, status, seconds, id.

        Rows are in the order of the plan. every: all numbers of the runs, not only `metrics`.
        Raises CampaignError for a metric that no run has.
        """
        import pandas

        index = self.store.index()
        asked = () if every else self.metrics()
        known: dict[str, str] = {}  # by itself, so that each name is held once
        rows = []
        for run, place in zip(self.runs, self._places(index), strict=True):
            record: Mapping[str, Any] = index.record(place) if place >= 0 else {"status": MISSING}
            found = {known.setdefault(one, one): x for one, x in record.get("metrics", {}).items()}
            numbers = {name: found[name] for name in asked if name in found} if asked else found
            rows.append((run, record["status"], record.get("wall_s", math.nan), numbers))
        chosen = asked or tuple(known)
        unseen = _unseen(chosen, known)
        if known and unseen:
            raise CampaignError(f"metrics: {unseen}")
        columns: dict[str, list[object]] = {
            name: [run.point[name] for run, *_ in rows] for name in self.plan.factors
        }
        columns["repetition"] = [run.repetition for run, *_ in rows]
        for name in chosen:
            columns[name] = [numbers.get(name, math.nan) for *_, numbers in rows]
        columns["status"] = [status for _, status, _, _ in rows]
        columns["wall_s"] = [seconds for _, _, seconds, _ in rows]
        columns["run"] = [run.id for run, *_ in rows]
        return pandas.DataFrame(columns)


def _unseen(chosen: Collection[str], known: Collection[str]) -> str:
    """What to say of the first metric that is not known; empty if all are."""
    strange = next((name for name in chosen if name not in known), None)
    if strange is None:
        return ""
    parts = [name for name in known if name.startswith(f"{strange}.")]
    near = parts or difflib.get_close_matches(strange, known, 5) or sorted(known)
    return f"no run has '{strange}'; choose from {', '.join(near)}"


def write_table(frame: pandas.DataFrame, path: str | Path) -> None:
    """Write the table ``frame``, whole, to ``path``, which ends in .parquet or .csv.

    Raises CampaignError for another name, or if Parquet needs a library that is missing.
    """
    path = Path(path)
    if path.suffix not in (PARQUET, ".csv"):
        raise CampaignError(
            f"{path}: a table is written as .parquet or .csv; end the name in one of these"
        )
    with whole_path(path, error=CampaignError) as partial:
        if path.suffix == ".csv":
            frame.to_csv(partial, index=False, lineterminator="\n")
            return
        try:
            _plain(frame).to_parquet(partial, index=False, engine="pyarrow")
        except ImportError:
            raise CampaignError(
                f"{path}: Parquet needs pyarrow; run pip install pyarrow, or give .csv"
            ) from None


def _plain(frame: pandas.DataFrame) -> pandas.DataFrame:
    """With columns of one type each: levels of mixed types as text."""
    mixed = {
        name: frame[name].map(str)
        for name in frame.columns
        if frame[name].dtype == object and len({type(value) for value in frame[name]}) > 1
    }
    return frame.assign(**mixed)


def told_campaigns(description: str) -> tuple[list[Campaign], Path]:
    """The campaigns whose directories the command line names, and the directory it asks for, made.

    description: the script's docstring; its first line is shown by --help.
    Raises CampaignError.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, help="directories of campaigns")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="created if it does not exist"
    )
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    return [Campaign.in_directory(place) for place in given.runs], given.output
