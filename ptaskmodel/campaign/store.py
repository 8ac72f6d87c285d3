"""Where a campaign keeps its runs: a file each, called after what it is, whole or not there.

    DIR/campaign.toml     the plan
    DIR/runs/ab/abcd.json a run that was made, or failed
    DIR/logs/             what workers said that died

A run is written by who made it, so that a kill -9 of anything at any time loses no run that is
finished; its name is a digest of its inputs, options and versions, so that directories of several
machines are merged by copying.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ptaskmodel.campaign.plan import Plan, Run, plan_of
from ptaskmodel.errors import CampaignError
from ptaskmodel.files import read_text, write_bytes

PLAN, RUNS, LOGS, LOCK, FOLDER = "campaign.toml", "runs", "logs", ".lock", "folder.txt"
# By what it holds, a worker knows that it sees the same directory.
TOKEN = ".shared"
DONE, FAILED, MISSING = "done", "failed", "missing"


class Store:
    """A directory of a campaign."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def path(self, run_id: str) -> Path:
        """The file of a run."""
        return self.directory / RUNS / run_id[:2] / f"{run_id}.json"

    def begin(self, plan: Plan) -> None:
        """Keep the plan here; a changed one takes the place of the old. Raises CampaignError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        others = {one.name for one in self.directory.iterdir()} - _OURS
        if others and not (self.directory / PLAN).exists():
            raise CampaignError(
                f"{self.directory}: holds {min(others)}, which is of no campaign; "
                "give an empty directory or a new name"
            )
        write_bytes(self.directory / PLAN, plan.text.encode(), error=CampaignError)
        write_bytes(self.directory / FOLDER, f"{plan.folder}\n".encode(), error=CampaignError)

    def plan(self) -> Plan:
        """The plan kept here. Raises CampaignError."""
        path = self.directory / PLAN
        if not path.exists():
            raise CampaignError(f"{self.directory}: holds no campaign (no {PLAN})")
        folder = Path(read_text(self.directory / FOLDER, error=CampaignError).strip())
        return plan_of(read_text(path, error=CampaignError), folder, self.directory.name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else makes runs here meanwhile. Raises CampaignError if somebody does."""
        with (self.directory / LOCK).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CampaignError(
                    f"{self.directory}: another process makes runs here; wait for it, "
                    "or make another part of them in a directory of its own (--part)"
                ) from None
            os.utime(file.fileno())  # see `begun_at`
            yield

    def begun_at(self) -> float | None:
        """When who makes runs here began, Unix seconds; None if nobody does."""
        try:
            with (self.directory / LOCK).open("r") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return os.fstat(file.fileno()).st_mtime
        except OSError:
            pass
        return None

    def made_since(self, date: float, runs: Iterable[Run]) -> int:
        """How many of these runs were made, or failed, since then (Unix seconds)."""
        count = 0
        for run in runs:
            try:
                count += self.path(run.id).stat().st_mtime >= date
            except OSError:
                continue
        return count

    def write(self, run_id: str, record: Mapping[str, Any]) -> None:
        """Keep what became of a run."""
        path = self.path(run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, allow_nan=False)
        write_bytes(path, f"{text}\n".encode(), error=CampaignError)

    def read(self, run_id: str) -> dict[str, Any] | None:
        """What became of a run; None if that is not known, or not to be read."""
        try:
            record = json.loads(self.path(run_id).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        known = isinstance(record, dict) and record.get("status") in (DONE, FAILED)
        return record if known and record.get("id") == run_id else None

    def state(self, run: Run) -> str:
        """DONE, FAILED or MISSING."""
        record = self.read(run.id)
        return MISSING if record is None else str(record["status"])

    def take_in(self, others: Iterable[Path]) -> int:
        """Copy the finished runs of other directories; how many were new. Raises CampaignError."""
        count = 0
        for directory in others:
            if not (directory / RUNS).is_dir():
                raise CampaignError(f"{directory}: holds no runs of a campaign")
            theirs = Store(directory)
            for path in sorted((directory / RUNS).glob("*/*.json")):
                record = theirs.read(path.stem)
                mine = self.read(path.stem)
                if record is not None and (mine is None or mine["status"] == FAILED):
                    self.write(path.stem, record)
                    count += 1
        return count

    def log(self, worker: int) -> Path:
        """The file that a worker's words go to."""
        place = self.directory / LOGS
        place.mkdir(parents=True, exist_ok=True)
        return place / f"worker-{os.getpid()}-{worker}.log"


_OURS = {
    PLAN,
    RUNS,
    LOGS,
    LOCK,
    FOLDER,
    TOKEN,
    "table.parquet",
    "table.csv",
    "report.html",
    "pictures",
}
