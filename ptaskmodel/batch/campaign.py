"""Campaigns: many independent runs on the cores of the machine, each finished one kept at once.

A run has a name and parameters. Its result is written to ``DIR/NAME.json``, whole or not at all, by
the process that made it. Started again, a campaign skips what is there: a kill -9 in the middle
loses no finished run.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from ptaskmodel.errors import SimulationError
from ptaskmodel.files import write_bytes

Parameters = Mapping[str, Any]
RunFunction = Callable[[Parameters], Mapping[str, Any]]


def run_campaign(
    directory: Path,
    runs: Mapping[str, Parameters],
    function: RunFunction,
    *,
    processes: int | None = None,
    tell: Callable[[int, int, str], None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Results by name, of old runs and new ones.

    function: module-level, so that other processes find it; gets the parameters, gives a result
    that JSON can hold. processes: how many at once (the cores of the machine by default; 1: in this
    process). tell(done, total, name) is called after each run. A result whose parameters are not
    those asked for now is made anew. Raises SimulationError for a name unfit for a file, and what
    ``function`` raises.
    """
    for name in runs:
        if not re.fullmatch(r"[\w.@=+-]+", name):
            raise SimulationError(f"'{name}' is not fit to name a run: use letters, digits, _.@=+-")
    directory.mkdir(parents=True, exist_ok=True)
    found = {name: _read(directory / f"{name}.json", runs[name]) for name in runs}
    missing = [name for name, result in found.items() if result is None]
    done = len(runs) - len(missing)

    def keep(name: str, result: dict[str, Any]) -> None:
        nonlocal done
        found[name] = result
        done += 1
        if tell is not None:
            tell(done, len(runs), name)

    count = processes or len(os.sched_getaffinity(0))
    if count == 1 or len(missing) < 2:
        for name in missing:
            keep(name, _make(directory / f"{name}.json", runs[name], function))
    else:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(count, len(missing)), mp_context=context) as pool:
            jobs = {
                pool.submit(_make, directory / f"{name}.json", dict(runs[name]), function): name
                for name in missing
            }
            for job in as_completed(jobs):
                keep(jobs[job], job.result())
    return {name: result for name, result in found.items() if result is not None}


def _read(path: Path, parameters: Parameters) -> dict[str, Any] | None:
    """The result in a file, if it is of these parameters."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("parameters") != _as_json(parameters):
        return None
    result = kept.get("result")
    return result if isinstance(result, dict) else None


def _make(path: Path, parameters: Parameters, function: RunFunction) -> dict[str, Any]:
    """Make one run and keep it; the result as it will be read again."""
    result = _as_json(function(parameters))
    kept = json.dumps({"parameters": _as_json(parameters), "result": result})
    write_bytes(path, kept.encode(), error=SimulationError)
    return result


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(value))
    return read
