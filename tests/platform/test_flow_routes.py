"""Routes that flows choose: by a hash among the shortest paths, or as a file gives them."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from ptaskmodel import (
    Dragonfly,
    FatTree,
    Flow,
    ParallelTask,
    Platform,
    Simulation,
    Torus,
    load_platform,
)
from ptaskmodel.cli import main
from ptaskmodel.errors import RouteError, SimulationError
from ptaskmodel.platform.routing import (
    GAMMA,
    Ecmp,
    GivenPath,
    GivenRoutes,
    flow_hash,
    mixed,
    routing_of,
)
from ptaskmodel.workload.tasks import closed_loop
from ptaskmodel.workload.works import ParallelWork

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
SPINES = 4


def leaf_spine() -> str:
    """Two leaves of two hosts below four spines; the text of a platform."""
    cables = [(f"h{k}", f"t{k // 2}") for k in range(4)]
    cables += [(f"t{leaf}", f"s{k}") for leaf in range(2) for k in range(SPINES)]
    lines = [f'<host id="h{k}" speed="1Gf"/>' for k in range(4)]
    lines += [f'<router id="{name}"/>' for name in ("t0", "t1", *(f"s{k}" for k in range(SPINES)))]
    for a, b in cables:
        lines.append(
            f'<link id="{a}--{b}" bandwidth="10Gbps" latency="1us" sharing_policy="SPLITDUPLEX"/>'
        )
    for a, b in cables:
        lines.append(f'<route src="{a}" dst="{b}"><link_ctn id="{a}--{b}" direction="UP"/></route>')
    zone = "\n".join(['<zone id="n" routing="Dijkstra">', *lines, "</zone>"])
    return f'{HEAD}<platform version="4.1">{zone}</platform>'


@pytest.fixture
def fabric_file(tmp_path):
    file = tmp_path / "p.xml"
    file.write_text(leaf_spine())
    return file


@pytest.fixture
def network(fabric_file):
    return load_platform(fabric_file)


def names(platform, links):
    return [platform.all_links[link].name for link in links]


def hops_between(platform, source, target, seed=0, task="0"):
    fabric = platform.fabric
    ends = [fabric.node[platform.host(name).index] for name in (source, target)]
    return Ecmp(seed).hops(fabric, task, 0, *ends)


def test_the_hash_is_the_same_everywhere():
    assert mixed(GAMMA) == 0xE220A8397B1DCDAF  # the published first output of splitmix64, seed 0
    assert flow_hash(7, "größe-12", 3) == 0x43EECF77FD07C1B4


def test_a_flow_takes_one_of_the_shortest_paths_and_the_acknowledgements_take_it_backwards(network):
    fabric = network.fabric
    ends = fabric.node[0], fabric.node[3]
    way = Ecmp(1).way(fabric, "a", 0, *ends)
    there, back = names(network, way.there), names(network, way.back)
    spine = there[1].split("--")[1].removesuffix("_UP")
    assert there == ["h0--t0_UP", f"t0--{spine}_UP", f"t1--{spine}_DOWN", "h3--t1_DOWN"]
    assert back == ["h3--t1_UP", f"t1--{spine}_UP", f"t0--{spine}_DOWN", "h0--t0_DOWN"]


def test_each_task_draws_its_own_path_and_all_are_drawn(network):
    drawn = Counter(
        network.fabric.names[hops_between(network, "h0", "h2", task=str(k))[1].target]
        for k in range(400)
    )
    assert set(drawn) == {"s0", "s1", "s2", "s3"}
    assert min(drawn.values()) > 70


def test_another_seed_is_another_draw(network):
    def draw(seed):
        return [hops_between(network, "h0", "h2", seed, str(k))[1].target for k in range(20)]

    assert draw(1) == draw(1) != draw(2)


@pytest.mark.parametrize(
    "topology",
    [FatTree((4, 2), (1, 2), (1, 2)), Torus((3, 4)), Dragonfly((2, 1), (2, 1), (2, 1), 2)],
    ids=lambda topology: topology.name,
)
@pytest.mark.parametrize("limiter", [None, 1e9])
def test_families_of_clusters_have_a_graph(topology, limiter):
    build = Platform.build("w")
    build.cluster(
        "c", topology, prefix="c", speed=1e9, bandwidth=1e9, latency=1e-6, limiter=limiter
    )
    platform = build.finish()
    fabric = platform.fabric
    for source in range(3):
        for target in range(topology.hosts):
            if source == target:
                continue
            ends = fabric.node[source], fabric.node[target]
            count, length = fabric.equal_paths(*ends)
            seen = {
                Ecmp(seed).way(fabric, "t", 0, *ends).there
                for seed in range(30 if count > 1 else 1)
            }
            assert len(seen) <= count
            assert count == 1 or len(seen) > 1
            there = next(iter(seen))
            assert len(there) == (length if limiter is None else 2 * length + 1)
            if topology.name == "FAT_TREE":  # all its routes go up and down
                assert len(there) == len(platform.route_parts(source, target).links)


def test_a_star_has_one_path_which_is_the_route():
    build = Platform.build("w")
    build.cluster("c", 4, prefix="c", speed=1e9, bandwidth=1e9, latency=1e-6, backbone=2e9)
    platform = build.finish()
    fabric = platform.fabric
    way = Ecmp(3).way(fabric, "t", 0, fabric.node[1], fabric.node[2])
    assert way.there == platform.route_parts(1, 2).links
    assert way.back == platform.route_parts(2, 1).links


def test_zones_are_left_by_their_gateways():
    build = Platform.build("w")
    for name in "ab":
        build.cluster(
            name, FatTree((2, 2), (1, 2), (1, 1)), prefix=name, speed=1e9, bandwidth=1e9,
            latency=1e-6,
        )  # fmt: skip
    build.link("between", 1e9, 1e-3)
    build.zone_route("a", "b", ("a0", "b0"), ["between"])
    platform = build.finish()
    way = Ecmp(0).way(platform.fabric, "t", 0, platform.fabric.node[3], platform.fabric.node[7])
    assert platform.link("between").index in way.there
    assert len(way.there) == len(platform.route_parts(3, 7).links)


def test_a_route_makes_a_flow_meet_others_or_not(network):
    def lasts(paths):
        routes = GivenRoutes(
            "r.csv",
            {("0", 0): GivenPath(tuple(paths[0]), 2), ("1", 0): GivenPath(tuple(paths[1]), 3)},
        )
        simulation = Simulation(network, network_model="CM02", routing=routes)
        simulation.add_all([Flow("h0", "h2", 1e9), Flow("h1", "h3", 1e9)])
        return simulation.run().now

    first = ["h0", "t0", "s0", "t1", "h2"]
    apart, together = (lasts([first, ["h1", "t0", spine, "t1", "h3"]]) for spine in ("s1", "s0"))
    assert together == pytest.approx(2 * apart, rel=1e-3)


def test_flows_of_a_parallel_task_choose_one_by_one(network):
    task = ParallelTask(["h0", "h1", "h2", "h3"], 0.0, flows=[(0, 2, 1e9), (1, 3, 1e9)], id="t")
    durations = set()
    for seed in range(12):
        simulation = Simulation(network, routing=f"ecmp:{seed}")
        ref = simulation.add(task)
        durations.add(round(simulation.run().now, 3))
        ways = [
            simulation.core.router.flow_routes.way("t", number, source, target).there
            for number, source, target in simulation.flows_of(ref)
        ]
        meet = bool(set(ways[0]) & set(ways[1]))
        assert simulation.now == pytest.approx(1.6 if meet else 0.8, rel=1e-3)
    assert len(durations) == 2


@pytest.mark.jit
def test_a_checkpoint_keeps_the_routing(network, tmp_path):
    from ptaskmodel import load_checkpoint, save_checkpoint

    def begun():
        simulation = Simulation(network, network_model="CM02", routing="ecmp:5")
        simulation.add_all([Flow("h0", "h2", 1e9 + k) for k in range(6)])
        return simulation

    simulation = begun()
    simulation.run(0.5)
    save_checkpoint(simulation, tmp_path / "c", {})
    resumed, _ = load_checkpoint(tmp_path / "c")
    assert resumed.run().records() == begun().run().records()


def test_what_was_taken_is_written_and_read_again(fabric_file, tmp_path, capsys):
    tasks = [{"id": f"t{k}", "hosts": ["h0", f"h{2 + k % 2}"], "flows": [[0, 1, 1e8]]}
             for k in range(8)]  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps({"tasks": tasks}))
    command = ["simulate", str(fabric_file), str(tmp_path / "t.json"), "--network-model", "CM02"]
    drawn, again = tmp_path / "drawn", tmp_path / "again"
    assert main([*command, "--routing", "ecmp:3", "--routes", "-o", str(drawn)]) == 0
    routes = drawn / "routes.csv"
    assert main([*command, "--routing", f"file:{routes}", "--routes", "-o", str(again)]) == 0
    for name in ("tasks.csv", "routes.csv"):
        assert (drawn / name).read_bytes() == (again / name).read_bytes()
    assert json.loads((drawn / "summary.json").read_text())["routing"] == "ecmp:3"


def paths_taken(folder):
    lines = (folder / "routes.csv").read_text().splitlines()[1:]
    return {task: path for task, _, path in (line.split(",") for line in lines)}


@pytest.mark.parametrize("level", ["fluid", "packets"])
def test_requests_of_a_connection_take_one_path(fabric_file, tmp_path, level):
    loop = {"hosts": ["h0", "h2"], "flows": [[0, 1, 1e5]], "count": 20}
    tasks = [{"id": f"t{k}", "hosts": ["h0", "h2"], "flows": [[0, 1, 1e5]], "connection": "own"}
             for k in range(4)]  # fmt: skip
    document = {"tasks": tasks, "loops": [
        {"id": "own", **loop}, {"id": "apart", **loop, "connection": None},
        {"id": "other", **loop, "connection": "shared"}, {"id": 7, **loop, "connection": "shared"},
    ]}  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(document))
    command = ["simulate", str(fabric_file), str(tmp_path / "t.json"), "--network-model", "DCTCP"]
    command += ["--network-level", level, "--routes"]
    drawn, again = tmp_path / "drawn", tmp_path / "again"
    assert main([*command, "--routing", "ecmp:1", "-o", str(drawn)]) == 0
    taken = paths_taken(drawn)
    by_client = {
        name: {path for task, path in taken.items() if task.startswith(f"{name}#")}
        for name in ("own", "apart", "other", "7")
    }
    assert {name: len(paths) for name, paths in by_client.items()} == {
        "own": 1, "apart": SPINES, "other": 1, "7": 1,
    }  # fmt: skip
    assert by_client["other"] == by_client["7"]
    assert {taken[f"t{k}"] for k in range(4)} == by_client["own"]
    assert main([*command, "--routing", f"file:{drawn / 'routes.csv'}", "-o", str(again)]) == 0
    for name in ("tasks.csv", "routes.csv"):
        assert (drawn / name).read_bytes() == (again / name).read_bytes()


def test_a_file_may_route_a_connection_by_its_name(network, tmp_path):
    from ptaskmodel.platform.routing import read_routes
    from ptaskmodel.simulation.checks import check_given_routes

    path = tmp_path / "r.csv"
    path.write_text("task,flow,path\nc,0,h0 t0 s1 t1 h2\nc#2,0,h0 t0 s2 t1 h2\n")
    tasks = closed_loop("c", ("h0", "h2"), ParallelWork.of_flow(1e6), 3)
    routes = read_routes(path)
    check_given_routes(routes, network, tasks)
    simulation = Simulation(network, routing=routes)
    simulation.add_all(tasks)
    simulation.run()
    ways = simulation.core.router.flow_routes
    ends = network.host("h0").index, network.host("h2").index
    used = [ways.way(ways.name(f"c#{k}", "c"), 0, *ends).there[1] for k in (1, 2, 3)]
    assert names(network, used) == ["t0--s1_UP", "t0--s2_UP", "t0--s1_UP"]
    tasks = closed_loop("c", ("h0", "h2"), ParallelWork.of_flow(1e6), 1)
    with pytest.raises(RouteError, match=r"r\.csv:3: there is no flow 0 of task 'c#2'"):
        check_given_routes(routes, network, tasks)


def test_the_path_of_a_connection_follows_from_its_name(network):
    """So it is the same on every machine and at every level, whatever its tasks are called."""
    ways = Simulation(network, routing="ecmp:5").core.router.flow_routes
    hosts = [network.host(name).index for name in ("h0", "h2")]
    ends = [network.fabric.node[host] for host in hosts]
    for name in "qrs":
        found = ways.way(ways.name("a task", name), 0, *hosts)
        assert found == Ecmp(5).way(network.fabric, name, 0, *ends)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,path\n", "r.csv:1: the first line is not task,flow,path"),
        ("task,flow,path\na,0,h0 t0 s0 t1\n", "r.csv:2: task 'a', flow 0: the path ends at 't1'"),
        ("task,flow,path\na,0,h0 s0 t1 h2\n", "'s0' is neither a neighbour of 'h0' nor a link"),
        ("task,flow,path\na,0,h1 t0 s0 t1 h2\n", "'h1' is neither a neighbour of 'h0'"),
        ("task,flow,path\na,0,h0 t0 t0 s0 t1 h2\n", "'t0' is neither a neighbour of 't0'"),
        ("task,flow,path\na,0,\n", "r.csv:2: the path is empty"),
        ("task,flow,path\na,x,h0 t0\n", "r.csv:2: flow 'x' is not a whole number"),
        ("task,flow,path\na,0\n", "r.csv:2: has 2 fields instead of 3"),
        ("task,flow,path\na,0,'h0 t0\n", "r.csv:2: path: No closing quotation"),
        (
            "task,flow,path\n",
            "r.csv: no path for flow 0 of task 'a', from 'h0' to 'h2'; add a line",
        ),
        (
            "task,flow,path\na,0,h0 t0 s0 t1 h2\nb,0,h0 t0 s0 t1 h2\n",
            "r.csv:3: there is no flow 0 of task 'b'",
        ),
    ],
)
def test_a_wrong_file_is_one_line(fabric_file, tmp_path, capsys, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text(text)
    tasks = {"tasks": [{"id": "a", "hosts": ["h0", "h2"], "flows": [[0, 1, 1e8]]}]}
    (tmp_path / "t.json").write_text(json.dumps(tasks))
    assert main(["simulate", "p.xml", "t.json", "--routing", "file:r.csv", "-o", "out"]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_all_problems_of_a_file_are_one_message(fabric_file, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["task,flow,path", "a,0,h0 s0 t1 h2", "b,0,h0 t0 s0 t1", "d,0,h0 t0 s0 t1 h2"]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    tasks = [{"id": name, "hosts": ["h0", "h2"], "flows": [[0, 1, 1e8]]} for name in "abc"]
    (tmp_path / "t.json").write_text(json.dumps({"tasks": tasks}))
    assert main(["simulate", "p.xml", "t.json", "--routing", "file:r.csv"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "ptaskmodel: error: r.csv: 4 problems:"
    assert [line.strip().split(";")[0] for line in said[1:]] == [
        "no path for flow 0 of task 'c', from 'h0' to 'h2'",
        "line 2: task 'a', flow 0: 's0' is neither a neighbour of 'h0' nor a link from there",
        "line 3: task 'b', flow 0: the path ends at 't1', and the flow goes from 'h0' to 'h2'",
        "line 4: there is no flow 0 of task 'd'",
    ]


@pytest.mark.filterwarnings("default")
def test_a_comment_in_a_file_is_told_unless_the_file_is_refused(
    fabric_file, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    tasks = [{"id": name, "hosts": ["h0", "h2"], "flows": [[0, 1, 1e8]]} for name in "ab"]
    (tmp_path / "t.json").write_text(json.dumps({"tasks": tasks}))
    command = ["simulate", "p.xml", "t.json", "--routing", "file:r.csv"]
    lines = ["task,flow,path", "#a,0,h0 t0 s0 t1 h2", "a,0,h0 t0 s0 t1 h2", "b,0,h0 t0 s0 t1 h2"]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    assert main(command) == 0
    told = "ptaskmodel: warning: r.csv:2: the line begins with #, as a comment\n"
    assert capsys.readouterr().err == told
    with pytest.warns(UserWarning, match=r"r\.csv:2: the line begins with #, as a comment"):
        Simulation(load_platform("p.xml"), routing="file:r.csv")
    (tmp_path / "r.csv").write_text("\n".join(lines[:3]))
    assert main(command) == 2
    assert capsys.readouterr().err == (
        "ptaskmodel: error: r.csv: no path for flow 0 of task 'b', from 'h0' to 'h2'; add a line\n"
    )


def test_links_name_the_cable_where_there_are_several():
    build = Platform.build("w")
    build.cluster("c", FatTree((2, 2), (1, 1), (1, 2)), prefix="c", speed=1e9, bandwidth=1e9,
                  latency=1e-6)  # fmt: skip
    platform = build.finish()
    fabric = platform.fabric
    ends = fabric.node[0], fabric.node[3]
    way = Ecmp(1).way(fabric, "t", 0, *ends)
    by_links = GivenRoutes("r", {("t", 0): GivenPath(tuple(names(platform, way.there)), 2)})
    assert by_links.way(fabric, "t", 0, *ends) == way
    nodes = tuple(fabric.names[hop.target] for hop in Ecmp(1).hops(fabric, "t", 0, *ends))
    with pytest.raises(RouteError, match="several cables lead from 'c switch 0' to"):
        GivenRoutes("r", {("t", 0): GivenPath(nodes, 2)}).way(fabric, "t", 0, *ends)


@pytest.mark.parametrize("text", ["ecmp:x", "ecmp:-1", "ecmp:", "shortest", "file:", "platform:1"])
def test_an_unknown_routing_is_refused(text):
    with pytest.raises(SimulationError, match="--routing: "):
        routing_of(text)


def test_the_command_counts_equal_paths(fabric_file, capsys):
    assert main(["platform", "paths", str(fabric_file), "h0", "h2"]) == 0
    assert capsys.readouterr().out == "h0 to h2: 4 paths of 4 hops\n"
    assert main(["platform", "paths", str(fabric_file), "h0", "h1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["paths"] == 1
