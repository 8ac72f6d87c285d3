"""Records when SimGrid's replay of random traces ends, for each set: ``python make.py [SET...]``.

Needs smpirun (Debian: libsimgrid-dev). The traces are those of ``tests/replay_traces.py``; what is
kept is the date of each rank's end. ends: all actions, by SMPI's model, LV08 and parallel tasks
(L07). wide: collectives of 17 to 130 ranks. mixed: up to 130 ranks do all kinds of things. any:
receives from anybody. polls: tests, polls and costs at the same dates. configs: random <config>s.
algorithms: each algorithm of each collective; many: of 66 to 130 ranks, of which every seventh date
is kept, left out where those move if the bandwidth is 1e-12 larger. crowds: many messages over one
link.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from replay_configs import config_case
from replay_crowds import crowd_case
from replay_mixes import any_case, mixed_case
from replay_polls import polling_case
from replay_traces import (
    COLLECTIVES,
    PLATFORMS,
    WIDE,
    algorithm_case,
    platform_text,
    random_case,
    wide_case,
)
from smpi import ends_by_smpirun, write_case

from ptaskmodel.mpi.collectives.names import ALGORITHMS, DEFAULT, fits
from ptaskmodel.mpi.collectives.names import COLLECTIVES as BY_NAME
from ptaskmodel.platform import load_platform

OPTIONS = {
    "SMPI": (),
    "CM02": ("--cfg=network/model:CM02",),
    "LV08": ("--cfg=network/model:LV08",),
    "L07": ("--cfg=host/model:ptask_L07",),
}
CASES = 240
CONFIG_CASES = 80
MIXED_CASES = 28
ANY_CASES = 40
POLLING_CASES = 60
CROWD_CASES = 12
WIDE_CASES = 4 * len(COLLECTIVES)
RANKS = (2, 3, 5, 8, 11, 12, 16)
MANY_RANKS = (66, 81, 100, 128, 130)

Case = dict[str, object]


class Maker:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.names: dict[str, list[str]] = {}
        for name in PLATFORMS | WIDE:
            self.file(name).write_text(platform_text(name))
            self.names[name] = [host.name for host in load_platform(self.file(name)).hosts]
        self.count = 0

    def file(self, platform: str) -> Path:
        return self.place / f"{platform}.xml"

    def ends(self, platform: str, hosts: list[str], files: list[str], *options: str) -> list:
        self.count += 1
        place = self.place / str(self.count)
        write_case(place, hosts, files)
        return ends_by_smpirun(place, self.file(platform), hosts, *options)

    def ends_cases(self) -> Iterator[Case]:
        for seed in range(CASES):
            platform, hosts, files = random_case(seed, self.names)
            model = "LV08" if seed % 10 == 8 else "SMPI"
            # SimGrid's parallel tasks send nothing between ranks of one host.
            if seed % 10 == 9 and len(set(hosts)) == len(hosts):
                model = "L07"
            ends = self.ends(platform, hosts, files, *OPTIONS[model])
            yield {"seed": seed, "model": model, "ends": ends}

    def wide_cases(self) -> Iterator[Case]:
        for seed in range(WIDE_CASES):
            collective = COLLECTIVES[seed % len(COLLECTIVES)]
            platform, hosts, files = wide_case(seed, self.names, collective)
            try:
                ends = self.ends(platform, hosts, files)
            except subprocess.TimeoutExpired:
                print(collective, len(hosts), "ranks: SimGrid takes long; left out", flush=True)
                continue
            yield {"seed": seed, "collective": collective, "ends": ends}

    def mixed_cases(self) -> Iterator[Case]:
        for seed in range(MIXED_CASES):
            platform, hosts, files, chosen = mixed_case(seed, self.names)
            options = [f"--cfg=smpi/{name}:{algorithm}" for name, algorithm in chosen.items()]
            try:
                ends = self.ends(platform, hosts, files, *options)
            except (AssertionError, subprocess.TimeoutExpired) as crash:
                print("mixed", seed, str(crash)[-200:])
                continue
            yield {"seed": seed, "algorithms": chosen, "ends": ends}

    def any_cases(self) -> Iterator[Case]:
        for seed in range(ANY_CASES):
            yield {"seed": seed, "ends": self.ends(*any_case(seed, self.names))}

    def polls_cases(self) -> Iterator[Case]:
        for seed in range(POLLING_CASES):
            platform, hosts, files = polling_case(seed)
            own = self.file(f"polls{seed}")
            own.write_text(platform)
            try:
                ends = self.ends(own.stem, hosts, files)
            except AssertionError as crash:
                print("polls", seed, str(crash)[-200:])
                continue
            yield {"seed": seed, "ends": ends}

    def crowds_cases(self) -> Iterator[Case]:
        for seed in range(CROWD_CASES):
            platform, hosts, files = crowd_case(seed)
            own = self.file(f"crowds{seed}")
            own.write_text(platform)
            yield {"seed": seed, "ends": self.ends(own.stem, hosts, files)}

    def configs_cases(self) -> Iterator[Case]:
        for seed in range(CONFIG_CASES):
            platform, model, chosen, files = config_case(seed)
            own = self.file(f"config{seed}")
            own.write_text(platform)
            names = [host.name for host in load_platform(own).hosts]
            hosts = [names[k] for k in chosen]
            try:
                ends = self.ends(own.stem, hosts, files, *OPTIONS[model])
            except AssertionError as crash:
                print("config", seed, str(crash)[-200:])
                continue
            yield {"seed": seed, "ends": ends}

    def algorithms_cases(self) -> Iterator[Case]:
        seed = 0
        for collective, known in ALGORITHMS.items():
            action = BY_NAME[collective].action
            for algorithm in known:
                fitting = [n for n in RANKS if fits(collective, algorithm, n)]
                for ranks in sorted({fitting[(seed + k) % len(fitting)] for k in (0, 3)}):
                    if algorithm == DEFAULT:
                        continue
                    files = algorithm_case(action, algorithm, ranks)
                    hosts = self.names["fat_tree"][:ranks]
                    option = f"--cfg=smpi/{collective}:{algorithm}"
                    try:
                        ends = self.ends("fat_tree", hosts, files, option)
                    except AssertionError as crash:
                        print(collective, algorithm, ranks, str(crash)[-200:])
                        continue
                    yield {
                        "collective": collective,
                        "algorithm": algorithm,
                        "ranks": ranks,
                        "ends": ends,
                    }
                seed += 1

    def many_cases(self) -> Iterator[Case]:
        moved = self.file("moved")
        text = platform_text("switch")
        moved.write_text(text.replace('bw="125MBps"', f'bw="{125e6 * (1 + 1e-12)!r}Bps"'))
        number = 0
        for collective, known in ALGORITHMS.items():
            action = BY_NAME[collective].action
            for algorithm in known:
                fitting = [n for n in MANY_RANKS if fits(collective, algorithm, n)]
                if algorithm == DEFAULT or not fitting:
                    continue
                ranks = fitting[number % len(fitting)]
                number += 1
                case = {"collective": collective, "algorithm": algorithm, "ranks": ranks}
                files = algorithm_case(action, algorithm, ranks)
                hosts = self.names["switch"][:ranks]
                option = f"--cfg=smpi/{collective}:{algorithm}"
                try:
                    ends = self.ends("switch", hosts, files, option)[::7]
                    again = self.ends("moved", hosts, files, option)[::7]
                except (AssertionError, subprocess.TimeoutExpired) as failure:
                    print(case, str(failure)[-200:])
                    continue
                moves = max(abs(a - b) for a, b in zip(ends, again, strict=True))
                if moves < 1e-10 * max(ends):
                    yield {**case, "ends": ends}
                else:
                    print(case, "SimGrid's own dates move")


def main(what: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        kept = list(getattr(Maker(Path(directory)), f"{what}_cases")())
    lines = ",\n".join(json.dumps(case) for case in kept)
    text = f'{{"simgrid": "3.32", "cases": [\n{lines}\n]}}\n'
    (Path(__file__).parent / f"{what}.json").write_text(text)


if __name__ == "__main__":
    sets = ("ends", "wide", "mixed", "any", "polls", "configs", "algorithms", "many", "crowds")
    for name in sys.argv[1:] or sets:
        main(name)
