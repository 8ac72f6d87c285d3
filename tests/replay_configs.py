"""Random traces under random <config>s: overheads, thresholds, factors, tests, polls, datatypes."""

from __future__ import annotations

import random

from replay_traces import HEAD, LOOPBACK, PARTS, SIZES, cluster

STEPS = (0, 1, 100, 1000, 1420, 33000, 65536)
BYTES = {"0": 8, "1": 4, "3": 2, "6": 1, "14": 16}
CLUSTERS = (
    cluster("0-9", LOOPBACK, "3.7Gf"),
    cluster("0-9", f'core="2" {LOOPBACK} bb_bw="150MBps" bb_lat="0us"'),
    cluster("0-9", f'sharing_policy="SHARED" {LOOPBACK} bb_bw="1GBps" bb_lat="5us"'),
    cluster("0-9", f'{LOOPBACK} limiter_link="100MBps" bb_bw="40MBps" bb_lat="1us" '
            'bb_sharing_policy="FATPIPE"'),
    cluster("0-7", f'{LOOPBACK} topology="FAT_TREE" topo_parameters="2;4,2;1,2;1,2"', "100Mf"),
    cluster("0-11", f'limiter_link="90MBps" {LOOPBACK} topology="TORUS" topo_parameters="4,3"'),
)  # fmt: skip


def config_case(seed: int) -> tuple[str, str, list[int], list[str]]:
    """(text of a platform, network model, hosts of the ranks by number, text of each trace)."""
    rng = random.Random(f"config {seed}")
    ranks = rng.choice([1, 2, 2, 3, 4, 5, 6, 7, 8, 9])
    properties = "".join(f'<prop id="{k}" value="{v}"/>' for k, v in random_config(rng).items())
    platform = f"{HEAD}<config>{properties}</config>\n{rng.choice(CLUSTERS)}\n</platform>\n"
    lines: list[list[str]] = [[f"{rank} init"] for rank in range(ranks)]

    def add(rank: int, action: str) -> None:
        lines[rank].append(f"{rank} {action}")

    kinds = [PARTS["compute"], PARTS["collective"], PARTS["swap"], _typed, _to_oneself]
    if ranks > 1:
        kinds += [PARTS["ring"], _polls, _requests, _requests]
    for _ in range(rng.randint(3, 10)):
        rng.choice(kinds)(rng, ranks, add)
    hosts = [rng.randrange(8) for _ in range(ranks)]
    model = rng.choice(["SMPI", "SMPI", "SMPI", "LV08", "CM02"])
    return platform, model, hosts, ["\n".join(own) + "\n" for own in lines]


def random_config(rng: random.Random) -> dict[str, str]:
    """Some of what a <config> may say of SMPI and of flows."""

    def overhead() -> str:
        chosen = sorted(rng.sample(STEPS, rng.randint(1, 4)))
        return ";".join(f"{s}:{rng.random() * 1e-4:.6g}:{rng.random() * 1e-9:.6g}" for s in chosen)

    def factors(low: float, high: float) -> str:
        chosen = rng.sample(STEPS, rng.randint(1, 4))
        return ";".join(f"{s}:{rng.uniform(low, high):.6g}" for s in chosen)

    early = str(rng.choice([1, 1000, 65536]))
    offered = {
        "smpi/os": overhead(),
        "smpi/ois": overhead(),
        "smpi/or": overhead(),
        "smpi/bw-factor": factors(0.2, 1.1),
        "smpi/lat-factor": factors(0.5, 12.0),
        "smpi/send-is-detached-thresh": str(rng.choice([65536, 200000, 10**7])),
        "smpi/async-small-thresh": early,
        "smpi/test": str(rng.choice([1e-5, 1e-3])),
        "smpi/iprobe": str(rng.choice([1e-5, 1e-3])),
        "smpi/iprobe-cpu-usage": "0.4",
        "smpi/grow-injected-times": "no",
        "smpi/simulate-computation": "no",
        "smpi/finalization-barrier": "yes",
        "smpi/init": "0.01",
        "network/crosstraffic": "no",
        "network/TCP-gamma": str(rng.choice([0, 20000, 65536])),
        "network/weight-S": "0",
        "network/model": "CM02",
    }
    return {key: value for key, value in offered.items() if rng.random() < 0.25}


def _polls(rng, ranks, add):
    """One rank asks for messages; where several do at one date, SimGrid's order is its solver's."""
    for _ in range(rng.randint(1, 3)):
        source, size = rng.randrange(1, ranks), rng.choice(SIZES) // 8
        if rng.random() < 0.5:
            add(source, f"sleep {rng.random() * 0.01}")
        add(source, f"send 0 3 {size} 6")
        add(0, f"recv {source} 3 -1 6")


def _requests(rng, ranks, add):
    pairs = []
    for _ in range(rng.randint(1, 8)):
        source, target = rng.sample(range(ranks), 2)
        tag, size, kind = rng.choice([1, 2]), rng.choice(SIZES) // 32, rng.choice(["0", "1", "6"])
        pairs.append((source, target, tag))
        add(source, f"isend {target} {tag} {size} {kind}")
        if rng.random() < 0.3:
            add(target, f"compute {rng.random() * 1e7}")
        add(target, f"irecv {source} {tag} {size} {kind}")
        for rank in (source, target):
            if rng.random() < 0.3:
                add(rank, f"test {source} {target} {tag}")
    for rank in range(ranks):
        if any(rank in pair[:2] for pair in pairs):
            add(rank, "waitall")


def _to_oneself(rng, ranks, add):
    rank, size = rng.randrange(ranks), rng.choice(SIZES)
    add(rank, f"irecv {rank} 9 {size} 6")
    add(rank, f"isend {rank} 9 {size} 6")
    add(rank, "waitall")


def _typed(rng, ranks, add):
    """Collectives with other datatypes, or without optional fields."""
    kind = rng.choice(list(BYTES))
    count = rng.choice(SIZES) // 4 // BYTES[kind]
    each, few = " ".join([str(count)] * ranks), min(count, 60000)
    root = rng.randrange(ranks)
    shifts = " " + " ".join(["70000"] * ranks) if ranks > 2 else ""
    action = rng.choice(
        [
            f"bcast {count} {root} {kind}",
            f"bcast {count}",
            f"reduce {count} 1e5 {root} {kind}",
            f"allreduce {count} 1e5",
            f"scan {count} 0",
            f"alltoall {few} {few} {kind} {kind}",
            f"gather {count} {count} {root} {kind} 6",
            f"scatter {count} {count}",
            f"allgather {count} {count}",
            f"gatherv {count} {each} {root} {kind} {kind}",
            f"allgatherv {count} {each}{shifts}",
            f"scatterv {each} {count} {root} {kind} {kind}",
            f"reducescatter {each} 1e6 {kind}",
        ]
    )
    if action.startswith("gather ") and kind != "6":
        action = f"gather {count} {count * BYTES[kind]} {root} {kind} 6"
    for rank in range(ranks):
        add(rank, action)
