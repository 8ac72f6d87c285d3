"""What pages say of flows: ranges of draws, cables that flows share, queues and pauses."""

from __future__ import annotations

import csv
import json

import pytest

from ptaskmodel.cli import main
from ptaskmodel.results.loading import results_of
from ptaskmodel.results.pages.platform import (
    WIDE,
    Flows,
    answer_of_flows,
    cables_of,
    flow_sections,
    flows_of,
    ranges_of,
)
from ptaskmodel.results.pages.report import answer_in, command_of, facts_of, write_report
from ptaskmodel.results.pictures.load import Sure
from ptaskmodel.results.pictures.topology import routes_of

PLATFORM = """<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="100Gbps" lat="1us"
           sharing_policy="SPLITDUPLEX" topology="FAT_TREE" topo_parameters="2;4,2;1,2;1,1"/>
</platform>
"""
FLOWS = [{"id": f"t{k}", "hosts": [f"n{k}", "n0"], "flows": [[0, 1, 2e6]]} for k in (1, 4, 5, 6, 7)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Flows to one host as packets of RoCE with draws, and by rates without."""
    place = tmp_path_factory.mktemp("flows")
    (place / "p.xml").write_text(PLATFORM)
    (place / "t.json").write_text(json.dumps({"tasks": FLOWS}))
    command = ["simulate", str(place / "p.xml"), str(place / "t.json"), "-q"]
    command += ["--network-model", "ROCE", "--routing", "ecmp:1"]
    packets = ["--network-level", "packets", "--draws", "4", "--routes", "-o"]
    assert main([*command, *packets, str(place / "packets")]) == 0
    assert main([*command, "-o", str(place / "bare")]) == 0
    return place


def table_of(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_ranges_are_those_of_the_table_the_latest_first(place):
    found = ranges_of(results_of(place / "packets"))
    rows = {row["task_id"]: row for row in table_of(place / "packets" / "tasks.csv")}
    assert len(found) == len(rows)
    for one in found:
        row = rows[one.task_id]
        assert (one.low_s, one.high_s) == pytest.approx(
            (float(row["execution_low"]), float(row["execution_high"]))
        )
    assert [one.high_s for one in found] == sorted((one.high_s for one in found), reverse=True)


def test_cables_have_the_flows_queues_and_pauses_of_the_tables(place):
    results = results_of(place / "packets")
    cables = {one.name: one for one in cables_of(results, routes_of(results))}
    routes = [row["path"].split() for row in table_of(place / "packets" / "routes.csv")]
    queues = table_of(place / "packets" / "queues.csv")
    pauses = table_of(place / "packets" / "pauses.csv")
    assert pauses
    for name, cable in cables.items():
        assert cable.flows == sum(name in path for path in routes)
        own = [float(row["largest_queue_B"]) for row in queues if row["link"] == name]
        assert cable.queue_B == max(own, default=0.0)
        spells = [row for row in pauses if row["link"] == name]
        took_s = sum(float(row["end_s"]) - float(row["begin_s"]) for row in spells)
        assert cable.paused_s == pytest.approx(took_s)
        assert (cable.waits_for in {row["toward"] for row in spells}) == bool(spells)


def test_a_page_begins_with_the_latest_task_its_range_and_the_longest_queue(place, tmp_path):
    results = results_of(place / "packets")
    latest = ranges_of(results)[0].task_id
    first, second, third = answer_in(results).splitlines()
    assert first.endswith("as packets in queues.")
    assert second.startswith(f"{latest} may take longest: ")
    assert third.startswith("The longest queue, ")
    assert "full switches pause " in third
    sure, cables = flow_sections(results, flows_of(results), {})
    wide = sum(one.width >= WIDE for one in ranges_of(results))
    told = [point for point in sure.points if point.startswith(f"{wide} of 5 ranges end at")]
    assert len(told) == (wide > 0)
    assert sure.tables[0].rows[0][0] == latest
    assert [*cables.tables[0].columns][-1] == "mostly by packets for"
    write_report(results, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "How sure it is" in text
    assert "made without --attribution" not in text
    assert "--routes" in command_of(results)


def test_ranges_without_width_are_said_to_have_none():
    ranges = [Sure("a", 2.0, 2.0), Sure("b", 1.0, 1.0)]
    (said,) = answer_of_flows(Flows(ranges, [], {}), {})
    assert said == "Routes and starts change no duration: each is the same in 80 % of cases."
    (said,) = answer_of_flows(Flows([Sure("c", 2.0, 3.0), *ranges], [], {}), {})
    assert said == "c may take longest: 2 s to 3 s in 80 % of cases."


def test_a_run_without_draws_and_routes_has_no_such_sections(place):
    results = results_of(place / "bare")
    assert flow_sections(results, flows_of(results), {}) == []
    assert len(answer_in(results).splitlines()) == 1


def test_the_terminal_shows_ranges_beside_times(place, capsys):
    command = ["simulate", str(place / "p.xml"), str(place / "t.json"), "--network-model", "CUBIC"]
    assert main([*command, "--draws", "2", "-o", str(place / "drawn")]) == 0
    out = capsys.readouterr().out
    assert ["routing", "ecmp:0"] in facts_of(results_of(place / "drawn"))
    assert "80 %: from (" in out
    assert "too narrow" in out
