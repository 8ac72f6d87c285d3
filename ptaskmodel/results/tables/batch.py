"""Write the results of a batch: Batsim's jobs.csv, schedule.json, machine_states.csv, and more.

Columns and meanings are those of Batsim's documentation (versions 3 to 5), so that its tools
(evalys) read them. The additional tables serve studies of schedulers: the queue over time, classes
of jobs, adaptive tuning. Without energy ``consumed_energy`` is empty and schedule.json has no
``consumed_joules``.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import csv_tables
from ptaskmodel.batch.class_metrics import BASES, ClassRow, FairStart
from ptaskmodel.batch.jobs.execution import KILLED, REJECTED, SUCCESS, WALLTIME, Attempt
from ptaskmodel.batch.loop.schedule import (
    STATES,
    SUCCEEDED,
    HostRuns,
    PlainSchedule,
    Schedule,
    figures_of,
    has_ended,
)
from ptaskmodel.batch.queue_metrics import OverTime
from ptaskmodel.batch.schedule_metrics import (
    Load,
    contention_slowdown,
    job_times,
    unavailable_host_seconds,
    used_host_seconds,
)
from ptaskmodel.csv_tables import write_columns
from ptaskmodel.line_writer import NONE
from ptaskmodel.results.tables.energy import (
    CONSUMED_ENERGY_COLUMNS,
    PSTATE_COLUMNS,
    STATE_COLUMNS,
    States,
    by_job,
    energy_rows,
    host_seconds,
    machine_states,
    pstate_rows,
    switch_counts,
)
from ptaskmodel.workload.jobs import NumberIds, names_of

if TYPE_CHECKING:
    from ptaskmodel.batch.jobs.metering import BatchEnergy
    from ptaskmodel.batch.loop.power_states import Pstates
    from ptaskmodel.batch.policies.tuning import Tuning


JOB_COLUMNS = (
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
)
RUN_COLUMNS = (
    "job_id",
    "attempt",
    "starting_time",
    "finish_time",
    "final_state",
    "allocated_resources",
    "suspensions",
    "reason",
)
ALONE_COLUMNS = ("time_alone", "contention_slowdown")
FIRST_WORKLOAD = "w0"  # as Batsim calls it
FAILURE_COLUMNS = ("date", "resource", "event")
NEIGHBOUR_COLUMNS = ("job_id", "slowed_by", "seconds")
LOAD_COLUMNS = (
    "time",
    "waiting_jobs",
    "requested_hosts",
    "running_jobs",
    "used_hosts",
    "utilisation",
)
OVER_TIME, CLASSES, TUNING = "over_time.csv", "classes.csv", "tuning.csv"
FAIR_STARTS = "fair_starts.csv"
OVER_TIME_COLUMNS = (
    "time",
    "queue_depth",
    "waiting_jobs",
    "used_hosts",
    "utilisation_1h",
    "utilisation_10h",
    "utilisation_24h",
    "lost_capacity",
)
CLASS_COLUMNS = (
    "kind",
    "class",
    "jobs",
    "killed",
    "host_seconds",
    "mean_waiting",
    "max_waiting",
    "mean_execution",
    "mean_bounded_slowdown",
    "unfair_jobs",
)
FAIR_COLUMNS = (
    "job_id",
    "submission_time",
    "starting_time",
    *(f"fair_start_by_{basis}" for basis in BASES),
    *(f"unfair_by_{basis}" for basis in BASES),
)


def write_schedule(
    directory: Path,
    schedule: Schedule,
    used: Load,
    *,
    workload_name: str | None,
    host_names: Sequence[str],
    version: str,
    simulation_s: float,
    alone_s: Sequence[float] | None = None,
    energy: BatchEnergy | None = None,
    pstates: Pstates | None = None,
    metadata: Mapping[str, str] | None = None,
) -> list[str]:
    """Write the files of a schedule in an existing directory; returns their names.

    used: the load of the schedule. workload_name: None: the ids of jobs say it (``w0!3``).
    metadata: of jobs, by id.

    jobs.csv (one line a job; with alone_s, columns ``time_alone`` and ``contention_slowdown``, and
    if some job was suspended, ``suspended_time``), runs.csv (only if some job ran more than once or
    was suspended), failures.csv (only if something went down), schedule.json, machine_states.csv,
    load.csv, machines.csv; with energy consumed_energy.csv; with pstates, pstate_changes.csv (only
    with energy or if any changed).
    """
    columns: tuple[str, ...] = JOB_COLUMNS
    more: tuple[Sequence[float], ...] = ()
    if alone_s is not None:
        columns = (*JOB_COLUMNS, *ALONE_COLUMNS)
        more = (alone_s, contention_slowdown(schedule, alone_s).tolist())
    joules = {} if energy is None else by_job(schedule.attempts, energy.job_J)
    # Those that arrays can say are neither suspended nor begun anew.
    lives = schedule.attempts if schedule.plain is None else ()
    suspended = any(attempt.suspensions for attempt in lives)
    if schedule.plain is not None:
        with (directory / "jobs.csv").open("wb") as file:
            file.write((",".join(columns) + "\n").encode())
            file.writelines(plain_job_lines(schedule.plain, workload_name or FIRST_WORKLOAD, *more))
    else:
        rows = _job_rows(schedule, workload_name, more, joules, metadata or {})
        if suspended:
            columns = (*columns, "suspended_time")
            times = (attempt.suspended_s(schedule.now_s) for attempt in schedule.final)
            rows = ((*row, time_s) for row, time_s in zip(rows, times, strict=True))
        _write_csv(directory / "jobs.csv", columns, rows)
    written = ["jobs.csv"]
    if suspended or any(attempt.ordinal for attempt in lives):
        _write_csv(directory / "runs.csv", RUN_COLUMNS, map(_run_row, schedule.attempts))
        written.append("runs.csv")
    changes = _failure_rows(schedule, host_names)
    if changes:
        _write_csv(directory / "failures.csv", FAILURE_COLUMNS, changes)
        written.append("failures.csv")
    states = machine_states(schedule, used)
    summary = batsim_summary(schedule, version, simulation_s, states)
    if energy is not None:
        summary["consumed_joules"] = energy.consumed_J
        _write_csv(directory / "consumed_energy.csv", CONSUMED_ENERGY_COLUMNS, energy_rows(energy))
        written.append("consumed_energy.csv")
    if pstates is not None and (energy is not None or schedule.switches):
        changed = pstate_rows(schedule, pstates)
        _write_csv(directory / "pstate_changes.csv", PSTATE_COLUMNS, changed)
        written.append("pstate_changes.csv")
    (directory / "schedule.json").write_text(json.dumps(summary, indent=2, sort_keys=True) + "\n")
    total = schedule.num_hosts
    csv_tables.write_columns(directory / "machine_states.csv", STATE_COLUMNS, states)
    csv_tables.write_columns(directory / "load.csv", LOAD_COLUMNS, _load_columns(used, total))
    _write_csv(directory / "machines.csv", ("id", "name"), enumerate(host_names))
    return [*written, "schedule.json", "machine_states.csv", "load.csv", "machines.csv"]


def write_neighbours(directory: Path, rows: Iterable[tuple[str, str, float]]) -> str:
    """Write neighbours.csv: by how many seconds each job was slowed by each other; its name."""
    _write_csv(directory / "neighbours.csv", NEIGHBOUR_COLUMNS, rows)
    return "neighbours.csv"


def _write_csv(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def plain_job_lines(
    plain: PlainSchedule, workload_name: str, *more: Sequence[float] | NDArray[np.float64]
) -> Iterator[bytes]:
    """The lines of jobs.csv, many at a time, as they are written of attempts.

    plain: what became of the jobs. workload_name: the same for all. more: of each job that ran and
    ended, the columns after them.
    """
    count = len(plain.codes)
    submit, walltime = plain.arrays.submit_s[:count], plain.arrays.walltime_s[:count]
    execution, turnaround = plain.end_s - plain.start_s, plain.end_s - submit
    stretch = np.divide(turnaround, execution, out=np.full(count, math.nan), where=execution > 0)
    columns = (
        submit,
        plain.arrays.num_hosts[:count],
        walltime,
        plain.codes == SUCCEEDED,
        csv_tables.words(STATES)[plain.codes],
        plain.start_s,
        execution,
        plain.end_s,
        plain.start_s - submit,
        turnaround,
        stretch,
    )
    (name,) = csv_tables.quoted([workload_name])
    ids, profiles = names_of(plain.jobs)
    profile = csv_tables.Texts.of(csv_tables.quoted(profiles[:count]))
    named: NDArray[np.int64] | csv_tables.Texts
    if isinstance(ids, NumberIds):
        named = ids.numbers[:count]
    else:
        named = csv_tables.Texts.of(csv_tables.quoted(ids[:count]))
    hosts = host_texts(plain.places).at(plain.number)
    others = [_of_all(plain, values) for values in more]
    for begin in range(0, count, csv_tables.PIECE):
        part = slice(begin, begin + csv_tables.PIECE)
        found: list[Any] = [column[part] for column in columns]
        found[2] = csv_tables.floats(found[2], missing="-1")
        last = (column[part] for column in others)
        own = named.at(part) if isinstance(named, csv_tables.Texts) else named[part]
        first = own, name.encode(), profile.at(part)
        yield csv_tables.lines(*first, *found, hosts.at(part), b"", b"", *last)


def _of_all(
    plain: PlainSchedule, of_ended: Sequence[float] | NDArray[np.float64]
) -> NDArray[np.float64]:
    """A column of each job, given the numbers of those that ran and ended; nan: nothing."""
    values = np.full(len(plain.codes), math.nan)
    values[~np.isnan(plain.end_s)] = of_ended
    return values


def host_texts(places: HostRuns) -> csv_tables.Texts:
    """The hosts of each attempt in Batsim's notation, such as "0-2 5"; places: where they ran."""
    first, length = places.first.astype(np.int64), places.length
    counts = np.diff(places.begins)
    is_last = np.zeros(len(first), dtype=bool)
    is_last[places.begins[1:][counts > 0] - 1] = True
    alone = length == 1
    dash = np.where(alone, 0, ord("-")).astype(np.uint8)[:, None]
    last = np.where(alone, NONE, first + length - 1)
    between = np.where(is_last, ord("\n"), ord(" ")).astype(np.uint8)[:, None]
    characters = np.frombuffer(csv_tables.text(first, dash, last, between), np.uint8)
    found = csv_tables.Texts.ended(np.flatnonzero(characters == ord("\n")), characters)
    return found.at(np.where(counts > 0, np.cumsum(counts > 0) - 1, -1))


def _job_rows(
    schedule: Schedule,
    name: str | None,
    more: Sequence[Sequence[float]],
    joules: Mapping[str, float],
    metadata: Mapping[str, str],
) -> Iterable[tuple[Any, ...]]:
    first: dict[str, Attempt] = {}
    for attempt in schedule.attempts:
        first.setdefault(attempt.job.id, attempt)
    of_ended = [iter(values) for values in more]
    for attempt in schedule.final:
        consumed = joules.get(attempt.job.id)
        row = _job_row(attempt, name, first.get(attempt.job.id), consumed)
        if attempt.job.id in metadata:
            row = (*row[:-1], metadata[attempt.job.id])
        if has_ended(attempt):
            found = (next(values) for values in of_ended)
            row += tuple("" if math.isnan(value) else value for value in found)
        else:
            row += ("",) * len(of_ended)
        yield row


def _names(job_id: str, workload_name: str | None) -> tuple[str, str]:
    """(id, workload) of a job."""
    if workload_name is not None:
        return job_id, workload_name
    before, mark, after = job_id.partition("!")
    return (after, before) if mark else (job_id, FIRST_WORKLOAD)


def _job_row(
    attempt: Attempt, name: str | None, first: Attempt | None, consumed_J: float | None
) -> tuple[Any, ...]:
    """The line of a job: its last attempt, and the energy of all."""
    job = attempt.job
    energy = "" if consumed_J is None else f"{consumed_J:.6f}"
    walltime = -1 if job.walltime_s is None else job.walltime_s
    asked = (*_names(job.id, name), job.profile, job.submit_time_s, job.num_hosts, walltime)
    start, end = attempt.start_s, attempt.end_s
    if start is None:
        return (*asked, 0, attempt.state, *[""] * 8, attempt.reason)
    waited = start - job.submit_time_s
    if end is None:
        place = (attempt.hosts_text, energy)
        return (*asked, 0, attempt.state, start, "", "", waited, "", "", *place, "")
    turnaround = end - job.submit_time_s
    execution = end - start - attempt.suspended_s(end)
    return (
        *asked,
        int(attempt.state == SUCCESS),
        attempt.state,
        start,
        execution,
        end,
        waited,
        turnaround,
        turnaround / execution if execution > 0 else "",
        attempt.hosts_text,
        energy,
        " ".join(_more_of(attempt, first)),
    )


def _more_of(attempt: Attempt, first: Attempt | None) -> Iterable[str]:
    """What no other column says of a job."""
    if attempt.ordinal and first is not None:
        yield f"attempt={attempt.ordinal} first_starting_time={first.start_s}"
    if attempt.cores is None and attempt.use > attempt.job.num_hosts:
        yield f"held_hosts={attempt.use}"
    if attempt.cores is not None:
        yield f"cores={','.join(map(str, attempt.cores))}"
    if attempt.reason:
        yield attempt.reason


def _run_row(attempt: Attempt) -> tuple[Any, ...]:
    return (
        attempt.job.id,
        attempt.ordinal,
        attempt.start_s,
        "" if attempt.end_s is None else attempt.end_s,
        attempt.state,
        attempt.hosts_text,
        " ".join(f"{since}:{'' if to is None else to}" for since, to in attempt.suspensions),
        attempt.reason,
    )


def _failure_rows(schedule: Schedule, names: Sequence[str]) -> list[tuple[float, str, str]]:
    """What went down and came back, hosts before the rest at each date, as ``--failures`` reads."""
    rows = [
        (change.date_s, names[host], change.state)
        for change in schedule.host_changes
        if change.state in ("down", "up")
        for host in change.hosts
    ]
    rows += [(change.date_s, change.name, change.state) for change in schedule.link_changes]
    return sorted(rows, key=lambda row: row[0])


def _load_columns(over_time: Load, total: int) -> list[Any]:
    used = over_time.used_hosts
    utilisation: Any = used / total
    if used.dtype.kind == "i" and total < len(used):  # the text of each number of hosts, once
        each = [repr(hosts / total) for hosts in range(total + 1)]
        utilisation = csv_tables.Texts.of(each).at(used.astype(np.int64))
    return [
        over_time.date_s,
        over_time.waiting_jobs,
        over_time.requested_hosts,
        over_time.running_jobs,
        used,
        utilisation,
    ]


def batsim_summary(
    schedule: Schedule, version: str, simulation_s: float, machine: States
) -> dict[str, Any]:
    """The fields of Batsim's schedule.json, null where undefined; dates count from 0.

    machine: the states of the hosts over time.
    """
    times = job_times(schedule)
    states = figures_of(schedule).states
    success = states.count(SUCCESS)
    makespan = float(times.end_s.max()) if len(times.end_s) else 0.0
    computing = used_host_seconds(schedule)
    unavailable = unavailable_host_seconds(schedule, makespan)
    switching = host_seconds(machine, makespan)
    idle = schedule.num_hosts * makespan - computing - unavailable - sum(switching.values())
    killed = states.count(WALLTIME) + states.count(KILLED)
    found: dict[str, Any] = {
        "batsim_version": f"ptaskmodel {version}",
        "makespan": makespan,
        "nb_computing_machines": schedule.num_hosts,
        "nb_jobs": len(states),
        "nb_jobs_finished": len(times.end_s),
        "nb_jobs_killed": killed,
        "nb_jobs_rejected": states.count(REJECTED),
        "nb_jobs_success": success,
        "simulation_time": simulation_s,
        "success_rate": success / len(states) if states else None,
        "time_computing": computing,
        "time_idle": idle,
        "time_unavailable": unavailable,
        **{f"time_{name}": seconds for name, seconds in switching.items()},
        **switch_counts(schedule),
    }
    named = {
        "waiting_time": times.waiting_s,
        "turnaround_time": times.turnaround_s,
        "slowdown": times.slowdown,
    }
    for name, values in named.items():
        defined = values[~np.isnan(values)]
        found[f"mean_{name}"] = float(defined.mean()) if len(defined) else None
        found[f"max_{name}"] = float(defined.max()) if len(defined) else None
    return found


def write_over_time(directory: Path, found: OverTime) -> str:
    """Write over_time.csv: a line for each sample; its name."""
    columns: list[Any] = [found.date_s, found.queue_depth_s, found.waiting_jobs, found.used_hosts]
    columns += [*found.utilisation.values(), found.lost]
    write_columns(directory / OVER_TIME, OVER_TIME_COLUMNS, columns)
    return OVER_TIME


def write_classes(directory: Path, found: Sequence[ClassRow]) -> str:
    """Write classes.csv: a line for each class of jobs; its name."""
    return _write(directory / CLASSES, CLASS_COLUMNS, found)


def write_tuning(directory: Path, tuning: Tuning) -> str:
    """Write tuning.csv: a line for each check, its measures and the values after it; its name."""
    from ptaskmodel.batch.policies.tuning import Measures

    columns = ("time", "queue_depth", *Measures._fields[2:])
    names = [rule.parameter for rule in tuning.rules]
    rows = ((*check.measures, *check.values) for check in tuning.log)
    return _write(directory / TUNING, (*columns, *names), rows)


def write_fair_starts(directory: Path, found: Iterable[FairStart]) -> str:
    """Write fair_starts.csv: a line for each job that started; its name."""
    rows = (
        (
            fair.job.id,
            fair.job.submit_time_s,
            fair.start_s,
            *("" if date is None or date != date else date for date in fair[2:]),
            *(int(fair.is_unfair(basis)) for basis in BASES),
        )
        for fair in found
    )
    return _write(directory / FAIR_STARTS, FAIR_COLUMNS, rows)


def _write(path: Path, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    return path.name
