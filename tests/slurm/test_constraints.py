"""Constraints and `--switches`: how Slurm reads them, and which nodes a job with one gets."""

import pytest
from slurm.small_clusters import CORES, LINEAR, conf_of, job, nodes_of, run, starts

from ptaskmodel.slurm.jobs.request import has_all, parsed

TWO_KINDS = (
    "NodeName=n[1-2] CPUs=4 Feature=ib Weight=10\n"
    "NodeName=n[3-4] CPUs=4 Feature=eth Weight=1\n"
    "PartitionName=p Nodes=ALL Default=YES\n"
)


@pytest.mark.parametrize(
    ("text", "features", "fulfilled"),
    [
        ("a&b", {"a"}, False),
        ("a,b", {"a", "b"}, True),
        ("a|b&c", {"a"}, False),  # from left to right
        ("a&b|c", {"c"}, True),
        ("(a|b)&c", {"a"}, False),
        ("(a|b)&c", {"b", "c"}, True),
        ("c&(a|b)", {"c"}, False),
        ("[a]", {"a"}, True),
        (None, set(), True),
    ],
)
def test_features_are_read_from_left_to_right(text, features, fulfilled):
    assert has_all(parsed(text).of_all, features) == fulfilled


def test_brackets_and_counts():
    constraint = parsed("f&[a|(b&c)]")
    assert [one.name for one in constraint.of_all] == ["f"]
    assert [[each.name for each in one.group] for one in constraint.ways] == [[], ["b", "c"]]
    assert constraint.names == {"a", "b", "c", "f"}
    portions = parsed("[a*1&b*2]").portions
    assert [(each.feature.name, each.nodes, each.apart) for each in portions] == [
        ("a", 1, True),
        ("b", 2, True),
    ]


@pytest.mark.parametrize(
    "text", ["", "[a&b]", "[a*1|b*2]", "[a", "a]", "(a", "a&&b", "*2", "a*0", "[a|b]&[c|d]", "a("]
)
def test_what_slurm_does_not_take(text):
    with pytest.raises(ValueError, match=r"\w"):
        parsed(text)


@pytest.mark.parametrize(
    ("constraint", "nodes", "chosen"),
    [
        ("[ib|eth]", 1, [1]),  # the first kind, though heavier
        ("ib|eth", 1, [3]),
        ("[ib|eth]", 3, None),  # no kind has as many
        ("ib|eth", 3, [1, 3, 4]),
        ("[ib*1&eth*1]", 2, [1, 3]),
        ("ib*1", 2, [1, 3]),
        ("[ib*2&eth*2]", 4, [1, 2, 3, 4]),
    ],
)
def test_nodes_of_one_kind_or_of_each(tmp_path, constraint, nodes, chosen):
    conf = conf_of(tmp_path, CORES + TWO_KINDS)
    asked = job("a", 0, 10, 10, nodes=nodes, tasks=nodes, constraint=constraint)
    found, records = run(conf, [asked])
    record = records["a"]
    assert (None if record.allocation is None else nodes_of(found, record)) == chosen


def test_a_portion_in_brackets_takes_none_of_the_named_nodes_behind_another(tmp_path):
    """As a real slurmctld 22.05.8 did: the named node is beside one of each kind."""
    conf = conf_of(tmp_path, CORES + TWO_KINDS)
    asked = {"tasks": 1, "constraint": "[ib*1&eth*1]", "nodelist": ("n3",)}
    found, records = run(conf, [job("a", 0, 10, 10, **asked)])
    assert nodes_of(found, records["a"]) == [1, 3, 4]


TREE = (
    "NodeName=n[1-4] CPUs=8\nPartitionName=p Nodes=ALL Default=YES\nTopologyPlugin=topology/tree\n"
)
TWO_LEAVES = (
    "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n"
)


@pytest.mark.parametrize(
    ("select", "asked", "start_s"),
    [
        (CORES, {}, 135),  # a full pass after the 100 s that it waits, from its submission on
        (CORES, {"contiguous": True}, 3),
        (CORES, {"spread": True}, 3),
        (CORES.replace("CR_Core", "CR_Core,CR_LLN"), {}, 3),
        (CORES.replace("cons_tres", "cons_res"), {}, 135),
        (LINEAR, {"contiguous": True}, 135),
    ],
)
def test_who_is_not_placed_by_switches_does_not_wait_for_few(tmp_path, select, asked, start_s):
    """As a real slurmctld 22.05.8 started them."""
    (tmp_path / "topology.conf").write_text(TWO_LEAVES)
    first = job("a", 0, 900, 20, nodes=1)
    wide = job("b", 2, 60, 5, nodes=3, switches=1, switch_wait_s=100, **asked)
    _, done = run(conf_of(tmp_path, select + TREE), [first, wide])
    assert starts(done)["b"] == start_s


def test_the_wait_for_few_switches_begins_while_a_job_depends_on_another(tmp_path):
    (tmp_path / "topology.conf").write_text(TWO_LEAVES)
    first = job("a", 0, 200, 20, nodes=4)
    wide = job("b", 2, 60, 5, nodes=3, switches=1, switch_wait_s=100, dependency="afterany:a")
    _, done = run(conf_of(tmp_path, CORES + TREE), [first, wide])
    assert starts(done) == {"a": 0, "b": 200}
