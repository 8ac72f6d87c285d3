"""Random time-independent traces in which every action occurs, and platforms to replay them on."""

from __future__ import annotations

import random

# On both sides of every threshold of the protocol, its factors and the all-to-alls.
SIZES = (
    *(0, 1, 3, 4, 15, 16, 100, 256, 257, 500, 732, 1000, 1426, 4095, 4096, 32767, 32768),
    *(65535, 65536, 70000, 262144, 600000, 1048576, 2000000),
)

COLLECTIVES = (
    *("barrier", "bcast", "reduce", "allreduce", "scan", "exscan", "reducescatter", "alltoall"),
    *("alltoallv", "gather", "allgather", "gatherv", "allgatherv", "scatter", "scatterv"),
)

HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1">\n'
)


def cluster(hosts: str, more: str = "", speed: str = "1Gf") -> str:
    return (
        f'<cluster id="c" prefix="n" suffix="" radical="{hosts}" speed="{speed}" bw="125MBps" '
        f'lat="50us" {more}/>'
    )


LOOPBACK = 'loopback_bw="1GBps" loopback_lat="1us"'
PLATFORMS = {
    "flat": cluster("0-15", 'bb_bw="1.25GBps" bb_lat="10us"'),
    "fat_tree": cluster("0-15", 'topology="FAT_TREE" topo_parameters="2;4,4;1,2;1,2" ' + LOOPBACK),
    "torus": cluster("0-11", 'core="2" topology="TORUS" topo_parameters="3,2,2" ' + LOOPBACK),
    "dragonfly": cluster(
        "0-31", 'topology="DRAGONFLY" topo_parameters="2,1;2,1;2,1;4" ' + LOOPBACK
    ),
    "one_wire": cluster(
        "0-4", 'core="4" sharing_policy="SHARED" bb_bw="250MBps" bb_lat="5us" ' + LOOPBACK
    ),
    "two_speeds": (
        '<zone id="w" routing="Full">'
        '<cluster id="a" prefix="a" suffix="" radical="0-5" speed="1Gf" bw="125MBps" lat="50us" '
        'bb_bw="1GBps" bb_lat="5us" router_id="ra"/>'
        '<cluster id="b" prefix="b" suffix="" radical="0-5" speed="3Gf" bw="1.25GBps" lat="15us" '
        'router_id="rb"/><link id="between" bandwidth="200MBps" latency="1ms"/>'
        '<zoneRoute src="a" dst="b" gw_src="ra" gw_dst="rb"><link_ctn id="between"/></zoneRoute>'
        "</zone>"
    ),
}


# Larger ones, for collectives of many ranks.
WIDE = {
    "backbone": cluster("0-129", 'bb_bw="10GBps" bb_lat="10us" ' + LOOPBACK),
    "switch": cluster("0-129", 'core="4" ' + LOOPBACK, speed="3Gf"),
    "fat": cluster("0-63", 'topology="FAT_TREE" topo_parameters="2;8,8;1,4;1,2" ' + LOOPBACK),
    "cube": cluster("0-63", 'topology="TORUS" topo_parameters="4,4,4" ' + LOOPBACK),
    "flies": cluster("0-71", 'topology="DRAGONFLY" topo_parameters="3,2;3,1;4,1;2" ' + LOOPBACK),
    "wire": cluster("0-33", 'sharing_policy="SHARED" bb_bw="1GBps" bb_lat="5us" ' + LOOPBACK),
    "halves": (
        '<zone id="w" routing="Full">'
        '<cluster id="a" prefix="a" suffix="" radical="0-32" speed="1Gf" bw="125MBps" lat="50us" '
        f'router_id="ra" {LOOPBACK}/>'
        '<cluster id="b" prefix="b" suffix="" radical="0-32" speed="3Gf" bw="1.25GBps" lat="15us" '
        f'router_id="rb" {LOOPBACK}/><link id="between" bandwidth="1GBps" latency="1ms"/>'
        '<zoneRoute src="a" dst="b" gw_src="ra" gw_dst="rb"><link_ctn id="between"/></zoneRoute>'
        "</zone>"
    ),
}
WIDE_RANKS = (17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 130)
# On both sides of what the algorithms ask for.
EDGES = (*(3, 4, 511, 512, 1023, 1024, 4095, 8192, 32767, 32768, 65535, 65536), *(262143, 262144))


def platform_text(name: str) -> str:
    return f"{HEAD}{(PLATFORMS | WIDE)[name]}\n</platform>\n"


def wide_case(
    seed: int, host_names: dict[str, list[str]], collective: str
) -> tuple[str, list[str], list[str]]:
    """As `random_case`: one collective twice, of many ranks, at sizes where algorithms change."""
    rng = random.Random(f"wide {seed}")
    ranks = WIDE_RANKS[seed % len(WIDE_RANKS)]
    platform = list(WIDE)[seed % (len(WIDE) if ranks <= 65 else 2)]
    names = host_names[platform]
    lines: list[list[str]] = [[f"{rank} init"] for rank in range(ranks)]

    def add(rank: int, action: str) -> None:
        lines[rank].append(f"{rank} {action}")

    few = ranks * ranks if collective in ("alltoall", "alltoallv", "allgather", "allgatherv") else 0
    edges = [size for size in EDGES if size * few < 10**9]
    for _ in range(2):
        _compute(rng, ranks, add)
        _collective(rng, ranks, add, collective, rng.choice(edges))
    hosts = [names[rank % len(names)] for rank in range(ranks)]
    return platform, hosts, ["\n".join(own) + "\n" for own in lines]


def algorithm_case(collective: str, algorithm: str, ranks: int) -> list[str]:
    """The traces of ranks: some calls of a collective (by the name of its action)."""
    rng = random.Random(f"{collective} {algorithm} {ranks}")
    lines: list[list[str]] = [[f"{rank} init"] for rank in range(ranks)]

    def add(rank: int, action: str) -> None:
        lines[rank].append(f"{rank} {action}")

    # Less than that SimGrid's crashes on; and one wants equal parts.
    sizes = [size for size in SIZES if size >= 4095 or algorithm != "ompi_split_bintree"]
    for size in rng.sample(sizes, 3):
        _compute(rng, ranks, add)
        if algorithm == "mpich_noncomm":
            for rank in range(ranks):
                add(rank, f"{collective} {' '.join([str(size)] * ranks)} 1e5 6")
        else:
            _collective(rng, ranks, add, collective, size)
    return ["\n".join(own) + "\n" for own in lines]


def random_case(seed: int, host_names: dict[str, list[str]]) -> tuple[str, list[str], list[str]]:
    """(name of the platform, hosts of the ranks, text of each rank's trace)."""
    rng = random.Random(seed)
    platform = list(PLATFORMS)[seed % len(PLATFORMS)]
    names = host_names[platform]
    ranks = rng.choice([1, 2, 2, 3, 4, 5, 7, 8, 9, 12, 16])
    if platform == "flat":  # without a loopback ranks are alone on their hosts
        hosts = rng.sample(names, ranks)
    else:
        hosts = [rng.choice(names) for _ in range(ranks)]
    return platform, hosts, random_trace(rng, ranks)


def random_trace(rng: random.Random, ranks: int) -> list[str]:
    lines: list[list[str]] = [[] for _ in range(ranks)]
    first = rng.choice(["init", "init 1"])

    def add(rank: int, action: str) -> None:
        lines[rank].append(f"{rank} {action}")

    for rank in range(ranks):
        add(rank, first)
    kinds = ["compute", "sleep", "collective", "collective", "collective"]
    if ranks > 1:
        kinds += ["messages", "requests", "ring", "swap"]
    for _ in range(rng.randint(3, 14)):
        PARTS[rng.choice(kinds)](rng, ranks, add)
    for rank in range(ranks):
        add(rank, "finalize")
    return ["\n".join(own) + "\n" for own in lines]


def _compute(rng, ranks, add):
    for rank in range(ranks):
        if rng.random() < 0.7:
            add(rank, f"compute {rng.choice([0, 1e6, rng.random() * 1e8, 3e8])}")


def _sleep(rng, ranks, add):
    add(rng.randrange(ranks), f"sleep {rng.random() * 0.1}")


def _messages(rng, ranks, add):
    for _ in range(rng.randint(1, 5)):
        source, target = rng.sample(range(ranks), 2)
        rest = f"{rng.choice([0, 1])} {rng.choice(SIZES) // 8}{rng.choice(['', ' 0', ' 1', ' 6'])}"
        add(source, f"send {target} {rest}")
        add(target, f"recv {source} {rest}")


def _requests(rng, ranks, add):
    source, target = rng.sample(range(ranks), 2)
    size = rng.choice(SIZES) // 8
    add(target, f"irecv {source} 7 {size}")
    add(source, f"isend {target} 7 {size}")
    add(target, f"irecv {source} 8 1")  # so that a rank always has a request to wait for
    add(source, f"isend {target} 8 1")
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        add(target, f"test {source} {target} 7")
    for rank in (source, target):
        add(rank, f"wait {source} {target} 7")
        add(rank, f"wait {source} {target} 8")


def _ring(rng, ranks, add):
    size = rng.choice(SIZES) // 8
    for rank in range(ranks):
        add(rank, f"irecv {(rank - 1) % ranks} 5 {size}")
        add(rank, f"isend {(rank + 1) % ranks} 5 {size}")
    if rng.random() < 0.5:
        for rank in range(ranks):
            add(rank, f"compute {rng.random() * 1e7}")
    for rank in range(ranks):
        if rng.random() < 0.5:
            add(rank, "waitall")
        else:
            add(rank, f"wait {(rank - 1) % ranks} {rank} 5")
            add(rank, f"wait {rank} {(rank + 1) % ranks} 5")


def _swap(rng, ranks, add):
    size, far = rng.choice(SIZES) // 8, rng.randrange(ranks)
    for rank in range(ranks):
        to, source = (rank + far) % ranks, (rank - far) % ranks
        add(rank, f"sendRecv {size} {to} {size} {source} 0 0")


def _collective(rng, ranks, add, kind=None, size=None):
    if size is None:
        size = rng.choice(SIZES) // (1 if ranks <= 8 else 16)
    flops = rng.choice([0, 1e6, rng.random() * 1e7])
    root = rng.randrange(ranks)
    each = [rng.choice([0, 1, size // 2, size]) for _ in range(ranks)]
    listed = " ".join(map(str, each))
    kind = rng.choice(COLLECTIVES) if kind is None else kind
    if kind == "alltoall" and ranks & (ranks - 1):
        size = min(size, 500000)  # SimGrid's pairwise one needs a power of two
    if kind == "reducescatter" and rng.random() < 0.4:
        listed = " ".join([str(size // ranks)] * ranks)
    table = [[rng.choice([0, 1, size // 2, size]) for _ in range(ranks)] for _ in range(ranks)]
    for rank in range(ranks):
        sent = " ".join(map(str, table[rank]))
        came = [row[rank] for row in table]
        action = {
            "barrier": "",
            "bcast": f"{size} {root} 6",
            "reduce": f"{size} {flops} {root} 6",
            "reducescatter": f"{listed} {flops} 6",
            "alltoallv": f"{sum(table[rank])} {sent} {sum(came)} {' '.join(map(str, came))} 6 6",
            "gather": f"{size} {size} {root} 6 6",
            "scatter": f"{size} {size} {root} 6 6",
            "gatherv": f"{each[rank]} {' '.join(map(str, each))} {root} 6 6",
            "allgatherv": f"{each[rank]} {' '.join(map(str, each))}{' 6 6' * (ranks > 1)}",
            "scatterv": f"{' '.join(map(str, each))} {each[rank]} {root} 6 6",
        }.get(kind)
        if action is None:
            both = f"{size} {size} 6 6"
            action = both if kind in ("alltoall", "allgather") else f"{size} {flops} 6"
        add(rank, f"{kind} {action}".strip())


PARTS = {
    "compute": _compute,
    "sleep": _sleep,
    "collective": _collective,
    "messages": _messages,
    "requests": _requests,
    "ring": _ring,
    "swap": _swap,
}
