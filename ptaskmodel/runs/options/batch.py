"""Options of ``batch`` and ``serve``."""

from __future__ import annotations

from ptaskmodel.batch.allocations import ALLOCATIONS, FILE_MARK
from ptaskmodel.batch.options import (
    CHECKPOINT,
    DELAY_POWERS,
    FAILURE_LAW,
    FAIRNESS,
    HOST_ORDERS,
    LOOPS,
    ON_FAILURE,
    VERIFIED,
    WALLTIMES,
)
from ptaskmodel.batch.policies import POLICIES
from ptaskmodel.batch.policies.orders import ORDERS
from ptaskmodel.errors import SimulationError
from ptaskmodel.runs.options.rows import (
    COUNT,
    COURSE,
    FAILURES,
    FILE,
    FLAG,
    JOBS,
    MEASURES,
    MODEL,
    NOT_NEGATIVE,
    NUMBER,
    PAIRS,
    PLATFORM,
    POLICY,
    POSITIVE,
    RESULTS,
    SEED,
    Option,
    calibration_rows,
    number_or_text,
    number_time_or_text,
    profile_rows,
    recording_rows,
)


def number_of_licences(text: str) -> int:
    """A count of licences. Raises SimulationError."""
    if not text.isdecimal():
        raise SimulationError(
            f"--licence: '{text[:60]}' is not a number of licences; give NAME=COUNT"
        )
    return int(text)


# Of all commands that run the jobs of a workload: the machine, what they read, what they write.
MACHINE = (
    *MODEL,
    Option(
        "host_order", HOST_ORDERS, "platform", None,
        "Order in which hosts are numbered: as declared, by name, or by name with "
        "numbers as numbers.",
        PLATFORM,
    ),
    Option(
        "delay_power", DELAY_POWERS, "idle", None,
        "Power of hosts on which a delay runs, for --energy: idle power (Batsim's "
        "rule), or with all cores of the delay busy.",
        MEASURES,
    ),
)  # fmt: skip
READING = (
    Option("storages", PAIRS, None, None, "The host that stands for a storage. Repeatable.", JOBS,
           flag="--storage", metavar="NAME=HOST"),
    Option("processors_per_host", COUNT, 1, None, "Processors of a host, for an SWF log.", JOBS),
)  # fmt: skip
WRITING = (
    Option("contention", FLAG, True, None, "Do not compute times alone.", MEASURES,
           flag="--no-contention"),
    *recording_rows("job"),
    Option("plots", FLAG, False, None,
           "Also write gantt.png and load.png (needs --output).", RESULTS,
           writes=True),
)  # fmt: skip

BATCH = (
    Option(
        "policy", POLICIES, "easy", None, f"{', '.join(POLICIES)}, or FILE.py:CLASS.",
        POLICY, metavar="NAME", other=("FILE.py:CLASS", ".py:"),
    ),
    Option(
        "order", ORDERS, None, None, f"Order of the queue: {', '.join(ORDERS)}  [default: fcfs]",
        POLICY, metavar="NAME",
    ),
    Option(
        "backfill_order", ORDERS, None, None,
        "Order in which easy and metric-aware backfill jobs; the names of --order.",
        POLICY, metavar="NAME",
    ),
    Option(
        "policy_options", PAIRS, None, None, "Option of the policy. Repeatable.", POLICY,
        flag="--policy-option", metavar="KEY=VALUE", read=number_or_text,
    ),
    Option(
        "allocation", ALLOCATIONS, "first-fit", None,
        f"{', '.join(ALLOCATIONS)} or {FILE_MARK}FILE.",
        POLICY, metavar="NAME", other=(f"{FILE_MARK}FILE", FILE_MARK),
    ),
    Option("seed", SEED, 0, None, "Seed of the random allocation.", POLICY),
    Option(
        "estimates", ("exact", "walltime"), None, None,
        "exact, walltime or factor:F  [default: walltime if every job has one; else "
        "exact for delays, factor:2 for parallel tasks]",
        POLICY, metavar="KIND", other=("factor:F", "factor:"),
    ),
    *profile_rows("as-given", "delay", "ptask", "smpi"),
    *calibration_rows("jobs that are parallel tasks, without competitors", JOBS),
    *MACHINE,
    Option(
        "tau_s", NUMBER, 60.0, "s", "Threshold of the bounded slowdown.", MEASURES, flag="--tau"
    ),
    *READING,
    Option(
        "walltimes", WALLTIMES, "kill", None,
        "kill jobs at their walltime; ignore walltimes; or extend walltimes beforehand.", JOBS,
    ),
    Option(
        "on_failure", ON_FAILURE, "fail", None,
        "What happens to jobs that a failure or maintenance stops.", FAILURES,
    ),
    Option("failures", FILE, None, None,
           "Failures: a CSV file with date,resource,event (down or up).", FAILURES),
    Option(
        "failure_law", PAIRS, None, None,
        f"Draw failures: {', '.join(FAILURE_LAW)}; times in s, or 30d, 2h, 5m. Repeatable.",
        FAILURES, metavar="KEY=VALUE", read=number_time_or_text,
    ),
    Option(
        "checkpoint", PAIRS, None, None,
        f"Jobs write checkpoints: {', '.join(CHECKPOINT)}; times in s, or 1h, 2m. Repeatable.",
        FAILURES, metavar="KEY=VALUE", read=number_time_or_text,
    ),
    Option("maintenance", FILE, None, None,
        "Maintenance windows: a CSV file with hosts,start,end.", FAILURES),
    Option(
        "licences", PAIRS, None, None, "Licences of the machine. Repeatable.", JOBS,
        flag="--licence", metavar="NAME=COUNT", read=number_of_licences,
    ),
    Option(
        "dependencies", FLAG, False, None,
        "Submit a job when its preceding job is over, after the think time.", JOBS,
    ),
    Option(
        "loop", LOOPS, "auto", None,
        "Use of the compiled loop, where possible. auto: for many jobs; compiled: "
        "always; open: never.",
        COURSE,
    ),
    Option("until_s", NOT_NEGATIVE, None, "s", "Stop at this date.", COURSE, flag="--until"),
    Option(
        "fairness", FAIRNESS, None, None,
        "Count jobs that later submissions delayed, by runtimes, estimates or both "
        "(one fork per waiting job).",
        MEASURES, metavar="BASIS",
    ),
    Option(
        "frozen", FLAG, False, None,
        "Freeze the parameters of an adaptive policy in these forks.", MEASURES
    ),
    Option("leave_out_larger", FLAG, False, None, "Drop jobs larger than the platform.", JOBS),
    Option(
        "verify", VERIFIED, None, None,
        "Check at every date. none: no two jobs share a host; head: also EASY's "
        "guarantee; all: also conservative's.", COURSE,
    ),
    *WRITING,
    Option(
        "neighbours", FLAG, False, None,
        "Also write by how much each job slowed each other job: neighbours.csv (needs"
        " --output).", RESULTS,
        writes=True,
    ),
)  # fmt: skip

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

SERVE = (
    Option(
        "roles", PAIRS, None, None, "The role of a host: master, storage. Repeatable.", PLATFORM,
        flag="--role", metavar="HOST=ROLE",
    ),
    Option("most_hosts", COUNT, None, None, "Only the first hosts run jobs, this many.", PLATFORM),
    *MACHINE,
    *READING,
    *WRITING,
)  # fmt: skip
