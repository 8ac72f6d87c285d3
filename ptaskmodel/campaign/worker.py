"""The process that makes runs for `pool.Maker`: it runs, stores and reports one after the other."""

from __future__ import annotations

import json
import os
import platform
import queue
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel import __version__
from ptaskmodel.campaign.run_types import SERIES, Kind, kind_of, numbers_of
from ptaskmodel.campaign.store import DONE, FAILED, Store
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.remarks import listening

LAST_WORDS = 2000
# Said once, when the kind of runs is loaded.
READY = "ready"


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
        with listening():
            found = kind.run(parameters)
        record |= {"metrics": numbers_of(found)}
        if SERIES in found:
            json.dumps(found[SERIES], allow_nan=False)  # what cannot be kept fails here
            record |= {SERIES: found[SERIES]}
    except PTaskModelError as error:
        record |= {"status": FAILED, "error": str(error)}
    except MemoryError:
        record |= {
            "status": FAILED,
            "error": "out of memory; raise memory_MB, or make the run smaller",
        }
    except Exception as error:
        last = traceback.format_exc()[-LAST_WORDS:]
        record |= {"status": FAILED, "error": f"{type(error).__name__}: {error}", "log": last}
    else:
        record |= {"status": DONE}
    return record | {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - used,
        "host": platform.node(),
        "version": __version__,
    }


class Order(NamedTuple):
    """What a worker is told first: the kind of its runs, and where they are kept.

    folder: that the kind's file is relative to. directory: of the campaign; None: records are only
    answered. path: where Python finds modules.
    """

    kind: str
    folder: str
    directory: str | None
    memory_MB: float | None
    path: tuple[str, ...]


class Call(NamedTuple):
    """A run to make."""

    id: str
    parameters: dict[str, Any]
    repetition: int


def serve(calls: Connection) -> None:
    """Make the runs that are sent, after an order, until the other end is gone.

    Answers `READY` when the kind is loaded, then records.
    """
    order: Order = calls.recv()
    sys.path[:] = dict.fromkeys((*order.path, *sys.path))
    if order.memory_MB is not None:
        limit = int(order.memory_MB * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    store = None if order.directory is None else Store(order.directory)
    kind = kind_of(order.kind, (), Path(order.folder))
    waiting: queue.SimpleQueue[Call] = queue.SimpleQueue()
    calls.send(READY)
    threading.Thread(target=_listen, args=(calls, waiting), daemon=True).start()
    while True:
        call = waiting.get()
        record = make(kind, call.id, call.parameters, call.repetition)
        if store is not None:
            store.write(call.id, record)
        try:
            calls.send(record)
        except OSError:
            return


def _listen(calls: Connection, waiting: queue.SimpleQueue[Call]) -> None:
    """Pass on what is sent. If the other end closes, the run that is being made ends too."""
    while True:
        try:
            waiting.put(calls.recv())
        except (EOFError, OSError):
            sys.stdout.flush()
            signal.raise_signal(signal.SIGKILL)


def main() -> None:
    """``python -m ptaskmodel.campaign.worker FD``: serve at the socket of that number."""
    number = int(sys.argv[1])
    os.set_inheritable(number, False)
    serve(Connection(number))


if __name__ == "__main__":
    main()
