"""Report which requests that a slurm.conf needs are missing in a log, and what jobs get instead.

`submissions.read_submissions` calls it for logs and workloads, which contain less than the options
of sbatch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf

from ptaskmodel.remarks import KILLED, NOTE, Account, Remark
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, LINEAR, Conf, Partition
from ptaskmodel.slurm.jobs.needs import ALL, counts_memory, limit_min, memory_asked
from ptaskmodel.slurm.jobs.request import WHOLE_NODES, JobRequest, Submissions

# Names in one remark; of more it says the number.
SHOWN = 10


def with_remarks_on_silence(found: Submissions, conf: Conf, account: Account) -> Submissions:
    """The jobs `found` in a log, with remarks on the limits and the memory that it does not say.

    conf: what the jobs will run under. account: of the log.
    """
    partitions = {partition.name: partition for partition in conf.partitions}
    home = conf.home_partition
    placed = [
        (job, partitions[job.partitions[0]] if job.partitions else home) for job in found.jobs
    ]
    _limits(placed, account)
    _memory(placed, conf, account)
    return replace(
        found, remarks=(*found.remarks, *_over_limits(placed, conf, found), *account.remarks)
    )


_Placed = Sequence[tuple[JobRequest, Partition]]


def names_text(counts: Counter[str], text: Callable[[str], str] = str) -> str:
    """The most frequent names of `counts`, each written by `text`, with its number of jobs."""
    shown = [f"{text(name)} ({count} jobs)" for name, count in counts.most_common(SHOWN)]
    more = [f"{len(counts) - SHOWN} more"] if len(counts) > SHOWN else []
    return ", ".join([*shown, *more])


def _limits(placed: _Placed, account: Account) -> None:
    """Jobs without a limit."""
    silent = [(job, partition) for job, partition in placed if job.limit_min is None]
    if silent:
        limits = {partition.name: limit_min(job, partition) for job, partition in silent}
        some = [
            f"{name}: {'none' if limit == inf else f'{limit:g} min'}"
            for name, limit in list(limits.items())[:SHOWN]
        ]
        account.assumed(
            f"{len(silent)} jobs have no time limit: they get that of their partition "
            f"({', '.join(some)}), with which backfill plans",
            field="limit",
        )


def _memory(placed: _Placed, conf: Conf, account: Account) -> None:
    """Jobs without memory, where it is counted and has no default."""
    if conf.select_type == LINEAR:
        return
    counted: dict[str, bool] = {}
    silent: Counter[str] = Counter()
    for job, partition in placed:
        if job.memory_per_node_MiB is not None or job.memory_per_cpu_MiB is not None:
            continue
        if partition.name not in counted:
            all_of_it = memory_asked(job, partition, conf)[0] == ALL
            shared = partition.over_subscribe != EXCLUSIVE
            counted[partition.name] = all_of_it and shared and counts_memory(conf, partition)
        if counted[partition.name] and job.exclusive != WHOLE_NODES:
            silent[partition.name] += 1
    if silent:
        account.assumed(
            f"{silent.total()} jobs request no memory: each takes all memory of its nodes, as "
            f"{names_text(silent)} have no DefMemPerCPU; with --ignore-memory, memory is not "
            "counted",
            field="memory",
        )


def _over_limits(placed: _Placed, conf: Conf, found: Submissions) -> Iterable[Remark]:
    """Jobs that run for longer than they may here."""
    count = sum(
        job.run_s is not None
        and job.id not in found.open_ended
        and job.run_s > 60 * (limit_min(job, partition) + _more_min(partition, conf))
        for job, partition in placed
    )
    text = (
        f"{count} jobs run longer than their time limit and will be killed (OverTimeLimit allows "
        "longer runs)"
    )
    return [Remark(text, NOTE, KILLED)] if count else []


def _more_min(partition: Partition, conf: Conf) -> float:
    own = partition.over_time_limit_min
    return conf.over_time_limit_min if own is None else own
