"""Platforms of DTD version 3 are read as those of 4.1, and written so."""

from __future__ import annotations

import io
import random
import re
import shutil
import subprocess
import warnings

import pytest
from random_platforms import random_platform

from ptaskmodel.cli import main
from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import load_platform
from ptaskmodel.platform.inspection import write_routes
from ptaskmodel.platform.reader.document import upgraded
from ptaskmodel.platform.reader.xml import parse_platform, upgrade_platform

HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "http://simgrid.gforge.inria.fr/simgrid.dtd">
"""
# Elements of all kinds, written after the description of version 3: bare numbers, old names.
KINDS = """<!-- power of <host power="1"> stands in a comment -->
<platform version="3">
<config id="General"><prop id="network/TCP_gamma" value="4194304"/></config>
<AS id="world" routing="Full">
  <AS id="star" routing="Cluster">
    <host id="s0" power="1E9" core="2" availability="1.0" state="ON"/>
    <host id="s1" power="2e9,1e9" pstate="1"><prop id="power" value="high"/></host>
    <link id="u0" bandwidth="1.25E8" latency="1E-4" sharing_policy="FULLDUPLEX"/>
    <link id="l0" bandwidth="1.25E8" latency="1E-4"/>
    <host_link id="s0" up="l0" down="l0"/><host_link id="s1" up="l0" down="l0"/>
    <router id="sr"/><host_link id="sr" up="l0" down="l0"/>
    <backbone id="bb" bandwidth="1e9" latency="0.001"/>
  </AS>
  <AS id="floyd" routing="Floyd">
    <host id="f0" power="1Gf"/><host id="f1" power="1Gf"/><host id="f2" power="1Gf"/>
    <link id="fl" bandwidth="1GBps" latency="10us" state="ON"/>
    <link id="fm" bandwidth="1GBps" latency="20us"/>
    <route src="f0" dst="f1"><link_ctn id="fl"/></route>
    <route src="f1" dst="f2" symmetrical="NO"><link_ctn id="fm"/></route>
    <route src="f2" dst="f1" symmetrical="NO"><link_ctn id="fl"/><link_ctn id="fm"/></route>
  </AS>
  <AS id="dijkstra" routing="Dijkstra">
    <host id="d0" power="1"/><host id="d1" power="1Gf"/>
    <link id="dl" bandwidth="5e8" latency="0" sharing_policy="FATPIPE"/>
    <route src="d0" dst="d1"><link_ctn id="dl"/></route>
  </AS>
  <cluster id="c" prefix="n-" suffix=".x" radical="0-3" power="1000000000" bw="125000000"
    lat="5E-5" bb_bw="2250000000" bb_lat="5E-4" sharing_policy="FULLDUPLEX" state_file=""/>
  <AS id="p2p" routing="Vivaldi">
    <peer id="p0" power="1Gf" bw_in="1e7" bw_out="2e7" lat="0" coordinates="1 2 3"/>
    <peer id="p1" power="1Gf" bw_in="1e7" bw_out="2e7" lat="0" coordinates="9 2 3"/>
  </AS>
  <link id="w" bandwidth="1e9" latency="0.01"/>
  <link id="shortcut" bandwidth="1e9" latency="0.001"/>
  <ASroute src="star" dst="floyd" gw_src="sr" gw_dst="f0"><link_ctn id="w"/></ASroute>
  <ASroute src="star" dst="dijkstra" gw_src="sr" gw_dst="d1"><link_ctn id="w"/></ASroute>
  <ASroute src="star" dst="c" gw_src="sr" gw_dst="n-c_router.x"><link_ctn id="w"/></ASroute>
  <ASroute src="floyd" dst="c" gw_src="f2" gw_dst="n-c_router.x"><link_ctn id="w"/></ASroute>
  <ASroute src="floyd" dst="p2p" gw_src="f2" gw_dst="p0"><link_ctn id="w"/></ASroute>
  <bypassASroute src="star" dst="floyd" gw_src="s0" gw_dst="f2">
    <link_ctn id="shortcut"/>
  </bypassASroute>
</AS>
<trace id="slow" periodicity="10">0 1
5 0.5</trace>
<trace_connect kind="POWER" trace="slow" element="s0"/>
<process host="s0" function="main"/>
</platform>
"""


def facts(platform):
    """Hosts, links, traces and all routes, for comparison."""
    stream = io.StringIO()
    hosts = range(len(platform.hosts))
    write_routes(platform, ((a, b) for a in hosts for b in hosts), stream)
    return platform.hosts, list(platform.links), platform.config, stream.getvalue()


@pytest.fixture
def read(tmp_path):
    def read(text, name="p.xml"):
        (tmp_path / name).write_text(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load_platform(tmp_path / name)

    return read


def old_text(text):
    """A platform of 4.1 in the names of version 3."""
    text = re.sub(r"<!DOCTYPE[^>]*>", HEAD.splitlines()[1], text)
    text = text.replace('version="4.1"', 'version="3"').replace("zoneRoute", "ASroute")
    text = text.replace("bypassZoneRoute", "bypassASroute").replace("SPLITDUPLEX", "FULLDUPLEX")
    return re.sub(r"\bspeed=", "power=", re.sub(r"(</?)zone\b", r"\1AS", text))


def test_all_kinds_of_elements_are_read_as_the_upgraded_file_and_written(read, tmp_path, capsys):
    old = read(HEAD + KINDS)
    assert (
        main(["platform", "upgrade", str(tmp_path / "p.xml"), "-o", str(tmp_path / "n.xml")]) == 0
    )
    text = (tmp_path / "n.xml").read_text()
    new = parse_platform((tmp_path / "n.xml").read_bytes(), tmp_path / "n.xml")
    assert facts(new) == facts(old)
    assert old.host("s0").speed_trace.values == (1.0, 0.5)
    assert old.host("s1").speeds_flops == (2e9, 1e9)
    assert '<!-- power of <host power="1"> stands in a comment -->' in text
    assert '<prop id="power" value="high"/>' in text
    assert 'radical="0-3" speed="1000000000f" bw="125000000Bps"' in text
    assert 'bb_lat="5E-4s"' in text
    # A key of the configuration is old in 4.1 too; no name is, and no number is without a unit.
    assert {note.kind for note in new.notes} == {"ignored", "old"}
    assert [note.text for note in new.notes if note.kind == "old"] == [
        "config 'General': network/TCP_gamma is an old name of network/TCP-gamma"
    ]
    old_notes = [note for note in old.notes if note.kind == "old"]
    assert [(note.line, "version 3" in note.text) for note in old_notes] == [(4, True)]
    capsys.readouterr()


@pytest.mark.parametrize("seed", [k for k in range(40) if k != 32])
def test_routes_are_those_of_the_same_platform_in_4_1(read, seed):
    text = random_platform(seed)
    assert facts(read(old_text(text))) == facts(read(text, "new.xml"))
    assert facts(read(upgraded(old_text(text)))) == facts(read(text, "new.xml"))


@pytest.mark.skipif(shutil.which("simgrid_update_xml") is None, reason="SimGrid is not installed")
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_it_is_read_as_simgrid_converts_it(read, tmp_path, seed):
    text = HEAD + KINDS.split("\n", 1)[1] if seed is None else old_text(random_platform(seed))
    # Its converter knows these attributes not; a word `power` it renames wherever it stands.
    for gone in (' availability="1.0"', ' state="ON"', ' state_file=""'):
        text = text.replace(gone, "")
    ours = read(text.replace('id="power"', 'id="speed"'))
    (tmp_path / "theirs.xml").write_text(text)
    subprocess.run(["simgrid_update_xml", str(tmp_path / "theirs.xml")], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    assert facts(read((tmp_path / "theirs.xml").read_text(), "t.xml")) == facts(ours)


def test_the_public_case_is_read_with_one_remark(shared_data):
    path = shared_data / "public_cases" / "version3" / "platform.xml"
    if not path.exists():
        pytest.skip("no public cases")
    platform = parse_platform(path.read_bytes(), path)
    assert platform.route("a", "b").links == ("l",)
    assert len(platform.remarks) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('availability="1.0"', 'availability="0.5"', "write a speed_file"),
        ('state="ON"', 'state="OFF"', "write a state_file"),
        ('version="3"', 'version="2"', "version 2"),
        ("<ASroute", "<model_prop", "declare a prop inside a disk"),
    ],
)
def test_what_no_version_4_has_is_refused(read, old, new, message):
    with pytest.raises(PlatformError, match=message):
        read(KINDS.replace(old, new))


def test_another_doctype_is_for_version_3_alone(read):
    other = '<!DOCTYPE platform SYSTEM "simgrid.dtd">\n'
    read(other + KINDS)
    with pytest.raises(PlatformError, match=r"DOCTYPE SYSTEM 'simgrid\.dtd'"):
        read(other + KINDS.replace('version="3"', 'version="4"'))


def test_an_upgraded_file_that_could_not_be_read_is_not_written(read, tmp_path, capsys):
    (tmp_path / "p.xml").write_text(KINDS.replace('power="1Gf"', 'power="x"'))
    given = ["platform", "upgrade", str(tmp_path / "p.xml"), "-o", str(tmp_path / "n.xml")]
    assert main(given) == 2
    assert not (tmp_path / "n.xml").exists()
    assert "p.xml:" in capsys.readouterr().err


def test_a_file_in_another_encoding_is_written_as_utf_8(tmp_path):
    text = '<?xml version="1.0" encoding="latin-1"?>\n' + KINDS.replace("f0", "fü")
    (tmp_path / "p.xml").write_bytes(text.encode("latin-1"))
    (tmp_path / "n.xml").write_text(upgrade_platform(tmp_path / "p.xml"), encoding="utf-8")
    assert parse_platform((tmp_path / "n.xml").read_bytes(), tmp_path).host("fü").speed_flops == 1e9


def test_mutations_are_refused_in_one_message_or_change_what_is_read(read):
    draw = random.Random(3)
    whole = HEAD + KINDS
    expected = facts(read(whole))
    told = 0
    for _ in range(150):
        tags = list(re.finditer(r"<[^!?/>]+>", whole))
        tag = draw.choice(tags)
        words = tag[0].split(" ")
        k = draw.randrange(len(words))
        words[k] = draw.choice(["", "x", 'odd="1"', words[k].replace("1", "one"), words[k].upper()])
        text = whole[: tag.start()] + " ".join(words) + whole[tag.end() :]
        try:
            made = read(text)
        except PlatformError:
            told += 1
            continue
        if re.sub(r"<!--.*?-->", "", text) != re.sub(r"<!--.*?-->", "", whole):
            assert facts(made) != expected or made.notes or made.hints
    assert told > 50


STORAGE = """
    <storage_type id="t" size="5GiB"><model_prop id="Bread" value="1"/></storage_type>
    <storage id="d" typeId="t" attach="a"/>
    <host id="a" speed="1"><mount storageId="d" name="/home"/><prop id="p" value="v"/></host>
"""


@pytest.mark.parametrize("version", ["3", "4", "4.1"])
def test_storage_of_old_platforms_is_passed_over_and_told(read, version):
    text = f'<platform version="{version}"><AS id="z" routing="Full">{STORAGE}</AS></platform>'
    text = text.replace('speed="1"', 'power="1"' if version == "3" else 'speed="1f"')
    platform = read(text)
    assert dict(platform.hosts[0].properties) == {"p": "v"}
    told = [remark for remark in platform.remarks if "not used" in remark.text]
    assert [remark.text.split(": ")[1].split()[0] for remark in told] == [
        "storage_type",
        "storage",
        "mount",
    ]


def test_a_second_declaration_of_xml_is_passed_over(read):
    text = """<?xml version="1.0"?>

<?xml version="1.0" ?>
<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1f" pstat="3"/></zone>
</platform>"""
    with pytest.raises(PlatformError, match=r":4: host 'a': unknown attribute 'pstat'"):
        read(text)
    (remark,) = read(text.replace(' pstat="3"', "")).remarks
    assert remark.text == "XML declarations after the first are passed over"
