"""Compress a workload into less time, scale its load, or cut windows out of it.

The first functions are common to all transforms of whole workloads: run times as a column, dates,
and the dependencies that remain. A window (a week, say) is one in which the machine was well used.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.workload.formats import Cleaning
from ptaskmodel.workload.formats.swf import (
    BEGIN,
    COLUMN,
    SwfLog,
    clean,
    read_swf,
    sizes,
    starts_s,
)
from ptaskmodel.workload.jobs import (
    JobTable,
    Workload,
    column_of,
    columns_of,
    job_arrays,
    listed,
    names_of,
    preceding_ids,
    rows_of,
    sizes_of,
)
from ptaskmodel.workload.reading import format_of
from ptaskmodel.workload.works import DelayWork, Work

LOAD_KNOBS = ("arrivals", "run-times")


def run_times_s(workload: Workload, purpose: str) -> NDArray[np.float64]:
    """How long each job runs; WorkloadError if that depends on the platform."""
    times = job_arrays(workload.jobs).duration_s
    if np.isnan(times).any():
        name = names_of(workload.jobs)[0][int(np.isnan(times).argmax())]
        raise WorkloadError(
            f"{workload.origin}: the run time of job '{name}' depends on the platform; {purpose}"
        )
    return times


def dates_s(workload: Workload) -> NDArray[np.float64]:
    return job_arrays(workload.jobs).submit_s


def without_lost_links(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The fields of jobs (`columns`), of which none names preceding jobs that are not among them.

    The user of a job that waits for none any more thinks about none.
    """
    ids = set(columns["id"])
    for k, before in enumerate(columns.get("preceding_job", ())):
        if before is not None:
            names = preceding_ids(before)
            if not ids.issuperset(names):
                left = listed(name for name in names if name in ids)
                columns["preceding_job"][k] = left
                if left is None and "think_time_s" in columns:
                    columns["think_time_s"][k] = 0.0
    return columns


def shrunk(workload: Workload, factor: float) -> Workload:
    """All times multiplied by ``factor``: dates, run times, walltimes, think times.

    Waiting times shrink alike, slowdowns and utilisation stay; to the bit if the factor is a power
    of two, as long as nothing else in the simulation is a time (bounds of metrics, intervals of a
    scheduler). Amounts of parallel tasks shrink by the same factor; latencies do not.
    Raises WorkloadError if the factor is not positive and finite.
    """
    _check("factor", factor)
    made = _lengthened(workload, factor)
    for name in ("submit_time_s", "think_time_s"):
        made[name] = [value * factor for value in column_of(workload.jobs, name)]
    return workload.with_jobs(JobTable.of(made), f"all times multiplied by {factor:g}")


def offered_load(workload: Workload, hosts: int | None = None) -> float:
    """Host seconds asked for over those of the machine while jobs are submitted.

    hosts: of the machine, by default as the workload says. Raises WorkloadError if that is unknown,
    if run times are, or if all jobs are submitted at once.
    """
    machine = hosts or workload.num_hosts
    if machine is None:
        raise WorkloadError(f"{workload.origin}: nb_res is unknown; give --machine-hosts")
    dates = dates_s(workload)
    span = float(np.ptp(dates)) if len(dates) else 0.0
    if span <= 0:
        raise WorkloadError(
            f"{workload.origin}: all jobs are submitted at the same time, so their load is "
            "undefined; give more jobs"
        )
    times = run_times_s(workload, "give a log or a workload of delays")
    return float((times * sizes_of(workload.jobs)).sum() / (machine * span))


def loaded(workload: Workload, factor: float, by: str = "arrivals") -> Workload:
    """The workload at ``factor`` times its load.

    by: ``arrivals``, the gaps between submissions divided by the factor, run times untouched (hours
    of the day and weeks change their length); ``run-times``, run times and walltimes multiplied.
    Neither is a real log of a busier machine, whose users would behave otherwise; compare both, and
    `resampled`. Raises WorkloadError for an unknown way or a factor out of range.
    """
    if by not in LOAD_KNOBS:
        raise WorkloadError(f"load by '{by}' is unknown; use one of {', '.join(LOAD_KNOBS)}")
    _check("factor", factor)
    if by == "arrivals":
        made = columns_of(workload.jobs)
        made["submit_time_s"] = paced(dates_s(workload), factor).tolist()
        return workload.with_jobs(JobTable.of(made), f"arrivals are {factor:g} times as fast")
    note = f"run times and walltimes multiplied by {factor:g}"
    return workload.with_jobs(JobTable.of(_lengthened(workload, factor)), note)


def paced(dates: NDArray[np.float64], pace: float) -> NDArray[np.float64]:
    """The `dates`, which follow the first `pace` times as fast."""
    first = dates[:1]
    return first + (dates - first) / pace


def _lengthened(workload: Workload, factor: float) -> dict[str, Sequence[Any]]:
    """The fields of the jobs, with works, their names, and walltimes ``factor`` times as long."""
    change = _longer(factor)
    made = columns_of(workload.jobs)
    made["work"] = list(map(change, made["work"]))
    made["profile"] = [f"{name}*{factor:g}" for name in made["profile"]]
    walltimes = column_of(workload.jobs, "walltime_s")
    made["walltime_s"] = [None if time_s is None else time_s * factor for time_s in walltimes]
    return made


def _longer(factor: float) -> Callable[[Work], Work]:
    """The same work ``factor`` times as long, each work made once."""
    known: dict[int, Work] = {}

    def simple(work: Work) -> Work:
        if isinstance(work, DelayWork):
            return DelayWork(work.delay_s * factor)
        return work.divided(1 / factor, 1 / factor)

    def change(work: Work) -> Work:
        if id(work) not in known:
            known[id(work)] = work.mapped(simple)
        return known[id(work)]

    return change


def _check(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise WorkloadError(f"the {name} is {value:g}; give a positive, finite number")


WEEK_S = 7 * 86400.0
DAY_S = 86400.0
MAX_WINDOWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """Dates [start_s, end_s) of a log, the use of the machine and the jobs submitted then."""

    start_s: float
    end_s: float
    utilisation: float
    jobs: int


class WindowOptions(TypedDict, total=False):
    """What `busy_windows` looks for; the defaults are there."""

    length_s: float
    step_s: float
    min_utilisation: float


def busy_windows(
    submit_s: NDArray[np.float64],
    start_s: NDArray[np.float64],
    run_time_s: NDArray[np.float64],
    hosts: NDArray[np.float64],
    machine_hosts: int,
    *,
    length_s: float = WEEK_S,
    step_s: float = DAY_S,
    min_utilisation: float = 0.7,
) -> list[Window]:
    """The windows of ``length_s``, one every ``step_s`` from the first submission, that are busy.

    Utilisation is the work done inside the window over what the machine could do, in processor
    seconds. Only windows that end by the last end of a job are considered. Raises WorkloadError for
    more than MAX_WINDOWS of them.
    """
    if length_s <= 0 or step_s <= 0:
        raise WorkloadError(
            "the length or the step of windows is not positive; give positive numbers"
        )
    if len(submit_s) == 0:
        return []
    first, last = float(submit_s.min()), float((start_s + run_time_s).max())
    if (last - length_s - first) / step_s > MAX_WINDOWS:
        raise WorkloadError(
            f"a step of {step_s:g} s makes more than {MAX_WINDOWS:,} windows; give a larger step"
        )
    found = []
    for begin in np.arange(first, last - length_s, step_s):
        end = begin + length_s
        inside = np.minimum(start_s + run_time_s, end) - np.maximum(start_s, begin)
        used = float((np.maximum(inside, 0) * hosts).sum()) / (machine_hosts * length_s)
        if used >= min_utilisation:
            jobs = int(((submit_s >= begin) & (submit_s < end)).sum())
            found.append(Window(float(begin), float(end), used, jobs))
    return found


def swf_windows(
    log: SwfLog,
    *,
    processors_per_host: int = 1,
    machine_hosts: int | None = None,
    **options: Unpack[WindowOptions],
) -> list[Window]:
    """`busy_windows` of a clean log, from its real start dates (submissions where unknown)."""
    machine = machine_hosts
    if machine is None and log.num_processors is not None:
        machine = math.ceil(log.num_processors / processors_per_host)
    if machine is None:
        raise WorkloadError(
            f"{log.origin}: the header gives no MaxProcs or MaxNodes; give --machine-hosts"
        )
    return busy_windows(
        log.column("submit_time_s"),
        starts_s(log),
        np.maximum(log.column("run_time_s"), 0),
        np.ceil(sizes(log) / processors_per_host),
        machine,
        **options,
    )


def workload_windows(
    workload: Workload,
    *,
    machine_hosts: int | None = None,
    **options: Unpack[WindowOptions],
) -> list[Window]:
    """`busy_windows` of a workload of delays, each job counted from its submission."""
    machine = machine_hosts or workload.num_hosts
    if machine is None:
        raise WorkloadError(f"{workload.origin}: nb_res is unknown; give --machine-hosts")
    times = run_times_s(workload, "extract windows from a log or from a workload of delays")
    submit = dates_s(workload)
    return busy_windows(
        submit,
        submit,
        times,
        sizes_of(workload.jobs).astype(np.float64),
        machine,
        **options,
    )


def windows_of(
    workload: Workload,
    source: str | os.PathLike[str],
    cleaning: Cleaning,
    *,
    machine_hosts: int | None = None,
    **options: Unpack[WindowOptions],
) -> list[Window]:
    """Return the `busy_windows` of a `workload` read from the file `source`.

    Of a log they use its recorded start times. cleaning: of the log. machine_hosts: size of the
    machine; None: as the log says. options: as of `busy_windows`.
    """
    if format_of(source) == "swf":
        limit, per_host = cleaning.max_hosts, cleaning.processors_per_host
        log, _ = clean(
            read_swf(source),
            zero_run_time_s=cleaning.zero_run_time_s,
            max_processors=None if limit is None else limit * per_host,
        )
        return swf_windows(
            log, processors_per_host=per_host, machine_hosts=machine_hosts, **options
        )
    return workload_windows(workload, machine_hosts=machine_hosts, **options)


def picked(windows: Sequence[Window], pick: str) -> Window:
    """Return the one of `windows` that ``pick`` names: first, busiest, or a number from 0.

    Raises WorkloadError if it names none.
    """
    if pick == "busiest":
        return max(windows, key=lambda window: window.utilisation)
    k = 0 if pick == "first" else int(pick) if pick.isdecimal() else len(windows)
    if k >= len(windows):
        raise WorkloadError(
            f"--pick: {shown(pick)} is not first, busiest or a number from 0 to {len(windows) - 1}"
        )
    return windows[k]


def cut_swf(log: SwfLog, window: Window) -> SwfLog:
    """The jobs submitted in the window, with the window's beginning as date 0."""
    submit = log.column("submit_time_s")
    rows = log.rows[(submit >= window.start_s) & (submit < window.end_s)].copy()
    rows[:, COLUMN["submit_time_s"]] -= window.start_s
    begin = log.header_number(BEGIN)
    header = [(key, value) for key, value in log.header if key != BEGIN]
    header += [] if begin is None else [(BEGIN, f"{begin + window.start_s:.0f}")]
    return replace(log, header=(*header, ("Note", _note(window))), rows=rows)


def cut_workload(workload: Workload, window: Window) -> Workload:
    """Return the jobs of a `workload` submitted in `window`, whose beginning becomes time 0."""
    dates = dates_s(workload)
    inside = np.flatnonzero((window.start_s <= dates) & (dates < window.end_s))
    made = without_lost_links(rows_of(columns_of(workload.jobs), inside.tolist()))
    made["submit_time_s"] = (dates[inside] - window.start_s).tolist()
    begin = workload.begin_unix_s
    begin = None if begin is None else begin + window.start_s
    return replace(workload.with_jobs(JobTable.of(made), _note(window)), begin_unix_s=begin)


def _note(window: Window) -> str:
    return (
        f"window of the log: {window.start_s:g} s to {window.end_s:g} s, utilisation "
        f"{window.utilisation:.3f}; jobs that started before it are left out"
    )
