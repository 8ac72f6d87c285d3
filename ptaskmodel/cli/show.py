"""Text that commands print about results: tables of tasks and jobs, lines below, Slurm runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import digits
from typing import TYPE_CHECKING, Any, Protocol

from ptaskmodel.files import json_text
from ptaskmodel.remarks import shortened
from ptaskmodel.results.sentences import jobs_answer, log_answer
from ptaskmodel.results.states import (
    NOT_SUBMITTED,
    OUTCOMES,
    count_text,
    counted,
    in_words,
)
from ptaskmodel.style.text import (
    change,
    column,
    count,
    duration,
    fact_lines,
    fits,
    number,
    text_table,
    wrapped,
)

if TYPE_CHECKING:
    from ptaskmodel.results.batch_comparison import Standings
    from ptaskmodel.results.slurm_comparison import SlurmComparison
    from ptaskmodel.results.task_comparison import Comparison
    from ptaskmodel.runs.batch import BatchRun
    from ptaskmodel.runs.simulate import SimulationRun
    from ptaskmodel.runs.slurm import SlurmResults
    from ptaskmodel.runs.slurm_live import LiveResults
    from ptaskmodel.simulation.records import TaskRecord


SHOWN_ALL = 12
METRIC_WIDTH = 32  # of the names of metrics, at least
SHOWN_EACH = 5
SHOWN_CHANGES = 10
# Results of more tasks are not read again for a sentence.
TOLD, MOST_READ = ("bottlenecks.csv", "draws.csv", "queues.csv"), 5_000
METRICS = (
    ("waiting", "waiting_s", "time"),
    ("turnaround", "turnaround_s", "time"),
    ("execution", "execution_s", "time"),
    ("slowdown", "slowdown", "number"),
    ("bounded slowdown", "bounded_slowdown", "number"),
    ("per processor", "per_processor_bounded_slowdown", "number"),
    ("contention slowdown", "contention_slowdown", "number"),
)
SPREAD = ("mean", "p50", "p95", "max")


def run_as_json(run: SimulationRun) -> dict[str, Any]:
    """The summary of a run, its records, and what was written, as JSON."""
    from ptaskmodel.results.tables.tasks import record_as_json

    records = [record_as_json(r) for r in run.records]
    return {"summary": run.summary, "records": records, **written_as_json(run)}


class Written(Protocol):
    """Results, and where they are, if anywhere."""

    @property
    def summary(self) -> dict[str, Any]: ...
    @property
    def directory(self) -> Path | None: ...
    @property
    def files(self) -> tuple[str, ...]: ...


def summary_text(run: Written) -> str:
    """The summary of a run, and what was written, as JSON."""
    return json_text(run.summary | written_as_json(run))


def written_as_json(run: Written) -> dict[str, Any]:
    """The directory of results and the names of the files there; nothing if there is none."""
    if run.directory is None:
        return {}
    return {"directory": str(run.directory), "files": sorted(run.files)}


def run_text(run: SimulationRun) -> str:
    """A run for a reader: tables of the slowest and the latest tasks, and the summary."""
    records, summary = run.records, run.summary
    if len(records) <= SHOWN_ALL:
        parts = [_task_table(records, run.ranges)]
    else:
        slowest = _largest(records, "execution_s")
        latest = _largest(records, "end_s")
        parts = [
            f"The {len(shown)} {which} tasks\n{_task_table(shown, run.ranges)}"
            for which, shown in (("slowest", slowest), ("latest", latest))
            if shown  # else none has ended
        ]
    parts[:0] = recorded_answer(run.directory, run.files, len(records))
    lines = [
        _end_line(summary),
        ("tasks", f"{summary['tasks']}: {count_text(counted(summary['counts']))}"),
        ("model", f"{summary['network_model']}, {_sharing(summary)}"),
        ("events", f"{summary['events']} in {wall_times(summary)}"),
    ]
    if (draws := summary.get("draws")) is not None:
        wide = ""
        if not draws["residuals"]:
            wide = ", too narrow: what the model gets wrong is known of DCTCP, ROCE and RDMA alone"
        lines.append(("ranges", f"{draws['n']} draws, {draws['routes']}{wide}"))
    lines += [("loop", _loop_text(name, of)) for name, of in summary.get("loops", {}).items()]
    lines += [*energy_lines(summary), *remark_lines(summary)]
    if run.directory is not None:
        lines.append(("written", written(run.directory, run.files)))
    parts.append(fact_lines(lines, 10))
    return "\n\n".join(parts)


def recorded_answer(directory: Path | None, files: Iterable[str], records: int) -> list[str]:
    """Return the sentences with which the page of a run begins; nothing if little was recorded.

    directory: of the results; None: there is none. files: that are there. records: how many tasks
    or actions the run has; of many nothing is read again.
    """
    if directory is None or set(TOLD).isdisjoint(files) or records > MOST_READ:
        return []
    from ptaskmodel.results.pages.report import answer_in

    return [wrapped(answer_in(directory))]


def _loop_text(name: str, facts: Mapping[str, float]) -> str:
    """How long the requests of a closed loop took (see `results.tables.tasks.times_of_loops`)."""
    text = f"{name}: {number(facts['completed'])} of {count(int(facts['requests']), 'request')}"
    if "mean_s" in facts:
        median, most = duration(facts["p50_s"]), duration(facts["p99_s"])
        text += f", mean {duration(facts['mean_s'])}, median {median}, 99 % below {most}"
    if "bytes_per_s" in facts:
        text += f", {number(facts['bytes_per_s'], 'rate')}"
    return text


def _sharing(summary: dict[str, Any]) -> str:
    """What decides who gets how much."""
    return f"solver {summary['solver']}" if "solver" in summary else "packets in queues"


def _end_line(summary: dict[str, Any]) -> tuple[str, str]:
    """The makespan, or of a run that was stopped the date."""
    if (stopped := summary.get("stopped_early")) is not None:
        return "stopped", f"at {duration(stopped['at_s'])}"
    makespan_s = summary["makespan"] if "makespan" in summary else summary["makespan_s"]
    return "makespan", duration(makespan_s)


def wall_times(summary: dict[str, Any]) -> str:
    """How long the simulation took, and its kernels before."""
    took, loaded = (summary[f"{name}_wall_time_s"] for name in ("simulation", "kernels"))
    return f"{duration(took)}, and {duration(loaded)} to load the kernels"


def slowdown_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Of how many jobs the contention slowdown is, if it is not known of all that ran."""
    jobs = summary.get("contention_slowdown_jobs", {"known": 0, "of": 0})
    if jobs["known"] == jobs["of"]:
        return []
    mean = number(summary["contention_slowdown"]["mean"])
    text = f"contention slowdown >= {mean}: known of {jobs['known']} of {jobs['of']} jobs"
    return [("slowdown", text)]


def remark_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The remarks on a run, a line each; of those that are alike one."""
    return [(remark["level"], remark["text"]) for remark in shortened(summary["remarks"])]


def energy_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """What is said of energy, if it was counted."""
    found = summary.get("energy")
    if found is None:
        return []
    hosts, links = (number(found[f"{kind}_J"], "energy") for kind in ("hosts", "links"))
    text = f"{hosts} of hosts, {links} of links"
    if found["peak_W"] is not None:
        text += f"; at most {number(found['peak_W'], 'power')}"
    if found["hosts_without_power"]:
        text += f"; {count(found['hosts_without_power'], 'host')} without wattage_per_state count 0"
    return [("energy", text)]


def written(directory: Path, names: Iterable[str]) -> str:
    """The files that were written, in their directory."""
    listed = sorted(names)
    return f"{len(listed)} files in {directory}: {', '.join(listed)}"


def _largest(records: Sequence[TaskRecord], field: str) -> list[TaskRecord]:
    """The records with the largest values of a field, largest first, ties in order."""
    known = [record for record in records if getattr(record, field) is not None]
    return sorted(known, key=lambda record: -getattr(record, field))[:SHOWN_EACH]


def _task_table(records: Sequence[TaskRecord], ranges: Mapping[str, tuple[float, float]]) -> str:
    times = [(r.start_s, r.end_s, r.execution_s, *(ranges.get(r.task_id, ()))) for r in records]
    made = column([value for each in times for value in each], "time")
    names = ("start", "finish", "execution", *(("80 %: from", "to") if ranges else ()))
    header = ("task", "profile", *map(made.head, names))
    rows = [
        (
            record.task_id,
            record.profile or "",
            *map(made.text, each),
            in_words(record.final_state),
            _hosts(record.hosts),
        )
        for record, each in zip(records, times, strict=True)
    ]
    return text_table((*header, "state", "hosts"), rows, right=range(2, len(header)))


def _hosts(names: tuple[str, ...]) -> str:
    """Up to three names, a range if they are numbered one after the other, else how many more."""
    if len(names) <= 3:
        return " ".join(names)
    stem = names[0].rstrip(digits)
    first = names[0][len(stem) :]
    if first and names == tuple(f"{stem}{int(first) + k:0{len(first)}}" for k in range(len(names))):
        return f"{names[0]} ... {names[-1]} ({len(names)})"
    return f"{names[0]} {names[1]} and {len(names) - 2} more"


def _policy(summary: dict[str, Any]) -> str:
    if "exchanges" not in summary:
        return f"{summary['policy']}, allocation {summary['allocation']}"
    return (
        f"a scheduler elsewhere: {summary['exchanges']} exchanges, "
        f"{duration(summary['scheduler_wall_time_s'])} of its time"
    )


def batch_text(run: BatchRun) -> str:
    """A batch for a reader: a table of distributions, then the rest line by line."""
    summary = run.summary
    lines = [
        ("jobs", _jobs_text(run)),
        ("policy", _policy(summary)),
        _end_line(summary),
        ("utilisation", number(summary["utilisation"], "share") + _useful_text(summary)),
        *slowdown_lines(summary),
        ("throughput", f"{number(summary['throughput_jobs_per_hour'])} jobs per hour"),
        ("slowdowns", _slowdowns_text(summary)),
        ("simulated in", wall_times(summary)),
        *energy_lines(summary),
        *remark_lines(summary),
    ]
    if run.directory is not None:
        lines.append(("written", written(run.directory, run.files)))
    parts = [_jobs_answer(run), metric_table(summary), fact_lines(lines, 13)]
    return "\n\n".join(parts)


def metric_table(summary: dict[str, Any]) -> str:
    """Return a table of the distributions in a ``summary``, a row and its unit for each."""
    rows = []
    for label, name, kind in METRICS:
        if name in summary:
            values = [summary[name][key] for key in SPREAD]
            made = column(values, kind)
            rows.append((made.head(label), *map(made.text, values)))
    return text_table(("", *SPREAD), rows, right=(1, 2, 3, 4))


def _jobs_answer(run: BatchRun) -> str:
    """The first lines: what became of the jobs, and how long they waited."""
    stopped = run.summary.get("stopped_early")
    coming = stopped["not_submitted"] if stopped else 0
    counts = dict(_counts(run))
    return wrapped("\n".join(jobs_answer(counts | {NOT_SUBMITTED: coming}, run.summary)))


def _slowdowns_text(summary: dict[str, Any]) -> str:
    """What the slowdowns of the table are."""
    text = (
        f"turnaround over execution; bounded: over {summary['tau_s']:g} s at least, 1 or more; per "
        "processor: that over the hosts too"
    )
    if "contention_slowdown" in summary:
        text += "; contention: execution over what it takes alone"
    return text


def _jobs_text(run: BatchRun) -> str:
    """How many jobs there are, and what became of them."""
    counts = _counts(run)
    stopped = run.summary.get("stopped_early")
    missing = stopped["not_submitted"] if stopped else 0
    text = f"{count(sum(counts.values()) + missing)}: "
    text += count_text(counts | ({NOT_SUBMITTED: missing} if missing else {}))
    lost = run.summary["jobs"]["lost_runs"]
    return text + (f"; {count(lost, 'lost run')}" if lost else "")


def _counts(run: BatchRun) -> dict[str, int]:
    from ptaskmodel.batch.loop.schedule import figures_of

    return counted(figures_of(run.result.schedule).states)


def _useful_text(summary: dict[str, Any]) -> str:
    """What part of the machine was of use, if that is known."""
    useful = summary.get("useful_utilisation")
    return "" if useful is None else f", of it useful {number(useful, 'share')}"


def comparison_text(found: Comparison, both: Standings) -> str:
    """Two runs for a reader: what ended in which, all metrics, the tasks that changed most."""
    what = found.a.what
    outcomes = [
        (f"{each} in a", *(f"{count:,}" for count in counts)) for each, counts in found.outcomes()
    ]
    header = (f"{what}s", *(f"{each} in b" for each in OUTCOMES))
    parts = [
        f"a: {found.a.directory}\nb: {found.b.directory}",
        text_table(header, outcomes, right=(1, 2, 3)),
        standings_text(both),
        wrapped(f"{count(len(found.pairs), what)} in both: {found.said()}"),
        *only_in(found),
    ]
    if changed := found.most_changed(SHOWN_CHANGES):
        columns = _changes([(pair.a.duration_s, pair.b.duration_s) for pair in changed])
        rows = [
            (pair.a.task_id, *texts, number(pair.ratio), pair.limit_a or "", pair.limit_b or "")
            for pair, *texts in zip(changed, *(texts[1:] for texts in columns), strict=True)
        ]
        heads = [texts[0] for texts in columns]
        header = (what, *heads, "b / a", "limit in a", "limit in b")
        table = text_table(header, rows, right=(1, 2, 3, 4))
        parts.append(
            f"{_changed_title(len(rows), what, 'time')}, of those that ended in both\n{table}"
        )
    if moved := found.most_moved(SHOWN_CHANGES):
        columns = _changes([(pair.a.waiting_s, pair.b.waiting_s) for pair in moved])
        waits = [
            (pair.a.task_id, pair.states, *texts)
            for pair, *texts in zip(moved, *(texts[1:] for texts in columns), strict=True)
        ]
        header = (what, "state a → b", *(texts[0] for texts in columns))
        table = text_table(header, waits, right=(2, 3, 4))
        parts.append(f"{_changed_title(len(waits), what, 'waiting')}\n{table}")
    return "\n\n".join(parts)


def _changes(pairs: Sequence[tuple[float | None, float | None]]) -> list[list[str]]:
    """Columns of times in a, in b and their change, all in one unit."""
    made = column([value for pair in pairs for value in pair], "time")
    changes = [None if a is None or b is None else b - a for a, b in pairs]
    return [
        [made.head("a"), *(made.text(a) for a, _ in pairs)],
        [made.head("b"), *(made.text(b) for _, b in pairs)],
        [made.head("change"), *map(column(changes, "time", made).text, changes)],
    ]


def _changed_title(number: int, what: str, of: str) -> str:
    """What stands above those whose time, or waiting, changed most."""
    if number == 1:
        return f"The {what} whose {of} changed"
    return f"The {number} {what}s whose {of} changed most"


def only_in(found: Comparison | SlurmComparison) -> list[str]:
    """What only one of two runs has."""
    parts = []
    for name, ids in (("a", found.only_a), ("b", found.only_b)):
        if ids:
            shown = ", ".join(ids[:5]) + (" ..." if len(ids) > 5 else "")
            parts.append(f"only in {name}: {len(ids)} ({shown})")
    return parts


def standings_text(found: Standings, differs: bool = True) -> str:
    """Return a comparison of runs as text: whether they did the same work, then all metrics in
    groups.

    found: of the runs. differs: also list the choices that differ. Changes are told where the
    terminal has room for them.
    """
    header = ("", *found.runs, "better if")
    rows = found.lines()
    if not fits(header, rows, METRIC_WIDTH):
        rows = found.lines(change=False)
    from ptaskmodel.results.sentences import warnings_of_runs

    parts = [wrapped(found.head()), text_table(header, rows, least=(METRIC_WIDTH,), whole=True)]
    if differs and (choices := found.choices()):
        parts.append(text_table(("differs", *found.runs), choices, whole=True))
    parts.append(wrapped(found.inputs_text()))
    if warnings := warnings_of_runs(found.runs):
        parts.append(fact_lines((("warning", text) for text in warnings), 9))
    return "\n\n".join(parts)


SHOWN_MOVED = 5


def slurm_text(found: SlurmResults | LiveResults) -> str:
    """The summary, and the stories that were asked for."""
    summary = found.summary
    states = counted({name: n for name, n in summary["jobs"].items() if name != "submitted"})
    counts = f"{count(summary['jobs']['submitted'])}: {count_text(states)}"
    starts = ", ".join(f"{n} by {name}" for name, n in summary["started_by"].items())
    lines = [
        ("jobs", counts),
        *(
            (label, ", ".join(f"{n} for {why}" for why, n in summary[name].items()))
            for label, name in (("refused", "refused"), ("never start", "never_started"))
            if summary[name]
        ),
        ("started", starts or "none"),
        _end_line(summary),
        ("utilisation", number(summary["utilisation"], "share")),
        *slowdown_lines(summary),
        ("backfill", _backfill_text(summary["backfill"])),
        *(("nodes", text) for text in _nodes_text(summary)),
        ("simulated in", duration(summary["simulation_wall_time_s"])),
        *remark_lines(summary),
    ]
    if found.directory is not None:
        lines.append(("written", written(found.directory, found.files)))
    parts = [
        wrapped("\n".join((*jobs_answer(states, summary), log_answer(summary)))),
        metric_table(summary),
        fact_lines(lines, 13),
    ]
    parts += ["\n".join((f"job {job}", *story)) for job, story in found.stories.items()]
    return "\n\n".join(parts)


def _nodes_text(summary: dict[str, Any]) -> list[str]:
    """What became of nodes that failed, in a line; nothing without failures."""
    failed = summary.get("node_failures")
    if failed is None:
        return []
    text = f"{failed['died']} failures, {failed['set_down']} times set DOWN; jobs began anew "
    text += f"{failed['restarts']} times"
    stay = failed["stay_down"]
    if stay:
        text += f"; {len(stay)} stay DOWN (ReturnToService=0), such as {stay[0]}"
    return [text]


def _backfill_text(backfill: dict[str, Any]) -> str:
    """What sdiag says of backfill, in a line."""
    tested = number(backfill["mean_tested"])
    text = f"{count(backfill['cycles'], 'cycle')}, {tested} jobs tested on average, at most "
    text += str(backfill["most_tested"])
    if backfill["longest_cycle_s"]:
        text += f"; {duration(backfill['mean_cycle_s'])} on average, "
        text += f"{backfill['cycles_at_limit']} at their limit"
    return text


def slurm_comparison_text(found: SlurmComparison) -> str:
    """Return what differs between two configurations, metrics, and which jobs gain or lose."""
    from ptaskmodel.results.slurm_comparison import class_table

    parts = [wrapped(found.answer())]
    if settings := found.settings():
        parts.append(text_table(("setting", "a", "b"), settings))
    parts += [wrapped(found.counts_text()), *only_in(found)]
    for by in found.order():
        groups = found.groups(by)
        if len(groups) < 2 and by not in ("size", "length"):
            continue
        heads, rows = class_table(groups)
        # Verdicts first: where the terminal is narrow, columns are cut at the right.
        lines = [(*row[:2], *row[6:], *row[2:6]) for row in [(by, *heads), *rows]]
        parts.append(text_table(lines[0], lines[1:], right=(1, 2, 3, 4, 6, 7, 8, 9)))
    parts.append(standings_text(found.totals, differs=False))
    if changed := found.most_changed(SHOWN_MOVED):
        told = [
            (job.job_id, job.user, f"{job.cpus}", duration(a), duration(b), change(b - a, "time"))
            for job, a, b in changed
        ]
        columns = ("job", "user", "CPUs", "wait a", "wait b", "change")
        table = text_table(columns, told, right=(2, 3, 4, 5))
        parts.append(f"The {len(told)} jobs whose wait changed most\n{table}")
    return "\n\n".join(parts)
