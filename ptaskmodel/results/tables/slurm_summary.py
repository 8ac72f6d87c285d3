"""The summary of a Slurm run: distributions of times, starts by scheduler, sdiag's counts.

It also has the settings of the slurm.conf, so that two runs can be distinguished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import remarks
from ptaskmodel.batch.schedule_metrics import contention_measures, distribution
from ptaskmodel.errors import shown
from ptaskmodel.remarks import Remark
from ptaskmodel.results.tables.slurm import Alone, Run, Simulated, is_over, slowdown_of, suspended_s
from ptaskmodel.slurm.accounts.facts import Accounts
from ptaskmodel.slurm.accounts.fair_share import (
    ACCOUNT_NOT_ALLOWED,
    INVALID_ACCOUNT,
    QOS_NOT_ALLOWED,
)
from ptaskmodel.slurm.accounts.limits import not_simulated
from ptaskmodel.slurm.conf.facts import Conf, NodeLine, Partition
from ptaskmodel.slurm.conf.phases import BACKFILL_CYCLE
from ptaskmodel.slurm.event_log import PASSES, hostlist
from ptaskmodel.slurm.jobs.dependencies import parsed
from ptaskmodel.slurm.jobs.record import REFUSED, JobRecord
from ptaskmodel.style.text import several

TAU_S = 60.0
# As many notes of one kind are shown.
SHOWN = 3
# Where a setting comes from, or what is told elsewhere.
SHOWN_KEYS = 4
# Keys that change what Slurm does with jobs. Of those that are not simulated each is told.
HEEDED = frozenset(
    {
        *("ALLOWSPECRESOURCESUSAGE", "GRACETIME", "JOBSUBMITPLUGINS"),
        *("PREEMPTEXEMPTTIME", "PRIORITYSITEFACTORPLUGIN", "PRIORITYSITEFACTORPARAMETERS"),
        *("RESUMETIMEOUT", "SUSPENDTIME"),
    }
)
UNTOLD = frozenset(
    {"notes", "origin", "others", "remarks", "where", "switches", "nodes", "partitions"}
)


def summary_of(found: Sequence[Simulated], alone_s: Alone) -> dict[str, Any]:
    """What became of the jobs of all controllers, and what each scheduler did."""
    return {
        **outcome_of([each.run for each in found], alone_s),
        "main": _main(found),
        "backfill": _backfill(found),
        **_node_failures(found),
    }


def _node_failures(found: Sequence[Simulated]) -> dict[str, Any]:
    """How often nodes failed, the controller set them down, and which wait to be resumed."""
    failing = [each.run.loop.failures for each in found if each.run.loop.failures is not None]
    if not failing:
        return {}
    jobs = [job for each in found for job in each.run.jobs]
    return {
        "node_failures": {
            "died": sum(each.died for each in failing),
            "set_down": sum(each.set_down for each in failing),
            "stay_down": [name for each in failing for name in each.stay_down],
            "restarts": sum(job.restarts for job in jobs),
        }
    }


def orphan_notes(found: Sequence[Simulated]) -> list[str]:
    """How many jobs depend on jobs that were refused, if any do."""
    jobs = [job for each in found for job in each.run.jobs]
    refused = {job.id for job in jobs if job.state == REFUSED}
    refused |= {job.request.array_id for job in jobs if job.state == REFUSED}
    waiting = [parsed(job.request.dependency) for job in jobs if job.request.dependency]
    count = sum(any(term.job in refused for term in one.terms) for one in waiting)
    text = several(count, "job depends", "jobs depend")
    text += " on jobs that were refused, of which Slurm knows no number, and so does not wait"
    return [text] if count else []


def stranger_remarks(found: Sequence[Simulated], given: bool) -> list[Remark]:
    """That jobs are refused as the accounts do not know their users. given: whether there are any.

    found: the runs.
    """
    jobs = [job for each in found for job in each.run.jobs]
    refused = [job for job in jobs if job.state == REFUSED and job.reason == INVALID_ACCOUNT]
    if not refused:
        return [] if given else _outsiders(jobs)
    asked = Counter((job.request.user, job.request.account) for job in refused)
    names = [
        f"{'root' if user is None else shown(user)} in "
        f"{'no account' if account is None else shown(account)} ({count})"
        for (user, account), count in asked.most_common(SHOWN)
    ]
    more = [f"{len(asked) - SHOWN} more"] if len(asked) > SHOWN else []
    text = several(len(refused), "job is refused", "jobs are refused")
    text += ", as AccountingStorageEnforce lets in known users only"
    text += f": {', '.join([*names, *more])}. " + ("Correct" if given else "Give")
    text += " --accounts (sacctmgr dump; auto makes them of the jobs), or take that key out"
    return [Remark(text, effect=remarks.REFUSED)]


def _outsiders(jobs: Sequence[JobRecord]) -> list[Remark]:
    """That without accounts partitions take no `jobs` that are to have one, or a QOS."""
    barred = (ACCOUNT_NOT_ALLOWED, QOS_NOT_ALLOWED)
    count = sum(job.state in (REFUSED, "PENDING") and job.reason in barred for job in jobs)
    text = several(count, "job is refused or never starts", "jobs are refused or never start")
    text += ", as AllowAccounts and AllowQos of partitions take none without account and QOS. "
    text += "Give --accounts (sacctmgr dump; auto makes them of the jobs), or take these keys out"
    return [Remark(text, effect=remarks.REFUSED)] if count else []


def qos_notes(found: Sequence[Simulated]) -> list[str]:
    """Which QOSs jobs ask for that are not among the accounts, and what becomes of these jobs."""
    conf = found[0].run.loop.controller.conf if found else None
    if conf is None or not conf.database:
        return []
    known = found[0].run.loop.controller.rules.accounts.qos
    asked = Counter(job.request.qos for each in found for job in each.run.jobs)
    strange = sorted(name for name in asked if name is not None and name not in known)
    becomes = "they are refused" if "QOS" in conf.enforce else "it orders and limits nothing"
    notes = [
        f"{several(asked[name], 'job asks', 'jobs ask')} for QOS {shown(name)}, which is not among "
        f"the accounts: {becomes}"
        for name in strange[:SHOWN]
    ]
    return notes + ([f"... and {len(strange) - SHOWN} more QOSs"] if len(strange) > SHOWN else [])


def limit_notes(conf: Conf, accounts: Accounts) -> list[str]:
    """Which limits of accounts are not simulated, if limits hold, and QOSs that are not there."""
    found = not_simulated(accounts) if conf.database and "LIMITS" in conf.enforce else []
    more = [f"... and limits of {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    strange = [
        f"PartitionName={one.name}: QOS {one.qos} is not among the accounts: it limits nothing"
        for one in conf.partitions
        if one.qos is not None and one.qos not in accounts.qos
    ]
    return found[:SHOWN] + more + strange


def state_counts(runs: Iterable[Run]) -> Counter[str]:
    """How many jobs of all controllers are in each state."""
    return Counter(job.state for run in runs for job in run.jobs)


def outcome_of(runs: Sequence[Run], alone_s: Alone) -> dict[str, Any]:
    """What became of the jobs of all controllers."""
    every_job = [(run, job) for run in runs for job in run.jobs]
    ran = [(run, job) for run, job in every_job if is_over(job)]
    waits = np.array([job.start_s - job.submit_s for _, job in ran], dtype=np.float64)
    lasted = np.array([job.end_s - job.start_s for _, job in ran], dtype=np.float64)
    ran_s = lasted - np.array([suspended_s(job) for _, job in ran], dtype=np.float64)
    cpus = np.array([run.cpus_of(job) for run, job in ran], dtype=np.float64)
    responses = waits + lasted
    begin = min((job.submit_s for _, job in every_job), default=0)
    end = max((int(job.end_s) for _, job in ran), default=begin)
    every = sum(sum(run.nodes.cpus) for run in runs)
    jobs = [job for _, job in every_job]
    slowdowns = np.array([slowdown_of(job, alone_s[job.id]) for job in jobs if job.id in alone_s])
    return {
        "nodes": sum(len(run.nodes) for run in runs),
        "cpus": every,
        "controllers": len(runs),
        "jobs": {"submitted": len(jobs), **state_counts(runs)},
        "refused": Counter(job.reason for job in jobs if job.state == REFUSED),
        "never_started": Counter(job.reason for job in jobs if job.state == "PENDING"),
        "started_by": Counter(job.by for _, job in ran),
        "makespan_s": end - begin,
        "utilisation": float((cpus * ran_s).sum() / (every * (end - begin)))
        if end > begin
        else None,
        "tau_s": TAU_S,
        "waiting_s": distribution(waits),
        "turnaround_s": distribution(responses),
        "execution_s": distribution(lasted),
        "bounded_slowdown": distribution(np.maximum(1.0, responses / np.maximum(lasted, TAU_S))),
        **(contention_measures(slowdowns) if alone_s else {}),
        **_against_log([job for _, job in ran], waits),
    }


def _against_log(ran: Sequence[JobRecord], waits_s: NDArray[np.float64]) -> dict[str, Any]:
    """How long jobs waited in their log, and here, and how far that is apart; {}: not known.

    ran: jobs that ran. waits_s: how long they waited here, s.
    """
    logged = [job.request.logged_wait_s for job in ran]
    known = np.array([wait is not None for wait in logged], dtype=bool)
    if not known.any():
        return {}
    log_s = np.array([wait for wait in logged if wait is not None])
    here_s = waits_s[known]
    return {
        "against_log": {
            "jobs": len(log_s),
            "logged_waiting_s": distribution(log_s),
            "waiting_s": distribution(here_s),
            "difference_s": distribution(np.abs(here_s - log_s)),
        }
    }


def _main(found: Sequence[Simulated]) -> dict[str, Any]:
    """Passes of the main scheduler, by kind."""
    events = (e.what for each in found for e in each.watch.events if e.who == "main")
    kinds = Counter(what for what in events if what in PASSES.values())
    return {
        "passes": sum(kinds.values()),
        **{name.replace(" ", "_"): n for name, n in kinds.items()},
    }


def _backfill(found: Sequence[Simulated]) -> dict[str, Any]:
    """What sdiag says of backfill, over all controllers."""
    of_each = [each.run.loop.statistics for each in found]
    cycles = sum(one.cycles for one in of_each)
    started = sum(job.by == BACKFILL_CYCLE for each in found for job in each.run.jobs)

    def mean(total: float) -> float | None:
        return total / cycles if cycles else None

    return {
        "cycles": cycles,
        "started": started,
        "mean_tested": mean(sum(one.tested for one in of_each)),
        "most_tested": max(one.most_tested for one in of_each),
        "mean_queue": mean(sum(one.waiting for one in of_each)),
        "mean_cycle_s": mean(sum(one.lasted_s for one in of_each)),
        "longest_cycle_s": max(one.longest_s for one in of_each),
        "cycles_at_limit": sum(one.at_limit for one in of_each),
        "ended_by": Counter(line.end for each in found for line in each.watch.cycles),
    }


def settings_of(conf: Conf) -> dict[str, str]:
    """What a configuration sets, by name: ``scheduler.bf_interval_s``, ``partition p.tier``, ..."""
    found = dict(_fields(conf, ""))
    for line in conf.nodes:
        found |= _fields(line, f"nodes {hostlist(line.names)}.")
    for partition in conf.partitions:
        found[f"partition {partition.name}.nodes"] = hostlist(partition.nodes)
        found |= _fields(partition, f"partition {partition.name}.")
    for switch in conf.switches:
        found[f"switch {switch.name}"] = hostlist((*switch.nodes, *switch.switches))
    return found


def unread_notes(conf: Conf) -> list[str]:
    """What of a configuration is not used.

    Words of known keys, misspelt keys, and those that Slurm's schedulers heed, one by one; other
    keys by number.
    """
    told = [o for o in conf.others if o.meant or " " in o.key or o.key.upper() in HEEDED]
    keys = list(dict.fromkeys(one.key for one in conf.others if one not in told))
    hints = [f"; did you mean {one.meant}?" if one.meant else "" for one in told]
    found = []
    for one, hint in zip(told, hints, strict=True):
        is_heeded = one.key.upper() in HEEDED
        what = "is not simulated" if is_heeded else "changes nothing here"
        found.append(f"{one.where}: {one.key} {what}{hint}")
    if keys:
        some = ", ".join(keys[:SHOWN_KEYS])
        found.append(f"keys of {conf.origin} that change nothing here: {len(keys)}, such as {some}")
    return found


def _fields(facts: Any, before: str) -> Iterator[tuple[str, str]]:
    for each in fields(facts):
        value = getattr(facts, each.name)
        if each.name in ("scheduler", "priority") and isinstance(facts, Conf):
            yield from _fields(value, f"{each.name}.")
        elif (
            each.name not in UNTOLD
            and not (each.name == "name" and isinstance(facts, Partition))
            and not (each.name == "names" and isinstance(facts, NodeLine))
        ):
            yield before + each.name, _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
