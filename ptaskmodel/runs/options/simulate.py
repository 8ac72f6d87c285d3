"""Options of ``simulate``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptaskmodel.engine.options import (
    COMPETITORS,
    NETWORK_MODEL,
    ROUTING,
    SOLVER,
    calibration_rows,
    energy_row,
)
from ptaskmodel.engine.usage.network_models import FLUID_MODELS
from ptaskmodel.options import (
    COUNT,
    COURSE,
    FILE,
    FLAG,
    NOT_NEGATIVE,
    PLATFORM,
    RESULTS,
    Option,
    option,
    rows_of,
    taken,
)
from ptaskmodel.renamed import with_old_names
from ptaskmodel.runs.options.shared import TRACE_LIMIT, TRACES, attribution_row

if TYPE_CHECKING:
    from ptaskmodel.engine.usage.network_models import NetworkModel
    from ptaskmodel.platform.routing.choice import Routing

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
