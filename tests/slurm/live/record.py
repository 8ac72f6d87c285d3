"""Records what a real Slurm does with the jobs of some folders, as tests/slurm/reference has it.

    python tests/slurm/live/record.py [--anew] DIR...

DIR has slurm.conf, jobs.csv and, where the configuration has a database, sacctmgr.txt. Those that
have been recorded are passed over, but for --anew: so it goes on where it was stopped. So are those
with commands by hand or reservations. `make slurm-references` records random/* anew.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = ("id", "start", "end", "nodelist", "state", "by", "cpus")
BY_HAND = ("at.txt", "reservations.txt")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("places", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    for k, place in enumerate(options.places, 1):
        told = f"{k} of {len(options.places)}: {place}"
        if any((place / name).exists() for name in BY_HAND):
            print(f"{told}: passed over, what was done by hand is not recorded", flush=True)
        elif options.anew or not (place / "run1.csv").exists():
            print(told, flush=True)
            record(place)


if __name__ == "__main__":
    main()
