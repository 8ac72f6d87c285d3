"""What a slurm.conf means to later versions of Slurm: defaults, keys, what is gone or refused.

The facts are those of read_config.c and the release notes of each version.
"""

import json

import pytest
from slurm.test_conf import SMALL, conf_of

from ptaskmodel.cli import main
from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.conf.facts import BASIC, CONS_TRES, LINEAR, MULTIFACTOR
from ptaskmodel.slurm.conf.versions import VERSIONS

OLD = LINEAR, BASIC
NEW = CONS_TRES, MULTIFACTOR


@pytest.mark.parametrize("version", VERSIONS)
def test_cons_tres_and_multifactor_are_the_defaults_from_23_11_on(tmp_path, version):
    conf = conf_of(tmp_path, SMALL, version=version)
    assert (conf.select_type, conf.priority_type) == (NEW if version >= "23.11" else OLD)
    given = "SelectType=select/linear\nPriorityType=priority/basic\n"
    assert conf_of(tmp_path, given + SMALL, version=version).select_type == LINEAR


def test_options_of_preemption_have_a_key_of_their_own_from_23_02_on(tmp_path):
    text = "PreemptParameters=strict_order,reorder_count=3,reclaim_licenses\n" + SMALL
    new = conf_of(tmp_path, text, version="23.02")
    assert (new.scheduler.preempt_strict_order, new.scheduler.preempt_reorder_count) == (True, 3)
    assert [one.key for one in new.others] == ["PreemptParameters reclaim_licenses"]
    old = conf_of(tmp_path, text)
    assert not old.scheduler.preempt_strict_order
    assert [one.key for one in old.others] == ["PreemptParameters"]


def test_preemption_in_scheduler_parameters_is_still_read(tmp_path):
    text = "SchedulerParameters=preempt_strict_order,bf_interval=9\n" + SMALL
    conf = conf_of(tmp_path, f"PreemptParameters=youngest_first\n{text}", version="25.05")
    found = conf.scheduler
    assert found.preempt_strict_order
    assert found.preempt_youngest_first
    assert found.bf_interval_s == 9


@pytest.mark.parametrize(
    ("line", "until", "complaint"),
    [
        ("SelectType=cons_res", "23.02", "23.11 dropped it; write SelectType="),
        ("SelectType=select/cons_res", "23.02", "23.11 dropped it; write SelectType="),
        ("TopologyPlugin=topology/tree", "23.11", r"slurm.conf:\d+: .*24.05 took trees out of"),
        ("PartitionName=q Nodes=n1 MaxCPUsPerSocket=2", "22.05", "came with Slurm 23.02"),
        ("PartitionName=q Nodes=n1 ExclusiveTopo=yes", "23.11", "came with Slurm 24.05"),
    ],
)
def test_what_a_version_dropped_or_brought_unjudged_is_refused(tmp_path, line, until, complaint):
    (tmp_path / "topology.conf").write_text("SwitchName=s Nodes=n[1-2]\n")
    text = f"{SMALL}\n{line}\n"
    if "Topology" in line:
        text = f"SelectType=select/linear\n{text}"
    for version in VERSIONS:
        if version <= until:
            conf_of(tmp_path, text, version=version)
        else:
            with pytest.raises(SlurmError, match=complaint):
                conf_of(tmp_path, text, version=version)


def test_blocks_and_topology_yaml_are_refused_with_the_reason(tmp_path):
    with pytest.raises(SlurmError, match=r"blocks came with Slurm 23\.11"):
        conf_of(tmp_path, f"TopologyPlugin=topology/block\n{SMALL}", version="24.05")
    (tmp_path / "topology.yaml").write_text("- topology: t\n")
    conf_of(tmp_path, SMALL, version="24.11")
    with pytest.raises(SlurmError, match=r"topology.yaml: it came with Slurm 25.05"):
        conf_of(tmp_path, SMALL, version="25.05")


def test_a_file_that_tells_its_version_by_its_keys_gets_a_hint(tmp_path):
    text = f"MaxBatchRequeue=3\nHashPlugin=hash/k12\n{SMALL}"
    (note,) = [note for note in conf_of(tmp_path, text).notes if "--slurm-version" in note]
    assert "HashPlugin came with Slurm 24.05, and the file is read as of 22.05" in note
    assert note.endswith(
        "give --slurm-version 24.05; that changes SelectType and PriorityType, which the file "
        "leaves out"
    )
    assert not conf_of(tmp_path, text, version="24.05").notes
    assert not conf_of(tmp_path, SMALL).notes


def test_the_command_takes_the_version_and_names_those_it_knows(tmp_path, capsys):
    (tmp_path / "slurm.conf").write_text(SMALL)
    (tmp_path / "jobs.csv").write_text("id,submit,nodes,limit,run\na,0,1,60,5\n")
    out = tmp_path / "out"
    arguments = ["slurm", str(tmp_path / "slurm.conf"), str(tmp_path / "jobs.csv"), "-o", str(out)]
    assert main([*arguments, "--slurm-version", "24.11"]) == 0
    settings = json.loads((out / "summary.json").read_text())["settings"]
    assert (settings["version"], settings["select_type"]) == ("24.11", CONS_TRES)
    assert main([*arguments, "--slurm-version", "20.11"]) == 2
    assert "22.05" in capsys.readouterr().err
