"""A random configuration: the real Slurm that is here and the simulated one decide alike.

The kinds of sites reach all that is simulated.
"""

import pytest
from real_slurm import needs_slurm, ran
from slurm.live.random_cases import EVERY, KINDS, SCHEDULER, case, write
from slurm.live.sites import SITES

from ptaskmodel.slurm.conf import keys, lines
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs.submissions import read_submissions
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
def test_shared_nodes(tmp_path):
    write("shared", 1, tmp_path)
    live = ran(tmp_path / "slurm.conf", tmp_path / "jobs.csv")
    conf = read_conf(tmp_path / "slurm.conf")
    jobs = read_submissions(tmp_path / "jobs.csv", conf).jobs
    assert decisions(simulate_slurm(conf, jobs, phases=live.phases)) == decisions(live)


# Keys that no kind of site has, and why.
UNREACHED = {
    "other names": {"features", "procs"},
    "no effect without costs": {
        *("bf_max_time", "bf_yield_interval", "bf_yield_sleep", "build_queue_timeout"),
        *("max_rpc_cnt", "max_sched_time", "messagetimeout"),
    },
    "no effect": {"allowgroups", "clustername", "prioritysitefactorparameters", "taskplugin"},
    "of nodes that fail": {"returntoservice", "slurmdtimeout"},
}


def test_the_kinds_of_sites_reach_each_key_that_is_simulated():
    menus = [EVERY, SCHEDULER]
    for site in SITES.values():
        menus += [site.conf, site.node, *site.partitions]
    reached = {key.lower() for menu in menus for key, choices in menu.items() if choices}
    reached |= {"nodes", "default", "cpus", "topologyplugin", "socketsperboard"}
    simulated = {*keys.SCALARS, *keys.PRIORITY, *keys.OPTIONS, *keys.SWITCHES}
    simulated |= {*lines.NODE, *lines.PARTITION}
    assert simulated - reached == set().union(*UNREACHED.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_drawn_with_its_seed_and_can_be_read(kind, tmp_path):
    assert case(kind, 1) == case(kind, 1) != case(kind, 2)
    write(kind, 1, tmp_path)
    conf = read_conf(tmp_path / "slurm.conf")
    jobs = read_submissions(tmp_path / "jobs.csv", conf).jobs
    assert len({job.array_id for job in jobs}) == 60
