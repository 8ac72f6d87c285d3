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


def test_a_job_is_refused_whose_raised_cpus_no_nodes_have(tmp_path):
    """Twenty tasks with two CPUs each: so did the recording units of seed 11."""
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/cons_res\nSelectTypeParameters=CR_CPU_Memory\n"
        "NodeName=n[1-4] Sockets=2 CoresPerSocket=4 CPUs=8 RealMemory=16000\n"
        "PartitionName=p0 Nodes=ALL MaxMemPerCPU=1500 Default=YES\n"
    )
    (tmp_path / "jobs.csv").write_text(
        "id,submit,cores,limit,run,extra\na,0,20,60,87,--mem-per-cpu='2500'\n"
    )
    conf = read_conf(tmp_path / "slurm.conf")
    (job,) = simulate_slurm(conf, read_submissions(tmp_path / "jobs.csv", conf).jobs).jobs
    assert (job.state, job.reason) == ("REFUSED", "BadConstraints")
