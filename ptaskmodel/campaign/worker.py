"""Makes runs, one after the other, keeps each, and says how it went."""

from __future__ import annotations

import os
import platform
import resource
import time
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ptaskmodel import __version__
from ptaskmodel.campaign.kinds import Kind, kind_of
from ptaskmodel.campaign.store import DONE, FAILED, Store
from ptaskmodel.errors import PTaskModelError

LAST_WORDS = 2000


def make(kind: Kind, run_id: str, parameters: Mapping[str, Any], repetition: int) -> dict[str, Any]:
    """The record of a run: its numbers, or why there are none."""
    began, used = time.perf_counter(), time.process_time()
    record: dict[str, Any] = {
        "id": run_id,
        "run": kind.name,
        "parameters": dict(parameters),
        "repetition": repetition,
    }
    try:
        numbers = kind.run(parameters)
    except PTaskModelError as error:
        record |= {"status": FAILED, "error": str(error)}
    except MemoryError:
        record |= {"status": FAILED, "error": "out of memory: raise memory_MB, or make it smaller"}
    except Exception as error:
        last = traceback.format_exc()[-LAST_WORDS:]
        record |= {"status": FAILED, "error": f"{type(error).__name__}: {error}", "log": last}
    else:
        record |= {"status": DONE, "metrics": numbers}
    return record | {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - used,
        "host": platform.node(),
        "version": __version__,
    }


def serve(
    calls: Connection, directory: str, kind: str, folder: str, log: str, memory_MB: float | None
) -> None:
    """Make the runs that are sent, (id, parameters, repetition), until the other end is gone."""
    words = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(words, 1)
    os.dup2(words, 2)
    if memory_MB is not None:
        limit = int(memory_MB * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    store = Store(directory)
    known = kind_of(kind, (), Path(folder))
    while True:
        try:
            run_id, parameters, repetition = calls.recv()
        except (EOFError, OSError):
            return
        record = make(known, run_id, parameters, repetition)
        store.write(run_id, record)
        calls.send((run_id, record["status"], record["wall_s"], record.get("error")))
