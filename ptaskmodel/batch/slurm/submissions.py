"""The one door for what runs on a simulated Slurm, whatever the format of the file."""

from __future__ import annotations

from ptaskmodel.batch.slurm import recorded, sacct
from ptaskmodel.batch.slurm.facts import Conf
from ptaskmodel.batch.slurm.from_workload import CPUS, NODES, submissions_of
from ptaskmodel.batch.slurm.requests import Submissions
from ptaskmodel.errors import SlurmError, WorkloadError, shown
from ptaskmodel.files import AnyPath, read_bytes, shown_path
from ptaskmodel.workload.formats.table import Cleaning
from ptaskmodel.workload.reading import format_of, read_workload

START = 4096
PHASE_S = 0.5


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
    start = read_bytes(path, error=WorkloadError)[:START]
    if recorded.looks_like(start):
        return _known(recorded.read_jobs(path, phase_s), conf)
    if sacct.looks_like(start):
        return _known(sacct.read_sacct(path, phase_s), conf)
    if start.lower().split()[:1] == [b"jobid"]:
        raise SlurmError(
            f"{shown_path(path)}:1: a table of sacct whose columns are not parted by |, or without "
            "Submit: print it with -P (or --parsable2), and JobID and Submit among others"
        )
    if format_of(path) != "swf":
        return submissions_of(read_workload(path, cleaning), conf, NODES, t0)
    counts = CPUS if processors_per_node is None else NODES
    given = cleaning or Cleaning()
    per_host = Cleaning(
        processors_per_node or 1, given.zero_run_time_s, given.max_hosts, given.walltimes
    )
    return submissions_of(read_workload(path, per_host), conf, counts, t0)


def _known(submissions: Submissions, conf: Conf) -> Submissions:
    """The jobs, whose partitions and nodes are all there. Raises SlurmError with file and line."""
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
    return submissions
