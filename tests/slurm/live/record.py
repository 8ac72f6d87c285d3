"""Records what a real Slurm does with the jobs of some folders, as tests/slurm/reference has it.

    python tests/slurm/live/record.py [--anew] DIR...
    PYTHONPATH=tests python tests/slurm/live/record.py DIR --seeds SEED...

DIR has slurm.conf, jobs.csv and, where the configuration has a database, sacctmgr.txt. Those that
have been recorded are passed over, but for --anew: so it goes on where it was stopped. So are those
with commands by hand or reservations. `make slurm-references` records random/* anew.

--seeds: a case of each kind of sites with each seed is written into DIR and recorded, and a table
says how many are simulated equally. Where slurmctld crashes there is no recording.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

COLUMNS = ("id", "start", "end", "nodelist", "state", "by", "cpus")
BY_HAND = ("at.txt", "reservations.txt")
CRASHED = "crashed.txt"
OURS = (
    *("job_id", "starting_time", "finish_time", "nodes", "final_state", "scheduler"),
    "cpus",
)


def record(place: Path) -> None:
    """Run the jobs of a folder, and write run1.csv, run1.events.csv and run1.meta.json there."""
    with tempfile.TemporaryDirectory() as name:
        found = Path(name) / "live"
        command = [sys.executable, "-m", "ptaskmodel", "slurm-live", "-o", str(found)]
        command += [str(place / "slurm.conf"), str(place / "jobs.csv")]
        if (place / "sacctmgr.txt").exists():
            command += ["--accounts", str(place / "sacctmgr.txt")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        keep(found, place)


def keep(found: Path, place: Path) -> None:
    """Write of the results of a live run what the tests need to a folder."""
    with (found / "jobs.csv").open(newline="") as file:
        jobs = list(csv.DictReader(file))
    with (place / "run1.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows([job[name] for name in OURS] for job in jobs if job["scheduler"])
    (place / "run1.events.csv").write_bytes((found / "events.csv").read_bytes())
    meta = json.loads((found / "meta.json").read_text())
    with (place / "jobs.csv").open(newline="") as file:
        known = {row["id"] for row in csv.DictReader(file)}
    refused = [job["job_id"] for job in jobs if job["final_state"] == "REFUSED"]
    # Of an array it is the array that is refused.
    meta["refused"] = sorted({i if i in known else i.rpartition("_")[0] for i in refused})
    (place / "run1.meta.json").write_text(json.dumps(meta) + "\n")


def record_all(places: Sequence[Path], *, anew: bool) -> None:
    """Record some folders, those that have no recording, or all."""
    for k, place in enumerate(places, 1):
        told = f"{k} of {len(places)}: {place}"
        if any((place / name).exists() for name in BY_HAND):
            print(f"{told}: passed over, what was done by hand is not recorded", flush=True)
        elif anew or not (place / "run1.csv").exists():
            print(told, flush=True)
            record(place)


def record_sites(base: Path, seeds: Sequence[int]) -> None:
    """Write and record cases of all kinds of sites, and print how many are equal."""
    from slurm.live.random_cases import KINDS, write
    from slurm.recorded_runs import is_equal

    print(f"{'kind':12} {'recorded':>8} {'fed':>4} {'free':>4}")
    for kind in KINDS:
        recorded = fed = free = 0
        for seed in seeds:
            place = base / f"{kind}-{seed}"
            if not place.exists():
                write(kind, seed, place)
            if not any((place / name).exists() for name in ("run1.csv", CRASHED)):
                try:
                    record(place)
                except subprocess.CalledProcessError as fault:
                    (place / CRASHED).write_text(f"{fault}\n")
            if (place / "run1.csv").exists():
                recorded += 1
                fed += is_equal(place, fed=True)
                free += is_equal(place, fed=False)
        print(f"{kind:12} {recorded:8} {fed:4} {free:4}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", metavar="SEED")
    options = parser.parse_args()
    if options.seeds:
        record_sites(options.places[0], options.seeds)
    else:
        record_all(options.places, anew=options.anew)


if __name__ == "__main__":
    main()
