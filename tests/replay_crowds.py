"""Random traces of many ranks that send over one narrow link at a time, and compute meanwhile."""

from __future__ import annotations

import random

from replay_traces import HEAD, LOOPBACK, cluster


def crowd_case(seed: int) -> tuple[str, list[str], list[str]]:
    """(text of a platform, hosts of the ranks, text of each trace)."""
    rng = random.Random(f"crowds {seed}")
    ranks = rng.randint(40, 90)
    width = rng.choice(["0.3GBps", "1GBps", "2GBps"])
    more = f'bb_bw="{width}" bb_lat="10us" {LOOPBACK}'
    platform = f"{HEAD}{cluster(f'0-{ranks - 1}', more)}\n</platform>\n"
    lines: list[list[str]] = [[f"{rank} init"] for rank in range(ranks)]
    for _ in range(rng.randint(2, 3)):
        rng.choice([_strangers, _strangers, _everybody])(rng, ranks, lines)
    apart = rng.random() < 0.7
    hosts = [f"n{rank if apart else rank // 2}" for rank in range(ranks)]
    return platform, hosts, ["\n".join(own) + "\n" for own in lines]


def _strangers(rng, ranks, lines):
    """Messages of random sizes between random ranks, who compute between them."""
    sizes = [rng.randint(70_000, 3_000_000) for _ in range(rng.choice([1, 5, 300]))]
    for _ in range(rng.randint(5, 12) * ranks):
        source, target = rng.sample(range(ranks), 2)
        size = rng.choice(sizes)
        lines[source].append(f"{source} isend {target} 1 {size}")
        lines[target].append(f"{target} irecv {source} 1 {size}")
        if rng.random() < 0.3:
            lines[source].append(f"{source} compute {rng.random() * 2e7:.0f}")
    for rank in range(ranks):
        lines[rank].append(f"{rank} waitall")


def _everybody(rng, ranks, lines):
    """An all-to-all at once, begun at different dates."""
    size = rng.choice([2_000, 2_900])
    for rank in range(ranks):
        lines[rank].append(f"{rank} compute {rng.random() * 1e8:.0f}")
        lines[rank].append(f"{rank} alltoall {size} {size}")
