"""Replay a trace and write its directory: what each rank did, and the messages between ranks."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.files import write_json
from ptaskmodel.kernels.decorators import Stopwatch
from ptaskmodel.mpi import read_trace
from ptaskmodel.mpi.collectives.names import algorithms_of
from ptaskmodel.mpi.run import (
    OnEvents,
    Progress,
    Replay,
    ReplayResult,
    hosts_in_file,
    hosts_named,
    hosts_of_ranks,
)
from ptaskmodel.mpi.state import SPAN
from ptaskmodel.options import fields_in, parameters_of, values
from ptaskmodel.platform import load_platform
from ptaskmodel.platform.routing import GivenRoutes, Routing, routing_of
from ptaskmodel.remarks import for_summary, joining, warn_of
from ptaskmodel.results.directory import FORMAT, SUMMARY, provenance, whole_directory
from ptaskmodel.results.tables.mpi import (
    ACTION_TIMES,
    MATRIX,
    MESSAGES,
    RANKS,
    SPANS,
    STATES,
    column_of,
    doing,
)
from ptaskmodel.runs.options import (
    REPLAY,
    ReplayFiles,
    check_nothing_to_write,
    check_rank_options,
    fresh,
)
from ptaskmodel.workload.actions import ACTIONS, COMPUTE

if TYPE_CHECKING:
    import pandas

    from ptaskmodel.platform import Platform
    from ptaskmodel.workload.traces import Trace


RANK_COLUMNS = ("rank", "host", "end_s", *map(column_of, STATES))


@dataclass(frozen=True, slots=True, eq=False)
class ReplayRun:
    """The result of a replay, the content of summary.json, and where it is written (if it is)."""

    result: ReplayResult
    summary: dict[str, Any]
    directory: Path | None = None
    files: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<ReplayRun in {self.directory}: {len(self.result.hosts)} ranks>"

    def frame(self) -> pandas.DataFrame:
        """The ranks as a table, one row each: the columns of ranks.csv."""
        import pandas as pd

        return pd.DataFrame(_rank_rows(self.result), columns=RANK_COLUMNS)


class ReplayInputs(NamedTuple):
    """What `replay_into` takes, from parameters; inputs: the files that were read."""

    platform: Platform
    trace: Trace
    hosts: list[str]
    model: str | None
    solver: str | None
    collectives: dict[str, str]
    routing: Routing | None
    wanted: ReplayFiles
    inputs: tuple[Path, ...]
    parameters: Mapping[str, Any]


def replay_inputs(parameters: Mapping[str, Any], read: Callable[..., Any] = fresh) -> ReplayInputs:
    """Read what a replay with these parameters needs; command line and campaigns call it.

    parameters: the files platform and traces; of the options in `REPLAY` any. read: how a reader
    and its arguments give an input. Raises PTaskModelError.
    """
    given = values(REPLAY, parameters)
    platform = read(load_platform, parameters["platform"])
    trace = read(read_trace, parameters["traces"], given["ranks"])
    hosts = hosts_asked_for(platform, trace.ranks, given)
    check_collectives(platform, trace, given["collectives"])
    files = [parameters["platform"], parameters["traces"]]
    routing = routing_of(given["routing"])
    if isinstance(routing, GivenRoutes):
        warn_of(routing.remarks)
        files.append(routing.file)
    return ReplayInputs(
        platform,
        trace,
        hosts,
        given["network_model"],
        given["solver"],
        given["collectives"],
        routing,
        ReplayFiles(**fields_in(ReplayFiles, given)),
        tuple(map(Path, files)),
        parameters_of(REPLAY, given),
    )


def check_collectives(
    platform: Platform | None, trace: Trace, collectives: Mapping[str, str]
) -> None:
    """Raise PTaskModelError if `collectives` (algorithm by name) do not suit a `trace`.

    platform: its configuration counts, too; None: there is none.
    """
    algorithms_of(collectives, {} if platform is None else platform.config, trace)


def hosts_asked_for(platform: Platform | None, ranks: int, given: Mapping[str, Any]) -> list[str]:
    """Return the host of each of so many `ranks`, by the `given` values of `RANKS`.

    platform: whose hosts they are; None: any. Raises PTaskModelError.
    """
    check_rank_options(given)
    names = None
    if given["ranks_on"] is not None:
        names = hosts_in_file(given["ranks_on"], platform)
    elif given["hosts"] is not None:
        names = hosts_named(given["hosts"])
    return hosts_of_ranks(platform, ranks, hosts=names, per_host=given["per_host"])


@joining()
def replay_into(
    directory: str | Path | None,
    platform: Platform,
    trace: Trace,
    hosts: list[str],
    *,
    model: str | None = None,
    solver: str | None = None,
    collectives: Mapping[str, str] | None = None,
    routing: Routing | None = None,
    wanted: ReplayFiles | None = None,
    inputs: Iterable[str | Path] = (),
    parameters: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ReplayRun:
    """Replay a trace and write the results into a directory.

    The directory appears when complete; None: nothing is written, and of what is `wanted` only the
    critical path has an effect, in the summary. platform, trace, hosts, model, solver, collectives,
    routing, progress: as of `replay`. inputs: files that were read, named in the summary with their
    digests. parameters: values of options by name, for the summary.

    Raises as `replay`, and PTaskModelError if the directory holds anything else.
    """
    wanted = wanted or ReplayFiles()
    inputs = list(inputs)
    if directory is None:
        check_nothing_to_write(
            timeline=wanted.timeline,
            timelines=wanted.timelines,
            attribution=wanted.attribution,
            traces=wanted.trace_formats,
        )
    watch = Stopwatch()
    made = Replay(
        platform, trace, hosts, model=model, solver=solver, collectives=collectives, routing=routing
    )
    told = None
    if wanted.critical_path or wanted.timelines:
        from ptaskmodel.mpi.critical_path import Told
        from ptaskmodel.results.tables.critical_path import ReplayPath

        told = Told()
    if directory is None:
        result = made.run(told, progress)
        summary = summary_of(platform, trace, result, watch, inputs, parameters)
        if told:
            summary["critical_path"] = ReplayPath(made, hosts, told).summary()
        return ReplayRun(result, summary)
    with whole_directory(directory) as place, ExitStack() as stack:
        files = [SUMMARY, RANKS, ACTION_TIMES]
        listeners: list[OnEvents] = [told] if told else []
        if wanted.timeline:
            listeners.append(stack.enter_context(Timeline(place, trace)))
            files += [SPANS, MESSAGES, MATRIX]
        if wanted.trace_formats or wanted.attribution:
            from ptaskmodel.mpi.run import Activities
            from ptaskmodel.runs.recording import Observation

            activities = Activities(made)
            options = wanted.trace_formats, wanted.attribution, wanted.trace_limit_GB
            observation = Observation(activities, place, *options, users=activities)
            files += stack.enter_context(observation).files
        result = made.run(_together(listeners), progress)
        stack.close()
        summary = summary_of(platform, trace, result, watch, inputs, parameters)
        if told and wanted.critical_path:
            path = ReplayPath(made, hosts, told)
            summary["critical_path"] = path.summary()
            files += path.write(place)
        if told and wanted.timelines:
            from ptaskmodel.results.traces.timelines import FORMATS, Timelines

            timelines = Timelines(trace, hosts, whole_actions(told.spans()), told.flights())
            for format_ in dict.fromkeys(wanted.timelines):
                name, write = FORMATS[format_]
                write(timelines, place / name)
                files.append(name)
        _write_ranks(place / RANKS, result)
        _write_actions(place / ACTION_TIMES, trace, result)
        write_json(place / SUMMARY, {**summary, "files": files})
    return ReplayRun(result, summary, Path(directory), tuple(files))


def _together(listeners: list[OnEvents]) -> OnEvents | None:
    def tell(spans: np.ndarray, flights: np.ndarray) -> None:
        for listener in listeners:
            listener(spans, flights)

    return tell if listeners else None


def whole_actions(spans: np.ndarray) -> np.ndarray:
    """All spans of a replay, those of one action as one."""
    actions = ActionSpans()
    return np.concatenate([actions.merged(spans), actions.merged(None)])


def summary_of(
    platform: Platform,
    trace: Trace,
    result: ReplayResult,
    watch: Stopwatch,
    inputs: Iterable[str | Path] = (),
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what summary.json holds: makespan, counts, mean seconds of a rank in each state.

    platform, trace: what was replayed, with this result. watch: has run as long as the replay.
    inputs: files read. parameters: values of options by name; None: not known.
    """
    spent = dict.fromkeys(STATES, 0.0)
    computing = result.spent_s[:, COMPUTE]
    for kind, seconds in enumerate(result.spent_s.sum(axis=0).tolist()):
        spent[doing(kind)] += seconds / trace.ranks
    return {
        "format": FORMAT,
        "makespan": result.makespan_s,
        "ranks": trace.ranks,
        "actions": result.actions,
        "messages": result.messages,
        "unmatched_messages": result.unmatched,
        "events": result.events,
        "mean_rank_s": {state: seconds for state, seconds in spent.items() if seconds > 0},
        "imbalance": float(computing.max() / computing.mean()) if computing.any() else None,
        "worst_rank": int(computing.argmax()) if computing.any() else None,
        "network_model": result.model,
        "solver": result.solver,
        "remarks": for_summary(platform.remarks, _unreceived(result), trace.remarks),
        "end_date": result.makespan_s,
        "simulation_wall_time_s": watch.rest_s,
        "kernels_wall_time_s": watch.kernels_s,
        **provenance(inputs, parameters),
    }


def _unreceived(result: ReplayResult) -> list[str]:
    """A note on messages that were sent and never received, if there are any."""
    if result.first_unmatched is None:
        return []
    source, target, tag = result.first_unmatched
    one = f"from rank {source} to rank {target} with tag {tag}"
    if result.unmatched == 1:
        return [f"1 message was never received: {one}"]
    return [f"{result.unmatched:,} messages were never received, for example {one}"]


def _rank_rows(result: ReplayResult) -> Iterator[tuple[Any, ...]]:
    """For each rank where it ran, when it ended, and its seconds in each state."""
    by_state = np.zeros((len(result.end_s), len(STATES)))
    for kind in range(len(ACTIONS)):
        by_state[:, STATES.index(doing(kind))] += result.spent_s[:, kind]
    rows = zip(result.hosts, result.end_s.tolist(), by_state.tolist(), strict=True)
    return ((rank, host, end, *spent) for rank, (host, end, spent) in enumerate(rows))


def _write_ranks(path: Path, result: ReplayResult) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(RANK_COLUMNS)
        writer.writerows(_rank_rows(result))


def _write_actions(path: Path, trace: Trace, result: ReplayResult) -> None:
    """A line for each kind of action that occurs: how many, seconds in all, of the worst rank."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("action", "state", "count", "total_s", "mean_rank_s", "max_rank_s"))
        for name, count in trace.counts().items():
            kind = ACTIONS.index(name)
            spent = result.spent_s[:, kind]
            row = (name, doing(kind), count, float(spent.sum()), float(spent.mean()))
            writer.writerow((*row, float(spent.max())))


class ActionSpans:
    """Makes the spans of a replay (see `state.SPAN`) those of whole actions, a part at a time."""

    def __init__(self) -> None:
        self._open = np.zeros(0, dtype=SPAN)  # of each rank the last, which may go on

    def merged(self, spans: np.ndarray | None) -> np.ndarray:
        """Return the actions that are over once these `spans` are, by rank; None: the rest."""
        new = np.zeros(0, dtype=SPAN) if spans is None else spans[spans["action"] >= 0]
        both = np.concatenate([self._open, new])
        if not len(both):
            return both
        both = both[np.argsort(both["rank"], kind="stable")]
        rank, action = both["rank"], both["action"]
        first = np.append(True, (rank[1:] != rank[:-1]) | (action[1:] != action[:-1]))
        whole = both[first]
        whole["end"] = np.maximum.reduceat(both["end"], np.flatnonzero(first))
        last = np.append(whole["rank"][1:] != whole["rank"][:-1], True)
        if spans is None:
            last[:] = False
        self._open = whole[last]
        return whole[~last]


class Timeline:
    """Writes what a replay tells as it comes: actions that took time, messages, who sends whom."""

    def __init__(self, place: Path, trace: Trace) -> None:
        self._place = place
        self._trace = trace
        self._actions = ActionSpans()
        self._sums: dict[int, tuple[int, float]] = {}

    def __enter__(self) -> Timeline:
        self._spans = self._opened(SPANS, ("rank", "action", "start_s", "end_s"))
        self._messages = self._opened(
            MESSAGES, ("message", "source", "target", "bytes", "start_s", "end_s")
        )
        return self

    def _opened(self, name: str, columns: tuple[str, ...]) -> IO[str]:
        stream = (self._place / name).open("w", encoding="utf-8", newline="")
        csv.writer(stream, lineterminator="\n").writerow(columns)
        return stream

    def __call__(self, spans: np.ndarray, flights: np.ndarray) -> None:
        self._write_spans(self._actions.merged(spans))
        _write(
            self._messages,
            flights["number"],
            flights["source"],
            flights["target"],
            flights["bytes"],
            flights["begin"],
            flights["end"],
        )
        pairs, inverse = np.unique(
            flights["source"] * self._trace.ranks + flights["target"], return_inverse=True
        )
        counts = np.bincount(inverse, minlength=len(pairs)).tolist()
        sizes = np.bincount(inverse, weights=flights["bytes"], minlength=len(pairs)).tolist()
        for pair, count, size in zip(pairs.tolist(), counts, sizes, strict=True):
            before, sent = self._sums.get(pair, (0, 0.0))
            self._sums[pair] = before + count, sent + size

    def _write_spans(self, spans: np.ndarray) -> None:
        names = [ACTIONS[kind] for kind in self._trace.actions[spans["action"]].tolist()]
        _write(self._spans, spans["rank"], names, spans["begin"], spans["end"])

    def __exit__(self, *_: object) -> None:
        self._write_spans(self._actions.merged(None))
        self._spans.close()
        self._messages.close()
        with self._opened(MATRIX, ("source", "target", "messages", "bytes")) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            for pair in sorted(self._sums):
                writer.writerow((*divmod(pair, self._trace.ranks), *self._sums[pair]))


def _write(stream: IO[str], *columns: Any) -> None:
    lists = [column if isinstance(column, list) else column.tolist() for column in columns]
    csv.writer(stream, lineterminator="\n").writerows(zip(*lists, strict=True))
