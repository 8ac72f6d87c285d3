"""Random traces of ranks that test, poll and receive at the same dates: in whose order, matters."""

from __future__ import annotations

import random

from replay_traces import HEAD, LOOPBACK, cluster

SIZES = (0, 1, 8, 100, 1000, 4096, 65535, 65536, 100000, 300000)
CLUSTERS = (
    cluster("0-15", LOOPBACK),
    cluster("0-15", 'bb_bw="1GBps" bb_lat="10us" ' + LOOPBACK),
    cluster("0-15", 'topology="FAT_TREE" topo_parameters="2;4,4;1,2;1,2" ' + LOOPBACK),
    cluster("0-15", 'topology="TORUS" topo_parameters="4,4" ' + LOOPBACK),
)


def polling_case(seed: int) -> tuple[str, list[str], list[str]]:
    """(text of a platform, hosts of the ranks, text of each trace)."""
    rng = random.Random(f"polls {seed}")
    ranks = rng.randint(2, 8)
    offered = {
        "smpi/async-small-thresh": str(rng.choice([1, 1000, 65536])),
        "smpi/grow-injected-times": "no",
        "smpi/iprobe-cpu-usage": "0.4",
        "smpi/or": "0:1e-6:1e-10;1000:2e-5:3e-10",
        "smpi/os": "0:1e-6:1e-10",
        "smpi/ois": "0:2e-6:1e-10",
    }
    config = [(key, value) for key, value in offered.items() if rng.random() < 0.35]
    properties = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in config)
    platform = f"{HEAD}<config>{properties}</config>\n{rng.choice(CLUSTERS)}\n</platform>\n"
    lines: list[list[str]] = [[f"{rank} init"] for rank in range(ranks)]

    def add(rank: int, action: str) -> None:
        lines[rank].append(f"{rank} {action}")

    for _ in range(rng.randint(2, 5)):
        rng.choice([_ring, _ring, _pairs, _polls, _together, _apart])(rng, ranks, add)
    for rank in range(ranks):
        add(rank, "waitall")
    alone = rng.random() < 0.8
    hosts = [f"n{rank if alone else rng.randrange(ranks)}" for rank in range(ranks)]
    return platform, hosts, ["\n".join(own) + "\n" for own in lines]


def _flops(rng):
    return rng.choice([1e5, 1e5, 2e5, 1e6, rng.random() * 1e6])


def _ring(rng, ranks, add):
    size, tests, step, tag = rng.choice(SIZES), rng.randint(0, 3), rng.randrange(1, ranks), 7
    for rank in range(ranks):
        source, target = (rank - step) % ranks, (rank + step) % ranks
        add(rank, f"irecv {source} {tag} {size} 6")
        add(rank, f"isend {target} {tag} {size} 6")
        for _ in range(tests if rng.random() < 0.7 else 0):
            add(rank, f"test {source} {rank} {tag}")
            if rng.random() < 0.3:
                add(rank, f"test {rank} {target} {tag}")
            if rng.random() < 0.3:
                add(rank, f"compute {_flops(rng)}")
        add(rank, "waitall")


def _pairs(rng, ranks, add):
    for _ in range(rng.randint(1, 6)):
        source, target = rng.sample(range(ranks), 2)
        tag, size = rng.choice([1, 2]), rng.choice(SIZES)
        add(source, f"isend {target} {tag} {size} 6")
        add(target, f"irecv {source} {tag} {size} 6")
        for rank in (source, target):
            if rng.random() < 0.5:
                add(rank, f"test {source} {target} {tag}")
            if rng.random() < 0.2:
                add(rank, f"compute {_flops(rng)}")
    for rank in range(ranks):
        add(rank, "waitall")


def _polls(rng, ranks, add):
    for _ in range(rng.randint(1, 3)):
        source, target = rng.sample(range(ranks), 2)
        if rng.random() < 0.5:
            add(source, f"compute {_flops(rng)}")
        add(source, f"{rng.choice(['send', 'isend'])} {target} 5 {rng.choice(SIZES)} 6")
        add(target, f"recv {source} 5 -1 6")
    for rank in range(ranks):
        add(rank, "waitall")


def _together(rng, ranks, add):
    counts = [rng.choice([0, 100, 5000]) for _ in range(ranks)]
    each = " ".join(map(str, counts))
    size = rng.choice(SIZES)
    action = rng.choice([f"allreduce {size} 1e5", f"bcast {size}", f"allgatherv * {each} 6 6"])
    for rank in range(ranks):
        add(rank, action.replace("*", str(counts[rank])))


def _apart(rng, ranks, add):
    for rank in range(ranks):
        if rng.random() < 0.5:
            add(rank, f"compute {_flops(rng)}")
