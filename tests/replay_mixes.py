"""Random traces in which many ranks do all kinds of things, and ones of receives from anybody."""

from __future__ import annotations

import random

from replay_traces import COLLECTIVES, EDGES, PARTS, WIDE

from ptaskmodel.mpi.collectives.names import ALGORITHMS, fits

RANKS = (2, 3, 6, 10, 13, 16, 17, 20, 24, 31, 32, 33, 40, 48, 63, 64, 65, 100, 127, 128, 130)
TO_ALL = ("alltoall", "alltoallv", "allgather", "allgatherv")
# Of these SimGrid's crash at some sizes, or at parts that are not equal.
CRASHING = ("ompi_split_bintree", "mpich_noncomm", "rab2")
# Bytes of buffers that all collectives of a trace can use. SimGrid's ranks share them, and lose
# them under their messages when another rank needs larger ones.
BUFFER = 60_000_000
Names = dict[str, list[str]]


def mixed_case(
    seed: int, host_names: Names, chosen: dict[str, str] | None = None
) -> tuple[str, list[str], list[str], dict[str, str]]:
    """(platform, hosts of the ranks, text of each trace, algorithms of some collectives).

    chosen: these algorithms; None: any of those there are.
    Ranks are alone on their hosts or not; all actions, at sizes where algorithms change.
    """
    rng = random.Random(f"mix {seed}")
    platform = rng.choice(list(WIDE))
    names = host_names[platform]
    ranks = rng.choice(RANKS)
    lines: list[list[str]] = [[f"{rank} init"] for rank in range(ranks)]

    def add(rank: int, action: str) -> None:
        lines[rank].append(f"{rank} {action}")

    for rank in range(ranks):
        counts = " ".join(["0"] * ranks)
        add(rank, f"alltoallv {BUFFER} {counts} {BUFFER} {counts} 6 6")
    if chosen is None:
        chosen = {}
        own = random.Random(f"algorithms of mix {seed}")
        for collective, known in ALGORITHMS.items():
            if own.random() < 0.3:
                fitting = [n for n in known if fits(collective, n, ranks) and n not in CRASHING]
                chosen[collective] = own.choice(fitting)
    kinds = ["compute", "compute", "sleep", "messages", "requests", "ring", "ring", "swap"]
    for _ in range(rng.randint(3, 8)):
        kind = rng.choice([*kinds, "collective", "collective"])
        if kind != "collective":
            PARTS[kind](rng, ranks, add)
            continue
        collective = rng.choice(COLLECTIVES)
        few = ranks * ranks if collective in TO_ALL else ranks
        sizes = [size for size in (*EDGES, 0, 1, 100, 1000) if size * few < 2e8]
        PARTS["collective"](rng, ranks, add, collective, rng.choice(sizes))
    if rng.random() < 0.6:
        hosts = [names[rank % len(names)] for rank in range(ranks)]
    else:
        hosts = [rng.choice(names) for _ in range(ranks)]
    return platform, hosts, ["\n".join(own) + "\n" for own in lines], chosen


def any_case(seed: int, host_names: Names) -> tuple[str, list[str], list[str]]:
    """As `replay_traces.random_case`: receives from anybody (-555), and with any tag."""
    rng = random.Random(f"any {seed}")
    ranks = rng.choice([2, 3, 4, 6, 9, 12])
    platform = rng.choice(["flat", "fat_tree", "torus", "dragonfly", "two_speeds"])
    hosts = rng.sample(host_names[platform], ranks)
    lines: list[list[str]] = [[f"{rank} init"] for rank in range(ranks)]

    def add(rank: int, action: str) -> None:
        lines[rank].append(f"{rank} {action}")

    for _ in range(rng.randint(1, 4)):
        size = rng.choice([0, 1, 100, 4096, 65535, 65536, 300000])
        ANY[rng.randrange(len(ANY))](rng, ranks, add, size)
        for rank in range(ranks):
            add(rank, "barrier")
    return platform, hosts, ["\n".join(own) + "\n" for own in lines]


def _master(rng, ranks, add, size):
    root, tag = rng.randrange(ranks), rng.choice([5, -444])
    for rank in set(range(ranks)) - {root}:
        add(rank, f"compute {rng.random() * 1e7}")
        add(rank, f"{rng.choice(['send', 'isend'])} {root} 5 {size} 6")
    for _ in range(ranks - 1):
        add(root, f"recv -555 {tag} {size} 6")
        add(root, f"compute {rng.random() * 1e6}")


def _gather(rng, ranks, add, size):
    root = rng.randrange(ranks)
    for rank in set(range(ranks)) - {root}:
        add(rank, f"isend {root} {rank} {size} 6")
    for rank in range(ranks):
        if rng.random() < 0.4:
            add(rank, f"compute {rng.random() * 1e7}")
    for _ in range(ranks - 1):
        add(root, f"irecv -555 -444 {size} 6")
    for rank in range(ranks):
        add(rank, "waitall")


def _any_tag(rng, ranks, add, size):
    source, target = rng.sample(range(ranks), 2)
    for _ in range(rng.randint(1, 4)):
        add(source, f"send {target} {rng.choice([1, 2, 3])} {size} 6")
        sender, asked = rng.choice([source, source, -555]), rng.choice([size, size, -1])
        add(target, f"{rng.choice(['recv', 'irecv'])} {sender} -444 {asked} 6")
    add(target, "waitall")


def _ring(rng, ranks, add, size):
    for rank in range(ranks):
        sender = rng.choice([(rank - 1) % ranks, -555])
        add(rank, f"sendRecv {size} {(rank + 1) % ranks} {size} {sender} 6 6")


ANY = (_master, _gather, _any_tag, _ring)
