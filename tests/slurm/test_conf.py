"""slurm.conf: its grammar, its keys, and one line for every mistake."""

import contextlib
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from slurm.recorded_runs import FOLDERS, folder

from ptaskmodel.errors import SlurmError
from ptaskmodel.results.tables.slurm_summary import unread_notes
from ptaskmodel.slurm.conf import keys
from ptaskmodel.slurm.conf.facts import Gres
from ptaskmodel.slurm.conf.lines import NODE, PARTITION
from ptaskmodel.slurm.conf.reading import read_conf

SMALL = "NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL\n"


def conf_of(tmp_path, text, name="slurm.conf", **options):
    (tmp_path / name).write_text(text)
    return read_conf(tmp_path / name, **options)


@pytest.mark.parametrize("name", FOLDERS)
def test_recorded_configurations_are_read_whole(name):
    conf = read_conf(folder(name) / "slurm.conf")
    assert not conf.others
    assert not conf.notes
    assert conf.default_partition is not None
    assert all(partition.nodes for partition in conf.partitions)


def test_the_grammar(tmp_path):
    (tmp_path / "more.conf").write_text("partitionname=p \\\n  nodes=ALL # all\n")
    conf = conf_of(
        tmp_path,
        """
        # a comment \\
        SCHEDULERPARAMETERS = "bf_interval=60,DEFER,bf_resolution=600"
        NodeName=DEFAULT Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=2000
        nodename=n[01-02,7],login[0-1]x Feature=a,b Weight=3 State=DOWN # down
        NodeName=m Gres=gpu:tesla:4,ssd:1K,nic Feature="a b"
        DownNodes=m State=drain
        Licenses=matlab:10,foo
        KillWait=5 KillWait=7
        LogFile=/x\\#y FancyKey=1
        include more.conf
        """,
    )
    one, other = conf.nodes
    assert one.names == ("n01", "n02", "n7", "login0x", "login1x")
    assert (one.cpus, one.cores, one.threads, one.sockets) == (16, 8, 2, 2)
    assert (one.memory_MiB, one.weight, one.features) == (2000, 3, ("a", "b"))
    assert not one.usable
    assert other.usable
    assert other.gres == (Gres("gpu", "tesla", 4), Gres("ssd", None, 1024), Gres("nic", None, 1))
    assert conf.down_nodes == {"m": "DRAIN"}
    assert conf.partitions[0].nodes == (*one.names, "m")
    assert conf.licenses == {"matlab": 10, "foo": 1}
    assert conf.scheduler.bf_interval_s == 60
    assert conf.scheduler.bf_resolution_s == 600
    assert conf.scheduler.defer
    assert conf.kill_wait_s == 7
    assert "again" in conf.notes[0]
    assert [other.key for other in conf.others] == ["LogFile", "FancyKey"]
    assert conf.others[0].value == "/x#y"
    assert conf.others[1].where.endswith("slurm.conf:10")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("CPUs=16", (16, 16, 1)),
        ("CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=16 ThreadsPerCore=1", (16, 1, 1)),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=3 ThreadsPerCore=2", (24, 4, 2)),
        ("CPUs=6 Sockets=2 CoresPerSocket=3 ThreadsPerCore=2", (6, 2, 1)),
        ("CPUs=12 CoresPerSocket=3 ThreadsPerCore=2", (12, 2, 2)),
        ("", (1, 1, 1)),
    ],
)
def test_shapes_of_nodes(tmp_path, shape, expected):
    conf = conf_of(tmp_path, f"NodeName=n {shape}\nPartitionName=p Nodes=n\n")
    node = conf.nodes[0]
    assert (node.cpus, node.sockets, node.threads) == expected
    assert not conf.notes


def test_cpus_that_do_not_match_become_all_threads(tmp_path):
    conf = conf_of(tmp_path, "NodeName=n CPUs=5 Sockets=2\nPartitionName=p Nodes=n\n")
    assert conf.nodes[0].cpus == 2
    assert "CPUs=5" in conf.notes[0]


def test_partitions(tmp_path):
    conf = conf_of(
        tmp_path,
        """NodeName=a[1-4] Feature=big
        NodeName=b
        NodeSet=bigs Feature=big
        PartitionName=DEFAULT MaxTime=1-0 Shared=FORCE State=DOWN
        PartitionName=x Nodes=bigs,b Default=YES Priority=7 MaxNodes=UNLIMITED
        PartitionName=y Nodes=a[2-3] MaxTime=90:30 OverSubscribe=YES:2 OverTimeLimit=UNLIMITED
        PartitionName=DEFAULT State=UP
        PartitionName=z MaxTime=INFINITE OverSubscribe=EXCLUSIVE PreemptMode=OFF
        """,
    )
    x, y, z = conf.partitions
    assert x.nodes == ("a1", "a2", "a3", "a4", "b")
    assert (x.tier, x.job_factor, x.max_time_min, x.max_share) == (7, 7, 1440, 4)
    assert (y.max_time_min, y.over_subscribe, y.max_share) == (91, "YES", 2)
    assert y.over_time_limit_min == math.inf
    assert (z.nodes, z.max_time_min, z.state) == ((), None, "UP")
    assert z.preempt_mode == {"OFF"}
    assert not x.starts
    assert conf.default_partition is x


def test_options_are_found_by_what_the_text_contains(tmp_path):
    text = f"SchedulerParameters=defer_batch,bf_max_job_user_part=3,strange\n{SMALL}"
    conf = conf_of(tmp_path, text)
    assert conf.scheduler.defer
    assert conf.scheduler.bf_max_job_user_part == 3
    assert conf.scheduler.bf_max_job_part == 0
    assert [one.key for one in conf.others] == ["SchedulerParameters strange"]


def test_all_problems_are_told_at_once_and_not_what_follows_from_them(tmp_path):
    text = (
        "SchedulerParameters=bf_interval=abc,bf_window=-3\nNodeName=n[1-4] CPUs=four State=odd\n"
        "NodeName=m[4-1\nNodeName=n2\nFoo Bar\ninclude not_there.conf\n"
        "PartitionName=p Nodes=m4 MaxTime=later\nDownNodes=m3\n"
    )
    with pytest.raises(SlurmError) as caught:
        conf_of(tmp_path, text)
    head, *told = str(caught.value).split("\n  ")
    assert head.endswith("slurm.conf: 9 problems:")
    assert [int(line.split()[1].rstrip(":")) for line in told] == [1, 1, 2, 2, 3, 4, 5, 6, 7]


def test_all_problems_of_a_topology_are_told_at_once(tmp_path):
    (tmp_path / "topology.conf").write_text(
        "SwitchName=a Nodes=n[1-2\nSwitch=b Nodes=n1\nSwitchName=c\n"
    )
    with pytest.raises(SlurmError, match=r"topology.conf: 3 problems:\n  line 1: .*\n  line 2: "):
        conf_of(tmp_path, f"TopologyPlugin=topology/tree\n{SMALL}")


def test_misspelt_keys_are_told_at_once_with_what_they_may_mean(tmp_path):
    text = (
        "PriorityWeigthFairshare=1000\nSchedulerParameters=bf_windw=60\nSlurmctldTimeout=120\n"
        "AccountingStorageHost=db\nFancyKey=1\nNodeName=n[0-1] RealMemroy=100\n"
        "PartitionName=p Nodes=ALL MaxTimes=60 Hidden=NO\n"
    )
    with pytest.warns(UserWarning, match="is not known") as told:
        conf = conf_of(tmp_path, text)
    said = [str(each.message).rpartition("/")[2] for each in told]
    assert said == [
        "slurm.conf:1: PriorityWeigthFairshare is not known; did you mean PriorityWeightFairshare?",
        "slurm.conf:2: SchedulerParameters bf_windw is not known; did you mean bf_window?",
        "slurm.conf:6: RealMemroy is not known; did you mean RealMemory?",
        "slurm.conf:7: MaxTimes is not known; did you mean MaxTime?",
    ]
    notes = unread_notes(conf)
    assert "bf_windw changes nothing here; did you mean bf_window?" in notes[1]
    assert notes[-1].endswith(
        "that change nothing here: 4, such as SlurmctldTimeout, AccountingStorageHost, FancyKey, "
        "Hidden"
    )


def test_words_that_stand_for_several_and_words_that_nobody_knows(tmp_path):
    text = "PriorityFlags=NO_NORMAL_ALL,NEW\nSelectTypeParameters=CR_Memory,CR_Typo\n"
    conf = conf_of(tmp_path, text + SMALL)
    assert {"NO_NORMAL_QOS", "NO_NORMAL_TRES", "NO_NORMAL_PART"} <= conf.priority.flags
    assert [one.key for one in conf.others] == ["PriorityFlags NEW", "SelectTypeParameters CR_TYPO"]


def test_a_key_given_twice_in_a_line_is_told(tmp_path):
    conf = conf_of(tmp_path, "NodeName=n CPUs=2 CPUs=4\nPartitionName=p Nodes=n\n")
    assert conf.nodes[0].cpus == 4
    assert "CPUs is given again" in conf.notes[0]


def test_defaults_of_options_that_follow_others(tmp_path):
    conf = conf_of(tmp_path, f"SchedulerParameters=bf_interval=90\nMessageTimeout=3\n{SMALL}")
    assert (conf.bf_max_time_s, conf.bf_node_space_size, conf.max_sched_time_s) == (90, 500, 1)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("KillWait=x", "slurm.conf:1: KillWait='x': give a whole number"),
        ("SchedulerParameters=bf_interval=0", ":1: bf_interval='0': give a whole number, from 1"),
        ("SelectType=select/magic", "give select/linear"),
        ("SelectTypeParameters=CR_CPU", "or give --slurm-version 23.11, whose default that is"),
        (
            "SelectType=select/linear\nSelectTypeParameters=CR_CPU",
            ":2: SelectTypeParameters: Slurm does not start with CR_CPU and select/linear",
        ),
        ("SelectType=select/cons_res\nSelectTypeParameters=CR_Memory", ":2: SelectTypeParameters"),
        ("PreemptMode=SUSPEND", "give SUSPEND,GANG"),
        ("PreemptMode=CANCEL,REQUEUE", "give one of"),
        ("NodeName=n[3-1]", "goes down"),
        ("NodeName=n[1-999999999]", "more than"),
        ("NodeName=n2", "there already"),
        ("PartitionName=p Nodes=n1", "there already"),
        ("PartitionName=q Nodes=n9", "which no NodeName line gives"),
        ("PartitionName=q MaxTime=soon", "give minutes"),
        ("PartitionName=q OverSubscribe=MAYBE", "give NO"),
        ("no pairs here", "write Key=Value"),
        ("{% if a %}\nClusterName={{ a }}", "conf:1: belongs to a template"),
        ("KillWait+=5", "only = is known"),
        ("Include nothing.conf", "conf:1: Include nothing.conf: there is no such file; copy"),
        ("Include slurm.conf", "includes itself"),
        ("NodeName=m CPUs=0", "give a whole number, from 1"),
        ("NodeName=m Gres=gpu:a:b", "give name:type:count"),
        ("TopologyPlugin=topology/3d_torus", "no other is simulated"),
        ("TopologyPlugin=topology/tree", "topology.conf is missing; copy it there"),
        ("DownNodes=zz State=DOWN", "no such node"),
        ("AccountingStorageEnforce=everything", "give some of"),
    ],
)
def test_mistakes_are_one_line(tmp_path, line, complaint):
    with pytest.raises(SlurmError) as caught:
        conf_of(tmp_path, f"{line}\n{SMALL}")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SwitchName=s Nodes=n1 Switches=t", "either"),
        ("SwitchName=s Nodes=n9", "none of its nodes"),
        ("SwitchName=s Switches=t", "no switch .t.; give"),
        ("SwitchName=s Switches=t\nSwitchName=t Switches=s", "below itself"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Switches=a\nSwitchName=c Switches=a", "below b and"),
        ("Knot=1", "SwitchName="),
    ],
)
def test_mistakes_in_topologies(tmp_path, text, complaint):
    (tmp_path / "topology.conf").write_text(text)
    with pytest.raises(SlurmError, match=complaint):
        conf_of(tmp_path, f"TopologyPlugin=topology/tree\n{SMALL}")


WORDS = r"""NodeName= PartitionName= DEFAULT n[1-3] Nodes= ALL \ # " MaxTime= 1-2:3 CPUs= 4 Include
SchedulerParameters= bf_interval= , [ ] - : = é Gres= State= Weight=-1 Sockets=9"""
PIECES = st.sampled_from([*WORDS.split(), " ", "\n", "\0"])


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES | st.text(max_size=4), max_size=25).map("".join))
@example(SMALL)
@example("NodeName=a Gres=(\nPartitionName=p Nodes=[")
def test_whatever_is_in_a_file_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "fuzzed.conf"
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(SlurmError):
        read_conf(path)


@pytest.mark.parametrize(
    ("cluster", "own", "words"),
    [
        ("CR_Socket_Memory,CR_LLN", "CR_Core", {"CR_CORE", "CR_LLN"}),
        ("CR_Core", "NONE", {"CR_CORE"}),
        ("CR_CPU", "CR_Core", {"CR_CPU"}),
    ],
)
def test_a_partition_may_give_another_unit_than_the_cluster(tmp_path, cluster, own, words):
    text = SMALL.rstrip() + f" SelectTypeParameters={own}\nSelectTypeParameters={cluster}\n"
    text += "SelectType=select/cons_tres\n"
    conf = conf_of(tmp_path, text)
    assert conf.unit_words(conf.partitions[0]) == words
    with pytest.raises(SlurmError, match=r"slurm.conf:2: SelectTypeParameters='CR_CPU'"):
        conf_of(tmp_path, text.replace(f"={own}\n", "=CR_CPU\n"))


def test_every_key_is_suggested_as_slurm_spells_it():
    known = (*keys.SCALARS, *keys.PRIORITY, *NODE, *PARTITION)
    assert all(keys.spelled(key) != key for key in known)
    assert all(keys.spelled(key).lower() == key for key in known)


@pytest.mark.parametrize("plugin", ["cons_res", "cons_tres", "linear"])
def test_what_of_a_dragonfly_is_not_simulated_is_told(tmp_path, plugin):
    (tmp_path / "topology.conf").write_text("SwitchName=s Nodes=n[1-2]\n")
    lines = f"SelectType=select/{plugin}\nTopologyPlugin=topology/tree\nTopologyParam=Dragonfly\n"
    notes = conf_of(tmp_path, lines + SMALL).notes
    assert any("taken for a tree" in note for note in notes) == (plugin == "cons_res")


def test_cpus_hold_beside_procs_as_in_slurm(tmp_path):
    """Source: src/common/read_config.c looks for Procs only where no CPUs are given."""
    nodes = "NodeName=a CPUs=8 Procs=4\nNodeName=b Procs=4\nNodeName=c Procs=2 CPUs=6\n"
    nodes += "NodeName=DEFAULT CPUs=3\nNodeName=d Procs=5\nNodeName=e CPUs=7 Procs=7\n"
    (tmp_path / "slurm.conf").write_text(f"{nodes}PartitionName=p Nodes=ALL\n")
    conf = read_conf(tmp_path / "slurm.conf")
    assert [line.cpus for line in conf.nodes] == [8, 4, 6, 3, 7]
    told = [one for one in conf.remarks if one.field == "Procs"]
    assert [one.line for one in told] == [1, 3, 5]
    assert told[0].text.endswith("slurm.conf:1: Procs is not used beside CPUs, as in Slurm")


def test_a_file_that_is_included_from_elsewhere_is_read_beside(tmp_path):
    (tmp_path / "parts.conf").write_text("PartitionName=p Nodes=ALL\n")
    (tmp_path / "slurm.conf").write_text("NodeName=a\nInclude /etc/nowhere/parts.conf\n")
    conf = read_conf(tmp_path / "slurm.conf")
    assert [each.name for each in conf.partitions] == ["p"]
    (told,) = [one.text for one in conf.remarks if "Include" in one.text]
    assert told.endswith(f"is not there; {tmp_path / 'parts.conf'} is read")


def test_keys_that_nothing_reads_are_told_and_old_names_taken(tmp_path):
    text = "SchedulerParameters==bf_window=60,max_job_bf=12\nTopologyPlugin=topology/tree\n"
    text += "NodeName=n[1-2] Feature=big\nNodeSet=s Feature=big Color=red\n"
    (tmp_path / "slurm.conf").write_text(f"{text}PartitionName=p Nodes=s\n")
    lines = "SwitchName=a Nodes=n1 LinkSpeed=5 Hue=3\nSwitchName=b Nodes=n2\n"
    (tmp_path / "topology.conf").write_text(f"{lines}SwitchName=c Switches=a,b\n")
    conf = read_conf(tmp_path / "slurm.conf")
    assert conf.scheduler.bf_max_job_test == 12
    told = "\n".join(conf.notes)
    assert "slurm.conf:1: max_job_bf= is taken for bf_max_job_test=" in told
    assert "topology.conf:1: Hue changes nothing here" in told
    assert [one.key for one in conf.others] == ["NodeSet Color"]
