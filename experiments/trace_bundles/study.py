"""One run of the study of bundles: where is a parallel task good enough for an MPI application?

A kind of program (`ptaskmodel trace make`) runs on nodes of Graphene: with large messages, with
small ones, and out of balance. It is replayed message by message and run as parallel tasks that
know less and less of its order; alone, and with large messages also beside endless flows through
the same uplinks or network cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.apps.programs import Size, program
from ptaskmodel.apps.trace_works import pairs_of
from ptaskmodel.mpi import hosts_named
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.runs.trace_comparison import REPLAY, ModelOptions, compare_trace

PLATFORM = Path(__file__).resolve().parents[2] / "platforms" / "graphene.xml"
# Where endless flows go: from cabinet to cabinet between hosts without ranks, through the uplinks
# that the ranks use; or between hosts of ranks, through their network cards too.
DISTURBERS = {
    "uplinks": pairs_of(
        hosts_named("graphene-[17-24],graphene-[91-98]"),
        hosts_named("graphene-[56-63],graphene-[121-128]"),
    ),
    "network cards": pairs_of(
        hosts_named("graphene-[1-9],graphene-[75-83]"),
        hosts_named("graphene-[40-48],graphene-[105-113]"),
    ),
}
SPEED = 16.673e9

# Bytes of a message, so that sending takes about as long as computing, 0.1 s an iteration.
LARGE = {
    "all-to-all": 200_000,
    "stencil": 2_000_000,
    "pipeline": 8_000_000,
    "master-worker": 250_000,
    "pdgemm": 5_000_000,
}
ITERATIONS = {"pipeline": 100}
KINDS = ("large messages", "small messages", "out of balance")
COUNTS = ("task", "flow")


class Sizes(NamedTuple):
    """What a study at its size, or made small, goes through."""

    hosts: str
    factors: Sequence[float]
    flows: Sequence[int]
    windows: Sequence[int]


SIZES = {
    "full": Sizes(
        "graphene-[1-9],graphene-[40-48],graphene-[75-83],graphene-[105-113]",
        (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
        (0, 1, 2, 4, 8),
        (1, 10, 100),
    ),
    "small": Sizes("graphene-[1-2],graphene-[40-41]", (0.1, 1.0), (0, 2), (1, 10)),
}


def size_of(name: str, kind: str, ranks: int) -> Size:
    """10 iterations of 0.1 s (pipeline: 100); small: of 1 ms with messages of 1 kB."""
    iterations = ITERATIONS.get(name, 10)
    if kind == "small messages":
        return Size(ranks, iterations, SPEED / 1000, 1000)
    imbalance = 0.5 if kind == "out of balance" else 0.0
    return Size(ranks, iterations, SPEED / 10, LARGE[name], imbalance)


def alone(name: str, platform: Platform, hosts: list[str], sizes: Sizes) -> list[dict[str, Any]]:
    """Errors alone: a row for each program, kind, model of the replay's network and of the task."""
    rows = []
    for kind in KINDS:
        trace = program(name, size_of(name, kind, len(hosts)))
        for network in ("SMPI", "L07"):
            options = ModelOptions(network_model=network)
            made = compare_trace(platform, trace, hosts, windows=sizes.windows, options=options)
            for row in made.rows:
                rows.append({"program": name, "kind": kind, "network": network,
                             "what": made.what, "model": row.model,
                             "makespan_s": row.makespan_s, "error": row.error,
                             "cpu_s": row.cpu_s, "events": row.events})  # fmt: skip
    return rows


def ratios(name: str, platform: Platform, hosts: list[str], sizes: Sizes) -> list[dict[str, Any]]:
    """Errors alone where messages are smaller and larger: a row for each program, factor, model."""
    rows = []
    base = size_of(name, KINDS[0], len(hosts))
    for factor in sizes.factors:
        trace = program(name, replace(base, bytes=int(base.bytes * factor)))
        for row in compare_trace(platform, trace, hosts, windows=()).rows:
            rows.append({"program": name, "factor": factor, "model": row.model,
                         "makespan_s": row.makespan_s, "error": row.error})  # fmt: skip
    return rows


def disturbed(
    name: str, platform: Platform, hosts: list[str], sizes: Sizes
) -> list[dict[str, Any]]:
    """Beside flows: a row for each program, place and number of flows, and model."""
    rows = []
    trace = program(name, size_of(name, KINDS[0], len(hosts)))
    for (where, pairs), count in product(DISTURBERS.items(), COUNTS):
        made = compare_trace(
            platform, trace, hosts, pairs=pairs, flows=sizes.flows, windows=sizes.windows[:2],
            options=ModelOptions(count=count),
        )  # fmt: skip
        for row in made.rows:
            if row.model == REPLAY and count != COUNTS[0]:
                continue
            rows.append({"program": name, "where": where,
                         "count": "" if row.model == REPLAY else count, "model": row.model,
                         "flows": row.flows, "makespan_s": row.makespan_s,
                         "error": row.error, "slowdown": row.slowdown,
                         "slowdown_error": made.slowdown_error(row), "cpu_s": row.cpu_s,
                         "events": row.events})  # fmt: skip
    return rows


TABLES = {"alone": alone, "ratios": ratios, "disturbed": disturbed}


def one_run(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of a program in a table; the largest and the mean size of its errors."""
    sizes = SIZES[parameters["size"]]
    platform, hosts = load_platform(PLATFORM), hosts_named(sizes.hosts)
    rows = TABLES[parameters["table"]](parameters["program"], platform, hosts, sizes)
    errors = [abs(row["error"]) for row in rows]
    return {
        "rows": len(rows),
        "largest_error": max(errors),
        "mean_error": sum(errors) / len(errors),
        "series": rows,
    }
