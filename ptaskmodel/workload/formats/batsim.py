"""Batsim's workload files (JSON, versions 1 to 5) to and from `Workload`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ptaskmodel.errors import WorkloadError
from ptaskmodel.files import read_bytes, write_bytes
from ptaskmodel.workload.formats.batsim_profiles import ProfileReader, profile_fields
from ptaskmodel.workload.jobs import NOTHING, Job, Workload, checked_job, sorted_jobs
from ptaskmodel.workload.works import Work

OWN_FIELDS = ("jobs", "profiles", "nb_res", "notes")
JOB_FIELDS = ("id", "subtime", "res", "profile", "walltime", "ret")


def read_batsim(path: str | os.PathLike[str]) -> Workload:
    """Read a Batsim workload (also gzipped).

    Jobs are put in order of submission. A walltime of -1 means none. Unused profiles are kept.
    Raises WorkloadError, one line with the JSON pointer of what is wrong, for anything that
    cannot be run; nothing is left out silently.
    """
    path = Path(path)
    where = str(path)
    document = _decoded(read_bytes(path, error=WorkloadError), where)
    if not isinstance(document, dict):
        raise WorkloadError(f"{where}: a workload is a JSON object with 'jobs' and 'profiles'")
    document.setdefault("notes", [])
    for key, kind, kind_name in (
        ("jobs", list, "a list"),
        ("profiles", dict, "an object"),
        ("notes", list, "a list"),
    ):
        if not isinstance(document.get(key), kind):
            raise WorkloadError(f"{where}: /{key}: it must be there and be {kind_name}")
    num_hosts = document.get("nb_res")
    if num_hosts is not None and not _is_whole(num_hosts, least=1):
        raise WorkloadError(f"{where}: /nb_res: {num_hosts!r} is not a whole number of 1 or more")
    reader = ProfileReader(document["profiles"], where, path.parent)
    works = {name: reader.work(name) for name in document["profiles"]}
    jobs, seen = [], set[str]()
    for k, fields in enumerate(document["jobs"]):
        job = _job(fields, works, document["profiles"], f"{where}: /jobs/{k}")
        if job.id in seen:
            raise WorkloadError(
                f"{where}: /jobs/{k}/id: '{job.id}' is there twice: give each job its own id"
            )
        seen.add(job.id)
        _check_size(job, f"{where}: /jobs/{k}/res")
        jobs.append(job)
    extra = {key: value for key, value in document.items() if key not in OWN_FIELDS}
    return Workload(
        sorted_jobs(jobs),
        works,
        None if num_hosts is None else int(num_hosts),
        name=path.name.split(".")[0],
        origin=where,
        notes=tuple(str(note) for note in document["notes"]),
        extra=extra,
    )


def _decoded(data: bytes, where: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WorkloadError(f"{where}: this is not JSON: {error}") from None


def _is_whole(value: Any, least: int) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= least and math.isfinite(value) and value == int(value)


def _check_size(job: Job, spot: str) -> None:
    needed = job.work.ranks
    if needed is not None and needed != job.num_hosts:
        raise WorkloadError(
            f"{spot}: job '{job.id}' asks for {job.num_hosts} hosts but its profile "
            f"'{job.profile}' is made for {needed}: make them agree"
        )
    if job.num_hosts == 0 and not job.work.only_storages:
        raise WorkloadError(f"{spot}: job '{job.id}' asks for 0 hosts: ask for 1 or more")


def _job(fields: Any, works: Mapping[str, Work], profiles: Mapping[str, Any], spot: str) -> Job:
    """One job, or WorkloadError with the pointer of the field at fault."""
    if not isinstance(fields, dict):
        raise WorkloadError(f"{spot}: a job is an object")
    for key in ("id", "subtime", "res", "profile"):
        if key not in fields:
            raise WorkloadError(f"{spot}: '{key}' is missing: add it")
    subtime, walltime = fields["subtime"], fields.get("walltime")
    for key, value in (("subtime", subtime), ("walltime", walltime)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise WorkloadError(f"{spot}/{key}: {value!r} is not a number of seconds")
    if subtime is None:
        raise WorkloadError(f"{spot}/subtime: a job has a date of submission: give it")
    if not _is_whole(fields["res"], least=0):
        raise WorkloadError(f"{spot}/res: {fields['res']!r} is not a whole number of 1 or more")
    profile = str(fields["profile"])
    if profile not in works:
        raise WorkloadError(
            f"{spot}/profile: there is no profile '{profile}': define it under /profiles"
        )
    return_code = fields.get("ret", profiles[profile].get("ret", 0))
    if not isinstance(return_code, int):
        raise WorkloadError(f"{spot}/ret: {return_code!r} is not a whole number")
    extra = {key: value for key, value in fields.items() if key not in JOB_FIELDS}
    job = Job(
        str(fields["id"]),
        float(subtime),
        int(fields["res"]),
        profile,
        works[profile],
        None if walltime is None or walltime == -1 else float(walltime),
        return_code,
        extra or NOTHING,
    )
    return checked_job(job, spot)


def write_batsim(
    workload: Workload,
    path: str | os.PathLike[str],
    version: int = 5,
    num_hosts: int | None = None,
) -> None:
    """Write a workload for Batsim ``version`` (2, 3, 4 or 5), whole or not at all.

    ``num_hosts`` (nb_res) is the workload's own by default, else the size of its largest job.
    """
    if version not in (2, 3, 4, 5):
        raise WorkloadError(f"Batsim version {version} is unknown: use 2, 3, 4 or 5")
    size = num_hosts or workload.num_hosts or max((j.num_hosts for j in workload.jobs), default=1)
    profiles: dict[str, dict[str, Any]] = {}
    for name, work in workload.profiles.items():
        profiles |= profile_fields(name, work, version)
    for job in workload.jobs:
        if job.return_code:
            profiles[job.profile]["ret"] = job.return_code
    document = dict(workload.extra) | {
        "nb_res": size,
        "jobs": [_job_fields(job) for job in workload.jobs],
        "profiles": profiles,
    }
    if workload.notes:
        document["notes"] = list(workload.notes)
    text = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
    write_bytes(path, text, error=WorkloadError)


def _job_fields(job: Job) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": job.id,
        "subtime": job.submit_time_s,
        "res": job.num_hosts,
        "profile": job.profile,
    }
    if job.walltime_s is not None:
        fields["walltime"] = job.walltime_s
    return fields | dict(job.extra)
