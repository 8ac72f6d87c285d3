"""Records traces of MPI applications with what SimGrid's replay does not know, and their ends.

``python make_applications.py`` needs smpicc and smpirun (Debian: libsimgrid-dev). The applications
post non-blocking collectives and messages, compute, and wait for one, for all, or for whichever is
over first (for messages alone: among collectives SMPI waits for the first of them); the dates are
those at which their ranks end under smpirun. Those that make SimGrid crash are left out.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from replay_traces import platform_text

HERE = Path(__file__).resolve().parent

COLLECTIVES = (
    *("ibarrier", "ibcast", "ireduce", "iallreduce", "iscan", "iexscan", "ireducescatter"),
    *("ialltoall", "ialltoallv", "igather", "igatherv", "iallgather", "iallgatherv"),
    *("iscatter", "iscatterv"),
)
SIZES = (1, 100, 700, 5000, 60000, 70000, 300000, 1000000)
PLATFORM = "flat"
OPTIONS = (
    *("--cfg=smpi/simulate-computation:no", "--cfg=smpi/host-speed:1Gf"),
    *("--cfg=network/optim:Full", "--log=root.thres:critical"),
)


def collective(rng: random.Random, kind: str, ranks: int) -> str:
    """A collective of that kind, of random sizes."""
    if kind == "ibarrier":
        return kind
    each = kind.endswith("v") or kind == "ireducescatter"
    sizes = [rng.choice(SIZES) for _ in range(ranks if each else 1)]
    rooted = kind in ("ibcast", "ireduce", "igather", "igatherv", "iscatter", "iscatterv")
    return " ".join(map(str, [kind, *sizes, *([rng.randrange(ranks)] if rooted else [])]))


def computing(rng: random.Random, ranks: int, most: int) -> list[str]:
    """Each rank computes; amounts have six digits, as traces do."""
    return [f"{rank} compute {10 * rng.randrange(1, most)}" for rank in range(ranks)]


def script(seed: int) -> tuple[int, list[str]]:
    """(ranks, lines) of a random application; the first ones are a collective each."""
    rng = random.Random(seed)
    if seed < len(COLLECTIVES):
        ranks = rng.choice((2, 3, 5))
        lines = [f"-1 {collective(rng, COLLECTIVES[seed], ranks)}"]
        return ranks, [*computing(rng, ranks, 99999), *lines, "-1 compute 1000", "-1 waitall"]
    ranks, tag, lines = rng.choice((2, 3, 4, 7)), 0, []
    waits = ("any", "each", "all")[seed % 3]
    for _ in range(2):
        operations = rng.randrange(2, 5)
        posted = 0
        for _ in range(operations):
            lines += computing(rng, ranks, 99999)
            if waits == "any" or rng.random() < 0.4:
                size, far = rng.choice(SIZES), rng.randrange(1, ranks)
                for rank in range(ranks):
                    lines.append(f"{rank} isend {size} {(rank + far) % ranks} {tag}")
                    lines.append(f"{rank} irecv {size} {(rank - far) % ranks} {tag}")
                tag += 1
                posted += 2
            else:
                lines.append(f"-1 {collective(rng, rng.choice(COLLECTIVES), ranks)}")
                posted += 1
        for k in range(posted if waits != "all" else 0):
            lines.append("-1 waitany" if waits == "any" else f"-1 wait {k}")
            lines += computing(rng, ranks, 29999)
        lines.append("-1 waitall")
    return ranks, lines


def run(place: Path, ranks: int, lines: list[str]) -> dict[str, object] | None:
    """The traces of ranks, as text, and when each ended; None if SimGrid crashes."""
    place.mkdir()
    (place / "script").write_text("\n".join(lines) + "\n")
    (place / "hosts").write_text("".join(f"n{rank}\n" for rank in range(ranks)))
    (place / "platform.xml").write_text(platform_text(PLATFORM))
    command = [
        *("smpirun", "-np", str(ranks), "-hostfile", "hosts", "-platform", "platform.xml"),
        *("-trace-ti", "--cfg=tracing/filename:trace", *OPTIONS, "../application", "script"),
    ]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=60)
    ends = dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("END"))
    if len(ends) < ranks:
        return None
    files = (place / "trace").read_text().split()
    return {
        "traces": [(place / file).read_text() for file in files],
        "ends": [float(ends[str(rank)]) for rank in range(ranks)],
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        compile_ = ["smpicc", "-O1", str(HERE / "applications.c"), "-o", "application"]
        subprocess.run(compile_, cwd=place, check=True)
        made = [run(place / str(seed), *script(seed)) for seed in range(39)]
    cases = [case for case in made if case is not None]
    text = json.dumps({"made_by": "SimGrid 3.32, smpirun -trace-ti", "cases": cases}, indent=0)
    (HERE / "applications.json").write_text(text + "\n")
    print(f"{len(cases)} of {len(made)} applications")


if __name__ == "__main__":
    main()
