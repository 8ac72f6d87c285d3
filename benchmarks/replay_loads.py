"""Traces to measure replays by: what the ranks of applications do, as lines of the text format.

Each load gives the XML of a platform and the text of each rank's trace.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple

HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n'
)
CUBE = 512**3
ITERATIONS = 20


class Load(NamedTuple):
    """A platform, and what each rank does there."""

    title: str
    platform_xml: str
    traces: list[str]


def cluster(hosts: int, more: str = "") -> str:
    """A flat cluster of 1 Gbit/s nodes."""
    return (
        f'{HEAD}<cluster id="c" prefix="n" suffix="" radical="0-{hosts - 1}" speed="16.7Gf" '
        f'bw="125MBps" lat="24us" {more}/>\n</platform>\n'
    )


FAT_TREE = (
    'topology="FAT_TREE" topo_parameters="2;32,32;1,16;1,2" loopback_bw="1GBps" loopback_lat="1us"'
)
ONE_WIRE = 'bb_bw="1.25GBps" bb_lat="10us"'


def ft(ranks: int, iterations: int = ITERATIONS, spread: float = 0.0) -> list[str]:
    """NAS FT, class C: each time a 3-D FFT of 512^3 complex values and an all-to-all of them.

    spread: by how much more than the least a computation may take, as a part of it, at random.
    """
    rng = random.Random("ft")
    flops = 5 * CUBE * math.log2(CUBE) / ranks
    doubles = 2 * CUBE // ranks**2
    found = []
    for rank in range(ranks):
        lines = [f"{rank} init 1"]
        for _ in range(iterations):
            lines.append(f"{rank} compute {flops * (1 + spread * rng.random()):.0f}")
            lines.append(f"{rank} alltoall {doubles} {doubles} 0 0")
        found.append("\n".join([*lines, f"{rank} finalize", ""]))
    return found


def stencil(ranks: int, rounds: int) -> list[str]:
    """Ranks on a square torus that exchange borders with four neighbours, and compute."""
    width = math.isqrt(ranks)
    found = []
    for rank in range(ranks):
        row, column = divmod(rank, width)
        sides = [
            ((row + a) % width * width + (column + b) % width)
            for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1))
        ]
        lines = [f"{rank} init 1"]
        once = [f"{rank} irecv {side} 1 20000" for side in sides]
        once += [f"{rank} isend {side} 1 20000" for side in sides]
        once += [f"{rank} waitall"]
        for k in range(rounds):
            lines += [*once, f"{rank} compute {1e7 * (1 + (rank * 7 + k * 13) % 17 / 100):.0f}"]
        found.append("\n".join([*lines, f"{rank} finalize", ""]))
    return found


def pipeline(ranks: int, blocks: int) -> list[str]:
    """Each rank computes on a block that it receives from the one before, and hands it on."""
    found = []
    for rank in range(ranks):
        once = []
        if rank > 0:
            once.append(f"{rank} recv {rank - 1} 0 100000")
        once.append(f"{rank} compute {5e7 * (1 + rank % 5 / 50):.0f}")
        if rank < ranks - 1:
            once.append(f"{rank} send {rank + 1} 0 100000")
        lines = [f"{rank} init 1", *(once * blocks), f"{rank} finalize", ""]
        found.append("\n".join(lines))
    return found


LOADS: dict[str, Callable[[], Load]] = {
    "ft-64": lambda: Load(
        "FT class C on 64 ranks (pairwise all-to-all), fat tree", cluster(1024, FAT_TREE), ft(64)
    ),
    "ft-128-backbone": lambda: Load(
        "FT class C on 128 ranks over one shared backbone", cluster(128, ONE_WIRE), ft(128)
    ),
    "ft-128-uneven": lambda: Load(
        "the same, computations differ by up to 1 %",
        cluster(128, ONE_WIRE),
        ft(128, spread=0.01),
    ),
    "stencil-64": lambda: Load(
        "stencil of 64 ranks, 80 rounds, fat tree", cluster(1024, FAT_TREE), stencil(64, 80)
    ),
    "stencil-1024": lambda: Load(
        "stencil of 1,024 ranks, 2 rounds, fat tree", cluster(1024, FAT_TREE), stencil(1024, 2)
    ),
    "pipeline": lambda: Load(
        "pipeline of 64 ranks, 1,000 blocks, fat tree", cluster(1024, FAT_TREE), pipeline(64, 1000)
    ),
}
