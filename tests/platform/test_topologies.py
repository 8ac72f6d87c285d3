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

from ptaskmodel.core.patterns.laying import add_zone_all_to_all, clear
from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import Dragonfly, FatTree, Platform, Torus
from ptaskmodel.platform.routing.tally import Tally, Ways
from ptaskmodel.platform.topologies.families import BY_NAME, FAMILIES
from ptaskmodel.platform.topologies.star import Star
from ptaskmodel.platform.topologies.topology import LONGEST, ParameterError

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
        assert len(platform.links) - 1 - len(drawn) * half <= 3 * len(platform.hosts) + 40
    for a in range(shape.hosts):
        for b in range(shape.hosts):
            links = platform.route_parts(a, b).links
            assert len(links) <= table[LONGEST]
            names = [platform.links[link].name for link in links]
            if drawn is not None:
                cables = [k for k, name in zip(links, names, strict=True) if "limi" not in name]
                cables = [k for k in cables if "loopback" not in platform.links[k].name]
                first_halves = {k if k in drawn else k - 1 for k in cables}
                assert first_halves <= drawn


def tally_of(platform, plain, nodes):
    """What an all-to-all between nodes asks of the links."""
    walk, n_hosts = platform.walk_table(1), len(platform.hosts)
    size = n_hosts + len(platform.links)
    common, owner = np.zeros(size, np.bool_), np.full(len(platform.links), -1)
    hosts = np.arange(n_hosts)
    family = FAMILIES[walk.kind]
    survey = family.survey(walk.table, hosts, hosts, owner, common[n_hosts:])
    if plain and not survey.plain:
        pytest.skip("no shortcut")
    latency = np.array([0.0] * n_hosts + [link.latency_s for link in platform.links])
    ways = Ways(np.zeros(size, np.bool_), latency, common, n_hosts)
    five = (np.empty(size, np.int64), *(np.empty(size) for _ in range(4)))
    tally = Tally(np.zeros(1, np.int64), *five, np.full(size, -1), np.zeros(2))
    route = np.empty(int(walk.table[LONGEST]), np.int64)
    scratch = np.empty((4, len(nodes)), np.int64)
    counts = np.zeros((2, survey.ways), np.int64)
    clear(tally)
    assert add_zone_all_to_all(
        tally, ways, walk.kind, plain, walk.table, nodes, 3.0, route, scratch, counts
    )
    assert not counts.any()
    n = int(tally.size[0])
    columns = zip(*(column[:n].tolist() for column in tally[1:6]), strict=True)
    return sorted(columns), tally.worst.tolist(), owner


@pytest.mark.parametrize("shape", EVERY)
def test_a_shortcut_gives_the_tally_of_walking(shape):
    platform = platform_of(shape)
    for nodes in (np.arange(shape.hosts), np.arange(0, shape.hosts, 2)):
        if len(nodes) < 2:
            continue
        quick, walked = tally_of(platform, True, nodes), tally_of(platform, False, nodes)
        assert quick[:2] == walked[:2]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", EVERY)
def test_the_owner_of_a_link_is_the_only_host_that_uses_it(shape, options):
    platform = platform_of(shape, **options)
    _, _, owner = tally_of(platform, False, np.arange(shape.hosts))
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
    table = tmp_path / "ptaskmodel" / "platform" / "topologies" / "families.py"
    text = table.read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("FAMILIES: "))
    table.write_text(text.replace(line, entry.text), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", example.text]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (shown.text, "")
    assert Path(file.file).parent == Path("ptaskmodel/platform/topologies")
