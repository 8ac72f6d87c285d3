"""Options of sbatch as people give them: GPUs, scripts, what changes nothing, what is refused."""

from dataclasses import replace

import pytest

from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.conf.facts import CONS_RES, CONS_TRES, Conf, Gres
from ptaskmodel.slurm.conf.reading import read_conf
from ptaskmodel.slurm.jobs import gpus, sbatch
from ptaskmodel.slurm.jobs.job_table import read_jobs
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.jobs.submissions import read_submissions
from ptaskmodel.workload.works import DelayWork

SCRIPT = """#!/bin/bash
# What it needs
#SBATCH -N 1
#SBATCH --ntasks=4   # one a core
#SBATCH -t 00:10:00 --gpus=a100:2

module load x
#SBATCH --nodes=9
"""


@pytest.mark.parametrize(
    ("text", "gres"),
    [
        ("--gpus-per-node=2", (Gres("gpu", None, 2),)),
        ("--gpus-per-node=a100:1,v100:2", (Gres("gpu", "a100", 1), Gres("gpu", "v100", 2))),
        ("--gres=fpga:1 --gpus-per-node=2", (Gres("fpga", None, 1), Gres("gpu", None, 2))),
        ("--gres=gpu:1 --gpus-per-node=2", (Gres("gpu", None, 2),)),
    ],
)
def test_gpus_of_a_node_are_generic_resources(text, gres):
    assert sbatch.options(text)["gres"] == gres


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("--gpus=", "give name:count"),
        ("--gres-flags=one-task-per-sharing", "give enforce-binding"),
        ("-O", "--overcommit: is not simulated"),
        ("--gpus-per-node=", "give name:count"),
        ("--test-only", "--test-only: is not a job"),
        ("--colour=red", "is unknown"),
    ],
)
def test_what_is_not_simulated_is_named_with_the_remedy(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        sbatch.options(text)


def test_options_that_change_nothing_are_taken():
    text = "-v -Q --get-user-env=10 --wckey=w --mail-type=ALL -k --gpu-bind=none -n 2"
    silent = ("verbose", "quiet", "get-user-env", "wckey", "mail-type", "no-kill", "gpu-bind")
    passed_over = frozenset(f"--{name}" for name in silent)
    assert sbatch.options(text) == {"tasks": 2, sbatch.PASSED_OVER: passed_over}


def test_options_of_newer_versions_that_change_nothing_and_nice_alone():
    text = "--stepmgr --oom-kill-step --extra=x --network=y --resv-ports=2 --segment=2 --nice -n 2"
    found = sbatch.options(text)
    assert (found["tasks"], found["nice"]) == (2, 100)
    assert len(found[sbatch.PASSED_OVER]) == 6


def test_gres_none_asks_for_no_gres_and_takes_back_what_was_asked_for():
    assert sbatch.options("--gres=none") == {"gres": ()}
    assert sbatch.options("--gres=gpu:2 --gres=NONE") == {"gres": ()}
    assert sbatch.options("--gres=none --gres=gpu:2") == {"gres": (Gres("gpu", None, 2),)}


# Of sbatch 22.05's help.
HELP = """
array account bb bbf begin comment cpu-freq cpus-per-task dependency deadline delay-boot chdir error
export export-file get-user-env gid gres gres-flags hold ignore-pbs input job-name no-kill licenses
clusters container distribution mail-type mail-user mcs-label ntasks nice no-requeue ntasks-per-node
nodes output overcommit partition parsable power priority profile propagate qos quiet reboot requeue
oversubscribe core-spec signal spread-job switches thread-spec time time-min uid use-min-nodes
verbose wait wckey wrap cluster-constraint contiguous constraint nodefile mem mincpus reservation
tmp nodelist exclude exclusive mem-per-cpu sockets-per-node cores-per-socket threads-per-core
extra-node-info ntasks-per-core ntasks-per-socket hint mem-bind cpus-per-gpu gpus gpu-bind gpu-freq
gpus-per-node gpus-per-socket gpus-per-task mem-per-gpu ntasks-per-gpu
"""


def test_each_option_of_sbatch_is_known_or_refused_with_a_reason():
    for name in HELP.split():
        known = name.replace("-", "_") in sbatch.NAMES
        assert known != (f"--{name}" in sbatch.REFUSED), name
    for name in sbatch.REFUSED:
        with pytest.raises(ValueError, match=f"{name}: is"):
            sbatch.options(f"{name} 1")


def test_gpus_are_asked_for_in_all_and_with_cpus_memory_and_tasks():
    text = "-G 4 --gpus-per-task=a:1 --cpus-per-gpu=2 --mem-per-gpu=3G --ntasks-per-gpu=1"
    assert sbatch.options(text) == {
        "gpus": (Gres("gpu", None, 4),),
        "gpus_per_task": (Gres("gpu", "a", 1),),
        "cpus_per_gpu": 2,
        "memory_per_gpu_MiB": 3072,
        "tasks_per_gpu": 1,
    }


def test_tasks_of_a_socket_and_of_a_core_are_asked_for():
    found = sbatch.options("--ntasks-per-socket=2 --ntasks-per-core 1")
    assert found == {"tasks_per_socket": 2, "tasks_per_core": 1}


@pytest.mark.parametrize(
    ("options", "select", "why"),
    [
        ("--ntasks-per-socket=1 --gres=gpu:1", "cons_tres", "for jobs with GPUs"),
        ("--ntasks-per-core=1 --gpus=1", "cons_tres", "for jobs with GPUs"),
        ("--ntasks-per-core=2", "linear", "CPUs that no node has"),
        ("--ntasks-per-core=1 -c3", "cons_res", "no whole cores"),
    ],
)
def test_tasks_of_a_socket_or_core_that_are_not_simulated(tmp_path, options, select, why):
    nodes = "NodeName=a Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 Gres=gpu:2\n"
    text = f"SelectType=select/{select}\nGresTypes=gpu\n{nodes}"
    (tmp_path / "slurm.conf").write_text(text + "PartitionName=p Nodes=ALL Default=YES\n")
    (tmp_path / "jobs.csv").write_text(f"id,submit,run,limit,extra\na,0,10,60,{options}\n")
    with pytest.raises(SlurmError, match=why):
        read_submissions(tmp_path / "jobs.csv", read_conf(tmp_path / "slurm.conf"))


CONF = Conf((), (), select_type=CONS_TRES)


def completed(text, conf=CONF):
    """The numbers that follow from a job's GPUs: tasks, CPUs in all, GPUs in all, nodes."""
    job = gpus.completed(JobRequest("a", 0, DelayWork(1), **sbatch.options(text)), conf)
    total = sum(one.count for one in job.gpus)
    return job.tasks, job.least_cpus, total, (job.min_nodes, job.max_nodes)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("--gpus=4", (None, 1, 4, (None, None))),
        ("-n3 --gpus-per-task=2", (3, 3, 6, (None, None))),
        ("-N2 --gpus-per-task=2", (2, 2, 4, (2, 2))),
        ("--gpus=6 --gpus-per-task=2", (3, 3, 6, (None, None))),
        ("--gpus=6 --gpus-per-node=2", (None, 1, 6, (3, 3))),
        ("--gpus=2 --ntasks-per-gpu=3", (6, 6, 2, (None, None))),
        ("-n6 --ntasks-per-gpu=3", (6, 6, 2, (None, None))),
        ("-N1-9 --gpus=4", (None, 1, 4, (1, 4))),
    ],
)
def test_tasks_nodes_and_cpus_follow_from_gpus(text, numbers):
    assert completed(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        "--gpus-per-task=1",
        "-N2 --gpus=1",
        "--gpus=3 --gpus-per-node=2",
        "--gpus=4 --gpus-per-task=2 -n3",
        "--gpus-per-socket=1",
        "--mem-per-gpu=1G",
        "--gpus=1 --mem-per-gpu=1G --mem=1G",
        "--gpus=1 --cpus-per-gpu=1 -c1",
        "--ntasks-per-gpu=2",
        "-n5 --ntasks-per-gpu=2",
        "--gres=gpu:1,gpu:a:1 --gpus=2",
    ],
)
def test_gpus_that_contradict_each_other_are_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        completed(text)


def test_other_plugins_refuse_gpus_of_a_job():
    with pytest.raises(ValueError, match="cons_tres alone"):
        completed("--gpus=1", replace(CONF, select_type=CONS_RES))


def jobs_of(tmp_path, rows, script=SCRIPT):
    (tmp_path / "a.sbatch").write_text(script)
    (tmp_path / "jobs.csv").write_text(rows)
    return read_jobs(tmp_path / "jobs.csv").jobs


def test_a_script_gives_the_options_and_columns_win(tmp_path):
    rows = "id,submit,run,script,ntasks\na,0,9,a.sbatch,\nb,0,9,a.sbatch,8\n"
    first, second = jobs_of(tmp_path, rows)
    assert (first.tasks, second.tasks) == (4, 8)
    assert first.limit_min == 10
    assert (first.min_nodes, first.max_nodes) == (1, 1)
    assert first.gpus == (Gres("gpu", "a100", 2),)
    assert first.exclusive is None


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("#SBATCH --colour=red\n", "script 'a.sbatch': line 1: the option '--colour' is unknown"),
        ("#SBATCH -n 1\n", "has no time limit"),
        ("#SBATCH --gpus=a: -t 5\n", "line 1: --gpus"),
    ],
)
def test_a_script_that_cannot_be_read_is_named_with_its_line(tmp_path, script, complaint):
    with pytest.raises(SlurmError) as caught:
        jobs_of(tmp_path, "id,submit,run,script\na,0,9,a.sbatch\n", script)
    assert complaint in str(caught.value)


def test_a_script_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SlurmError, match=r"b\.sbatch"):
        jobs_of(tmp_path, "id,submit,run,script\na,0,9,b.sbatch\n")


def test_a_script_without_a_limit_is_named(tmp_path):
    (tmp_path / "run.sh").write_text("#!/bin/bash\n#SBATCH -n 4\n")
    (tmp_path / "jobs.csv").write_text("id,submit,run,script\na,0,60,run.sh\n")
    with pytest.raises(SlurmError, match=r"jobs.csv:2: has no time limit, nor has 'run.sh'; give"):
        read_jobs(tmp_path / "jobs.csv")
