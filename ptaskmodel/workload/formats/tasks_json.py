"""Read and write tasks.json: profiles (what may run) and tasks (which runs where and when).

`load_tasks` and `read_tasks_file` read one; `write_tasks` writes one, each work once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import AnyPath, shown_path, write_bytes
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.remarks import Account, Remark, reader, warn_of
from ptaskmodel.workload.amounts import FieldError, plural_hosts
from ptaskmodel.workload.blocks import TableMaker, TaskTable
from ptaskmodel.workload.formats.host_names import HostLists
from ptaskmodel.workload.formats.json import Fields, json_lines, objects_of, read_json
from ptaskmodel.workload.formats.tasks_json_loops import LOOP_FIELDS, read_loop
from ptaskmodel.workload.formats.tasks_json_profiles import (
    AMOUNT_FIELDS,
    ArrayFiles,
    Inline,
    Profile,
    ProfileReader,
    unknown,
)
from ptaskmodel.workload.reading import tell_unix_dates
from ptaskmodel.workload.tasks import MOST_REQUESTS, Task, in_order
from ptaskmodel.workload.works import (
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
    Work,
)

TASK_FIELDS = (
    "id", "hosts", "start", "profile", "cpu", "com", "flows", "delay", "after", "walltime",
    "weight", "rate_bound", "competitors", "connection",
)  # fmt: skip
# Fields of a loop that are those of each of its requests.
REQUEST_FIELDS = tuple(name for name in TASK_FIELDS if name != "after")
WORK_FIELDS = ("cpu", "com", "flows", "delay")

_JSON_NAMES = {"start_s": "start", "walltime_s": "walltime", "seconds": "delay"}

_log = logging.getLogger(__name__)


# Of a task, fields that are numbers, and what they are called there.
_NUMBERS = {
    "start": "start_s",
    "walltime": "walltime_s",
    "weight": "weight",
    "rate_bound": "rate_bound",
    "competitors": "competitors",
}

SPREAD = "DefinedAmountsSpreadUniformly"


class TasksFile(NamedTuple):
    """The tasks of a file, in its order; every file that was read; what is told of the first."""

    tasks: Sequence[Task]
    paths: list[Path]
    remarks: tuple[Remark, ...] = ()


def load_tasks(path: str | Path) -> Sequence[Task]:
    """Read the tasks of the tasks.json file `path`, in its order.

    They are kept as arrays, which `Simulation.add_all` takes as they are; a `Task` is made each
    time that one is asked for (``list(...)`` makes them all). Tasks with the same profile share a
    work; tasks with the same list of hosts share the list. Unix dates are counted from the first,
    with a Python warning. Raises WorkloadError: the file, and of each problem the JSON pointer and
    the remedy.
    """
    found = read_tasks_file(path)
    warn_of(found.remarks)
    return found.tasks


@reader(WorkloadError)
def read_tasks_file(path: AnyPath, account: Account) -> TasksFile:
    """The same as `load_tasks`, with the paths of the files read (.npz files included).

    The tasks are made when asked for, unless some are those of loops. account: of the file at the
    `path`.
    """
    path = Path(path)
    with collector_at_rest():
        try:
            found = _TasksReader(path).read(read_json(path, arrays=AMOUNT_FIELDS))
        except WorkloadError:
            # Messages show what is written, without arrays in place of lists, of every task.
            found = _TasksReader(path, account).read(read_json(path))
    _log.info("read %s: %d tasks", shown_path(path), len(found.tasks))
    return found._replace(tasks=_counted_from_first(found.tasks, account))


def _counted_from_first(tasks: Sequence[Task], account: Account) -> Sequence[Task]:
    """The tasks with dates from the first on, if they are Unix dates.

    Those that come when others have completed need none.
    """
    if isinstance(tasks, TaskTable):
        start_s = tasks.start_s
        counts = np.ones(len(tasks), dtype=np.bool_)
        counts[list(tasks.after)] = False
        first_s = float(start_s[counts | (start_s != 0.0)].min(initial=np.inf))
    else:
        dates = (task.start_s for task in tasks if task.start_s or not task.after)
        first_s = min(dates, default=0.0)
    if not tell_unix_dates(first_s, account, "start"):
        return tasks
    if isinstance(tasks, TaskTable):
        return replace(tasks, start_s=np.where(start_s != 0.0, start_s - first_s, 0.0))
    return [
        replace(task, start_s=task.start_s - first_s) if task.start_s else task for task in tasks
    ]


# In the place of a profile that was refused.
_UNKNOWN = Profile(lambda ranks: DelayWork(0.0), needs_hosts=False, uniform=True)


class _Entry(NamedTuple):
    """What a task's entry says: its work comes from the source; the others are as in `Task`."""

    hosts: tuple[str, ...]
    source: Profile | Inline
    others: dict[str, Any]


class _TasksReader:
    """Reads one document.

    account: of the problems of all tasks, which are made one by one; None: the first problem is
    raised, and tasks are a table.
    """

    def __init__(self, path: Path, account: Account | None = None) -> None:
        self._path, self._account = path, account
        self._guard = contextlib.nullcontext if account is None else account.problems
        self._refused: set[str] = set()  # names of profiles
        self._loop_files: list[Path] = []
        self._arrays = ArrayFiles(path.parent)
        self._fields = Fields(shown_path(path), account)
        self._profile_reader = ProfileReader(self._fields, self._arrays, self._guard)
        self._profiles: dict[str, Profile] = {}
        self._hosts = HostLists(self._fields)

    def read(self, document: Any) -> TasksFile:
        """What a document says."""
        fail = self._fields.fail
        if type(document) is dict and "jobs" in document and "tasks" not in document:
            fail("", "this is a Batsim workload; run it by `ptaskmodel batch`")
        if type(document) is list:
            fail("", 'is a list; give an object such as {"tasks": [...]}')
        fields = ("profiles", "tasks", "loops", "description", "$schema")
        if type(document) is not dict:
            self._fields.object_of(document, "", fields, "a tasks file")
        with self._guard():
            self._fields.object_of(document, "", fields, "a tasks file")
        for name in ("description", "$schema"):
            with self._guard():
                if name in document:
                    self._fields.text(document[name], f"/{name}", "a string")
        loops = document.get("loops", [])
        listed = document.get("tasks", [] if loops else None)
        if type(listed) is not list:
            fail("/tasks", "is missing; give a list" if listed is None else "is not a list")
        if type(loops) is not list:
            fail("/loops", "is not a list")
        if not (listed or loops):
            fail("/tasks", "is empty; give at least one task")
        profiles = document.get("profiles", {})
        self._profiles = self._profile_reader.read(profiles)
        self._refused = set(profiles) - self._profiles.keys()
        tasks = self._table(listed) if self._account is None else self._each(listed)
        if loops:
            tasks = [*tasks, *self._requests(loops)]
        if self._account is not None:
            self._account.check()
        self._check_ids(tasks)
        if self._account is not None:
            self._account.check()
        return TasksFile(tasks, [self._path, *self._arrays.paths, *self._loop_files])

    def _table(self, entries: list[Any]) -> TaskTable:
        """The tasks of entries; each entry is given up when it was read."""
        maker = TableMaker()
        for k, entry in enumerate(entries):
            hosts, source, others = self._entry(entry, f"/tasks/{k}")
            if isinstance(source, Profile):
                work = source.work(len(hosts))
                if isinstance(work, DelayWork) and others["profile"] is None:
                    number = maker.delay(work.delay_s)
                else:
                    number = maker.shared(work, len(hosts))
            elif source.com is None:
                number = maker.parallel(len(hosts), source.cpu, source.flows)
            else:
                number = maker.shared(self._profile_reader.work(source), len(hosts))
            maker.add(hosts, number, others)
            entries[k] = None
        return maker.table()

    def _each(self, entries: list[Any]) -> list[Task]:
        """The same, made one by one, with an account of what is wrong with each."""
        tasks: list[Task] = []
        for k, entry in enumerate(entries):
            with self._guard():
                tasks.append(self._task(entry, f"/tasks/{k}"))
            if self._hosts.are_too_many:
                break
        return tasks

    def _requests(self, loops: list[Any]) -> list[Task]:
        """The tasks of loops."""
        tasks: list[Task] = []
        for k, loop in enumerate(loops):
            with self._guard():
                tasks += self._loop(loop, f"/loops/{k}")
            if len(tasks) > MOST_REQUESTS:
                problem = f"makes more than {MOST_REQUESTS} tasks of loops; give fewer"
                self._fields.fail(f"/loops/{k}", problem)
        return tasks

    def _task(self, entry: Any, pointer: str) -> Task:
        hosts, source, others = self._entry(entry, pointer)
        if isinstance(source, Inline):
            work: Work = self._profile_reader.work(source)
        else:
            work = source.work(len(hosts))
        try:
            return Task(hosts, work, **others)
        except FieldError as error:
            self._fields.fail_in(pointer, error, _JSON_NAMES)

    def _entry(self, entry: Any, pointer: str) -> _Entry:
        fields, guard = self._fields, self._guard()
        if type(entry) is not dict:
            fields.object_of(entry, pointer, TASK_FIELDS, "a task")
        others: dict[str, Any] = {}
        with guard:
            fields.object_of(entry, pointer, TASK_FIELDS, "a task")
        with guard:
            if "id" not in entry:
                fields.fail(pointer, "has no id; give each task its own")
            others["id"] = self._id(entry["id"], f"{pointer}/id")
        for key, field in _NUMBERS.items():
            if key in entry:
                with guard:
                    others[field] = fields.number(entry[key], f"{pointer}/{key}")
        if "after" in entry:
            with guard:
                others["after"] = self._after(entry["after"], f"{pointer}/after")
        if entry.get("connection") is not None:
            with guard:
                others["connection"] = self._id(entry["connection"], f"{pointer}/connection")
        hosts = self._hosts.read(entry["hosts"], f"{pointer}/hosts") if "hosts" in entry else ()
        source, profile = self._work_source(entry, pointer, len(hosts))
        if source.needs_hosts and not hosts:
            fields.fail(f"{pointer}/hosts", "is missing; give the hosts that the task runs on")
        if isinstance(source, Profile) and profile is not None:
            self._check_size(source, len(hosts), pointer)
        others["profile"] = profile
        return _Entry(hosts, source, others)

    def _loop(self, entry: Any, pointer: str) -> list[Task]:
        """The requests and pauses of a closed loop, made of the task that each request is."""
        self._fields.object_of(entry, pointer, (*REQUEST_FIELDS, *LOOP_FIELDS), "a loop")
        base = {key: value for key, value in entry.items() if key not in LOOP_FIELDS}
        request = self._task(base, pointer)
        tasks, paths = read_loop(entry, pointer, self._fields, request, self._path.parent)
        self._loop_files += paths
        return tasks

    def _id(self, value: Any, pointer: str) -> str:
        if type(value) in (int, float):
            return str(self._fields.whole(value, pointer))
        return self._fields.text(value, pointer, "a string or a whole number")

    def _work_source(
        self, entry: dict[str, Any], pointer: str, ranks: int
    ) -> tuple[Profile | Inline, str | None]:
        """The profile of a task and its name, or what it carries itself and None."""
        fields = self._fields
        inline = [key for key in WORK_FIELDS if key in entry]
        if "profile" not in entry:
            if not inline:
                fields.fail(pointer, "has no work; give a profile, or cpu, com, flows or delay")
            if "delay" in inline:
                if len(inline) > 1:
                    fields.fail(
                        f"{pointer}/delay", f"is given in addition to {inline[0]}; keep one"
                    )
                return self._profile_reader.delay(entry, pointer), None
            amounts = {key: entry[key] for key in AMOUNT_FIELDS if key in entry}
            return self._profile_reader.inline(amounts, pointer, ranks), None
        if inline:
            fields.fail(
                f"{pointer}/{inline[0]}", "is given in addition to profile; keep one of the two"
            )
        name = fields.text(entry["profile"], f"{pointer}/profile", "the name of a profile")
        if name in self._refused:
            return _UNKNOWN, name
        if name not in self._profiles:
            known = (*self._profiles, *sorted(self._refused))
            fields.fail(f"{pointer}/profile", unknown(name, known))
        return self._profiles[name], name

    def _check_size(self, profile: Profile, hosts: int, pointer: str) -> None:
        """The number of hosts fits the profile's."""
        if not profile.needs_hosts:
            return
        if profile.ranks is not None and hosts != profile.ranks:
            problem = f"has {plural_hosts(hosts)} for a profile of {profile.ranks} ranks"
            self._fields.fail(f"{pointer}/hosts", f"{problem}; give one per rank")
        if hosts < profile.at_least:
            problem = f"has {plural_hosts(hosts)} for a profile with flows between"
            problem += f" {profile.at_least} ranks; give at least that many"
            self._fields.fail(f"{pointer}/hosts", problem)

    def _after(self, value: Any, pointer: str) -> tuple[str, ...]:
        if type(value) is not list:
            self._fields.fail(pointer, f"is {shown(value)}; give a list of task ids")
        names = tuple(self._id(name, f"{pointer}/{k}") for k, name in enumerate(value))
        if len(set(names)) < len(names):
            k = next(k for k, name in enumerate(names) if name in names[:k])
            self._fields.fail(f"{pointer}/{k}", f"repeats {shown(names[k])}; list each id once")
        return names

    def _check_ids(self, tasks: Sequence[Task]) -> None:
        """Ids are unique, those in `after` exist, and no task waits for itself in the end."""
        fail = self._fields.fail
        ids: Sequence[str | None]
        after: Mapping[int, tuple[str, ...]]
        if isinstance(tasks, TaskTable):
            ids, after = tasks.ids or (), tasks.after
        else:
            ids = [task.id for task in tasks]
            after = {k: task.after for k, task in enumerate(tasks) if task.after}
        if not after and len(set(ids)) == len(ids):
            return
        place: dict[str | None, int] = {}
        for k, name in enumerate(ids):
            if place.setdefault(name, k) != k:
                problem = f"is {shown(name)}, the id of /tasks/{place[name]}; give another"
                with self._guard():
                    fail(f"/tasks/{k}/id", problem)
        before: dict[int, list[int]] = {}
        for k, names in after.items():
            for j, other in enumerate(names):
                if other not in place:
                    problem = f"is {shown(other)}, which is not the id of a task"
                    with self._guard():
                        fail(f"/tasks/{k}/after/{j}", problem)
            before[k] = [place[other] for other in names if other in place]
        if all(max(others, default=-1) < k for k, others in before.items()):
            return
        for circle in in_order(before)[1]:
            # Each is after the next one; the first of the file is told first.
            circle.reverse()
            first = circle.index(min(circle))
            cycle = circle[first:] + circle[:first]
            circular = " after ".join(shown(ids[k]) for k in [*cycle[:3], cycle[0]][:4])
            more = "" if len(cycle) <= 3 else f" (through {len(cycle)} tasks)"
            with self._guard():
                fail(f"/tasks/{cycle[0]}/after", f"is circular: {circular}{more}; remove one")


def write_tasks(
    tasks: Iterable[Task], path: str | os.PathLike[str], description: str | None = None
) -> None:
    """Write tasks as a file that `load_tasks` reads, whole or not at all; a profile, a task a line.

    Tasks (and stages) of one work share a profile, called as ``Task.profile`` says, else after the
    first task that has it. Tasks without id are numbered from 0. description: a text in the file.

    Raises WorkloadError for a work that no tasks file can hold, or if it cannot be written.
    """
    with collector_at_rest():
        content = _content(_columns_of(tasks), description)
    write_bytes(path, content, error=WorkloadError)


def _content(columns: Mapping[str, Sequence[Any]], description: str | None) -> bytes:
    entries, profiles = _entries(columns)
    names, fields = map(json_lines, (profiles.fields, profiles.fields.values()))
    named = map(b": ".join, zip(names, fields, strict=True))
    head = "" if description is None else f'"description": {json.dumps(description)},\n'
    return b"".join((
        b"{\n" + head.encode() + b'"profiles": {\n',
        b",\n".join(named),
        b'\n},\n"tasks": [\n',
        b",\n".join(json_lines(entries)),
        b"\n]\n}\n",
    ))  # fmt: skip


def _columns_of(tasks: Iterable[Task]) -> dict[str, Sequence[Any]]:
    """The values of the fields of tasks; a field that is not there has its default."""
    if isinstance(tasks, TaskTable):
        return tasks.columns()
    tasks = list(tasks)
    return {each.name: list(map(attrgetter(each.name), tasks)) for each in fields(Task)}


def _entries(columns: Mapping[str, Sequence[Any]]) -> tuple[list[Any], _Profiles]:
    """What the file says of each task, and the profiles of their works."""
    profiles = _Profiles()
    nothing = [None] * len(columns["id"])
    names = [str(k) if name is None else name for k, name in enumerate(columns["id"])]
    each = zip(columns["work"], columns.get("profile", nothing), names, strict=True)
    written: dict[str, Sequence[Any]] = {
        "id": names,
        "profile": [profiles.add(work, profile or name) for work, profile, name in each],
        "hosts": [hosts or None for hosts in columns["hosts"]],
        "start": [start_s or None for start_s in columns["start_s"]],
        "after": [after or None for after in columns.get("after", nothing)],
        "walltime": columns["walltime_s"],
        "rate_bound": columns["rate_bound"],
        "competitors": columns["competitors"],
        "connection": columns.get("connection", nothing),
        "weight": [None if weight == 1.0 else weight for weight in columns["weight"]],
    }
    return objects_of(written), profiles


class _Profiles:
    """The profiles of works, each work once."""

    def __init__(self) -> None:
        self.fields: dict[str, dict[str, Any]] = {}
        self._names: dict[int, str] = {}
        self._kept: list[Work] = []  # so that no other work gets the id of one

    def add(self, work: Work, name: str) -> str:
        """The name of the profile of a work, called ``name`` if it is new."""
        known = self._names.get(id(work))
        if known is not None:
            return known
        base, number = name, 1
        while name in self.fields:
            number += 1
            name = f"{base}-{number}"
        self._names[id(work)] = name
        self._kept.append(work)
        self.fields[name] = {}  # before those of its stages
        self.fields[name] = self._fields(work, name)
        return name

    def _fields(self, work: Work, name: str) -> dict[str, Any]:
        if isinstance(work, ParallelWork):
            return _parallel(work)
        if isinstance(work, DelayWork):
            return {"type": "delay", "delay": work.delay_s}
        if isinstance(work, HomogeneousWork):
            fields = {"type": "parallel_homogeneous", "cpu": work.flops, "com": work.bytes}
            return fields | ({"generation_strategy": SPREAD} if work.total else {})
        if isinstance(work, SequenceWork):
            stages = [self.add(stage, f"{name}/{k}") for k, stage in enumerate(work.stages)]
            repeat = {} if work.repeat == 1 else {"repeat": work.repeat}
            return {"type": "composed", "seq": stages, **repeat}
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
