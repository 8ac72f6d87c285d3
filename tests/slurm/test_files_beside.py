"""Files beside a slurm.conf: gres.conf is compared with it, the others are named."""

import pytest

from ptaskmodel.errors import SlurmError
from ptaskmodel.named_files import named_by
from ptaskmodel.slurm.conf.reading import read_conf

CONF = "NodeName=n[1-4] CPUs=4 Gres={}\nPartitionName=p Nodes=ALL\n"


def told(folder, gres_conf, gres="gpu:2"):
    (folder / "slurm.conf").write_text(CONF.format(gres))
    (folder / "gres.conf").write_text(gres_conf)
    return "\n".join(read_conf(folder / "slurm.conf").notes).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("gres_conf", "says"),
    [
        ("NodeName=n[1-4] Name=gpu File=/dev/nvidia[0-1]", ""),
        ("Name=gpu Count=2 # on all\n", ""),
        ("AutoDetect=nvml\nName=gpu Count=2", "gres.conf:1: AutoDetect='nvml': Gres of slurm"),
        ("Name=gpu Count=1", "gres.conf: lists 1 of the 2 gpu in slurm.conf: Slurm would drain"),
        ("NodeName=n3 Name=gpu Count=1", "here it has 2 (n3)"),
        ("Name=gpu Count=2 Cores=0-3", "gres.conf:1: Cores binds no units to cores"),
        ("Name=gpu Type=a Count=2", "gpu has types (a) that Gres in slurm.conf does not name"),
        ("Name=gpu Count=2\nName=nic Count=3", "nic counts for nothing without Gres=nic:3"),
        ("Name=gpu Count=2\nNodeName=n[3-6] Name=gpu", "not have 2 nodes, such as n5"),
        ("Name=gpu Count=2 Hue=3", "gres.conf:1: Hue changes nothing here"),
        ("Name=gpu Count=x", "gres.conf:1: left out: Count='x': give a whole number"),
    ],
)
def test_what_gres_conf_says_otherwise_is_told(tmp_path, gres_conf, says):
    found = told(tmp_path, gres_conf)
    assert says in found
    assert bool(says) == bool(found)


def test_units_that_slurmd_looks_for_need_not_be_listed(tmp_path):
    assert told(tmp_path, "AutoDetect=off\nName=gpu Count=2") == ""
    assert "lists" not in told(tmp_path, "AutoDetect=nvml\nName=gpu Count=1")


def test_a_gres_conf_that_cannot_be_read_is_refused_with_its_lines(tmp_path):
    with pytest.raises(SlurmError, match=r"gres.conf: 2 problems:\n  line 1: .*\n  line 3: "):
        told(tmp_path, "what\nName=gpu\nName gpu\n")


def test_it_is_among_the_files_that_a_slurm_conf_names(tmp_path):
    told(tmp_path, "Name=gpu Count=2")
    assert tmp_path / "gres.conf" in named_by(tmp_path / "slurm.conf")


def test_files_that_are_not_read_are_named(tmp_path):
    for name in ("cgroup.conf", "job_submit.lua", "topology.conf"):
        (tmp_path / name).write_text("")
    found = told(tmp_path, "Name=gpu Count=2")
    assert found.startswith("beside slurm.conf, and not read: cgroup.conf (")
    assert "job_submit.lua (may change or refuse jobs" in found
    assert "topology.conf (TopologyPlugin is topology/none)" in found


def test_an_unknown_key_of_down_nodes_is_told(tmp_path):
    (tmp_path / "slurm.conf").write_text(
        CONF.format("gpu:2") + "DownNodes=n4 Reason=fan Stata=DRAIN\n"
    )
    conf = read_conf(tmp_path / "slurm.conf")
    assert [(one.key, one.meant) for one in conf.others] == [("DownNodes Stata", "")]
    assert conf.down_nodes == {"n4": "DOWN"}
