"""Options of ``replay``, and of other commands on traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptaskmodel.engine.options import NETWORK_MODEL, ROUTING, SOLVER
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.mpi.names import MODELS
from ptaskmodel.options import (
    COUNT,
    FILE,
    FLAG,
    PAIRS,
    PLACES,
    RESULTS,
    TEXT,
    Option,
    option,
    rows_of,
    taken,
)
from ptaskmodel.results import TIMELINE_FORMATS
from ptaskmodel.runs.options.shared import TRACE_LIMIT, TRACES

# Of all commands on traces: on which hosts ranks run, how collectives are done.
RANKS = (
    Option("ranks", COUNT, None, None, "[default: as many as TRACES has]", PLACES),
    Option(
        "ranks_on", FILE, None, None,
        "Hostfile: the hosts in order, with slots=N or :N for N ranks on one.", PLACES,
    ),
    Option(
        "hosts", TEXT, None, None, "The hosts in order, such as n[0-15] or a,b,c.", PLACES,
        metavar="NAMES",
    ),
    Option("per_host", COUNT, 1, None, "Ranks on each host.", PLACES),
)  # fmt: skip
COLLECTIVES = Option(
    "collectives", PAIRS, None, None,
    "Algorithm of a collective, by SimGrid's names, such as alltoall=ring. "
    "Repeatable.  [default: as the platform says, else SMPI's]",
    PLACES, flag="--collective", metavar="NAME=ALGORITHM",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReplayFiles:
    """What to write of a replay besides summary.json, ranks.csv and actions.csv.

    timeline: each action that took time (spans.csv), each message (messages.csv) and what each rank
    sent to each other (matrix.csv). timelines: the same for other programs, by names of
    `mpi_timelines.FORMATS`. critical_path: the chain that determines the end. attribution,
    trace_formats, trace_limit_GB: as `Observation` takes them.
    """

    # fmt: off
    timeline: bool = option(
        False, FLAG,
        "Also write what each rank did when, each message, and the traffic between "
        "ranks (needs --output).",
        RESULTS, writes=True,
    )
    timelines: tuple[str, ...] = option(
        (), TIMELINE_FORMATS,
        "Also write the timeline for the Perfetto UI or for Paje's tools (needs "
        "--output). Repeatable.",
        RESULTS, flag="--timeline-as", many=True, writes=True,
    )
    critical_path: bool = option(
        False, FLAG,
        "Also find the chain of computations and messages that determines the makespan.", RESULTS,
    )
    attribution: bool = option(
        False, FLAG,
        "Also write what limited each computation and message, and utilisation (needs"
        " --output).",
        RESULTS, writes=True,
    )
    trace_formats: tuple[str, ...] = taken(TRACES)
    trace_limit_GB: float | None = taken(TRACE_LIMIT)
    # fmt: on


REPLAY = (
    *RANKS,
    COLLECTIVES,
    NETWORK_MODEL._replace(type=MODELS, help="[default: SMPI, or L07 if the platform says so]"),
    SOLVER._replace(
        help="Rule by which tasks share resources  [default: maxmin; with L07 fairbottleneck]"
    ),
    ROUTING._replace(
        help="Routes of messages: platform, ecmp[:SEED] (those from a host to another take one of "
        "the shortest paths, by a hash) or file:FILE (CSV: task,flow,path; tasks are host>host, "
        "flows 0).",
    ),
    *rows_of(ReplayFiles),
)


def check_rank_options(given: Mapping[str, Any]) -> None:
    """Raises PTaskModelError if hosts are given in two ways."""
    if given["ranks_on"] is not None and given["hosts"] is not None:
        raise PTaskModelError("--ranks-on and --hosts exclude each other; give one")
