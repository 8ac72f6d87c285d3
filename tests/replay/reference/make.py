"""Records when SimGrid's replay of random traces ends: ``python make.py [cases]``.

Needs smpirun (Debian: libsimgrid-dev). The traces are those of ``tests/replay_traces.py``; what is
kept is the date of each rank's end. Models: SMPI's, LV08 and parallel tasks (L07), in turn.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from replay_traces import PLATFORMS, platform_text, random_case
from smpi import ends_by_smpirun, write_case

from ptaskmodel.platform import load_platform

OPTIONS = {
    "SMPI": (),
    "LV08": ("--cfg=network/model:LV08",),
    "L07": ("--cfg=host/model:ptask_L07",),
}


def main(cases: int) -> None:
    kept = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        names = {}
        for name in PLATFORMS:
            (place / f"{name}.xml").write_text(platform_text(name))
            names[name] = [host.name for host in load_platform(place / f"{name}.xml").hosts]
        for seed in range(cases):
            platform, hosts, files = random_case(seed, names)
            model = "LV08" if seed % 10 == 8 else "SMPI"
            # SimGrid's parallel tasks send nothing between ranks of one host.
            if seed % 10 == 9 and len(set(hosts)) == len(hosts):
                model = "L07"
            write_case(place / str(seed), hosts, files)
            ends = ends_by_smpirun(
                place / str(seed), place / f"{platform}.xml", hosts, *OPTIONS[model]
            )
            kept.append({"seed": seed, "model": model, "ends": ends})
    lines = ",\n".join(json.dumps(case) for case in kept)
    text = f'{{"simgrid": "3.32", "cases": [\n{lines}\n]}}\n'
    (Path(__file__).parent / "ends.json").write_text(text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 240)
