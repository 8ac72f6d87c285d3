"""Tasks written as a tasks.json file, each work once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from typing import Any

from ptaskmodel.errors import WorkloadError
from ptaskmodel.files import whole_file
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import (
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
    Work,
)

_EXPONENT = re.compile(rb"e[0-9-]")
SPREAD = "DefinedAmountsSpreadUniformly"


def write_tasks(
    tasks: Iterable[Task], path: str | os.PathLike[str], description: str | None = None
) -> None:
    """Write tasks as a file that `load_tasks` reads, whole or not at all; a profile, a task a line.

    Tasks (and stages) of one work share a profile, called as ``Task.profile`` says, else after the
    first task that has it. Tasks without id are numbered from 0. description: a text in the file.

    Raises WorkloadError for a work that no tasks file can hold, or if it cannot be written.
    """
    with collector_at_rest():
        entries, profiles = _entries(tasks)
        names, fields = map(json_texts, (profiles.fields, profiles.fields.values()))
        named = map(": ".join, zip(names, fields, strict=True))
        listed = json_texts(entries)
    with whole_file(path, error=WorkloadError) as stream:
        stream.write("{\n")
        if description is not None:
            stream.write(f'"description": {json.dumps(description)},\n')
        stream.write('"profiles": {\n' + ",\n".join(named) + "\n},\n")
        stream.write('"tasks": [\n' + ",\n".join(listed) + "\n]\n}\n")


def json_texts(values: Iterable[Any]) -> list[str]:
    """Each value as json.dumps writes it, in a fraction of the time."""
    import msgspec

    encode, format_ = msgspec.json.Encoder().encode, msgspec.json.format
    values = list(values)
    try:
        texts = [format_(encode(value), indent=0) for value in values]
    except ValueError:  # half of a character
        return list(map(json.dumps, values))
    if _is_alike(b"\n".join(texts)):
        return list(map(bytes.decode, texts))
    both = zip(texts, values, strict=True)
    return [text.decode() if _is_alike(text) else json.dumps(value) for text, value in both]


def _is_alike(text: bytes) -> bool:
    """Whether nothing is in what msgspec wrote that json writes in another way.

    That is exponents, characters beyond those of ASCII that are printed, and what is not finite.
    """
    others = any(mark in text for mark in (b"0.0000", b"null", b"\x7f"))
    return text.isascii() and not others and not _EXPONENT.search(text)


def _entries(tasks: Iterable[Task]) -> tuple[list[dict[str, Any]], _Profiles]:
    """What the file says of each task, and the profiles of their works."""
    profiles = _Profiles()
    entries = []
    for number, task in enumerate(tasks):
        name = task.id if task.id is not None else str(number)
        entry: dict[str, Any] = {
            "id": name,
            "profile": profiles.add(task.work, task.profile or name),
        }
        if task.hosts:
            entry["hosts"] = list(task.hosts)
        if task.start_s:
            entry["start"] = task.start_s
        if task.after:
            entry["after"] = list(task.after)
        for key, value in (
            ("walltime", task.walltime_s),
            ("rate_bound", task.rate_bound),
            ("competitors", task.competitors),
        ):
            if value is not None:
                entry[key] = value
        if task.weight != 1.0:
            entry["weight"] = task.weight
        entries.append(entry)
    return entries, profiles


class _Profiles:
    """The profiles of works, each work once."""

    def __init__(self) -> None:
        self.fields: dict[str, dict[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Work] = []  # so that no other work gets the id of one

    def add(self, work: Work, name: str) -> str:
        """The name of the profile of a work, called ``name`` if it is new."""
        if id(work) in self._names:
            return self._names[id(work)]
        base, number = name, 1
        while name in self.fields:
            number += 1
            name = f"{base}-{number}"
        self._names[id(work)] = name
        self._kept.append(work)
        self.fields[name] = {}
        self.fields[name] = self._fields(work, name)
        return name

    def _fields(self, work: Work, name: str) -> dict[str, Any]:
        if isinstance(work, DelayWork):
            return {"type": "delay", "delay": work.delay_s}
        if isinstance(work, HomogeneousWork):
            fields = {"type": "parallel_homogeneous", "cpu": work.flops, "com": work.bytes}
            return fields | ({"generation_strategy": SPREAD} if work.total else {})
        if isinstance(work, SequenceWork):
            stages = [self.add(stage, f"{name}/{k}") for k, stage in enumerate(work.stages)]
            repeat = {} if work.repeat == 1 else {"repeat": work.repeat}
            return {"type": "composed", "seq": stages, **repeat}
        if isinstance(work, ParallelWork):
            return _parallel(work)
        raise WorkloadError(
            f"profile '{name}': a {type(work).__name__} cannot be written to a tasks file"
        )


def _parallel(work: ParallelWork) -> dict[str, Any]:
    flops = work.flops.tolist()
    if work.pair_bytes > 0.0 and len(set(flops)) == 1:
        return {"type": "parallel_homogeneous", "cpu": flops[0], "com": work.pair_bytes}
    fields: dict[str, Any] = {"type": "parallel", "cpu": flops}
    if len(work.flow_bytes):
        ends = work.flow_from.tolist(), work.flow_to.tolist()
        fields["flows"] = list(zip(*ends, work.flow_bytes.tolist(), strict=True))
    return fields
