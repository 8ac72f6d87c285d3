"""Write a trace in the Paje format, version 1.2.5, for ViTE, PajeNG, pj_dump and similar tools.

A file has definitions of events, then one event per line, in order of time. The containers are a
root, hosts, links, tasks, and, in a host or link, one container for each task that uses it.

    host, link    variable ``capacity`` (flop/s, B/s) and variable ``used``
    use           variable ``rate``: the share of the host or link that the task uses
    task          state ``limit``: what limits it (a host, a link, a core, a window, latency ...)

Source: B. de Oliveira Stein, J. Chassin de Kergommeaux, G. Mounié, "Pajé trace file format" (2010),
with the update of L. Schnorr (2016).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

import numpy as np

from ptaskmodel.engine.state import CAPACITY, ENDED
from ptaskmodel.recording.intervals import Recorder
from ptaskmodel.recording.recorded import limit_name
from ptaskmodel.results.traces.tables import TextTrace

# number, name, fields after the date
EVENTS = (
    (0, "PajeDefineContainerType", "Alias string, Type string, Name string"),
    (1, "PajeDefineVariableType", "Alias string, Type string, Name string, Color color"),
    (2, "PajeDefineStateType", "Alias string, Type string, Name string"),
    (3, "PajeDefineEntityValue", "Alias string, Type string, Name string, Color color"),
    (
        4,
        "PajeCreateContainer",
        "Time date, Alias string, Type string, Container string, Name string",
    ),
    (5, "PajeDestroyContainer", "Time date, Type string, Name string"),
    (6, "PajeSetVariable", "Time date, Type string, Container string, Value double"),
    (7, "PajeSetState", "Time date, Type string, Container string, Value string"),
)

HEADER_TYPES = """\
0 ROOT 0 "platform"
0 HOST ROOT "host"
0 LINK ROOT "link"
0 TASK ROOT "task"
0 HUSE HOST "task on host"
0 LUSE LINK "task on link"
1 HC HOST "capacity" "0.6 0.6 0.6"
1 HU HOST "used" "0.0 0.45 0.7"
1 LC LINK "capacity" "0.6 0.6 0.6"
1 LU LINK "used" "0.84 0.37 0.0"
1 HR HUSE "rate" "0.0 0.45 0.7"
1 LR LUSE "rate" "0.84 0.37 0.0"
2 TL TASK "limit"
"""

# Okabe and Ito's colours, for the states of tasks.
COLOURS = {
    "host": "0.0 0.45 0.7",
    "link": "0.84 0.37 0.0",
    "core": "0.0 0.62 0.45",
    "window": "0.8 0.47 0.65",
    "rate_bound": "0.9 0.62 0.0",
    "latency": "0.94 0.89 0.26",
    "delay": "0.34 0.71 0.91",
}
OTHER_COLOUR = "0.6 0.6 0.6"
LINES_AT_ONCE = 50_000


class RankUses:
    """What the ranks of a task and their messages ask, summed up.

    rates: by resource.
    """

    def __init__(self) -> None:
        self.rates: dict[int, float] = {}
        self._of: dict[int, dict[int, float]] = {}
        self._users: dict[int, int] = {}

    def set(self, owner: int, asked: dict[int, float]) -> None:
        """A rank or a message asks that from now on, by resource."""
        for resource, value in self._of.pop(owner, {}).items():
            self._users[resource] -= 1
            if self._users[resource]:
                self.rates[resource] -= value
            else:  # and forget the rounding of the sum
                del self.rates[resource], self._users[resource]
        for resource, value in asked.items():
            self._users[resource] = self._users.get(resource, 0) + 1
            self.rates[resource] = self.rates.get(resource, 0.0) + value
        if asked:
            self._of[owner] = asked


class PajeTrace(TextTrace):
    """A Paje trace, written in order of time while the simulation runs."""

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self._now = recorder.simulation.now
        self._lines: list[str] = []
        self._used: dict[int, float] = {}  # of resources that have a container
        self._users: dict[int, int] = {}
        self._rates: dict[int, dict[int, float]] = {}  # of tasks: by resource
        self._own: dict[int, dict[int, float]] = {}  # what of it is not of ranks
        self._of_ranks: dict[int, RankUses] = {}  # of tasks alive
        self._places: dict[int, dict[int, None]] = {}  # of tasks alive: resources ever used
        self._limits: dict[int, int] = {}  # of tasks alive
        self._values: set[int] = set()  # limits that are defined
        self._capacity = recorder.capacities.now.tolist()
        define(self.stream, EVENTS)
        self.stream.write(HEADER_TYPES)
        self._put(f'4 {self._now!r} root ROOT 0 "platform"')
        self._write()

    def _put(self, line: str) -> None:
        self._lines.append(line)

    def changes(self, events: np.ndarray) -> None:
        nobody = np.zeros(0, dtype=np.int64)
        self.changes_with_ranks(events, events[:0], nobody)

    def changes_with_ranks(
        self, events: np.ndarray, of_ranks: np.ndarray, owners: np.ndarray
    ) -> None:
        everything = np.concatenate([events, of_ranks])
        if not len(everything):
            return
        owner = np.concatenate([np.full(len(events), -1), owners])
        order = np.argsort(everything["date"], kind="stable")
        self._tell(everything[order], owner[order])

    def _tell(self, events: np.ndarray, owners: np.ndarray) -> None:
        """Events in order of date; owners: of what ranks do, -1 of all else."""
        names = self.recorder.names.tasks()
        for record, owner in zip(events.tolist(), owners.tolist(), strict=True):
            date, kind, subject, value, pattern, _, limit = record
            if owner >= 0:
                if subject in self._places:  # else it has ended at this date
                    self._use_by_rank(date, subject, owner, pattern, value)
                continue
            if kind == CAPACITY:
                self._capacity[subject] = value
                if subject in self._used:
                    self._put(f"6 {date!r} {self._kind(subject)}C r{subject} {value!r}")
                continue
            if subject not in self._places:
                self._places[subject] = {}
                self._put(f'4 {date!r} t{subject} TASK root "{escaped(names[subject])}"')
            self._use(date, subject, pattern, value)
            if kind == ENDED:
                self._destroy(date, subject)
            else:
                self._limit(date, subject, limit)
            if len(self._lines) > LINES_AT_ONCE:
                self._write()
        self._now = max(self._now, float(events["date"][-1]))
        self._write()

    def _write(self) -> None:
        if self._lines:
            self.stream.write("\n".join(self._lines) + "\n")
            self._lines.clear()

    def _limit(self, time: float, task: int, limit: int) -> None:
        if self._limits.get(task) == limit:
            return
        self._limits[task] = limit
        if limit not in self._values:
            self._values.add(limit)
            kind, name = limit_name(limit, self.recorder.names)
            text = escaped(f"{kind} {name}" if name else kind)
            self._put(f'3 v{limit} TL "{text}" "{COLOURS.get(kind, OTHER_COLOUR)}"')
        self._put(f"7 {time!r} TL t{task} v{limit}")

    def _use(self, time: float, task: int, pattern: int, rate: float) -> None:
        """The task now asks what its pattern asks at this rate, besides what its ranks do."""
        self._own[task] = self._asked(pattern, rate)
        self._total(time, task)

    def _use_by_rank(self, time: float, task: int, owner: int, pattern: int, rate: float) -> None:
        """A rank of the task now asks that, or a message."""
        self._of_ranks.setdefault(task, RankUses()).set(owner, self._asked(pattern, rate))
        self._total(time, task)

    def _asked(self, pattern: int, rate: float) -> dict[int, float]:
        """What a pattern asks at a rate, by resource."""
        if not rate > 0.0:
            return {}
        resources, usages = self.recorder.rows.of(pattern)
        return dict(zip(resources.tolist(), (usages * rate).tolist(), strict=True))

    def _total(self, time: float, task: int) -> None:
        """Tell what has changed of all that a task asks."""
        before = self._rates.pop(task, {})
        now = self._own.get(task, {})
        ranks = self._of_ranks.get(task)
        if ranks is not None:
            now = dict(now)
            for resource, value in ranks.rates.items():
                now[resource] = now.get(resource, 0.0) + value
        if now:
            self._rates[task] = now
        for resource in before.keys() - now.keys():
            self._leave(time, task, resource, before[resource])
        for resource, value in now.items():
            old = before.get(resource)
            kind = self._kind(resource)
            if old is None:
                self._join(time, task, resource)
            elif old == value:
                continue
            self._put(f"6 {time!r} {kind}R u{task}_{resource} {value!r}")
            self._used[resource] += value - (old or 0.0)
            self._put(f"6 {time!r} {kind}U r{resource} {max(self._used[resource], 0.0)!r}")

    def _kind(self, resource: int) -> str:
        return "H" if resource < self.recorder.names.n_hosts else "L"

    def _join(self, time: float, task: int, resource: int) -> None:
        kind = self._kind(resource)
        self._show(time, resource)
        self._users[resource] += 1
        if resource not in self._places[task]:
            self._places[task][resource] = None
            name = escaped(self.recorder.names.tasks()[task])
            self._put(f'4 {time!r} u{task}_{resource} {kind}USE r{resource} "{name}"')

    def _show(self, time: float, resource: int) -> None:
        """Create the container of a resource on its first use."""
        if resource in self._used:
            return
        kind = self._kind(resource)
        self._used[resource], self._users[resource] = 0.0, 0
        long = "HOST" if kind == "H" else "LINK"
        name = escaped(self.recorder.names.resources[resource])
        self._put(f'4 {time!r} r{resource} {long} root "{name}"')
        self._put(f"6 {time!r} {kind}C r{resource} {self._capacity[resource]!r}")

    def _leave(self, time: float, task: int, resource: int, rate: float) -> None:
        kind = self._kind(resource)
        self._put(f"6 {time!r} {kind}R u{task}_{resource} 0.0")
        self._users[resource] -= 1
        # Nobody uses it: forget the rounding of the sums.
        left = self._used[resource] - rate if self._users[resource] else 0.0
        self._used[resource] = left
        self._put(f"6 {time!r} {kind}U r{resource} {max(left, 0.0)!r}")

    def _destroy(self, time: float, task: int) -> None:
        self._of_ranks.pop(task, None)
        self._own.pop(task, None)
        self._total(time, task)
        for resource in self._places.pop(task):
            self._put(f"5 {time!r} {self._kind(resource)}USE u{task}_{resource}")
        self._limits.pop(task, None)
        self._put(f"5 {time!r} TASK t{task}")

    def end(self) -> None:
        """End what is left: containers inside others first."""
        end = max(self._now, self.recorder.simulation.now)
        for task in sorted(self._places):
            self._destroy(end, task)
        for resource in self._used:
            kind = "HOST" if self._kind(resource) == "H" else "LINK"
            self._put(f"5 {end!r} {kind} r{resource}")
        self._put(f"5 {end!r} ROOT root")
        self._write()
        super().end()


def define(stream: IO[str], events: Iterable[tuple[int, str, str]]) -> None:
    """Write the definitions of events: number, name, fields after the date."""
    for number, name, fields in events:
        stream.write(f"%EventDef {name} {number}\n")
        stream.writelines(f"% {field}\n" for field in fields.split(", "))
        stream.write("%EndEventDef\n")


def escaped(name: str) -> str:
    """A name between the quotes of a Paje string, which has no way to write a quote."""
    return name.replace('"', "'").replace("\n", " ").replace("\r", " ")
