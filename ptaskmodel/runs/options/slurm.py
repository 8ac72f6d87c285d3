"""Options of ``slurm`` and ``slurm-live``."""

from __future__ import annotations

from ptaskmodel.batch.options import FAILURE_LAW
from ptaskmodel.runs.options.rows import (
    COUNT,
    COURSE,
    FAILURES,
    FILE,
    FLAG,
    JOBS,
    NOT_NEGATIVE,
    PAIRS,
    PLATFORM,
    POLICY,
    POSITIVE,
    RESULTS,
    SEED,
    TEXT,
    Option,
    number_time_or_text,
    profile_rows,
)

# What a Slurm, simulated or real, is given besides its configuration and a workload.
SLURM_READING = (
    Option(
        "platform", FILE, None, None,
        "SimGrid XML: hosts are the nodes, and jobs that are parallel tasks share it.", PLATFORM,
    ),
    *profile_rows("as-given", "ptask", "smpi"),
    Option(
        "accounts", FILE, None, None,
        "Accounts, users and QOSs: what sacctmgr is told, a line each, or a dump of it.", JOBS,
    ),
    Option(
        "processors_per_node", COUNT, None, None,
        "Of an SWF log: jobs ask for whole nodes of so many  [default: for processors]", JOBS,
    ),
)  # fmt: skip
NODE_LAW = tuple(name for name in FAILURE_LAW if not name.startswith("link_"))

SLURM = (
    *SLURM_READING,
    Option(
        "reservations", FILE, None, None,
        "Advance reservations: lines of `create reservation` as scontrol takes them.", FAILURES,
    ),
    Option(
        "failures", FILE, None, None,
        "Nodes that fail and answer again: date,resource,event (down or up).", FAILURES,
    ),
    Option(
        "failure_law", PAIRS, None, None,
        f"Draw failures of nodes: {', '.join(NODE_LAW)}. Repeatable.",
        FAILURES, metavar="KEY=VALUE", read=number_time_or_text,
    ),
    Option(
        "ignore_memory", FLAG, False, None,
        "Memory is no resource of nodes: for logs that do not say what jobs asked for.", JOBS,
    ),
    Option(
        "seed", SEED, 0, None, "Draws when the controller's threads wake; 0: at fixed dates.",
        POLICY,
    ),
    Option("meta", FILE, None, None, "Wake when those of a recorded run did.", POLICY),
    Option("cycles", FILE, None, None, "Events of a recorded run: its dates.", POLICY),
    Option(
        "controllers", COUNT, 1, None,
        "Independent ones: each has its own partitions, or its part of the nodes.", POLICY,
    ),
    Option(
        "test_cost", NOT_NEGATIVE, 0.0, "s",
        "How long backfill takes to test a job: bf_max_time and pauses count then.", POLICY,
    ),
    Option(
        "priorities", POSITIVE, None, None,
        "Write the priorities of waiting jobs, so often, as sprio shows them: priorities.csv.",
        RESULTS, metavar="SECONDS", writes=True,
    ),
    Option(
        "explain", TEXT, (), None, "Tell a job's story. Repeatable.", RESULTS, metavar="JOB",
        many=True, writes=True,
    ),
)  # fmt: skip
# Keys of a slurm.conf that campaigns change, as ``set.KEY``.
CHANGES = "set"

SLURM_LIVE = (
    *SLURM_READING,
    Option(
        "failures", FILE, None, None,
        "Daemons that die and come back: CSV with time, daemon (a node or slurmctld), what (dies, "
        "starts, restarts).",
        FAILURES,
    ),
    Option(
        "slack_us", NOT_NEGATIVE, 0.0, None,
        "By how much every wait is longer; ties fall otherwise, as with a seed.", COURSE,
        flag="--slack", metavar="MICROSECONDS",
    ),
    Option(
        "compare", FLAG, False, None,
        "Also simulate Slurm on the same input: where they differ.", RESULTS,
    ),
)  # fmt: skip
