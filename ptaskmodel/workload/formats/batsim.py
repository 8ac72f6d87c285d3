"""Read Batsim's workload files (JSON, versions 1 to 5) as `Workload`, and write them."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import STDIN, AnyPath, shown_path, write_bytes
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.remarks import Account, Remark, reader
from ptaskmodel.style.text import several
from ptaskmodel.workload.amounts import LARGEST, FieldError, check_number
from ptaskmodel.workload.formats import Cleaning, Writing
from ptaskmodel.workload.formats.batsim_profiles import Reader, profile_fields
from ptaskmodel.workload.formats.batsim_works import ORIGINS, Profiles, read_columns, read_profiles
from ptaskmodel.workload.formats.json import close_match, objects_of, read_json
from ptaskmodel.workload.jobs import (
    NOTHING,
    PRECEDING,
    Job,
    Workload,
    checked_job,
    column_of,
    listed,
    sorted_jobs,
)

OWN_FIELDS = ("jobs", "profiles", "nb_res", "notes")
# What a job asks for beside hosts: fields of ours, which Batsim ignores.
DEMANDS = ("cores", "memory", "resources", "licences")
# Numbers: fields of ours, what they are of a Job, and what to do about one that is none.
NUMBERS = {
    "think_time": ("think_time_s", "give it in seconds"),
    "competitors": ("competitors", "give the number of competitors that it counts as"),
}
# Fields of profiles of any type, by the names of every generation.
PROFILE_FIELDS = (
    *("type", "ret", "seq", "repeat", "nb", "generation_strategy", "delay", "cpu", "com"),
    *("storage", "host", "direction", "size", "bytes_to_read", "bytes_to_write", "nb_bytes"),
    *("from", "to", "emitter", "emitter_storage", "receiver", "receiver_storage"),
    *("filename", "trace", "trace_file", "trace_type", "mpi_size"),
)
JOB_FIELDS = ("id", "subtime", "res", "profile", "walltime", "ret", *NUMBERS, *DEMANDS)

# Of a task of a workflow: what is read, and what the remark on files is about.
WORKFLOW_FIELDS = (
    *("id", "name", "runtimeInSeconds", "runtime", "coreCount", "cores", "parents", "children"),
    *("files", "inputFiles", "outputFiles", "readBytes", "writtenBytes"),
)


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so may be a Batsim workload."""
    return start.startswith((b"{", b"["))


def read(path: str | os.PathLike[str], cleaning: Cleaning, account: Account) -> Workload:
    """As every format of jobs (see `formats`): cleaning changes nothing; account: what is told."""
    with collector_at_rest():
        return workload_of(read_json(Path(path), writable=True), Path(path), account)[0]


def write(workload: Workload, path: str | os.PathLike[str], options: Writing) -> None:
    """As every format of jobs (see `formats`)."""
    write_batsim(workload, path, options.batsim_version)


@reader(WorkloadError)
def read_batsim(path: AnyPath, account: Account) -> Workload:
    """Read the Batsim workload at `path` (may be gzipped; ``-``: standard input).

    Jobs are put into Batsim's order of submission: by time, at one time by id, compared as text
    ("10" before "9"). A walltime of -1 means none. Unused profiles are kept. Raises WorkloadError,
    one line with the JSON pointer of the mistake, for anything that cannot be run; nothing is
    dropped silently. What is wrong with a job or profile leaves it out, which is told, unless most
    jobs would be. account: of the file.
    """
    return read(path, Cleaning(), account)


def workload_of(
    document: Any, path: Path, account: Account, more: Mapping[str, Reader] | None = None
) -> tuple[Workload, Profiles]:
    """Return the workload, and its profiles, in the `document` of the file at `path`.

    account: collects remarks on the file. more: readers of further types of profiles. Raises
    WorkloadError as `read_batsim`.
    """
    where = shown_path(path)
    if not isinstance(document, dict):
        raise WorkloadError(f"{where}: a workload is a JSON object with 'jobs' and 'profiles'")
    if "tasks" in document and "jobs" not in document:
        raise WorkloadError(f"{where}: this is a tasks file; run it by `ptaskmodel simulate`")
    if isinstance(document.get("workflow"), dict) and "jobs" not in document:
        document = _of_workflow(document["workflow"], account)
    document.setdefault("notes", [])
    for key, kind, kind_name in (
        ("jobs", list, "a list"),
        ("profiles", dict, "an object"),
        ("notes", list, "a list"),
    ):
        if not isinstance(document.get(key), kind):
            raise WorkloadError(f"{where}: /{key}: is missing or not {kind_name}; give {kind_name}")
    num_hosts = document.get("nb_res")
    if num_hosts is not None:
        with account.problems():
            _check_whole(num_hosts, 1, f"{where}: /nb_res")
    profiles = read_profiles(document["profiles"], account, path.parent, more)
    jobs: Sequence[Job] | None = read_columns(document["jobs"], profiles)
    if jobs is None:
        refused = document["profiles"].keys() - profiles.works.keys()
        jobs = _read_jobs(document["jobs"], profiles, refused, account)
    if more is None:  # else a scheduler may read them
        _tell_unread(document["jobs"], (*JOB_FIELDS, *ORIGINS), "jobs", account)
        of_profiles = [each for each in document["profiles"].values() if isinstance(each, dict)]
        _tell_unread(of_profiles, PROFILE_FIELDS, "profiles", account)
    extra = {key: value for key, value in document.items() if key not in OWN_FIELDS}
    workload = Workload(
        jobs,
        profiles.works,
        None if num_hosts is None else int(num_hosts),
        name="stdin" if str(path) == STDIN else path.name.split(".")[0],
        origin=where,
        remarks=tuple(Remark(str(note)) for note in document["notes"]),
        extra=extra,
    )
    return workload, profiles


def _of_workflow(workflow: Mapping[str, Any], account: Account) -> dict[str, Any]:
    """The tasks of a workflow in the format of WfCommons (1.2 to 1.5), as the jobs of a document.

    Source: https://github.com/wfcommons/WfFormat.
    """
    plan, log = workflow.get("specification", workflow), workflow.get("execution", {})
    place = "/workflow/specification/tasks" if "specification" in workflow else "/workflow/tasks"
    tasks = plan.get("tasks", plan.get("jobs")) if isinstance(plan, dict) else None
    runs = log.get("tasks", []) if isinstance(log, dict) else []
    if not isinstance(tasks, list) or not all(isinstance(one, dict) for one in [*tasks, *runs]):
        raise WorkloadError(f"{account.file}: {place}: is not a list of tasks; give one")
    strange = sorted(set[str]().union(*tasks, *runs).difference(WORKFLOW_FIELDS))
    if strange:
        account.unused(f"fields of tasks that are not used: {', '.join(map(shown, strange))}")
    ran = {str(run.get("id")): run for run in runs}
    ids = {str(task.get(key)): str(task.get("id", task.get("name"))) for key in ("name", "id")
           for task in tasks if key in task}  # fmt: skip
    jobs: list[dict[str, Any]] = []
    profiles: dict[str, Any] = {}
    for k, task in enumerate(tasks):
        name = str(task.get("id", task.get("name")))
        said = {**task, **ran.get(name, {})}
        lasts = said.get("runtimeInSeconds", said.get("runtime"))
        if isinstance(lasts, bool) or not isinstance(lasts, int | float) or lasts < 0:
            account.bad_row(f"{place}/{k}: has no runtimeInSeconds; give its run time, s")
            continue
        parents = task.get("parents") if isinstance(task.get("parents"), list) else []
        profiles.setdefault(f"delay_{lasts!r}", {"type": "delay", "delay": lasts})
        jobs.append({
            "id": name, "subtime": 0, "res": said.get("coreCount", said.get("cores", 1)) or 1,
            "profile": f"delay_{lasts!r}",
            **({PRECEDING: [ids.get(str(one), str(one)) for one in parents]} if parents else {}),
        })  # fmt: skip
    account.check_rows(len(tasks))
    account.taken(
        "a workflow of WfCommons: its tasks are jobs that last as long as they did, on as many "
        "hosts as they had cores; what they read and write is not used"
    )
    return {"jobs": jobs, "profiles": profiles}


def _tell_unread(
    entries: Sequence[Mapping[str, Any]], known: Sequence[str], whose: str, account: Account
) -> None:
    """Tell which fields of entries nothing reads, those ``known`` apart. whose: what they are."""
    for name in sorted(set[str]().union(*entries).difference(known)):
        near = close_match(name, known)
        hint = f"; did you mean {near}?" if near else ""
        account.unused(f"the field {shown(name)} of {whose} is not used{hint}", None, name)


def _read_jobs(
    entries: Sequence[Any], profiles: Profiles, refused: Collection[str], account: Account
) -> tuple[Job, ...]:
    """The jobs, read one by one, in the order in which Batsim submits them.

    refused: profiles; their jobs are left out. Raises WorkloadError if most jobs cannot be read,
    with all that is wrong with each.
    """
    jobs, seen, without = [], set[str](), 0
    for k, fields in enumerate(entries):
        if isinstance(fields, dict) and str(fields.get("profile")) in refused:
            without += 1
            continue
        with account.row(None):
            job = read_job(fields, profiles, f"{account.file}: /jobs/{k}", account)
            if job.id in seen:
                raise WorkloadError(
                    f"/jobs/{k}/id: {shown(job.id)} occurs twice; give each job its own id"
                )
            seen.add(job.id)
            jobs.append(job)
    account.check_rows(len(entries), len(entries) - len(jobs))
    if without:
        what = several(without, "job of a profile", "jobs of profiles")
        account.left_out(f"left out: {what} that cannot be read")
    return sorted_jobs(sorted(jobs, key=lambda job: job.id))


def _check_whole(value: Any, least: int, spot: str, what: str = "") -> None:
    """WorkloadError unless it is a whole number, of ``least`` or more, that a double holds."""
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if type(number) is not int or number < least:
        raise WorkloadError(
            f"{spot}: {shown(value)}{what} is not a whole number of {least} or more"
        )
    if number >= 2**53:
        raise WorkloadError(f"{spot}: {shown(value)}{what} is too large; give less than 2^53")


def _check_size(job: Job, spot: str) -> None:
    needed = job.work.ranks
    asked = job.num_hosts if job.cores is None else job.num_hosts * job.cores
    if needed is not None and needed != asked:
        what = f"{job.num_hosts} hosts" if job.cores is None else f"{asked} cores"
        raise WorkloadError(
            f"{spot}: job {shown(job.id)} requests {what}, but its profile "
            f"{shown(job.profile)} is made for {needed}; make them agree"
        )
    if job.num_hosts == 0 and not job.work.only_storages:
        raise WorkloadError(f"{spot}: job {shown(job.id)} requests 0 hosts; request 1 or more")


def read_job(fields: Any, profiles: Profiles, spot: str, account: Account | None = None) -> Job:
    """Return the job with these JSON `fields`; `profiles`: those that it may name.

    Raises WorkloadError with the JSON pointer, which begins with `spot`. account: gets all problems
    but the last, which is raised; None: the first is raised.
    """
    if not isinstance(fields, dict):
        raise WorkloadError(f"{spot}: is not an object; write a job as an object")
    faults: list[WorkloadError] = []

    @contextlib.contextmanager
    def guard() -> Iterator[None]:
        try:
            yield
        except WorkloadError as fault:
            faults.append(fault)

    origins: dict[str, Any] = {
        key: str(fields[key]) for key in ORIGINS if _is_name(fields.get(key))
    }
    name, profile, submit_s = "", "", 0.0
    numbers: dict[str, Any] = {}
    for key in ("id", "subtime", "res", "profile"):
        with guard():
            if key not in fields:
                raise WorkloadError(f"{spot}: '{key}' is missing; add it")
            if key == "res":
                _check_whole(fields["res"], 0, f"{spot}/res")
            elif key == "subtime":
                submit_s = _number(fields, "subtime", spot)
            elif key == "id":
                name = _name(fields, "id", spot)
            else:
                profile = _name(fields, "profile", spot)
                if profile not in profiles.works:
                    raise WorkloadError(
                        f"{spot}/profile: there is no profile {shown(profile)}; define it under "
                        "/profiles"
                    )
    return_code = fields.get("ret", profiles.codes.get(profile, 0))
    with guard():
        if type(return_code) is not int:
            raise WorkloadError(f"{spot}/ret: {shown(return_code)} is not a whole number")
    before = fields.get(PRECEDING)
    with guard():
        if isinstance(before, list) and all(map(_is_name, before)):
            origins[PRECEDING] = listed(map(str, before))
        elif before is not None and not _is_name(before):
            what = f"{shown(before)} is not the id of a job, nor a list of ids"
            raise WorkloadError(f"{spot}/{PRECEDING}: {what}")
    for key, (field, remedy) in NUMBERS.items():
        if key in fields:
            with guard():
                numbers[field] = _number(fields, key, spot, remedy)
    walltime_s = None
    with guard():
        if fields.get("walltime") not in (None, -1):
            walltime_s = _number(fields, "walltime", spot)
    if faults:
        if account is None:
            raise faults[0]
        for fault in faults[:-1]:
            with account.row(None):
                raise fault
        raise faults[-1]
    known = (*JOB_FIELDS, *origins)
    extra = {key: value for key, value in fields.items() if key not in known}
    job = Job(
        name,
        submit_s,
        int(fields["res"]),
        profile,
        profiles.works[profile],
        walltime_s,
        return_code,
        extra or NOTHING,
        **numbers,
        **origins,
    )
    job = checked_job(_with_demands(job, fields, spot), spot)
    _check_size(job, f"{spot}/res")
    return job


def _with_demands(job: Job, fields: Mapping[str, Any], spot: str) -> Job:
    """The job with the cores and bytes of each host, named resources and licences it asks for."""
    given = {key: fields[key] for key in DEMANDS if fields.get(key) is not None}
    if not given:
        return job
    for key, value in given.items():
        counts = value if key in ("resources", "licences") else {key: value}
        if not isinstance(counts, dict):
            raise WorkloadError(
                f'{spot}/{key}: is not an object of amounts; write one such as {{"gpu": 2}}'
            )
        for name, count in counts.items():
            _check_whole(count, 1 if key == "cores" else 0, f"{spot}/{key}", f" of {shown(name)}")
    memory = given.get("memory")
    return replace(
        job,
        cores=int(given["cores"]) if "cores" in given else None,
        memory_B=None if memory is None else float(memory),
        resources=given.get("resources", NOTHING),
        licences=given.get("licences", NOTHING),
    )


def _name(fields: Mapping[str, Any], key: str, spot: str) -> str:
    """An id, or the name of a profile: a string or a number."""
    value = fields[key]
    if not _is_name(value):
        raise WorkloadError(f"{spot}/{key}: {shown(value)} is neither a string nor a number")
    return str(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def _number(
    fields: Mapping[str, Any], key: str, spot: str, remedy: str = "give it in seconds"
) -> float:
    value = fields[key]
    if isinstance(value, int | float) and -LARGEST < value < 0:
        return float(value)  # told by `checked_job`
    try:
        return check_number(key, value)
    except FieldError as error:
        raise WorkloadError(f"{spot}/{key}: {error.problem}; {remedy}") from None


def write_batsim(
    workload: Workload,
    path: str | os.PathLike[str],
    version: int = 5,
    num_hosts: int | None = None,
) -> None:
    """Write a workload for Batsim ``version`` (2, 3, 4 or 5), whole or not at all.

    ``num_hosts`` (nb_res) is the workload's own by default, else the size of its largest job.
    """
    import msgspec

    with collector_at_rest():
        document = _document(workload, version, num_hosts)
    text = msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
    write_bytes(path, text, error=WorkloadError)


def batsim_document(
    workload: Workload, version: int = 5, num_hosts: int | None = None
) -> dict[str, Any]:
    """Return a `workload` as the JSON document that `write_batsim` writes.

    version: Batsim's, 2 to 5. num_hosts: nb_res; None: that of the workload. Raises WorkloadError.
    """
    import msgspec

    document: dict[str, Any] = msgspec.to_builtins(_document(workload, version, num_hosts))
    return document


def _document(workload: Workload, version: int, num_hosts: int | None) -> dict[str, Any]:
    """The same, its jobs as `_entries` makes them."""
    if version not in (2, 3, 4, 5):
        raise WorkloadError(f"Batsim version {version} is unknown; use 2, 3, 4 or 5")
    size = num_hosts or workload.num_hosts or max(column_of(workload.jobs, "num_hosts"), default=1)
    profiles: dict[str, dict[str, Any]] = {}
    for name, work in workload.profiles.items():
        profiles |= profile_fields(name, work, version)
    named, codes = (column_of(workload.jobs, name) for name in ("profile", "return_code"))
    for profile, code in zip(named, codes, strict=True):
        if code:
            profiles[profile]["ret"] = code
    document = dict(workload.extra) | {
        "nb_res": size,
        "jobs": _entries(workload.jobs),
        "profiles": profiles,
    }
    if workload.remarks:
        document["notes"] = list(workload.notes)
    return document


def _entries(jobs: Sequence[Job]) -> list[Any]:
    """What the document says of each job: structures of msgspec, or dicts."""
    import msgspec

    column = functools.partial(column_of, jobs)
    columns: dict[str, Sequence[Any]] = {
        "id": column("id"),
        "subtime": column("submit_time_s"),
        "res": column("num_hosts"),
        "profile": column("profile"),
        "walltime": column("walltime_s"),
        "cores": column("cores"),
        "memory": [None if size is None else int(size) for size in column("memory_B")],
        "resources": [dict(counts) if counts else None for counts in column("resources")],
        "licences": [dict(counts) if counts else None for counts in column("licences")],
        "competitors": column("competitors"),
        **{key: column(key) for key in ORIGINS},
        "think_time": [think_s or None for think_s in column("think_time_s")],
    }
    entries = objects_of(columns)
    for k, extra in enumerate(column("extra")):
        if extra:
            entries[k] = msgspec.to_builtins(entries[k]) | dict(extra)
    return entries
