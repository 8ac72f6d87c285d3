"""Random configurations and jobs as a real Slurm ran them, to the second (see reference/)."""

from math import inf
from pathlib import Path

import pytest
from slurm.recorded_runs import decided, decisions, meta, refused, replayed, rows

RANDOM = Path(__file__).parent / "reference" / "random"
NAMES = sorted(path.name for path in RANDOM.iterdir())


@pytest.mark.parametrize("fed", [True, False], ids=["fed", "free"])
@pytest.mark.parametrize("name", NAMES)
def test_every_decision_is_that_of_slurm(name, fed):
    place = RANDOM / name
    run, known = replayed(place, fed=fed), meta(place / "run1.meta.json")
    assert refused(run) == known["refused"]
    assert decisions(run, known.get("until", inf)) == decided(place)
    told = rows(place / "run1.csv")
    cpus = {row["id"]: int(row["cpus"]) for row in told if row["by"] and row.get("cpus")}
    started = [job for job in run.jobs if job.attempt is not None]
    found = {job.id: sum(job.allocation.cpus) for job in started if job.allocation.cpus}
    assert {name: found.get(name, count) for name, count in cpus.items()} == cpus
