"""Jobs that fit no nodes are said with what they ask for, and the most that there is of it."""

import json

import pytest

from ptaskmodel.cli import main

CONF = """SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
NodeName=n[1-3] CPUs=8 Sockets=2 CoresPerSocket=4 RealMemory=16000 Gres=gpu:4 Feature=ib
NodeName=n[4-6] CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=64000 Feature=eth
PartitionName=gpu Nodes=n[1-3] MaxTime=60 Default=YES
PartitionName=cpu Nodes=n[4-6] MaxTime=60
"""


def told(tmp_path, rows):
    (tmp_path / "slurm.conf").write_text(CONF)
    lines = ["id,submit,cores,limit,run,partition,extra", *rows]
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    paths = [str(tmp_path / name) for name in ("slurm.conf", "jobs.csv", "out")]
    assert main(["slurm", *paths[:2], "-o", paths[2]]) == 0
    remarks = json.loads((tmp_path / "out" / "summary.json").read_text())["remarks"]
    return [one["text"] for one in remarks if one["effect"] == "refused"]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("1,600,9,gpu,--gres=gpu:5", "5 GPUs a node; the most that any node of gpu has is 4"),
        (
            "1,600,9,gpu,--gres=gpu:a100:1",
            "1 GPU of type a100 a node; the most that any node of gpu has is 0",
        ),
        ("1,600,9,gpu,--mem=20000", "20000 MiB a node; the most that any node of gpu has is 16000"),
        ("1,600,9,gpu,-c 20", "20 CPUs a node; the most that any node of gpu has is 8"),
        (
            "1,600,9,gpu,--sockets-per-node=3",
            "3 sockets a node; the most that any node of gpu has is 2",
        ),
        ("17,600,9,cpu,-N1", "17 CPUs on 1 node; the most that cpu has there is 16"),
        ("1,600,9,gpu,--gpus=20", "20 GPUs in all on 1 node; the most that gpu has there is 4"),
        ("1,600,9,cpu,-w n1", "node n1; it is not in partition cpu, or takes no jobs"),
        ("1,600,9,gpu,-C eth", "'eth'; no node of gpu has these features"),
        (
            "3,600,9,gpu,-N3 -x n1",
            "3 nodes that have all that it asks of each; gpu has 2",
        ),
    ],
)
def test_a_job_that_fits_no_nodes_is_said_with_what_it_asks_for(tmp_path, asked, text):
    assert told(tmp_path, [f"a,0,{asked}"])[0] == f"job 'a' asks for {text} (BadConstraints)"


def test_requests_that_jobs_have_in_common_are_said_once_and_few_of_many(tmp_path):
    counts = [5, 5, 6, 7, 8, 9]
    rows = [f"j{k},{k},1,600,9,gpu,--gres=gpu:{n}" for k, n in enumerate(counts)]
    texts = told(tmp_path, rows)
    assert texts[0].startswith("job 'j0' and 1 more ask for 5 GPUs a node;")
    assert texts[1].startswith("job 'j2' asks for 6 GPUs a node;")
    assert texts[3] == "... and 2 jobs with other requests that fit no nodes"
