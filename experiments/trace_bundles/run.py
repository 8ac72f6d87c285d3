"""Where is a parallel task good enough for an MPI application? Five programs, replayed and not.

Five kinds of programs (`ptaskmodel trace make`) run on 36 nodes of Graphene, 9 in each cabinet:
with large messages, with small ones, and out of balance. Each is replayed message by message and
run as parallel tasks that know less and less of its order; alone, and with large messages also
beside endless flows through the same uplinks or network cards.

    python experiments/trace_bundles/run.py -o results/trace_bundles

writes alone.csv, ratios.csv, disturbed.csv and four pictures there.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from figures import alone_figure, cost_figure, disturbed_figure, ratio_figure

from ptaskmodel.apps.disturbance import pairs_of
from ptaskmodel.apps.names import PROGRAMS
from ptaskmodel.apps.programs import Size, program
from ptaskmodel.files import whole_file
from ptaskmodel.platform import Platform, load_platform
from ptaskmodel.replay import hosts_named
from ptaskmodel.results.drawing import save
from ptaskmodel.results.trace_comparison import REPLAY, ModelOptions, compare_trace

PLATFORM = Path(__file__).resolve().parents[2] / "platforms" / "graphene.xml"
HOSTS = "graphene-[1-9],graphene-[40-48],graphene-[75-83],graphene-[105-113]"
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
FLOWS = (0, 1, 2, 4, 8)
WINDOWS = (1, 10, 100)
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
FACTORS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
KINDS = ("large messages", "small messages", "out of balance")
COUNTS = ("task", "flow")


def size_of(name: str, kind: str, ranks: int) -> Size:
    """10 iterations of 0.1 s (pipeline: 100); small: of 1 ms with messages of 1 kB."""
    iterations = ITERATIONS.get(name, 10)
    if kind == "small messages":
        return Size(ranks, iterations, SPEED / 1000, 1000)
    imbalance = 0.5 if kind == "out of balance" else 0.0
    return Size(ranks, iterations, SPEED / 10, LARGE[name], imbalance)


def alone(platform: Platform, hosts: list[str]) -> list[dict[str, Any]]:
    """Errors alone: a row for each program, kind, model of the replay's network and of the task."""
    rows = []
    for name in PROGRAMS:
        for kind in KINDS:
            trace = program(name, size_of(name, kind, len(hosts)))
            for network in ("SMPI", "L07"):
                options = ModelOptions(network_model=network)
                made = compare_trace(platform, trace, hosts, windows=WINDOWS, options=options)
                for row in made.rows:
                    rows.append({"program": name, "kind": kind, "network": network,
                                 "what": made.what, "model": row.model,
                                 "makespan_s": row.makespan_s, "error": row.error,
                                 "cpu_s": row.cpu_s, "events": row.events})  # fmt: skip
            print(f"{name}, {kind}: {made.what}", flush=True)
    return rows


def ratios(platform: Platform, hosts: list[str]) -> list[dict[str, Any]]:
    """Errors alone where messages are smaller and larger: a row for each program, factor, model."""
    rows = []
    for name in PROGRAMS:
        base = size_of(name, KINDS[0], len(hosts))
        for factor in FACTORS:
            trace = program(name, replace(base, bytes=int(base.bytes * factor)))
            for row in compare_trace(platform, trace, hosts, windows=()).rows:
                rows.append({"program": name, "factor": factor, "model": row.model,
                             "makespan_s": row.makespan_s, "error": row.error})  # fmt: skip
        print(f"{name}, ratios", flush=True)
    return rows


def disturbed(platform: Platform, hosts: list[str]) -> list[dict[str, Any]]:
    """Beside flows: a row for each program, place and number of flows, and model."""
    rows = []
    for name in PROGRAMS:
        trace = program(name, size_of(name, KINDS[0], len(hosts)))
        for (where, pairs), count in product(DISTURBERS.items(), COUNTS):
            made = compare_trace(
                platform, trace, hosts, pairs=pairs, flows=FLOWS, windows=WINDOWS[:2],
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
        print(f"{name}, disturbed", flush=True)
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with whole_file(path) as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("results/trace_bundles"))
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    platform, hosts = load_platform(PLATFORM), hosts_named(HOSTS)
    tables = {"alone": alone, "ratios": ratios, "disturbed": disturbed}
    pictures = {"alone": [alone_figure, cost_figure], "ratios": [ratio_figure],
                "disturbed": [disturbed_figure]}  # fmt: skip
    for name, table in tables.items():
        rows = table(platform, hosts)
        write(output / f"{name}.csv", rows)
        for picture in pictures[name]:
            kind = picture.__name__.removesuffix("_figure")
            save(picture(rows), output / f"{kind}.png")


if __name__ == "__main__":
    main()
