"""Options of runs in which jobs wait: ``batch`` and ``serve``, ``slurm`` and ``slurm-live``.

Those of a batch are fields of `batch.options.BatchOptions`, of inputs and of output. A new one is a
field of `BatchOptions`; `DECIDED` lists those that ``serve`` does not have, since an external
scheduler decides.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ptaskmodel.batch.names import FAILURE_LAW
from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.connect.options import ConnectionOptions, SessionOptions
from ptaskmodel.engine.options import PATTERN, RATIO, calibration_rows, profiles_row
from ptaskmodel.lazy import with_old_names
from ptaskmodel.options import (
    COUNT,
    FAILURES,
    FILE,
    FLAG,
    JOBS,
    MEASURES,
    NOT_NEGATIVE,
    NUMBER,
    PLATFORM,
    POLICY,
    POSITIVE,
    RESULTS,
    TEXT,
    Option,
    option,
    rows_of,
    taken,
)
from ptaskmodel.runs.options import TRACE_LIMIT, TRACES, attribution_row
from ptaskmodel.slurm.conf.versions import REFERENCE, VERSIONS
from ptaskmodel.slurm.live import LiveOptions


@with_old_names
@dataclass(frozen=True, slots=True)
class BatchWriting:
    """What is measured and recorded; the names are those of the options of ``batch``.

    tau_s: threshold of the bounded slowdown, s. traces: formats (see `results.TRACE_FORMATS`);
    trace_limit_GB: their largest size together, about, GB (None: none). attribution: also
    what limited each job, and the use of hosts and links. plots: also gantt.png and load.png.
    """

    tau_s: float = option(
        60.0, NUMBER, "Threshold of the bounded slowdown.", MEASURES, unit="s", flag="--tau"
    )
    traces: tuple[str, ...] = taken(TRACES)
    trace_limit_GB: float | None = taken(TRACE_LIMIT)
    attribution: bool = taken(attribution_row("job"))
    plots: bool = option(
        False, FLAG, "Also write gantt.png and load.png (needs --output).", RESULTS, writes=True
    )


PROCESSORS_PER_HOST = Option(
    "processors_per_host", COUNT, 1, None, "Processors of a host, for an SWF log.", JOBS
)
BATCH = (
    *rows_of(BatchOptions),
    PROCESSORS_PER_HOST,
    *calibration_rows("jobs that are parallel tasks, without competitors", JOBS),
    Option("leave_out_larger", FLAG, False, None, "Drop jobs larger than the platform.", JOBS),
    *rows_of(BatchWriting),
)

# Parameters of campaigns alone, which change the workload, in the order in which they do.
FIRST_JOBS = Option("jobs", COUNT, None, None, "Only the first jobs, this many.", JOBS)
TRANSFORMS = (
    FIRST_JOBS,
    Option(
        "shuffle", FLAG, False, None, "Submit the jobs in a different order for each seed.", JOBS
    ),
    Option("sample", POSITIVE, None, None, "Keep one job in this many.", JOBS),
    Option("shrink", POSITIVE, None, None, "Multiply all times by this.", JOBS),
    Option(
        "load", POSITIVE, None, None, "Offered load on this platform, by closer arrivals.", JOBS
    ),
    Option("load_factor", POSITIVE, None, None, "Divide the gaps between arrivals by this.", JOBS),
)

# What an external scheduler decides, or sees otherwise.
DECIDED = {
    *("policy", "order", "backfill_order", "policy_options", "allocation", "seed", "estimates"),
    *("profiles", "ratio", "pattern", "calibration", "group", "leave_out_larger"),
    *("walltimes", "on_failure", "failures", "failure_law", "checkpoint", "maintenance"),
    *("licences", "dependencies", "loop", "until_s", "fairness", "frozen", "verify", "tau_s"),
    "neighbours",
}
# A batch plus a scheduler.
SERVE = (
    *rows_of(ConnectionOptions),
    *rows_of(SessionOptions),
    *(row for row in BATCH if row.name not in DECIDED),
)


# Rows of `BatchOptions` that Slurm's runs take, of nodes.
SHARED = {row.name: row for row in rows_of(BatchOptions)}
NODE_LAW = tuple(name for name in FAILURE_LAW if not name.startswith("link_"))


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """How to simulate; the names are those of the options of ``ptaskmodel slurm``.

    profiles, ratio, pattern: see `with_profiles`. seed: of the threads' wake-up times. controllers:
    how many share the nodes (see `parts_of`), their jobs drawn by ``seed``. test_cost: time of
    backfill to test a job, s. count_tests: whether jobs that can no longer start in a cycle are
    tested, too. priorities: how often those of waiting jobs are written, s; None: never. explain:
    ids of jobs whose story is told. attribution: also what limited each job on the platform, its
    slowdown, and the utilisation. neighbours: also by how much each job slowed each other job.
    """

    # fmt: off
    profiles: str = taken(profiles_row("as-given", "ptask", "smpi"))
    ratio: float = taken(RATIO)
    pattern: str = taken(PATTERN)
    seed: int = taken(SHARED["seed"]._replace(
        help="Seed of the wake-up times of the controller's threads; 0: fixed times.",
    ))
    controllers: int = option(
        1, COUNT,
        "Number of independent controllers; each has its own partitions, or a part of"
        " the nodes.", POLICY,
    )
    test_cost: float = option(
        0.0, NOT_NEGATIVE,
        "Time that backfill takes to test a job; bf_max_time and pauses then apply.", POLICY,
        unit="s",
    )
    count_tests: bool = option(
        False, FLAG,
        "Count tests of backfill as sdiag does. By default, a compiled cycle may end"
        " where no other job can start: starts are the same, long queues take half the time.",
        POLICY,
    )
    priorities: float | None = option(
        None, POSITIVE,
        "Write the priorities of waiting jobs at this interval, as sprio shows them: "
        "priorities.csv.",
        RESULTS, metavar="SECONDS", writes=True,
    )
    explain: Collection[str] = option(
        (), TEXT, "Write what each scheduling cycle found for a job. Repeatable.",
        RESULTS, metavar="JOB", many=True, writes=True,
    )
    attribution: bool = taken(attribution_row("job"))
    neighbours: bool = taken(SHARED["neighbours"])
    # fmt: on


# Of what jobs run, which a real Slurm is told too; and how the simulated one is run.
WORKS, SIMULATED = rows_of(SlurmOptions)[:3], rows_of(SlurmOptions)[3:]
# What a Slurm, simulated or real, is given besides its configuration and a workload.
SLURM_READING = (
    Option(
        "platform", FILE, None, None,
        "SimGrid XML: its hosts are the nodes; jobs that are parallel tasks share it.", PLATFORM,
    ),
    *WORKS,
    Option(
        "accounts", FILE, None, None,
        "Accounts, users, QOSs: a script of sacctmgr, or its dump; auto: those of the jobs.", JOBS,
    ),
    Option(
        "processors_per_node", COUNT, None, None,
        "Processors of a node, for an SWF log: jobs then ask for whole nodes  "
        "[default: jobs ask for processors]", JOBS,
    ),
)  # fmt: skip

SLURM = (
    *SLURM_READING,
    Option(
        "slurm_version", VERSIONS, REFERENCE, None,
        "The Slurm that the configuration is for: whose defaults and keys hold. Jobs are scheduled"
        f" as by {REFERENCE}.", POLICY,
    ),
    Option(
        "reservations", FILE, None, None,
        "Advance reservations: `create reservation` lines, or what scontrol shows of them.",
        FAILURES,
    ),
    Option(
        "begin", TEXT, None, None,
        "Date of second 0 (UTC), if the jobs do not say it: reservations have dates.", JOBS,
        metavar="YYYY-MM-DDTHH:MM:SS",
    ),
    SHARED["failures"]._replace(
        help="Nodes that fail and recover: a CSV file with date,resource,event (down or up).",
    ),
    SHARED["failure_law"]._replace(
        help=f"Draw failures of nodes: {', '.join(NODE_LAW)}. Repeatable.",
    ),
    SHARED["dependencies"]._replace(
        help="Jobs wait for the preceding jobs that the log names, and for the think time.",
    ),
    Option(
        "ignore_memory", FLAG, False, None,
        "Do not count memory, for logs that do not say how much jobs asked for.", JOBS,
    ),
    Option("meta", FILE, None, None, "Wake-up times of a recorded run: its meta.json.", POLICY),
    Option("cycles", FILE, None, None,
           "Events of a recorded run, for the dates of its cycles.", POLICY),
    *SIMULATED,
)  # fmt: skip
# Keys of a slurm.conf that campaigns change, as ``set.KEY``.
CHANGES = "set"


@dataclass(frozen=True, slots=True)
class LiveWriting:
    """What is found out about a run of a real Slurm, besides what happened.

    compare: where a simulated Slurm on the same input differs.
    """

    compare: bool = option(
        False, FLAG, "Also simulate Slurm on the same input, and show where the two differ.",
        RESULTS,
    )  # fmt: skip


SLURM_LIVE = (
    *SLURM_READING,
    SHARED["failures"]._replace(
        help="Daemons that die and come back: CSV with time, daemon (a node or slurmctld), what "
        "(dies, starts, restarts).",
    ),
    *rows_of(LiveOptions),
    *rows_of(LiveWriting),
)
