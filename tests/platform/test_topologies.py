"""Laws of every family of the table, and the family that the guide adds to it."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from documents import ROOT, blocks
from hypothesis import given, settings
from hypothesis import strategies as st

from ptaskmodel.engine.usage.assembly import add_all_to_all, add_flows, clear
from ptaskmodel.engine.usage.placement import Cluster
from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import Dragonfly, FatTree, Platform, Torus
from ptaskmodel.platform.topologies import BY_NAME, FAMILIES, kind_of
from ptaskmodel.platform.topologies.link_loads import Tally, Ways
from ptaskmodel.platform.topologies.star import Star, star_table
from ptaskmodel.platform.topologies.topology import LONGEST, NO_ENDS, ParameterError, WalkTable

SHAPES = {
    "FLAT": (Star(1), Star(7)),
    "TORUS": (Torus((2,)), Torus((3, 4)), Torus((2, 3, 2))),
    "FAT_TREE": (
        FatTree((3,), (1,), (1,)),
        FatTree((4, 3), (2, 2), (1, 2)),
        FatTree((4, 3), (2, 2), (1, 1)),
    ),
    "DRAGONFLY": (Dragonfly((2, 1), (2, 3), (3, 1), 2), Dragonfly((1, 1), (1, 1), (1, 1), 3)),
}
EVERY = [pytest.param(shape, id=str(shape)) for name in BY_NAME for shape in SHAPES[name]]
OPTIONS = [{}, {"limiter": "1GBps"}, {"loopback": "1GBps", "policy": "SHARED"}]


def platform_of(shape, **options) -> Platform:
    build = Platform.build("w")
    build.cluster("c", shape, speed="1f", bandwidth="1Bps", latency="1s", **options)
    return build.finish()


@pytest.mark.parametrize("shape", EVERY)
def test_parameters_read_back(shape):
    assert type(shape).parse(shape.parameters, shape.hosts) == shape
    assert pickle.loads(pickle.dumps(shape)) == shape


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", EVERY)
def test_routes_are_bounded_and_cross_links_of_the_graph(shape, options):
    platform = platform_of(shape, **options)
    walk = platform.walk_table(1)
    assert FAMILIES[walk.kind] is type(shape)
    table = walk.table.tolist()
    drawn = None
    if type(shape).spokes(walk.table) is None:
        edges = list(type(shape).edges(table))
        drawn = {edge.link for edge in edges}
        # Twins of one name are few: cables of which every end is a host or a switch.
        assert len(drawn) == len(edges)
        half = 1 if "policy" in options else 2
        assert len(platform.links) - len(drawn) * half <= 3 * len(platform.hosts) + 40
    for a in range(shape.hosts):
        for b in range(shape.hosts):
            links = platform.route_parts(a, b).links
            assert len(links) <= table[LONGEST]
            names = [platform.all_links[link].name for link in links]
            if drawn is not None:
                cables = [k for k, name in zip(links, names, strict=True) if "limi" not in name]
                cables = [k for k in cables if "loopback" not in platform.all_links[k].name]
                first_halves = {k if k in drawn else k - 1 for k in cables}
                assert first_halves <= drawn


class Patch:
    """A zone and a tally of what flows ask of its links, which follow the hosts."""

    def __init__(self, walk, numbers, hosts, n_hosts, latency_s, fatpipes=()):
        n_links = len(latency_s)
        size = n_hosts + n_links
        common, self.owner = np.zeros(size, np.bool_), np.full(n_links, -1)
        family = FAMILIES[walk.kind]
        survey = family.survey(walk.table, numbers, hosts, self.owner, common[n_hosts:])
        self.cluster = Cluster(*walk, *survey)
        fatpipe = np.zeros(size, np.bool_)
        fatpipe[[n_hosts + link for link in fatpipes]] = True
        # As those of the engine, latencies are a column of records, not an array of their own.
        resources = np.zeros(n_hosts + n_links, dtype=[("latency", "f8"), ("other", "f8")])
        resources["latency"][n_hosts:] = latency_s
        self.ways = Ways(fatpipe, resources["latency"], common, n_hosts)
        four = (np.empty(size, np.int64), *(np.empty(size) for _ in range(3)))
        self.tally = Tally(np.zeros(1, np.int64), *four, np.full(size, -1), np.zeros(2))
        self.route = np.empty(int(walk.table[LONGEST]), np.int64)

    @classmethod
    def of(cls, platform, zone=1, fatpipes=()):
        n_hosts = len(platform.hosts)
        hosts = np.array([k for k in range(n_hosts) if platform.leaf_zone(k) == zone])
        latency_s = [link.latency_s for link in platform.all_links]
        numbers = platform.local_numbers[hosts]
        return cls(platform.walk_table(zone), numbers, hosts, n_hosts, latency_s, fatpipes)

    def _told(self):
        """What is in the tally, which is then empty."""
        n = int(self.tally.size[0])
        columns = [column[:n].tolist() for column in self.tally[1:5]]
        worst = self.tally.worst.tolist()
        clear(self.tally)
        return columns, worst

    def all_to_all(self, nodes, shortcut):
        scratch = np.empty((4, len(nodes)), np.int64)
        counts = np.zeros((2, self.cluster.ways), np.int64)
        assert add_all_to_all(
            self.tally, self.ways, self.cluster, shortcut, nodes, 3.0, self.route, scratch, counts
        )
        assert not counts.any()
        columns, worst = self._told()
        return sorted(zip(*columns, strict=True)), worst

    def flows(self, nodes, sources, targets, amount, largest, tables):
        cluster = self.cluster if tables else self.cluster._replace(ends=NO_ENDS)
        assert add_flows(
            self.tally, self.ways, cluster, self.route, nodes, sources, targets, amount, largest
        )
        return self._told()


@pytest.mark.parametrize("shape", EVERY)
def test_a_shortcut_gives_the_tally_of_walking(shape):
    patch = Patch.of(platform_of(shape))
    if not patch.cluster.plain:
        pytest.skip("no shortcut")
    for nodes in (np.arange(shape.hosts), np.arange(0, shape.hosts, 2)):
        if len(nodes) > 1:
            assert patch.all_to_all(nodes, True) == patch.all_to_all(nodes, False)


def compare_flows(patch, rng, n):
    """Flows between all pairs of nodes, in some order: by tables as by walking, to the bit."""
    nodes = rng.permutation(n)
    sources, targets = (part.ravel() for part in np.indices((n, n)))
    amount = rng.uniform(0.1, 1.0, n * n)
    for order in (np.arange(n * n), rng.permutation(n * n), rng.integers(0, n * n, 7)):
        given = (nodes, sources[order], targets[order], amount[order], amount[order] / 3.0)
        assert patch.flows(*given, tables=True) == patch.flows(*given, tables=False)


@pytest.mark.parametrize("options", [*OPTIONS, {"policy": "FATPIPE", "backbone": "1Bps"}], ids=str)
@pytest.mark.parametrize("shape", EVERY)
def test_tables_give_the_tally_of_walking(shape, options):
    platform = platform_of(shape, **options)
    patch = Patch.of(platform, fatpipes=range(0, len(platform.links), 3))
    tabled = type(shape).flows is not None and (
        not isinstance(shape, FatTree) or ("limiter" not in options and set(shape.cables) == {1})
    )
    assert (patch.cluster.ends.size > 0) == tabled
    compare_flows(patch, np.random.default_rng(1), shape.hosts)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_tables_of_any_fat_tree_give_the_tally_of_walking(data):
    levels = data.draw(st.integers(1, 3))
    sizes = st.lists(st.integers(1, 4), min_size=levels, max_size=levels)
    shape = FatTree(tuple(data.draw(sizes)), tuple(data.draw(sizes)), (1,) * levels)
    options = data.draw(st.sampled_from([{}, *OPTIONS[2:]]))
    build = Platform.build("w")
    common = {"speed": "1f", "bandwidth": "1Bps", "latency": "1s", **options}
    build.cluster("before", FatTree((data.draw(st.integers(1, 5)),), (1,), (1,)), **common)
    build.cluster("c", shape, **common)
    patch = Patch.of(build.finish(), zone=2)
    assert patch.cluster.ends.size > 0
    compare_flows(patch, np.random.default_rng(data.draw(st.integers(0, 9))), shape.hosts)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_tables_of_any_star_give_the_tally_of_walking(data):
    n = data.draw(st.integers(1, 4))
    mine = st.lists(st.integers(0, 1), max_size=2)
    shared = data.draw(st.lists(st.integers(20, 21), max_size=2))

    def path(node):
        own = [2 * node + k for k in data.draw(mine)]
        return data.draw(st.permutations(own + shared))

    up, down, loop = ([path(node) for node in range(n)] for _ in range(3))
    if data.draw(st.booleans()):
        up[0] = down[0] = None
    loop = [links if data.draw(st.booleans()) else [] for links in loop]
    walk, nodes = WalkTable(kind_of(Star), star_table(up, down, loop)), np.arange(n)
    patch = Patch(walk, nodes, nodes, n, [0.1 * k for k in range(22)], fatpipes=[1, 20])
    if patch.cluster.ends.size > 0:
        compare_flows(patch, np.random.default_rng(data.draw(st.integers(0, 9))), n)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", EVERY)
def test_the_owner_of_a_link_is_the_only_host_that_uses_it(shape, options):
    platform = platform_of(shape, **options)
    owner = Patch.of(platform).owner
    for a in range(shape.hosts):
        for b in range(shape.hosts):
            for link in platform.route_parts(a, b).links:
                assert owner[link] in (-1, a, b)
                if a == b:
                    assert owner[link] in (-1, a)


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        (Torus, [(0,)]),
        (Torus, [(2, -1)]),
        (Torus, [(2.5,)]),
        (Torus, [(10**10,)]),
        (FatTree, [(2, 2), (1,), (1, 1)]),
        (FatTree, [(), (), ()]),
        (Dragonfly, [(3, 1), (1, 1), (2, 1), 1]),
        (Dragonfly, [(1, 1), (1, 0), (2, 1), 1]),
    ],
)
def test_wrong_parameters_are_refused(family, parameters):
    with pytest.raises(ParameterError, match="topo_parameters") as caught:
        family(*parameters)
    assert isinstance(caught.value, PlatformError)


def test_the_family_of_the_guide_is_one_file_and_one_entry(tmp_path):
    """A copy of the package with the file and the entry that the page shows runs its example."""
    page = (ROOT / "docs" / "guides" / "extend.md").read_text(encoding="utf-8")
    section = page[page.index("## A topology") :]
    file, entry, example, shown = blocks(section)[:4]
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "ptaskmodel", tmp_path / "ptaskmodel", ignore=ignored)
    assert file.file is not None
    (tmp_path / file.file).write_text(file.text, encoding="utf-8")
    table = tmp_path / "ptaskmodel" / "platform" / "topologies" / "__init__.py"
    text = table.read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("FAMILIES: "))
    table.write_text(text.replace(line, entry.text), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", example.text]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (shown.text, "")
    assert Path(file.file).parent == Path("ptaskmodel/platform/topologies")
