"""Files of external events: machines that become unavailable and come back, and anything else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ptaskmodel.bridges.batsim.messages import parse_resources
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import read_text
from ptaskmodel.workload.amounts import FieldError, check_number

UNAVAILABLE, AVAILABLE = "machine_unavailable", "machine_available"
OLD_NAMES = {"machine_failure": UNAVAILABLE, "machine_restore": AVAILABLE}


class ExternalEvent(NamedTuple):
    """hosts: of those that concern machines, as a mask. fields: the line of the file."""

    date_s: float
    kind: str
    hosts: int
    fields: dict[str, Any]


def read_external_events(
    paths: Iterable[Path], num_hosts: int, forward_unknown: bool
) -> list[ExternalEvent]:
    """The events of some files, by date. One JSON object a line: ``type``, ``timestamp``.

    Those of machines have ``resources``. forward_unknown: whether there may be others. Raises
    WorkloadError with file and line.
    """
    found = []
    for path in paths:
        for number, line in enumerate(read_text(path, error=WorkloadError).splitlines(), 1):
            if line.strip():
                found.append(_read(line, f"{path}:{number}", num_hosts, forward_unknown))
    return sorted(found, key=lambda event: event.date_s)


def _read(line: str, where: str, num_hosts: int, forward_unknown: bool) -> ExternalEvent:
    try:
        fields = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WorkloadError(f"{where}: is not JSON: {error}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        raise WorkloadError(f"{where}: an event is an object with a 'type' and a 'timestamp'")
    try:
        date = check_number("timestamp", fields.get("timestamp"))
    except FieldError as error:
        raise WorkloadError(f"{where}: {error}") from None
    kind = str(OLD_NAMES.get(fields["type"], fields["type"]))
    if kind not in (UNAVAILABLE, AVAILABLE):
        if not forward_unknown:
            raise WorkloadError(
                f"{where}: type {shown(kind)} is unknown: use {UNAVAILABLE} or {AVAILABLE}, or "
                "forward it (--forward-unknown-events)"
            )
        return ExternalEvent(date, kind, 0, fields)
    try:
        hosts = parse_resources(str(fields.get("resources", "")), num_hosts)
    except ValueError as error:
        raise WorkloadError(f"{where}: /resources: {error}") from None
    return ExternalEvent(date, kind, hosts, fields)
