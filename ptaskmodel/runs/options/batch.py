"""Options of ``batch`` and ``serve``: fields of `batch.options.BatchOptions`, of inputs, of output.

A new option is a field of `BatchOptions`; `DECIDED` lists those that ``serve`` does not have, since
an external scheduler decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptaskmodel.batch.options import BatchOptions
from ptaskmodel.connect.batsim.options import ConnectionOptions, SessionOptions
from ptaskmodel.engine.options import calibration_rows
from ptaskmodel.options import (
    COUNT,
    FLAG,
    JOBS,
    MEASURES,
    NUMBER,
    POSITIVE,
    RESULTS,
    Option,
    option,
    rows_of,
    taken,
)
from ptaskmodel.renamed import with_old_names
from ptaskmodel.runs.options.shared import TRACE_LIMIT, TRACES, attribution_row


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
