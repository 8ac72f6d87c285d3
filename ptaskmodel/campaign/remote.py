"""What a Dask worker does of a campaign: one run in a process beside it, with inputs it was sent.

The run is made by a process of the worker's (see `maker`), so that a run that crashes, takes too
long or too much memory takes no Dask worker with it, and a worker that computes still answers.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel import __version__
from ptaskmodel.campaign.maker import Maker, MakerDiedError, failed, order_of, too_long
from ptaskmodel.campaign.plan import digest_of
from ptaskmodel.campaign.store import DONE, TOKEN, Store
from ptaskmodel.campaign.worker import Call
from ptaskmodel.errors import CampaignError

# Size and date of change of a file, or of all files of a directory.
Mark = tuple[tuple[str, int, int], ...]


class Input(NamedTuple):
    """A file that runs read: where it is for whoever started the campaign, and what it is."""

    path: str
    digest: str
    mark: Mark


class Task(NamedTuple):
    """A run for a worker.

    inputs: by parameter; that of the function is called after `FUNCTION`. shared: a file of the
    campaign's directory and what it holds, by which a worker that sees the directory knows it.
    """

    version: str
    kind: str
    call: Call
    inputs: dict[str, Input]
    directory: str
    shared: str
    timeout_s: float | None
    memory_MB: float | None


FUNCTION = "FILE.py"
# What a task says: the record, or how it died, or what it lacks; and whether the record is kept.
Said = dict[str, Any]
_own = threading.local()


def mark_of(path: Path) -> Mark:
    """What tells at once whether a path leads to the same elsewhere. Raises OSError."""
    found = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    states = [(one, one.stat()) for one in found]
    return tuple(
        (str(one.relative_to(path)), state.st_size, state.st_mtime_ns) for one, state in states
    )


def make_there(tasks: Sequence[Task], *_: object) -> list[Said]:
    """Make runs on a Dask worker; the others are inputs that must be there before."""
    return [_said(task) for task in tasks]


def _said(task: Task) -> Said:
    from distributed import get_worker

    worker = get_worker()
    if task.version != __version__:
        raise CampaignError(
            f"{worker.address} has ptaskmodel {__version__}, here it is {task.version}; "
            "install the same"
        )
    store = Store(task.directory) if _sees(task) else None
    kept = None if store is None else store.read(task.call.id)
    if kept is not None and kept["status"] == DONE:  # by who was cut off from the scheduler
        return {"record": kept, "kept": True}
    local = Path(worker.local_directory)
    places = {name: _place(local, one) for name, one in task.inputs.items()}
    lacking = [name for name, place in places.items() if place is None]
    if lacking:
        return {"lacks": lacking, "worker": worker.address}
    found = {name: str(place) for name, place in places.items() if place is not None}
    kind = task.kind
    if FUNCTION in found:
        kind = f"{found.pop(FUNCTION)}:{kind.rpartition(':')[2]}"
    call = task.call._replace(parameters=task.call.parameters | found)
    try:
        record = _record(task, kind, call, local)
    except MakerDiedError as death:
        return {"died": death.how, "log": death.log, "worker": worker.address}
    record |= {"run": task.kind, "parameters": task.call.parameters}
    if store is None:
        return {"record": record, "kept": False}
    store.write(task.call.id, record)
    told = {name: record[name] for name in ("status", "wall_s", "error") if name in record}
    return {"record": told, "kept": True}


def keep_there(name: str, digest: str, content: dict[str, bytes]) -> None:
    """Keep an input on a Dask worker. content: of a file "." , or of those of a directory."""
    from distributed import get_worker

    place = _kept(Path(get_worker().local_directory), name, digest)
    partial = place.parent / secrets.token_hex(8)
    for inner, data in content.items():
        path = partial / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    if digest_of(partial, name) != digest:
        raise CampaignError(f"{name}: changed since the campaign began; start it again")
    try:
        os.rename(partial, place)
    except OSError:  # another thread of this worker was faster
        if not place.exists():
            raise


def _sees(task: Task) -> bool:
    """Whether the directory of the campaign is this worker's too."""
    try:
        return (Path(task.directory) / TOKEN).read_text(encoding="utf-8") == task.shared
    except (OSError, ValueError):
        return False


def _place(local: Path, one: Input) -> Path | None:
    """Where an input is here: the same path if that is the same file, or where it was sent."""
    path = Path(one.path)
    try:
        if mark_of(path) == one.mark:
            return path
    except OSError:
        pass
    sent = _kept(local, path.name, one.digest)
    return sent if sent.exists() else None


def _kept(local: Path, name: str, digest: str) -> Path:
    place = local / "inputs" / digest
    place.mkdir(parents=True, exist_ok=True)
    return place / name


def _record(task: Task, kind: str, call: Call, local: Path) -> dict[str, Any]:
    """Of a run made by this thread's process, which is started, or again if it is another's."""
    order = order_of(kind, Path(), None, task.memory_MB)
    maker: Maker | None = getattr(_own, "maker", None)
    if maker is not None and _own.order != order:
        maker.end()
        maker = None
    if maker is None:
        _own.order = order
        _own.maker = maker = Maker(order, local / f"maker-{threading.get_ident()}.log")
    began = time.monotonic()
    maker.send(call)
    try:
        record = maker.answer(task.timeout_s)
    except MakerDiedError:
        _own.maker = None
        raise
    if record is None:
        assert task.timeout_s is not None
        maker.end()
        _own.maker = None
        error = too_long(task.timeout_s)
        return failed(kind, call, error, time.monotonic() - began, maker.last_words())
    return record
