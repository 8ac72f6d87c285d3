"""Events that an external scheduler receives, in each version of the protocol.

It also reads files of external events, such as machines that become unavailable and return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ptaskmodel.batch.jobs.execution import FAILED, KILLED, SUCCESS, Attempt, Progress
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.connect.jobs import Book, Entry
from ptaskmodel.connect.messages import parse_resources
from ptaskmodel.connect.options import NO_REDIS, SessionOptions
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.platform.platform import Platform
from ptaskmodel.remarks import Account, reader
from ptaskmodel.workload.amounts import FieldError, check_number
from ptaskmodel.workload.works import SequenceWork, Work

# Of events of one date; those of one kind come in order of their happening.
(
    COMPLETED_FIRST,
    KILLED_NEXT,
    THEN_SUBMITTED,
    THEN_NOTIFY,
    THEN_RESOURCES,
    THEN_ANSWER,
    THEN_CALLS,
    THEN_MESSAGES,
) = range(8)
UNAVAILABLE, AVAILABLE = "machine_unavailable", "machine_available"
OLD_NAMES = {"machine_failure": UNAVAILABLE, "machine_restore": AVAILABLE}


class Storages:
    """The storages of a machine: their hosts, by number, after those that compute."""

    def __init__(self, machine: Machine) -> None:
        held = set(machine.facts.storages.values())
        self.names = [host.name for host in machine.platform.hosts if host.name in held]
        self.first = machine.num_hosts

    def name(self, number: int) -> str | None:
        """The host of a storage; None if there is none of that number."""
        k = number - self.first
        return self.names[k] if 0 <= k < len(self.names) else None


def simulation_begins(
    options: SessionOptions, machine: Machine, storages: Storages, book: Book
) -> dict[str, Any]:
    """The data of the first event."""
    zones = _zone_properties(machine.platform)
    version = options.protocol
    resources = [
        _resource(k, name, machine, "", zones, version) for k, name in enumerate(machine.names)
    ]
    others = [
        _resource(storages.first + k, name, machine, "storage", zones, version)
        for k, name in enumerate(storages.names)
    ]
    sizes = {
        "nb_resources": len(resources) + len(others),
        "nb_compute_resources": len(resources),
        "nb_storage_resources": len(others),
    }
    if version == 2:
        tiers = {f"{each['name'].removesuffix('_host')}_host": each for each in others}
        named = {"lcst_host": tiers.get("pfs_host"), "hpst_host": tiers.get("hpst_host")}
        return {
            "nb_resources": len(resources),
            "allow_time_sharing": options.compute_sharing,
            "config": _nested_config(options),
            "resources_data": resources,
            **{key: host for key, host in named.items() if host is not None},
            "workloads": book.paths,
        }
    return {
        **sizes,
        "allow_compute_sharing": options.compute_sharing,
        "allow_storage_sharing": options.storage_sharing,
        "config": _config(options),
        "compute_resources": resources,
        "storage_resources": others,
        "workloads": book.paths,
        "profiles": {name: book.shelves[name].fields for name in book.paths},
    }


def _config(options: SessionOptions) -> dict[str, Any]:
    host, port, prefix = options.redis_server() or NO_REDIS
    later = {
        "profile-reuse-enabled": options.profile_reuse,
        "sched-config": options.scheduler_config,
    }
    return {
        "redis-enabled": options.redis is not None,
        "redis-hostname": host,
        "redis-port": port,
        "redis-prefix": prefix,
        "profiles-forwarded-on-submission": options.forward_profiles,
        "dynamic-jobs-enabled": options.dynamic_jobs,
        "dynamic-jobs-acknowledged": options.acknowledge_dynamic_jobs,
        **(later if options.protocol == 4 else {}),
        "forward-unknown-events": options.forward_unknown_events,
    }


def _nested_config(options: SessionOptions) -> dict[str, Any]:
    host, port, prefix = options.redis_server() or NO_REDIS
    enabled = options.redis is not None
    return {
        "redis": {"enabled": enabled, "hostname": host, "port": port, "prefix": prefix},
        "job_submission": {
            "forward_profiles": options.forward_profiles,
            "from_scheduler": {
                "enabled": options.dynamic_jobs,
                "acknowledge": options.acknowledge_dynamic_jobs,
            },
        },
    }


def _resource(
    number: int,
    name: str,
    machine: Machine,
    role: str,
    zones: Mapping[str, dict[str, str]],
    version: int,
) -> dict[str, Any]:
    properties = dict(machine.platform.host(name).properties)
    properties.setdefault("role", role)
    told = {"id": number, "name": name, "state": "idle", "properties": properties}
    return told | ({"zone_properties": zones[name]} if version == 4 else {})


def _zone_properties(platform: Platform) -> dict[str, dict[str, str]]:
    """The properties of the zones around each host, those of the inner ones winning."""
    around: list[dict[str, str]] = []
    for zone in platform.zones:
        outer = around[zone.parent] if zone.depth else {}
        around.append({**outer, **zone.properties})
    points = platform.points
    return {
        platform.hosts[host].name: around[points.zone[point]] for point, host in points.host.items()
    }


def job_submitted(entry: Entry, options: SessionOptions) -> dict[str, Any]:
    if options.redis is not None:
        return {"job_id": entry.id}
    told = {"job_id": entry.id, "job": entry.fields}
    return told | ({"profile": entry.profile_fields} if options.forward_profiles else {})


def job_completed(entry: Entry, attempt: Attempt, options: SessionOptions) -> dict[str, Any]:
    told: dict[str, Any] = {
        "job_id": entry.id,
        "job_state": attempt.state,
        "return_code": _return_code(entry, attempt),
    }
    if options.protocol == 2:
        told["kill_reason"] = attempt.reason
    return told | {"alloc": attempt.hosts_text}


def _return_code(entry: Entry, attempt: Attempt) -> int:
    if attempt.state == SUCCESS:
        return 0
    if attempt.state == FAILED:
        return entry.code or 1
    delay = attempt.work.duration_s is not None
    return -2 if attempt.state == KILLED and not delay else -1


def progress_of(entry: Entry, progress: Progress, protocol: int) -> dict[str, Any]:
    """How far a job is, as JOB_KILLED says it."""
    assert entry.attempt is not None
    key = "profile" if protocol == 2 else "profile_name"
    shelf = entry.profiles.fields
    return _progress(entry.job.profile, entry.job.work, progress, shelf, key)


def _progress(
    name: str, work: Work, progress: Progress, shelf: Mapping[str, Any], key: str
) -> dict[str, Any]:
    if not isinstance(work, SequenceWork):
        return {key: name, "progress": progress.part}
    sizes = [stage.rounds * len(stage.one_round()) for stage in work.stages]
    rounds, behind = divmod(progress.behind, sum(sizes))
    if rounds >= work.rounds:
        rounds, behind = work.rounds - 1, sum(sizes) - 1
    k = 0
    while behind >= sizes[k]:
        behind -= sizes[k]
        k += 1
    stage = shelf[name]["seq"][k]
    inner = _progress(stage, work.stages[k], Progress(behind, progress.part), shelf, key)
    index = rounds * len(sizes) + k
    return {key: name, "current_task_index": index, "current_task": inner}


class ExternalEvent(NamedTuple):
    """hosts: of those that concern machines, as a mask. fields: the line of the file."""

    date_s: float
    kind: str
    hosts: int
    fields: dict[str, Any]


@reader(WorkloadError)
def read_external_events(
    path: AnyPath, account: Account, num_hosts: int, forward_unknown: bool
) -> list[ExternalEvent]:
    """The events of the file at a path, by date. One JSON object a line: ``type``, ``timestamp``.

    Those of machines have ``resources``, of `num_hosts`. forward_unknown: whether there may be
    others. account: of the file. Lines that cannot be read are left out, and told; WorkloadError is
    raised if most are such.
    """
    lines = list(enumerate(read_text(path, error=WorkloadError).splitlines(), 1))
    lines = [(number, line) for number, line in lines if line.strip()]
    found = []
    for number, line in lines:
        with account.row(number):
            found.append(_event(line, num_hosts, forward_unknown))
    account.check_rows(len(lines))
    return sorted(found, key=lambda event: event.date_s)


def _event(line: str, num_hosts: int, forward_unknown: bool) -> ExternalEvent:
    try:
        fields = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WorkloadError(f"is not JSON: {error}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        raise WorkloadError("is not an object with a 'type' and a 'timestamp'; write an event so")
    try:
        date = check_number("timestamp", fields.get("timestamp"))
    except FieldError as error:
        raise WorkloadError(str(error)) from None
    kind = str(OLD_NAMES.get(fields["type"], fields["type"]))
    if kind not in (UNAVAILABLE, AVAILABLE):
        if not forward_unknown:
            raise WorkloadError(
                f"type {shown(kind)} is unknown; use {UNAVAILABLE} or {AVAILABLE}, or forward it "
                "(--forward-unknown-events)"
            )
        return ExternalEvent(date, kind, 0, fields)
    try:
        hosts = parse_resources(str(fields.get("resources", "")), num_hosts)
    except ValueError as error:
        raise WorkloadError(f"/resources: {error}") from None
    return ExternalEvent(date, kind, hosts, fields)
