"""Text that commands print about Slurm runs: a summary, and a comparison of two configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptaskmodel.cli.show import (
    metric_table,
    only_in,
    remark_lines,
    slowdown_lines,
    standings_text,
    written,
)
from ptaskmodel.results.sentences import jobs_answer, log_answer
from ptaskmodel.results.states import count_text, counted
from ptaskmodel.style.text import change, count, duration, fact_lines, number, text_table, wrapped

if TYPE_CHECKING:
    from ptaskmodel.results.comparison.slurm import SlurmComparison
    from ptaskmodel.runs.slurm import SlurmResults
    from ptaskmodel.runs.slurm_live import LiveResults

SHOWN_CHANGES = 5


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
        ("makespan", duration(summary["makespan_s"])),
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
    from ptaskmodel.results.comparison.slurm import class_table

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
    if changed := found.most_changed(SHOWN_CHANGES):
        told = [
            (job.job_id, job.user, f"{job.cpus}", duration(a), duration(b), change(b - a, "time"))
            for job, a, b in changed
        ]
        columns = ("job", "user", "CPUs", "wait a", "wait b", "change")
        table = text_table(columns, told, right=(2, 3, 4, 5))
        parts.append(f"The {len(told)} jobs whose wait changed most\n{table}")
    return "\n\n".join(parts)
