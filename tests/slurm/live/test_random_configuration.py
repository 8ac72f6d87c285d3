"""A random configuration: the real Slurm that is here and the simulated one decide alike."""

from real_slurm import needs_slurm, ran
from slurm.live.random_cases import write

from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.requests.submissions import read_submissions
from ptaskmodel.slurm.run import simulate_slurm


def decisions(run):
    """When, where, by which scheduler jobs started, and how they ended."""
    t0 = run.phases.t0
    return {
        job.id: (job.start_s - t0, job.allocation.nodes, job.by, job.state)
        for job in run.jobs
        if job.allocation is not None
    }


@needs_slurm
def test_a_tree_of_switches(tmp_path):
    write("tree", 1, tmp_path)
    live = ran(tmp_path / "slurm.conf", tmp_path / "jobs.csv")
    conf = read_conf(tmp_path / "slurm.conf")
    jobs = read_submissions(tmp_path / "jobs.csv", conf).jobs
    assert decisions(simulate_slurm(conf, jobs, phases=live.phases)) == decisions(live)
