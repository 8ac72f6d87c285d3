"""Write a trace as Chrome's JSON of events, which the Perfetto UI (ui.perfetto.dev) opens.

Times are in microseconds. The process "tasks" has a track for each task, with a slice for each
interval with a constant limit. Each used host and link is a process, with a slice for each task
that uses it and a counter of the use of each task.
Source: "Trace Event Format" (Duffy, Sinclair; Google, 2016).
"""

from __future__ import annotations

import json

import numpy as np

from ptaskmodel.recording.intervals import Phases, Recorder, Uses
from ptaskmodel.recording.limits import limit_name
from ptaskmodel.results.traces.writing import TextTrace, numbers

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
