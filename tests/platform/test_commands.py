"""``ptaskmodel platform``: info, routes, validate, plot."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ptaskmodel.cli import main
from ptaskmodel.platform import load_platform

PLATFORMS = Path(__file__).resolve().parent.parent.parent / "platforms"
MULTI_SITE = str(PLATFORMS / "multi_site.xml")


def run(capsys, *arguments):
    code = main(["platform", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_info(capsys):
    code, out, _ = run(capsys, "info", MULTI_SITE)
    assert code == 0
    assert "70 hosts" in out
    assert "alder (flat): 24 hosts, 1 router" in out


def test_info_as_json(capsys):
    _, out, _ = run(capsys, "info", MULTI_SITE, "--json")
    summary = json.loads(out)
    assert summary["hosts"] == 70
    assert summary["links"] == 152


def test_routes_of_all_pairs(capsys, tmp_path):
    output = tmp_path / "routes.csv"
    assert run(capsys, "routes", PLATFORMS / "worked_example.xml", "--output", output)[0] == 0
    assert output.read_text() == (
        "src,dst,latency_s,links\n"
        "a,a,0.0,__loopback__\na,b,0.0,l\nb,a,0.0,l\nb,b,0.0,__loopback__\n"
    )


def test_routes_of_a_sample_are_the_same_each_time(capsys):
    first = run(capsys, "routes", MULTI_SITE, "--sample", 50, "--seed", 3)[1]
    assert first == run(capsys, "routes", MULTI_SITE, "--sample", 50, "--seed", 3)[1]
    assert first != run(capsys, "routes", MULTI_SITE, "--sample", 50, "--seed", 4)[1]
    rows = list(csv.DictReader(first.splitlines()))
    assert len(rows) == 50
    platform = load_platform(MULTI_SITE)
    for row in rows:
        route = platform.route(row["src"], row["dst"])
        assert tuple(row["links"].split()) == route.links
        assert float(row["latency_s"]) == route.latency_s


def test_too_many_routes_are_refused(capsys, tmp_path):
    file = tmp_path / "large.xml"
    file.write_text(
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-9999" '
        'speed="1Gf" bw="1GBps" lat="0s"/></platform>'
    )
    code, out, err = run(capsys, "routes", file)
    assert (code, out) == (2, "")
    assert "--sample" in err
    assert run(capsys, "routes", file, "--sample", 5)[0] == 0


def test_pairs_without_a_route_are_counted(capsys, tmp_path):
    file = tmp_path / "none.xml"
    file.write_text(
        '<platform version="4.1"><zone id="w" routing="None"><host id="a" speed="1Gf"/></zone>'
        "</platform>"
    )
    code, out, err = run(capsys, "routes", file)
    assert (code, out.splitlines()[1]) == (0, "a,a,,")
    assert "1 of 1 pairs have no route" in err


def test_validate_finds_what_is_surely_not_meant(capsys, tmp_path):
    file = tmp_path / "odd.xml"
    file.write_text(
        '<platform version="4.1">\n<zone id="w" routing="Full">\n'
        '<host id="a" speed="0f"/>\n<host id="b" speed="5"/>\n'
        '<link id="l" bandwidth="10GBps" latency="50s"/>\n'
        '<link id="m" bandwidth="10Bps" latency="0s"/>\n'
        '<link id="n" bandwidth="0Bps" latency="0s"/>\n</zone>\n</platform>\n'
    )
    code, out, _ = run(capsys, "validate", file)
    found = [tuple(line.split(":")[1:3]) for line in out.splitlines()[:-1]]
    assert code == 0
    assert found == [
        ("2", " empty route"),
        ("3", " speed 0"),
        ("4", " unit"),
        ("4", " slow host"),
        ("5", " bits or bytes"),
        ("5", " long latency"),
        ("6", " slow link"),
        ("7", " bandwidth 0"),
    ]


def test_validate_finds_pairs_without_a_route(capsys, tmp_path):
    file = tmp_path / "apart.xml"
    zones = "".join(
        f'<zone id="{z}" routing="Full"><host id="h{z}" speed="1Gf"/></zone>' for z in "xy"
    )
    file.write_text(
        f'<platform version="4.1"><zone id="w" routing="Full">{zones}</zone></platform>'
    )
    assert "no route: 'hx' -> 'hy', 'hy' -> 'hx'" in run(capsys, "validate", file)[1]


def validate_text(capsys, tmp_path, text):
    file = tmp_path / "odd.xml"
    file.write_text(f'<platform version="4.1">\n{text}\n</platform>\n')
    code, out, _ = run(capsys, "validate", file)
    assert code == 0
    return out


PAIR = (
    '<zone id="w" routing="Full">\n<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>\n'
    '<link id="l" bandwidth="{}" latency="{}"/>\n'
    '<route src="a" dst="b"><link_ctn id="l"/></route></zone>'
)


def test_validate_finds_a_latency_that_holds_flows(capsys, tmp_path):
    out = validate_text(capsys, tmp_path, PAIR.format("10Gbps", "50ms"))
    assert ":4: window: link 'l': with its latency of 50ms" in out
    assert "'a' -> 'b', 'b' -> 'a' below half of the bandwidth, a flow at 41.94MBps or more" in out
    assert "no warnings" in validate_text(capsys, tmp_path, PAIR.format("10Gbps", "3ms"))
    no_window = '<config><prop id="network/TCP-gamma" value="0"/></config>'
    text = no_window + PAIR.format("10Gbps", "50ms")
    assert "no warnings" in validate_text(capsys, tmp_path, text)


def test_validate_finds_bits_that_were_meant_as_bytes(capsys, tmp_path):
    out = validate_text(capsys, tmp_path, PAIR.format("1.25Gbps", "1us"))
    assert ":4: bits or bytes: link 'l': bandwidth='1.25Gbps' is in bits" in out


def test_validate_finds_a_trace_without_effect(capsys, tmp_path):
    trace = '<trace id="t" periodicity="0">0 1\n5 0.5</trace>'
    out = validate_text(capsys, tmp_path, trace + PAIR.format("1Gbps", "1us"))
    assert ":2: unused: trace 't': no trace_connect uses it" in out


def test_validate_of_a_bad_file_is_a_user_error(capsys, tmp_path):
    file = tmp_path / "bad.xml"
    file.write_text('<platform version="4.1">\n<zone/></platform>')
    code, _, err = run(capsys, "validate", file)
    assert code == 2
    assert f"{file}:2: zone: the attribute id is missing" in err


@pytest.mark.parametrize("name", sorted(file.stem for file in PLATFORMS.glob("*.xml")))
def test_our_platforms_are_valid(capsys, name):
    code, out, _ = run(capsys, "validate", PLATFORMS / f"{name}.xml")
    assert code == 0
    assert ": valid (" in out


@pytest.mark.parametrize(("name", "ending"), [("multi_site", "png"), ("fat_tree_1024", "svg")])
def test_plot_writes_the_same_picture_each_time(capsys, tmp_path, name, ending):
    pytest.importorskip("matplotlib")
    pictures = [tmp_path / f"{k}.{ending}" for k in range(2)]
    for picture in pictures:
        assert run(capsys, "plot", PLATFORMS / f"{name}.xml", "-o", picture)[0] == 0
    if ending == "png":
        assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert {file.name for file in tmp_path.iterdir()} == {picture.name for picture in pictures}


@pytest.mark.parametrize("output", ["x.gif", "none/x.png"])
def test_plot_to_a_wrong_place_is_a_user_error(capsys, tmp_path, output):
    pytest.importorskip("matplotlib")
    code, _, err = run(capsys, "plot", PLATFORMS / "worked_example.xml", "-o", tmp_path / output)
    assert code == 2
    assert err.count("\n") == 1


@pytest.mark.parametrize("key", ["network/TCP-gamma", "precision/timing", "maxmin/precision"])
@pytest.mark.parametrize("value", ["-1", "nan", "x", "inf", ""])
def test_validate_refuses_what_no_simulation_takes(capsys, tmp_path, key, value):
    file = tmp_path / "bad.xml"
    config = f'<config>\n<prop id="{key}" value="{value}"/></config>'
    file.write_text(f'<platform version="4.1">\n{config}{PAIR.format("1Gbps", "1us")}</platform>')
    for command in (["platform", "validate", str(file)], ["platform", "info", str(file)]):
        assert main(command) == 2
        err = capsys.readouterr().err
        assert f"{file}:2: config: " in err
        assert f"{value!r} is not a number >= 0" in err


@pytest.mark.parametrize("name", ["a b", "a,b", "a;b", "a&#9;b", "a&quot;b"])
def test_validate_finds_names_that_look_like_several(capsys, tmp_path, name):
    text = PAIR.replace('"a"', f'"{name}"').replace('"l"', f'"{name}"')
    out = validate_text(capsys, tmp_path, text.format("1Gbps", "1us"))
    assert ":3: name: host 'a" in out
    assert ":4: name: link 'a" in out
    assert "rename it" in out


def test_validate_finds_what_is_read_otherwise_than_written(capsys, tmp_path):
    """SimGrid 3.32 takes all of these without a word."""
    text = PAIR.replace('"Full"', '"full"').replace('id="a"', 'id="a" core="1.5"')
    text = text.replace('id="b"', 'id="b" speed_file="t.txt"')
    (tmp_path / "t.txt").write_text("0 -1\n5 0.5\n")
    out = validate_text(capsys, tmp_path, text.format("1Gbps", "1us"))
    assert ":2: spelling: zone 'w': routing='full' is read as Full" in out
    assert ":3: number: host 'a': core='1.5' is read as 1" in out
    assert ":3: trace: host 'b': trace 't.txt': its first value, -1, is negative and skip" in out
    assert "3 warnings" in out


RADICALS = {"0..7": "0", "0-3,5:7": "0-3,5", "0 - 3": "0-3"}


@pytest.mark.parametrize("radical", RADICALS)
def test_validate_finds_a_radical_that_is_read_otherwise_than_written(capsys, tmp_path, radical):
    given = f'id="c" prefix="n" suffix="" speed="1Gf" bw="1Gbps" lat="1us" radical="{radical}"'
    out = validate_text(capsys, tmp_path, f"<cluster {given}/>")
    said = f"number: cluster 'c': radical '{radical}' is read as '{RADICALS[radical]}', as SimGrid"
    assert said in out


def test_a_platform_may_come_packed_from_a_pipe(tmp_path):
    text = f'<platform version="4.1">{PAIR.format("1Gbps", "1us")}</platform>'
    command = [sys.executable, "-m", "ptaskmodel", "platform", "validate", "-"]
    done = subprocess.run(command, input=gzip.compress(text.encode()), capture_output=True)
    assert done.returncode == 0
    assert b"valid (2 hosts, 1 links), no warnings" in done.stdout
