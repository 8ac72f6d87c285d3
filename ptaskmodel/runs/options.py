"""Options of ``simulate`` and ``replay``, and those that all runs share: one row an option.

Commands, campaigns and the library use them. `scheduling_options` has those of runs in which jobs
wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ptaskmodel.engine.options import (
    COMPETITORS,
    NETWORK_MODEL,
    ROUTING,
    SOLVER,
    calibration_rows,
    energy_row,
)
from ptaskmodel.engine.usage.network_models import FLUID_MODELS, REPLAY_MODELS
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.lazy import with_old_names
from ptaskmodel.options import (
    COUNT,
    COURSE,
    FILE,
    FLAG,
    NOT_NEGATIVE,
    PAIRS,
    PLACES,
    PLATFORM,
    POSITIVE,
    RESULTS,
    TEXT,
    Option,
    option,
    rows_of,
    taken,
)
from ptaskmodel.results import TIMELINE_FORMATS, TRACE_FORMATS

if TYPE_CHECKING:
    from ptaskmodel.engine.usage.network_models import NetworkModel
    from ptaskmodel.platform.routing import Routing


TRACES = Option(
    "traces", TRACE_FORMATS, (), None,
    "Also write the use of each resource over time (needs --output). Repeatable.",
    RESULTS, flag="--trace", many=True, writes=True,
)  # fmt: skip
TRACE_LIMIT = Option(
    "trace_limit_GB", POSITIVE, None, None, "Stop when the traces are larger than about this.",
    RESULTS, flag="--trace-limit", metavar="GB", writes=True,
)  # fmt: skip


def attribution_row(what: str) -> Option:
    """Return the option ``--attribution``, of `what` ("task" or "job")."""
    return Option(
        "attribution", FLAG, False, None,
        f"Also write what limited each {what}, its slowdown, and the utilisation (needs --output).",
        RESULTS, writes=True,
    )  # fmt: skip


def check_group(given: Mapping[str, Any]) -> None:
    """Raise PTaskModelError if a group but no calibration is `given`."""
    if given["calibration"] is None and given["group"] is not None:
        raise PTaskModelError("--group selects a group of a calibration; give --calibration FILE")


def check_nothing_to_write(**wanted: object) -> None:
    """Without a directory nothing is wanted in it. Raises PTaskModelError otherwise."""
    for name in (name for name, value in wanted.items() if value):
        option = {"traces": "trace", "timelines": "timeline-as"}.get(name, name)
        raise PTaskModelError(f"--{option} writes files; give --output DIR")


def fresh(reader: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``reader(*arguments)``.

    Commands read inputs anew; campaigns reuse what they have read.
    """
    return reader(*arguments)


FLUID, PACKETS = "fluid", "packets"


@with_old_names
@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What to simulate and to record; the names are those of the options of ``simulate``.

    until_s: date at which to stop, s (None: the end). traces: of `results.TRACE_FORMATS`;
    trace_limit_GB: their largest size together, about (None: none). attribution: also what limited
    each task, its slowdown, and the use of hosts and links. routing: as `Simulation` takes it.
    network_level: fluid, or packets (see `packets.tasks`). draws: how often to simulate again with
    other routes (the flows then take those of `Ecmp`, unless a file gives theirs) and starts moved
    by up to jitter_s: ranges of durations (see `runs.draws`); None: not. routes: also the route of
    each flow. neighbours: also who slowed whom, on which host or link. energy: also joules of
    hosts, links and tasks, and the power curve. checkpoint_every_s: wall time between checkpoints,
    s, written beside the directory, as DIRECTORY.checkpoint, until the run ends (None: none is).
    resume: go on from that checkpoint if it is there.
    """

    # fmt: off
    solver: str | None = taken(SOLVER._replace(
        help="Rule by which tasks share resources  [default: that of the model: bmf]",
    ))
    network_model: str | NetworkModel | None = taken(NETWORK_MODEL._replace(type=FLUID_MODELS))
    network_level: str = option(
        FLUID, (FLUID, PACKETS),
        "fluid: flows share links at rates; packets: they queue (DCTCP, ROCE; flows alone).",
        PLATFORM,
    )
    draws: int | None = option(
        None, COUNT,
        "Also simulate so often with other routes (seeds of ecmp, unless a file gives them) and "
        "starts: ranges of durations.", COURSE, metavar="N",
    )
    jitter_s: float = option(
        1e-6, NOT_NEGATIVE, "Largest delay of a start in --draws.", COURSE, unit="s",
        flag="--jitter", metavar="T",
    )
    count: str = taken(COMPETITORS)
    routing: str | Routing = taken(ROUTING)
    until_s: float | None = option(
        None, NOT_NEGATIVE, "Stop at this date.", COURSE, unit="s", flag="--until", metavar="T",
    )
    traces: tuple[str, ...] = taken(TRACES)
    trace_limit_GB: float | None = taken(TRACE_LIMIT)
    attribution: bool = taken(attribution_row("task"))
    energy: bool = taken(energy_row("tasks"))
    routes: bool = option(
        False, FLAG, "Also write the route of each flow: routes.csv, which --routing file: reads.",
        RESULTS, writes=True,
    )
    neighbours: bool = option(
        False, FLAG,
        "Also write by how much each task slowed each other task, and on which host "
        "or link: interference.csv (needs --output).", RESULTS, writes=True,
    )
    checkpoint_every_s: float | None = option(
        None, NOT_NEGATIVE,
        "Write a checkpoint this often (wall time), beside the results: OUTPUT.checkpoint.", COURSE,
        flag="--checkpoint-every", metavar="SECONDS", writes=True,
    )
    resume: bool = option(
        False, FLAG, "Continue from the checkpoint, if there is one, with bit-identical results.",
        COURSE, writes=True,
    )
    # fmt: on


SIMULATE = (
    *rows_of(SimulationOptions),
    Option(
        "network_parameters", FILE, None, None,
        "Parameters of a wire model (DCTCP, CUBIC, ROCE, RDMA): a JSON file.", PLATFORM,
    ),
    *calibration_rows("tasks without competitors", PLATFORM),
)  # fmt: skip


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
    NETWORK_MODEL._replace(
        type=REPLAY_MODELS, help="[default: SMPI, or L07 if the platform says so]"
    ),
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
