"""The jobs and profiles that a scheduler knows, by the names that they have in the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptaskmodel.bridges.batsim.job_messages import (
    MARK,
    MESSAGE_READERS,
    SUBMITTED,
    Entry,
    check_messages,
    talks,
)
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import only_below
from ptaskmodel.workload.formats.batsim import batsim_document, read_job, workload_of
from ptaskmodel.workload.formats.batsim_works import Profiles
from ptaskmodel.workload.formats.json_document import read_json
from ptaskmodel.workload.formats.table import Cleaning
from ptaskmodel.workload.jobs import Job, Workload, sorted_jobs
from ptaskmodel.workload.reading import format_of, read_workload


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
            notes=tuple(note for workload in found for note in workload.notes),
        )

    def _read(self, name: str, path: Path, cleaning: Cleaning | None) -> Workload:
        if format_of(path) == "batsim":
            document = read_json(path, writable=True)
        else:
            document = batsim_document(read_workload(path, cleaning), 4)
        workload, shelf = workload_of(document, path, MESSAGE_READERS)
        if any(talks(work) for work in shelf.works.values()):
            check_messages(shelf, f"{path}: ")
        fields = {str(job["id"]): job for job in document["jobs"]}
        jobs = []
        for job in workload.jobs:
            if MARK in job.id:
                raise WorkloadError(f"{path}: job {shown(job.id)}: ids must not contain '{MARK}'")
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
        """Take note of a profile; its workload is made if it is new. Raises WorkloadError."""
        if MARK in workload:
            raise WorkloadError(f"/data/workload_name: must not contain '{MARK}'")
        shelf = self.shelves.get(workload) or Profiles(self._folder, MESSAGE_READERS)
        if name in shelf.works:
            raise WorkloadError(
                f"/data/profile_name: {shown(name)} is there already: give it a new name"
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
        """Take note of a job, submitted now. Raises WorkloadError."""
        workload, mark, short = full.partition(MARK)
        if not mark or not short:
            raise WorkloadError(f"/data/job_id: {shown(full)} is not WORKLOAD{MARK}JOB")
        if full in self.entries:
            raise WorkloadError(
                f"/data/job_id: job {shown(full)} is there already: give it a new id"
            )
        if str(given.get("id")) not in (full, short):
            raise WorkloadError(f"/data/job/id: {shown(given.get('id'))} is not {shown(full)}")
        if workload not in self.shelves:
            raise WorkloadError(
                f"/data/job_id: there is no workload {shown(workload)}: register its profile first"
            )
        shelf = self.shelves[workload]
        fields = {"subtime": now, **given, "id": short}
        job = read_job(fields, shelf, "/data/job")
        name = short if self._one and workload == "w0" else full
        entry = Entry(full, replace(job, id=name, submit_time_s=now), fields, shelf, False)
        self._enter(entry)
        return entry
