"""Convert Batsim's profiles, by the names of every generation, to works and back.

Names by generation (versions 1 and 2; 3 and 4; 5):

- a delay: delay; delay; DelayProfile
- a parallel task: msg_par; parallel; ParallelTaskProfile
- the same for any hosts: msg_par_hg; parallel_homogeneous; ParallelTaskHomogeneousProfile
- amounts to spread: msg_par_hg_tot; parallel_homogeneous_total; a generation_strategy
- storage: msg_par_hg_pfs; parallel_homogeneous_pfs; ParallelTaskOnStorageHomogeneousProfile
- storage to storage: data_staging; the same; ParallelTaskDataStagingBetweenStoragesProfile
- a sequence: composed; the same; SequentialCompositionProfile
- the usage of cores: (none); usage_trace; TraceReplayProfile
- an MPI application: smpi; the same; TraceReplayProfile

The lower-case names of the development versions of 5 (``ptask_homogeneous`` ...) are read too.
Source: Batsim's documentation and release notes, versions 1 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import check_regular, read_text
from ptaskmodel.workload.amounts import FieldError, check_number
from ptaskmodel.workload.batch_works import SpreadWork, StagingWork, StorageWork, UsageTraceWork
from ptaskmodel.workload.formats.ti_trace import read_trace
from ptaskmodel.workload.works import (
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
    TraceWork,
    Work,
)

Fields = Mapping[str, Any]
Reader = Callable[[Fields, str, Path], Work]
SPREAD = ("DefinedAmountsSpreadUniformly", "defined_amount_spread_uniformly")
EACH = ("DefinedAmountsUsedForEachValue", "defined_amount_used_for_each_value")


def amount(fields: Fields, key: str, spot: str, default: float | None = None) -> float:
    """Return the amount `fields[key]`, 0 or in the range of `check_number`.

    spot: JSON pointer of the fields, for errors. default: value if it is missing; None: it is
    required.
    """
    value = fields.get(key, default)
    if value is None:
        raise WorkloadError(f"{spot}: '{key}' is missing; add it")
    try:
        return check_number(key, value)
    except FieldError as error:
        raise WorkloadError(f"{spot}/{key}: {error.problem}") from None


def _amounts(fields: Fields, key: str, spot: str) -> np.ndarray | None:
    """The numbers of 0 or more under ``key``; None if they are not given."""
    values = fields.get(key)
    if values is None:
        return None
    if not isinstance(values, list):
        raise WorkloadError(f"{spot}/{key}: is not a list of numbers; give one")
    return np.array([amount({str(k): v}, str(k), f"{spot}/{key}") for k, v in enumerate(values)])


def _text(fields: Fields, keys: tuple[str, ...], spot: str, default: str | None = None) -> str:
    for key in keys:
        if key in fields:
            if not isinstance(fields[key], str):
                raise WorkloadError(f"{spot}/{key}: {shown(fields[key])} is not a string")
            return str(fields[key])
    if default is None:
        raise WorkloadError(f"{spot}: '{keys[0]}' is missing; add it")
    return default


def _is_spread(fields: Fields, spot: str) -> bool:
    strategy = fields.get("generation_strategy", EACH[0])
    if not isinstance(strategy, str) or strategy not in SPREAD + EACH:
        raise WorkloadError(
            f"{spot}/generation_strategy: {shown(strategy)} is unknown; use {EACH[0]} or "
            f"{SPREAD[0]}"
        )
    return strategy in SPREAD


def _read_delay(fields: Fields, spot: str, directory: Path) -> Work:
    return DelayWork(amount(fields, "delay", spot))


def _read_parallel(fields: Fields, spot: str, directory: Path) -> Work:
    flops = _amounts(fields, "cpu", spot)
    volumes = _amounts(fields, "com", spot)
    if flops is None and volumes is None:
        raise WorkloadError(f"{spot}: has no work; give 'cpu', 'com' or both")
    if flops is None:
        assert volumes is not None
        flops = np.zeros(math.isqrt(len(volumes)))
    if len(flops) == 0:
        raise WorkloadError(f"{spot}/cpu: the list is empty; give one amount for each host")
    matrix = np.zeros(len(flops) ** 2) if volumes is None else volumes
    if len(matrix) != len(flops) ** 2:
        raise WorkloadError(
            f"{spot}/com: {len(matrix)} values for {len(flops)} hosts; give {len(flops)} x "
            f"{len(flops)} = {len(flops) ** 2}"
        )
    return ParallelWork.of(len(flops), flops, matrix)


def _read_homogeneous(fields: Fields, spot: str, directory: Path) -> Work:
    flops, volume = amount(fields, "cpu", spot, 0.0), amount(fields, "com", spot, 0.0)
    if _is_spread(fields, spot):
        return SpreadWork(flops, volume, by_pair=True)
    return HomogeneousWork(flops, volume)


def _read_total(fields: Fields, spot: str, directory: Path) -> Work:
    flops, volume = amount(fields, "cpu", spot, 0.0), amount(fields, "com", spot, 0.0)
    return SpreadWork(flops, volume, by_pair=False)


def _read_storage(fields: Fields, spot: str, directory: Path) -> Work:
    storage = _text(fields, ("storage", "host"), spot, "pfs")
    if "direction" in fields:
        size = amount(fields, "size", spot)
        direction = fields["direction"]
        if direction not in ("to_storage", "from_storage"):
            raise WorkloadError(
                f"{spot}/direction: {shown(direction)} is neither 'to_storage' nor 'from_storage'"
            )
        read, write = (0.0, size) if direction == "to_storage" else (size, 0.0)
        return StorageWork(read, write, storage)
    if "size" in fields:
        return StorageWork(0.0, amount(fields, "size", spot), storage)
    read = amount(fields, "bytes_to_read", spot, 0.0)
    write = amount(fields, "bytes_to_write", spot, 0.0)
    return StorageWork(read, write, storage, _is_spread(fields, spot))


def _read_staging(fields: Fields, spot: str, directory: Path) -> Work:
    source = _text(fields, ("from", "emitter_storage", "emitter"), spot)
    destination = _text(fields, ("to", "receiver_storage", "receiver"), spot)
    return StagingWork(amount(fields, "nb_bytes", spot), source, destination)


def _trace_file(fields: Fields, spot: str, directory: Path) -> Path:
    """The file that a profile names, not opened; a pipe, which might never answer, is an error."""
    path = directory / _text(fields, ("filename", "trace_file", "trace"), spot)
    check_regular(path, error=WorkloadError)
    return path


def _read_usage(fields: Fields, spot: str, directory: Path) -> Work:
    listing = _trace_file(fields, spot, directory)
    ranks = []
    for name in _lines(listing, spot):
        path = listing.parent / name.strip()
        check_regular(path, error=WorkloadError)
        ranks.append(tuple(_phase(line, path, k + 1) for k, line in enumerate(_lines(path, spot))))
    if not ranks:
        raise WorkloadError(f"{spot}: {listing} names no trace; name one file for each rank")
    return UsageTraceWork(tuple(ranks))


def _lines(path: Path, spot: str) -> list[str]:
    """The lines of a trace that are not blank."""
    try:
        text = read_text(path, error=WorkloadError)
    except WorkloadError as error:
        raise WorkloadError(f"{spot}: cannot read the trace {error}") from None
    return [line for line in text.splitlines() if line.strip()]


def _phase(line: str, path: Path, number: int) -> tuple[float, float]:
    """(usage, flops) of a line `rank m_usage usage flops`."""
    words = line.split()
    try:
        if len(words) != 4 or words[1] != "m_usage":
            raise ValueError
        usage, flops = float(words[2]), float(words[3])
    except ValueError:
        problem = f"{shown(line.strip())} is not 'rank m_usage usage flops'"
        raise WorkloadError(f"{path}:{number}: {problem}") from None
    try:
        if not 0 <= check_number("usage", usage) <= 1:
            raise FieldError("usage", f"{usage:g} is more than 1")
        check_number("flops", flops)
    except FieldError as error:
        raise WorkloadError(f"{path}:{number}: {error}") from None
    return usage, flops


def _read_replay(fields: Fields, spot: str, directory: Path) -> Work:
    kind = _text(fields, ("trace_type",), spot)
    if kind in ("FractionalComputation", "usage"):
        return _read_usage(fields, spot, directory)
    if kind in ("SMPI", "smpi"):
        return _read_smpi(fields, spot, directory)
    raise WorkloadError(
        f"{spot}/trace_type: {shown(kind)} is unknown; use SMPI or FractionalComputation"
    )


def _read_smpi(fields: Fields, spot: str, directory: Path) -> Work:
    """The trace of an MPI application; what it is expected to last, in some files, is ignored."""
    listing = _trace_file(fields, spot, directory)
    ranks = fields.get("mpi_size")
    if ranks is not None and not (type(ranks) is int and ranks > 0):
        raise WorkloadError(f"{spot}/mpi_size: {shown(ranks)} is not a number of ranks above 0")
    try:
        return TraceWork(read_trace(listing, ranks))
    except WorkloadError as error:
        raise WorkloadError(f"{spot}: cannot read the trace {error}") from None


def _read_message(fields: Fields, spot: str, directory: Path) -> Work:
    raise WorkloadError(
        f"{spot}: messages ('{fields['type']}') need a scheduler that delivers them; use "
        "`ptaskmodel serve`"
    )


READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("delay", "DelayProfile"), _read_delay),
    **dict.fromkeys(("msg_par", "parallel", "ptask", "ParallelTaskProfile"), _read_parallel),
    **dict.fromkeys(
        (
            "msg_par_hg",
            "parallel_homogeneous",
            "ptask_homogeneous",
            "ParallelTaskHomogeneousProfile",
        ),
        _read_homogeneous,
    ),
    **dict.fromkeys(("msg_par_hg_tot", "parallel_homogeneous_total"), _read_total),
    **dict.fromkeys(
        (
            "msg_par_hg_pfs",
            "msg_par_hg_pfs0",
            "msg_par_hg_pfs_tiers",
            "parallel_homogeneous_pfs",
            "ptask_on_storage_homogeneous",
            "ParallelTaskOnStorageHomogeneousProfile",
        ),
        _read_storage,
    ),
    **dict.fromkeys(
        (
            "data_staging",
            "ptask_data_staging_between_storages",
            "ParallelTaskDataStagingBetweenStoragesProfile",
        ),
        _read_staging,
    ),
    "usage_trace": _read_usage,
    **dict.fromkeys(("trace_replay", "TraceReplayProfile"), _read_replay),
    "smpi": _read_smpi,
    **dict.fromkeys(("send", "recv", "SCHEDULER_SEND", "SCHEDULER_RECV"), _read_message),
}

NAMES: Mapping[int, Mapping[type, str]] = {
    2: {
        DelayWork: "delay",
        ParallelWork: "msg_par",
        HomogeneousWork: "msg_par_hg",
        SpreadWork: "msg_par_hg_tot",
        StorageWork: "msg_par_hg_pfs",
        StagingWork: "data_staging",
        SequenceWork: "composed",
    },
    3: {
        DelayWork: "delay",
        ParallelWork: "parallel",
        HomogeneousWork: "parallel_homogeneous",
        SpreadWork: "parallel_homogeneous_total",
        StorageWork: "parallel_homogeneous_pfs",
        StagingWork: "data_staging",
        SequenceWork: "composed",
    },
    5: {
        DelayWork: "DelayProfile",
        ParallelWork: "ParallelTaskProfile",
        HomogeneousWork: "ParallelTaskHomogeneousProfile",
        SpreadWork: "ParallelTaskHomogeneousProfile",
        StorageWork: "ParallelTaskOnStorageHomogeneousProfile",
        StagingWork: "ParallelTaskDataStagingBetweenStoragesProfile",
        SequenceWork: "SequentialCompositionProfile",
    },
}


def profile_fields(name: str, work: Work, version: int) -> dict[str, dict[str, Any]]:
    """The profile ``name`` in Batsim's terms; stages of a sequence become profiles of their own.

    Raises WorkloadError for what the version cannot say.
    """
    if isinstance(work, HomogeneousWork) and work.total:
        work = SpreadWork(work.flops, work.bytes, by_pair=True)
    names = NAMES[version if version in (2, 5) else 3]
    if type(work) not in names:
        raise WorkloadError(
            f"profile '{name}': a {type(work).__name__} cannot be written to a Batsim workload; "
            "keep its original file"
        )
    profiles = {name: {"type": names[type(work)]} | WRITERS[type(work)](name, work, version)}
    if isinstance(work, SequenceWork):
        for stage, part in zip(profiles[name]["seq"], work.stages, strict=True):
            profiles |= profile_fields(stage, part, version)
    return profiles


def _write_parallel(name: str, work: ParallelWork, version: int) -> dict[str, Any]:
    matrix = np.zeros((work.ranks, work.ranks))
    matrix[work.flow_from, work.flow_to] = work.flow_bytes
    return {"cpu": work.flops.tolist(), "com": matrix.ravel().tolist()}


def _write_spread(name: str, work: SpreadWork, version: int) -> dict[str, Any]:
    return {"cpu": work.flops, "com": work.bytes} | _spread_strategy(name, work, version)


def _write_storage(name: str, work: StorageWork, version: int) -> dict[str, Any]:
    fields = {"bytes_to_read": work.read_bytes, "bytes_to_write": work.write_bytes}
    more: dict[str, Any] = {"storage": work.storage}
    if work.total:
        if version != 5:
            raise WorkloadError(
                f"profile '{name}': only version 5 divides bytes among hosts; write version 5"
            )
        more["generation_strategy"] = SPREAD[0]
    return fields | more


WRITERS: Mapping[type, Callable[[str, Any, int], dict[str, Any]]] = {
    DelayWork: lambda name, work, version: {"delay": work.delay_s},
    ParallelWork: _write_parallel,
    HomogeneousWork: lambda name, work, version: {"cpu": work.flops, "com": work.bytes},
    SpreadWork: _write_spread,
    StorageWork: _write_storage,
    StagingWork: lambda name, work, version: {
        "nb_bytes": work.bytes,
        "from": work.source,
        "to": work.destination,
    },
    SequenceWork: lambda name, work, version: {
        "repeat": work.repeat,
        "seq": [f"{name}/{k}" for k in range(len(work.stages))],
    },
}


def _spread_strategy(name: str, work: SpreadWork, version: int) -> dict[str, str]:
    if work.bytes > 0 and work.by_pair != (version == 5):
        raise WorkloadError(
            f"profile '{name}': versions 4 and 5 spread bytes differently, and this profile "
            "comes from "
            "the other version; write that version"
        )
    return {"generation_strategy": SPREAD[0]} if version == 5 else {}
