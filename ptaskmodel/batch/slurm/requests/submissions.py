"""The one door for what runs on a simulated Slurm, whatever the format of the file."""

from __future__ import annotations

from ptaskmodel.batch.slurm import values
from ptaskmodel.batch.slurm.conf.facts import Conf
from ptaskmodel.batch.slurm.dependencies import parsed
from ptaskmodel.batch.slurm.requests import recorded, sacct
from ptaskmodel.batch.slurm.requests.from_workload import CPUS, NODES, submissions_of
from ptaskmodel.batch.slurm.requests.request import Submissions
from ptaskmodel.errors import SlurmError, WorkloadError, shown
from ptaskmodel.files import UTF8_MARK, AnyPath, read_bytes, shown_path
from ptaskmodel.workload.formats.table import Cleaning
from ptaskmodel.workload.reading import format_of, read_workload

START = 4096
PHASE_S = 0.5
# Columns that only tables of jobs have.
_TELLING = {
    "jobid",
    "submit",
    "limit",
    "run",
    "timelimit",
    "elapsed",
    "partition",
    "user",
    "account",
}


def read_submissions(
    path: AnyPath,
    conf: Conf,
    *,
    phase_s: float = PHASE_S,
    processors_per_node: int | None = None,
    cleaning: Cleaning | None = None,
    t0: int | None = None,
) -> Submissions:
    """The jobs of a file: ``jobs.csv`` of a recorded run, ``sacct -P``, SWF or Batsim's JSON.

    phase_s: how long after its whole second a job of the first two comes. processors_per_node: of
    an SWF log: jobs ask for whole nodes of so many processors; None: for processors (tasks of one
    CPU), which Slurm places. cleaning: of logs, see `Cleaning`. t0: Unix time of date 0 where the
    file does not say it.

    Raises SlurmError or WorkloadError with file and place.
    """
    found = _read(path, conf, phase_s, processors_per_node, cleaning, t0)
    _check(found, conf)
    return found


def _read(
    path: AnyPath,
    conf: Conf,
    phase_s: float,
    processors_per_node: int | None,
    cleaning: Cleaning | None,
    t0: int | None,
) -> Submissions:
    start = read_bytes(path, error=WorkloadError).removeprefix(UTF8_MARK)[:START]
    if recorded.looks_like(start):
        return recorded.read_jobs(path, phase_s)
    if sacct.looks_like(start):
        return sacct.read_sacct(path, phase_s)
    if start.lower().replace(b",", b" ").split()[:1] == [b"jobid"]:
        raise SlurmError(
            f"{shown_path(path)}:1: a table of sacct whose columns are not parted by |, or without "
            "Submit: print it with -P (or --parsable2), and JobID and Submit among others"
        )
    _nearly(start, path)
    if start.split(b"\n")[0].count(b"|") > 1:
        raise SlurmError(
            f"{shown_path(path)}:1: a table parted by | whose first line names no columns: "
            "if it is of sacct, print it without -n (--noheader)"
        )
    if format_of(path) != "swf":
        return submissions_of(read_workload(path, cleaning), conf, NODES, t0)
    counts = CPUS if processors_per_node is None else NODES
    given = cleaning or Cleaning()
    per_host = Cleaning(
        processors_per_node or 1, given.zero_run_time_s, given.max_hosts, given.walltimes
    )
    return submissions_of(read_workload(path, per_host), conf, counts, t0)


def _nearly(start: bytes, path: AnyPath) -> None:
    """SlurmError for a table that lacks a column without which nothing can be told."""
    line = start.split(b"\n")[0].decode("utf-8", "replace").strip()
    for mark, kind, needed in (("|", "sacct -P", sacct.NEEDED), (",", "jobs.csv", recorded.NEEDED)):
        given = {name.strip() for name in line.split(mark)}
        names = {name.lower() for name in given}
        if len(names) > 2 and len(names & {*needed, *_TELLING}) > 1:
            has = names if mark == "|" else given
            missing = ", ".join(name for name in needed if name not in has)
            raise SlurmError(
                f"{shown_path(path)}:1: a table like {kind} without the column {missing}: add it"
            )


def _check(submissions: Submissions, conf: Conf) -> None:
    """SlurmError, with file and line, for a job that makes no sense in a configuration."""
    partitions = {partition.name for partition in conf.partitions}
    nodes = {name for line in conf.nodes for name in line.names}
    for job in submissions.jobs:
        for what, names, known in (
            ("partition", job.partitions, partitions),
            ("node", (*job.nodelist, *job.exclude), nodes),
        ):
            strange = next((name for name in names if name not in known), None)
            if strange is not None:
                raise SlurmError(
                    f"{job.where}: {what} {shown(strange)} is not in {shown_path(conf.origin)}: "
                    f"add it there, or leave the job out"
                )
        dates = (job.submit_s, job.begin_s or 0.0, job.run_s or 0.0)
        if max(dates) > values.LONGEST_S:
            raise SlurmError(
                f"{job.where}: {shown(job.id)} comes or runs for more than 20 years: correct its "
                "dates"
            )
        if job.dependency is not None:
            parsed(job.dependency, job.where)
