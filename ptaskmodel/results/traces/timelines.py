"""Timelines of tasks and of replays for the Perfetto UI; those of replays for readers of Paje too.

A trace of tasks is Chrome's JSON of events, which the Perfetto UI (ui.perfetto.dev) opens. Times
are in microseconds. The process "tasks" has a track for each task, with a slice for each interval
with a constant limit. Each used host and link is a process, with a slice for each task that uses it
and a counter of the use of each task.

In the timeline of a replay, a track (or container) for each rank has a slice (or state) for each
action that took time; messages between ranks are arrows. `paje` describes the other format.
Source: "Trace Event Format" (Duffy, Sinclair; Google, 2016).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ptaskmodel.recording.intervals import Phases, Recorder, Uses
from ptaskmodel.recording.recorded import limit_name
from ptaskmodel.results.tables.mpi import PAJE_COLOURS, STATES, doing
from ptaskmodel.results.traces.paje import EVENTS, define, escaped
from ptaskmodel.results.traces.tables import TextTrace, numbers
from ptaskmodel.workload.actions import ACTIONS
from ptaskmodel.workload.traces import Trace

TASKS_PROCESS = 1
FIRST_RESOURCE = 2
LINES_AT_ONCE = 50_000


class PerfettoTrace(TextTrace):
    """A trace in Chrome's JSON format; its events are in order for each track."""

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self._named: set[int] = set()
        self._quoted: dict[int, str] = {}
        self._tasks: set[int] = set()
        self._limits: dict[int, tuple[str, str]] = {}
        first = json.dumps(metadata("process_name", TASKS_PROCESS, 0, "tasks"))
        self.stream.write('{"displayTimeUnit":"ms","traceEvents":[\n' + first)

    def changes(self, events: np.ndarray) -> None:
        pass

    def phases(self, phases: Phases) -> None:
        ids = self.recorder.names.tasks()
        events = []
        rows = zip(*(column.tolist() for column in phases), strict=True)
        for task, start, end, rate, limit, _ in rows:
            if task not in self._tasks:
                self._tasks.add(task)
                events.append(metadata("thread_name", TASKS_PROCESS, task + 1, ids[task]))
            if limit not in self._limits:
                self._limits[limit] = limit_name(limit, self.recorder.names)
            kind, name = self._limits[limit]
            events.append(
                {
                    "ph": "X",
                    "pid": TASKS_PROCESS,
                    "tid": task + 1,
                    "ts": start * 1e6,
                    "dur": (end - start) * 1e6,
                    "name": f"{kind} {name}" if name else kind,
                    "cat": kind,
                    "args": {"stages per s": rate},
                }
            )
        self._write(events)

    def uses(self, uses: Uses) -> None:
        ids = self.recorder.names.tasks()
        lines: list[str] = []
        times = (numbers(uses.start * 1e6), numbers(uses.end * 1e6))
        values = (numbers(uses.rate), numbers(uses.share))
        for resource, task, start, end, rate, share in zip(
            uses.resource.tolist(), uses.task.tolist(), *times, *values, strict=True
        ):
            if task not in self._quoted:
                self._quoted[task] = json.dumps(ids[task])
            name, pid = self._quoted[task], FIRST_RESOURCE + resource
            if resource not in self._named:
                self._named.add(resource)
                kind, names = self.recorder.names.kind(resource), self.recorder.names.resources
                label = f"{kind} {names[resource]}"
                lines.append(json.dumps(metadata("process_name", pid, 0, label)))
            place = f'"pid":{pid},"tid":0,"id":{task + 1}'
            both = f'{place},"name":{name},"cat":"use"'
            counter = f'{place},"name":"rate","ph":"C"'
            lines += (
                f'{{{both},"ph":"b","ts":{start},"args":{{"rate":{rate},"share":{share}}}}}',
                f'{{{both},"ph":"e","ts":{end}}}',
                f'{{{counter},"ts":{start},"args":{{{name}:{rate}}}}}',
                f'{{{counter},"ts":{end},"args":{{{name}:0.0}}}}',
            )
            if len(lines) > LINES_AT_ONCE:
                self.stream.write(",\n" + ",\n".join(lines))
                lines.clear()
        if lines:
            self.stream.write(",\n" + ",\n".join(lines))

    def _write(self, events: list[dict]) -> None:
        import msgspec

        self.stream.writelines(f",\n{msgspec.json.encode(event).decode()}" for event in events)

    def end(self) -> None:
        self.stream.write("\n]}\n")
        super().end()


def metadata(what: str, pid: int, tid: int, name: str) -> dict:
    """Metadata: the name of a process or a thread."""
    return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": what, "args": {"name": name}}


RANKS_PROCESS, MESSAGES_PROCESS = 1, 2

LINK_EVENTS = (
    (8, "PajeDefineLinkType", "Alias string, Type string, StartContainerType string, "
        "EndContainerType string, Name string"),
    (9, "PajeStartLink", "Time date, Type string, Container string, Value string, "
        "StartContainer string, Key string"),
    (10, "PajeEndLink", "Time date, Type string, Container string, Value string, "
         "EndContainer string, Key string"),
)  # fmt: skip
PAJE_TYPES = """\
0 ROOT 0 "application"
0 RANK ROOT "rank"
2 ACTION RANK "action"
8 MESSAGE ROOT RANK RANK "message"
3 idle ACTION "nothing" "1.0 1.0 1.0"
"""
LINK_FIELDS = ("number", "source", "target", "bytes")


class Timelines:
    """What is written: the trace, the hosts of ranks, actions that took time, messages.

    spans, flights: as a replay tells them (`state.SPAN`, of whole actions, and `state.FLIGHT`).
    """

    def __init__(
        self, trace: Trace, hosts: Sequence[str], spans: np.ndarray, flights: np.ndarray
    ) -> None:
        self._trace, self._hosts = trace, hosts
        self._spans = spans[np.lexsort((spans["begin"], spans["rank"]))]
        self._flights = flights[np.argsort(flights["begin"], kind="stable")]

    def write_perfetto(self, path: Path) -> None:
        """Write Chrome's JSON of trace events."""
        _write_lines(path, self._perfetto(), '{"displayTimeUnit":"ms","traceEvents":[\n', ",\n")
        with path.open("a", encoding="utf-8") as stream:
            stream.write("\n]}\n")

    def _perfetto(self) -> Iterator[str]:
        yield json.dumps(metadata("process_name", RANKS_PROCESS, 0, "ranks"))
        yield json.dumps(metadata("process_name", MESSAGES_PROCESS, 0, "messages"))
        for rank, host in enumerate(self._hosts):
            name = f"rank {rank} on {host}"
            yield json.dumps(metadata("thread_name", RANKS_PROCESS, rank + 1, name))
        kinds = self._trace.actions[self._spans["action"]].tolist()
        for span, kind in zip(self._spans, kinds, strict=True):
            begin, end = float(span["begin"]), float(span["end"])
            yield (
                f'{{"ph":"X","pid":{RANKS_PROCESS},"tid":{span["rank"] + 1},"ts":{begin * 1e6!r},'
                f'"dur":{(end - begin) * 1e6!r},"name":"{ACTIONS[kind]}","cat":"{doing(kind)}"}}'
            )
        for flight in self._flights.tolist():
            number, source, target, size, _, begin, latency, end = flight
            both = f'"id":{number},"cat":"message","name":"{source} to {target}"'
            place = f'"pid":{MESSAGES_PROCESS},"tid":{source + 1}'
            facts = f'{{"bytes":{size!r},"latency_us":{latency * 1e6!r}}}'
            yield f'{{{place},{both},"ph":"b","ts":{begin * 1e6!r},"args":{facts}}}'
            yield f'{{{place},{both},"ph":"e","ts":{end * 1e6!r}}}'
            place = f'"pid":{RANKS_PROCESS},{both}'
            yield f'{{{place},"tid":{source + 1},"ph":"s","ts":{begin * 1e6!r}}}'
            yield f'{{{place},"tid":{target + 1},"ph":"f","bp":"e","ts":{end * 1e6!r}}}'

    def write_paje(self, path: Path) -> None:
        """Write a Paje trace, in order of time."""
        with path.open("w", encoding="utf-8") as stream:
            define(stream, (*EVENTS, *LINK_EVENTS))
            stream.write(PAJE_TYPES)
        _write_lines(path, self._paje(), "", "\n", mode="a")
        with path.open("a", encoding="utf-8") as stream:
            stream.write("\n")

    def _paje(self) -> Iterator[str]:
        for k, colour in enumerate(PAJE_COLOURS):
            yield f'3 s{k} ACTION "{STATES[k]}" "{colour}"'
        yield '4 0.0 root ROOT 0 "application"'
        for rank, host in enumerate(self._hosts):
            yield f'4 0.0 r{rank} RANK root "{escaped(f"rank {rank} on {host}")}"'
            yield f"7 0.0 ACTION r{rank} idle"
        spans, flights = self._spans, self._flights
        state = np.array([STATES.index(doing(kind)) for kind in range(len(ACTIONS))])
        states = state[self._trace.actions[spans["action"]]].tolist()
        ranks = spans["rank"].tolist()
        rows = zip(*(flights[name].tolist() for name in LINK_FIELDS), strict=True)
        starts, ends = [], []
        for number, source, target, size in rows:
            value = f'"{size:.15g} B"'
            starts.append(f"MESSAGE root {value} r{source} m{number}")
            ends.append(f"MESSAGE root {value} r{target} m{number}")
        lines = (
            [f"ACTION r{rank} idle" for rank in ranks],
            ends,
            [f"ACTION r{rank} s{state}" for rank, state in zip(ranks, states, strict=True)],
            starts,
        )
        numbers = [np.full(len(part), n) for part, n in zip(lines, (7, 10, 7, 9), strict=True)]
        dates = np.concatenate([spans["end"], flights["end"], spans["begin"], flights["begin"]])
        text = [line for part in lines for line in part]
        number = np.concatenate(numbers).tolist()
        for k in np.argsort(dates, kind="stable").tolist():
            yield f"{number[k]} {float(dates[k])!r} {text[k]}"
        end = float(dates.max(initial=0.0))
        for rank in range(len(self._hosts)):
            yield f"5 {end!r} RANK r{rank}"
        yield f"5 {end!r} ROOT root"


# By the name of a format: the file, and what writes it.
FORMATS: Mapping[str, tuple[str, Callable[[Timelines, Path], None]]] = {
    "paje": ("timeline.paje", Timelines.write_paje),
    "perfetto": ("timeline.perfetto.json", Timelines.write_perfetto),
}


def _write_lines(
    path: Path, lines: Iterator[str], before: str, between: str, mode: str = "w"
) -> None:
    """Write lines, many at a time."""
    import itertools

    with path.open(mode, encoding="utf-8") as stream:
        stream.write(before)
        first = True
        while part := list(itertools.islice(lines, LINES_AT_ONCE)):
            stream.write(("" if first else between) + between.join(part))
            first = False
