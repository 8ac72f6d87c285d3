"""Options of a batch: what to simulate, one field and row an option."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptaskmodel.batch.allocations import ALLOCATIONS, FILE_MARK
from ptaskmodel.batch.names import (
    CHECKPOINT,
    DELAY_POWERS,
    FAILURE_LAW,
    FAIRNESS,
    HOST_ORDERS,
    LOOPS,
    ON_FAILURE,
    PROFILES,
    VERIFIED,
    WALLTIMES,
)
from ptaskmodel.batch.policies import ORDERS, POLICIES
from ptaskmodel.engine.options import (
    COMPETITORS,
    NETWORK_MODEL,
    PATTERN,
    RATIO,
    SOLVER,
    energy_row,
    profiles_row,
)
from ptaskmodel.errors import SimulationError
from ptaskmodel.options import (
    COUNT,
    COURSE,
    FAILURES,
    FILE,
    FLAG,
    JOBS,
    MEASURES,
    NOT_NEGATIVE,
    PAIRS,
    PLATFORM,
    POLICY,
    RESULTS,
    SEED,
    number_or_text,
    number_time_or_text,
    option,
    taken,
)


def number_of_licences(text: str) -> int:
    """Return the count of licences that a `text` states. Raises SimulationError."""
    if not text.isdecimal():
        raise SimulationError(
            f"--licence: '{text[:60]}' is not a number of licences; give NAME=COUNT"
        )
    return int(text)


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What to simulate; the names are those of the options of ``ptaskmodel batch``."""

    # fmt: off
    policy: str = option(
        "easy", POLICIES, f"{', '.join(POLICIES)}, or FILE.py:CLASS.", POLICY,
        metavar="NAME", other=("FILE.py:CLASS", ".py:"),
    )
    order: str | None = option(
        None, ORDERS, f"Order of the queue: {', '.join(ORDERS)}  [default: fcfs]", POLICY,
        metavar="NAME",
    )
    backfill_order: str | None = option(
        None, ORDERS, "Order in which easy and metric-aware backfill jobs; the names of --order.",
        POLICY, metavar="NAME",
    )
    policy_options: Mapping[str, Any] = option(
        {}, PAIRS, "Option of the policy. Repeatable.", POLICY,
        flag="--policy-option", metavar="KEY=VALUE", read=number_or_text,
    )
    allocation: str = option(
        "first-fit", ALLOCATIONS, f"{', '.join(ALLOCATIONS)} or {FILE_MARK}FILE.", POLICY,
        metavar="NAME", other=(f"{FILE_MARK}FILE", FILE_MARK),
    )
    seed: int = option(0, SEED, "Seed of the random allocation.", POLICY)
    estimates: str | None = option(
        None, ("exact", "walltime"),
        "exact, walltime or factor:F  [default: walltime if every job has one; else "
        "exact for delays, factor:2 for parallel tasks]", POLICY,
        metavar="KIND", other=("factor:F", "factor:"),
    )
    profiles: str = taken(profiles_row(*PROFILES))
    ratio: float = taken(RATIO)
    pattern: str = taken(PATTERN)
    storages: Mapping[str, str] = option(
        {}, PAIRS, "The host that stands for a storage. Repeatable.", JOBS,
        flag="--storage", metavar="NAME=HOST",
    )
    walltimes: str = option(
        "kill", WALLTIMES,
        "kill jobs at their walltime; ignore walltimes; or extend walltimes beforehand.", JOBS,
    )
    dependencies: bool = option(
        False, FLAG, "Submit a job when its preceding job is over, after the think time.", JOBS,
    )
    licences: Mapping[str, int] = option(
        {}, PAIRS, "Licences of the machine. Repeatable.", JOBS,
        flag="--licence", metavar="NAME=COUNT", read=number_of_licences,
    )
    solver: str | None = taken(SOLVER)
    network_model: str | None = taken(NETWORK_MODEL)
    count: str = taken(COMPETITORS)
    roles: Mapping[str, str] = option(
        {}, PAIRS, "The role of a host: master, storage. Repeatable.", PLATFORM,
        flag="--role", metavar="HOST=ROLE",
    )
    host_order: str = option(
        "platform", HOST_ORDERS,
        "Order in which hosts are numbered: as declared, by name, or by name with "
        "numbers as numbers.", PLATFORM,
    )
    most_hosts: int | None = option(
        None, COUNT, "Only the first hosts run jobs, this many.", PLATFORM,
    )
    on_failure: str = option(
        "fail", ON_FAILURE, "What happens to jobs that a failure or maintenance stops.", FAILURES,
    )
    failures: str | Path | None = option(
        None, FILE, "Failures: a CSV file with date,resource,event (down or up).", FAILURES,
    )
    failure_law: Mapping[str, Any] = option(
        {}, PAIRS,
        f"Draw failures: {', '.join(FAILURE_LAW)}; times in s, or 30d, 2h, 5m. Repeatable.",
        FAILURES, metavar="KEY=VALUE", read=number_time_or_text,
    )
    maintenance: str | Path | None = option(
        None, FILE, "Maintenance windows: a CSV file with hosts,start,end.", FAILURES,
    )
    checkpoint: Mapping[str, Any] = option(
        {}, PAIRS,
        f"Jobs write checkpoints: {', '.join(CHECKPOINT)}; times in s, or 1h, 2m. Repeatable.",
        FAILURES, metavar="KEY=VALUE", read=number_time_or_text,
    )
    contention: bool = option(
        True, FLAG, "Do not compute times alone.", MEASURES, flag="--no-contention",
    )
    energy: bool = taken(energy_row("jobs"))
    delay_power: str = option(
        "idle", DELAY_POWERS,
        "Power of hosts on which a delay runs, for --energy: idle power (Batsim's "
        "rule), or with all cores of the delay busy.", MEASURES,
    )
    fairness: str | None = option(
        None, FAIRNESS,
        "Count jobs that later submissions delayed, by runtimes, estimates or both "
        "(one fork per waiting job).", MEASURES, metavar="BASIS",
    )
    frozen: bool = option(
        False, FLAG, "Freeze the parameters of an adaptive policy in these forks.", MEASURES,
    )
    loop: str = option(
        "auto", LOOPS,
        "Use of the compiled loop, where possible. auto: for many jobs; compiled: "
        "always; open: never.", COURSE,
    )
    until_s: float | None = option(
        None, NOT_NEGATIVE, "Stop at this date.", COURSE, unit="s", flag="--until",
    )
    verify: str | None = option(
        None, VERIFIED,
        "Check at every date. none: no two jobs share a host; head: also EASY's "
        "guarantee; all: also conservative's.", COURSE,
    )
    neighbours: bool = option(
        False, FLAG,
        "Also write by how much each job slowed each other job: neighbours.csv (needs"
        " --output).", RESULTS, writes=True,
    )
    # fmt: on
