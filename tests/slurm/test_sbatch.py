"""Options of sbatch as people give them: GPUs, scripts, what changes nothing, what is refused."""

import pytest

from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.requests import sbatch
from ptaskmodel.slurm.requests.job_table import read_jobs

SCRIPT = """#!/bin/bash
# What it needs
#SBATCH -N 1
#SBATCH --ntasks=4   # one a core
#SBATCH -t 00:10:00 --gpus=a100:2

module load x
#SBATCH --nodes=9
"""


def fields(text):
    return sbatch.whole_request(sbatch.options(text))


@pytest.mark.parametrize(
    ("text", "gres"),
    [
        ("--gpus-per-node=2", (Gres("gpu", None, 2),)),
        ("--gpus-per-node=a100:1,v100:2", (Gres("gpu", "a100", 1), Gres("gpu", "v100", 2))),
        ("-N1 -G 3", (Gres("gpu", None, 3),)),
        ("--gres=fpga:1 --gpus-per-node=2", (Gres("fpga", None, 1), Gres("gpu", None, 2))),
        ("--gres=gpu:1 --gpus-per-node=2", (Gres("gpu", None, 2),)),
    ],
)
def test_gpus_of_a_node_are_generic_resources(text, gres):
    assert fields(text)["gres"] == gres


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("--gpus=4", "give --gpus-per-node, or --nodes=1"),
        ("-N 2 --gpus=4", "on several nodes"),
        ("--gpus-per-task=1", "not simulated; give --gpus-per-node"),
        ("--mem-per-gpu=1G", "give --mem"),
        ("--prefer=x", "not simulated"),
        ("-S 1", "--core-spec: is not simulated"),
        ("--gpus-per-node=", "give name:count"),
        ("--colour=red", "is unknown"),
    ],
)
def test_what_is_not_simulated_is_named_with_the_remedy(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        fields(text)


def test_options_that_change_nothing_are_taken():
    text = "-v -Q --get-user-env=10 --wckey=w --mail-type=ALL -k --gres-flags=enforce-binding -n 2"
    assert fields(text) == {"tasks": 2}


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
    assert first.gres == (Gres("gpu", "a100", 2),)
    assert first.exclusive is None


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("#SBATCH --colour=red\n", "script 'a.sbatch': line 1: the option '--colour' is unknown"),
        ("#SBATCH -n 1\n", "has no time limit"),
        ("#SBATCH --gpus=2 -t 5\n", "--nodes=1"),
    ],
)
def test_a_script_that_cannot_be_read_is_named_with_its_line(tmp_path, script, complaint):
    with pytest.raises(SlurmError) as caught:
        jobs_of(tmp_path, "id,submit,run,script\na,0,9,a.sbatch\n", script)
    assert complaint in str(caught.value)


def test_a_script_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SlurmError, match=r"b\.sbatch"):
        jobs_of(tmp_path, "id,submit,run,script\na,0,9,b.sbatch\n")
