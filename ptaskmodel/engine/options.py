"""Options that several kinds of runs share: how a platform is shared, calibration, profiles."""

from __future__ import annotations

from ptaskmodel.engine.usage.network_models import COUNTS, NETWORK_MODELS
from ptaskmodel.options import FILE, FLAG, JOBS, MEASURES, NOT_NEGATIVE, PLATFORM, TEXT, Option
from ptaskmodel.sharing.rules import SOLVERS
from ptaskmodel.workload import PATTERNS

SOLVER = Option(
    "solver", SOLVERS, None, None,
    "Rule by which tasks share resources  [default: bmf]", PLATFORM,
)  # fmt: skip
NETWORK_MODEL = Option(
    "network_model", NETWORK_MODELS, None, None,
    "L07: parallel tasks; the others: flows  [default: as the platform says, else L07]", PLATFORM,
)  # fmt: skip
COMPETITORS = Option(
    "count", COUNTS, "task", None, "Unit that counts as one competitor on a shared link.", PLATFORM,
)  # fmt: skip
ROUTING = Option(
    "routing", TEXT, "platform", None,
    "Routes of flows: platform, ecmp[:SEED] (each flow takes one of its shortest "
    "paths, by a hash) or file:FILE (CSV: task,flow,path).",
    PLATFORM, metavar="platform|ecmp[:SEED]|file:FILE",
)  # fmt: skip


def calibration_rows(what: str, group: str) -> tuple[Option, ...]:
    """Return ``--calibration`` and ``--group`` under `group`: parameters laid on `what`."""
    return (
        Option(
            "calibration", FILE, None, None,
            f"Calibrated parameters (of `calibrate --model ptask`) for {what}.", group,
        ),
        Option(
            "group", TEXT, None, None, "Group of the calibration, if it has several.", group,
            metavar="LABEL=VALUE,...",
        ),
    )  # fmt: skip


PROFILE_KINDS = {
    "delay": "delay: each job lasts its time alone",
    "ptask": "ptask: delays become parallel tasks by a rule, and traces become bundles",
    "smpi": "smpi: delays and parallel tasks become traces, which are replayed",
}


def profiles_row(*kinds: str) -> Option:
    """Return the option ``--profiles``: one of `kinds` of works of jobs, the first by default."""
    told = "; ".join(PROFILE_KINDS[kind] for kind in kinds if kind in PROFILE_KINDS) + "."
    return Option("profiles", kinds, kinds[0], None, told, JOBS)


# The rule of ``--profiles ptask``.
RATIO = Option(
    "ratio", NOT_NEGATIVE, 0.5, None,
    "Ratio of communication to computation, for --profiles ptask.", JOBS,
)  # fmt: skip
PATTERN = Option(
    "pattern", PATTERNS, "alltoall", None,
    "Pattern of communication, for --profiles ptask.", JOBS,
)  # fmt: skip


def energy_row(what: str) -> Option:
    """Return the option ``--energy``, of hosts, links and `what` ("tasks" or "jobs")."""
    return Option(
        "energy", FLAG, False, None,
        f"Also compute the energy of hosts, links and {what}, and the power over time.", MEASURES,
    )  # fmt: skip
