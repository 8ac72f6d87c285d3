"""MaxMemPerCPU and MaxMemPerNode, --mincpus: as a real Slurm did (see reference/)."""

from pathlib import Path

import pytest
from slurm.recorded_runs import rows

from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm

MEMORY = Path(__file__).parent / "reference" / "memory"


def said(run, job):
    """What a row of real.csv says of a job."""
    held = job.allocation
    names = [] if held is None else run.nodes.names_of(held.nodes)
    return {
        "id": job.id,
        "state": job.state,
        "reason": job.reason if job.state == "PENDING" else "",
        "nodelist": " ".join(names),
        "cpus": " ".join(map(str, () if held is None else held.cpus)),
        "memory": " ".join(map(str, () if held is None else held.memory_MiB)),
    }


@pytest.mark.parametrize("name", sorted(path.name for path in MEMORY.iterdir()))
def test_memory_brings_cpus_or_keeps_jobs_waiting(name):
    conf = read_conf(MEMORY / name / "slurm.conf")
    run = simulate_slurm(conf, read_submissions(MEMORY / name / "jobs.csv", conf).jobs)
    assert [said(run, job) for job in run.jobs] == list(rows(MEMORY / name / "real.csv"))
