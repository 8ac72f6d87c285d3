"""Whatever is in a platform file: a platform, or one PlatformError of one line. Never else."""

from __future__ import annotations

import contextlib
import gzip
import io
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from platform_text import DOCTYPE, HEADER

from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import PlatformWarning, load_platform
from ptaskmodel.platform.reader.xml import parse_platform

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "platforms"

HOST = '<host id="a" speed="1f"/>\n'
HOSTS = HOST + '<host id="b" speed="1f"/>\n'
LINK = '<link id="l" bandwidth="1Bps" latency="0s"/>\n'
ROUTE = '<route src="a" dst="b"><link_ctn id="l"/></route>'
CLUSTER = '<cluster id="c" prefix="n" suffix="" radical="{}" speed="1f" bw="1Bps" lat="0s" {}/>'
DISK = '<disk read_bw="1Bps" write_bw="1Bps"/>'


def full(content, routing="Full"):
    return f'<zone id="w" routing="{routing}">\n{content}\n</zone>'


def nested(extra):
    return full(
        '<zone id="x" routing="Full"><host id="a" speed="1f"/></zone>\n'
        '<zone id="y" routing="Full"><host id="b" speed="1f"/></zone>\n' + LINK + extra
    )


def zone_route(attributes, links='<link_ctn id="l"/>'):
    return nested(f"<zoneRoute {attributes}>{links}</zoneRoute>")


def topology(kind, parameters, radical="0-7"):
    return CLUSTER.format(radical, f'topology="{kind}" topo_parameters="{parameters}"')


# name: (content of <platform>, part of the message)
BAD_CONTENT = {
    "nothing at all": ("", "holds no zone"),
    "no host": (full(""), "holds no host"),
    "two root zones": (full(HOSTS) + full("").replace('"w"', '"v"'), "second top-level zone"),
    "unknown tag": (full("<node/>"), "unknown element 'node'"),
    "tag in another case": (full('<Host id="a" speed="1f"/>'), "write host"),
    "old tag link:ctn": (full(HOSTS + LINK + '<link:ctn id="l"/>'), "write link_ctn"),
    "include": ('<include file="x"/>', "in its place"),
    "unknown attribute": (full('<host id="a" speed="1f" colour="red"/>'), "attribute 'colour'"),
    "old attribute power": (full('<host id="a" power="1f"/>'), "write speed"),
    "missing attribute": (full('<host id="a"/>'), "speed is missing"),
    "empty id": (full('<host id="" speed="1f"/>'), "id is empty"),
    "duplicate attribute": (full('<host id="a" id="b" speed="1f"/>'), "Attribute id redefined"),
    "wrong enumeration": (full(HOSTS + LINK.replace("/>", ' sharing_policy="shared"/>')), "SHARED"),
    "symmetrical Yes": (
        full(HOSTS + LINK + ROUTE.replace("<route", '<route symmetrical="Yes"')),
        "",
    ),
    "unknown routing": (full(HOSTS, "Star"), "unknown routing 'Star'"),
    "duplicate host": (full(HOSTS + HOST), "host 'a' exists already"),
    "duplicate link": (full(HOSTS + LINK + LINK), "link 'l' exists already"),
    "duplicate zone": (full('<zone id="w" routing="Full"/>'), "'w' is taken"),
    "duplicate router": (full(HOSTS + '<router id="a"/>'), "'a' is taken"),
    "duplicate route": (full(HOSTS + LINK + ROUTE + ROUTE), "a route 'a' -> 'b' exists"),
    "reverse declared twice": (
        full(HOSTS + LINK + ROUTE + ROUTE.replace('"a" dst="b"', '"b" dst="a"')),
        "symmetrical='NO'",
    ),
    "duplicate bypass": (
        full(HOSTS + LINK + 2 * ROUTE.replace("route", "bypassRoute")),
        "second bypass",
    ),
    "reserved link name": (full(HOSTS + LINK.replace('"l"', '"__loopback__"')), "reserved"),
    "two disks of a name": (
        full(f'<host id="a" speed="1f">{2 * DISK}</host>'),
        "a disk of this name",
    ),
    "negative bandwidth": (full(HOSTS + LINK.replace("1Bps", "-1Bps")), "negative"),
    "nan bandwidth": (full(HOSTS + LINK.replace("1Bps", "nanBps")), "not a finite"),
    "infinite speed": (full('<host id="a" speed="inff"/>'), "not a finite"),
    "huge speed": (full('<host id="a" speed="1e400f"/>'), "too large"),
    "negative latency": (full(HOSTS + LINK.replace("0s", "-2s")), "negative"),
    "unknown unit": (full('<host id="a" speed="1Kf"/>'), "kf"),
    "blank before unit": (full('<host id="a" speed="1 Gf"/>'), "write them together"),
    "no number": (full('<host id="a" speed="fast"/>'), "does not start with a number"),
    "no core": (full('<host id="a" speed="1f" core="0"/>'), "at least 1"),
    "huge core": (full(f'<host id="a" speed="1f" core="{"9" * 30}"/>'), "too large"),
    "pstate out of range": (full('<host id="a" speed="2f,1f" pstate="2"/>'), "lists 2"),
    "two coordinates": (full('<host id="a" speed="1f" coordinates="1 2"/>'), "three numbers"),
    "two bandwidths": (full(HOSTS + LINK.replace("1Bps", "1Bps,2Bps")), "Wifi"),
    "unknown link": (full(HOSTS + ROUTE), "unknown link 'l'"),
    "unknown host in route": (full(HOSTS + LINK + ROUTE.replace('"b"', '"c"')), "router 'c'"),
    "route between zones": (nested("").replace(LINK, LINK + ROUTE), "is not allowed here"),
    "route of another zone": (
        full(
            f'<zone id="x" routing="Full">{HOSTS}</zone><zone id="y" routing="Full">'
            f"{LINK}{ROUTE}</zone>"
        ),
        "not directly in the zone",
    ),
    "empty route": (full(HOSTS + '<route src="a" dst="b"/>'), "no link"),
    "direction on a shared link": (
        full(HOSTS + LINK + ROUTE.replace('id="l"', 'id="l" direction="UP"')),
        "not SPLITDUPLEX",
    ),
    "split link without direction": (
        full(HOSTS + LINK.replace("/>", ' sharing_policy="SPLITDUPLEX"/>') + ROUTE),
        "a direction",
    ),
    "route in a Cluster zone": (full(HOSTS + LINK + ROUTE, "Cluster"), "takes no route"),
    "route in a Wifi zone": (full(HOSTS + LINK + ROUTE, "Wifi"), "takes no route"),
    "host after a route": (
        full(HOSTS + LINK + ROUTE + '<host id="c" speed="1f"/>'),
        "before the routes",
    ),
    "host beside a zone": (nested('<host id="c" speed="1f"/>'), "is not allowed here"),
    "zone after a link": (full(LINK + '<zone id="x" routing="Full"/>'), "is not allowed here"),
    "prop after a host": (full(HOSTS + '<prop id="x" value="y"/>'), "props first"),
    "config after a zone": (full(HOSTS) + "<config/>", "is not allowed here"),
    "host outside a zone": (HOST, "is not allowed here"),
    "prop in a prop": (
        full('<prop id="x" value="y"><prop id="x" value="y"/></prop>'),
        "not allowed here",
    ),
    "gateways missing": (zone_route('src="x" dst="y"'), "gw_src is missing"),
    "gateway elsewhere": (zone_route('src="x" dst="y" gw_src="b" gw_dst="a"'), "is not in 'x'"),
    "gateway is a zone": (zone_route('src="x" dst="y" gw_src="x" gw_dst="b"'), "is a zone"),
    "zone route to itself": (zone_route('src="x" dst="x" gw_src="a" gw_dst="a"'), "same"),
    "unknown zone": (zone_route('src="x" dst="v" gw_src="a" gw_dst="b"'), "unknown zone 'v'"),
    "empty radical": (CLUSTER.format("", ""), "radical is empty"),
    "radical of three parts": (CLUSTER.format("1-2-3", ""), "more than two parts"),
    "radical of nothing": (CLUSTER.format("3-1", ""), "no host"),
    "radical repeated": (CLUSTER.format("0-2,1", ""), "'n1' exists already"),
    "absurd radical": (CLUSTER.format("0-999999999999", ""), "more than 4000000 hosts"),
    "absurd radicals": (CLUSTER.format(",".join(["0-3000000"] * 9), ""), "more than 4000000"),
    "torus without sizes": (topology("TORUS", ""), "topo_parameters"),
    "torus too large": (topology("TORUS", "3,3"), "9 nodes, radical gives 8"),
    "torus of size 0": (topology("TORUS", "0,8"), "must be in 1"),
    "torus with two flat dimensions": (topology("TORUS", "1,1,8"), "exists already"),
    "fat tree of three parts": (topology("FAT_TREE", "1;8;1"), "levels;children"),
    "fat tree with absurd cables": (topology("FAT_TREE", "1;8;1;99999999"), "links, more than"),
    "dragonfly short of blades": (topology("DRAGONFLY", "3,1;1,1;2,1;1"), "one blade per group"),
    "peer outside Vivaldi": (
        full('<peer id="p" speed="1f" bw_in="1Bps" bw_out="1Bps"/>'),
        "routing='Vivaldi'",
    ),
    "two Wifi links": (
        full(HOSTS + LINK + LINK.replace('"l"', '"m"'), "Wifi"),
        "can have only one link",
    ),
    "Wifi latency": (full(HOSTS + LINK.replace("0s", "1s"), "Wifi"), "cannot have a latency"),
    "access point elsewhere": (
        full('<prop id="access_point" value="z"/>' + HOSTS, "Wifi"),
        "access_point 'z'",
    ),
    "unknown host_link": (full(LINK + '<host_link id="a" up="l" down="l"/>', "Cluster"), "'a'"),
    "missing trace file": (full('<host id="a" speed="1f" speed_file="none.txt"/>'), "no such file"),
    "unknown trace": (full(HOSTS) + '<trace_connect trace="t" element="a"/>', "unknown trace"),
    "trace of an unknown host": (
        '<trace id="t" periodicity="0">0 1</trace>'
        + full(HOSTS)
        + '<trace_connect trace="t" element="z"/>',
        "unknown host 'z'",
    ),
    "trace backwards in time": ('<trace id="t" periodicity="0">2 1\n1 1</trace>', "before"),
    "trace without value": ('<trace id="t" periodicity="0">2</trace>', "no value"),
    "trace with a short period": ('<trace id="t" periodicity="1">2 1</trace>', "shorter than"),
    "random trace": ('<trace id="t" periodicity="0">STOCHASTIC\nEXP 1 DET 1</trace>', "EXP"),
    "unknown config": ('<config><prop id="network/TCP-gama" value="1"/></config>', "TCP-gamma"),
    "bad loopback": (
        '<config><prop id="network/loopback-bw" value="x"/></config>' + full(HOSTS),
        "network/loopback-bw",
    ),
    "text between elements": (full(HOSTS + "hello"), "text 'hello'"),
    "CDATA": (full(HOSTS + "<![CDATA[x]]>"), "CDATA"),
    "unclosed tag": ("<zone", "not well-formed"),
    "crossed tags": ("<zone id='w' routing='Full'></platform></zone>", "mismatch: zone"),
    "unknown entity": (full("&foo;"), "foo"),
    "entity in an attribute": (full('<host id="a&foo;" speed="1f"/>'), "unknown entity 'foo'"),
    "entity after the last tag": (full(HOSTS) + "&foo;", "unknown entity 'foo'"),
    "CDATA in a trace": ('<trace id="t" periodicity="0"><![CDATA[0 1]]></trace>', "CDATA"),
    "namespace": ('<zone xmlns="urn:x" id="w" routing="Full"/>', "xmlns is not supported"),
    "prefix of no namespace": (full('<host x:id="a" speed="1f"/>'), "prefix x"),
    "attribute of a namespace": (full('<host xml:lang="a" id="a" speed="1f"/>'), "unknown attr"),
    "less-than in an attribute": (full('<host id="a<b" speed="1f"/>'), "not well-formed"),
    "a name over two lines": (full(HOSTS + '<router id="x\ny"/><router id="x y"/>'), "taken"),
}

BOMB = "".join(f"<!ENTITY e{k} '{10 * ('&e' + str(k - 1) + ';')}'>" for k in range(1, 12))


def nested(begin: bytes, end: bytes) -> bytes:
    return HEADER.encode() + begin + end + b"</platform>"


BAD_FILES = {
    "empty file": (b"", "is empty"),
    "only blanks": (b" \n\n", "is empty"),
    "a tasks file": (b'{"tasks": []}', "is JSON, the format of tasks and workloads"),
    "binary": (bytes(range(256)) * 10, "not well-formed"),
    "not UTF-8": (
        HEADER.encode() + b"<zone id='\xff\xfe' routing='Full'/></platform>",
        "not UTF-8",
    ),
    "unknown encoding": (b"<?xml version='1.0' encoding='klingon'?><platform/>", "encoding"),
    "truncated": ((HEADER + full(HOSTS))[:-20].encode(), "not well-formed"),
    "another document": (b"<html></html>", "html"),
    "another root": (b"<zone id='w' routing='Full'/>", "its first element is 'zone'"),
    "a workflow": (
        b'<adag xmlns="http://pegasus.isi.edu/schema/DAX"/>',
        "is no SimGrid platform: a workflow of Pegasus (DAX)",
    ),
    "a deployment": (
        HEADER.encode() + b'<actor host="h" function="f"><argument value="1"/></actor></platform>',
        "it is a deployment, which has actors only",
    ),
    "clusters": (b"<clusters><cluster/></clusters>", "a list of clusters of another simulator"),
    "YAML": (b"clusters:\n  - name: c\n", "bad.xml:1: is YAML, not a SimGrid platform"),
    "a slurm.conf": (b"# a comment\nClusterName=c\nNodeName=n1\n", "is a slurm.conf, not"),
    "text": (b"hello\n", "is not XML, so no SimGrid platform"),
    "no version": (b"<platform/>", "version 0.0"),
    "version 2": (b"<platform version='2'/>", "version 2"),
    "version 3 and nothing": (b"<platform version='3'/>", "holds no"),
    "version 5": (b"<platform version='5'/>", "version 5"),
    "version nan": (b"<platform version='nan'/>", "finite number"),
    "other system id": (b'<!DOCTYPE platform SYSTEM "simgrid.dtd"><platform/>', "simgrid.dtd"),
    "public doctype": (b'<!DOCTYPE platform PUBLIC "a" "b"><platform/>', "SYSTEM"),
    "doctype of another": (b'<!DOCTYPE html SYSTEM "x"><html/>', "not a SimGrid platform"),
    "entity bomb": (f'<!DOCTYPE platform [<!ENTITY e0 "x">{BOMB}]><p>&e11;</p>'.encode(), "subset"),
    "external entity": (
        b'<!DOCTYPE platform [<!ENTITY x SYSTEM "file:///etc/passwd">]><p>&x;</p>',
        "internal subset",
    ),
    "entity bomb in the DTD's name": (
        b'<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd" [<!ENTITY a "b">]><p/>',
        "internal subset",
    ),
    "parameter entity": (
        b'<!DOCTYPE platform [<!ENTITY % x SYSTEM "http://127.0.0.1:9/x"> %x;]><p/>',
        "internal subset",
    ),
    "doctype after a comment": (
        b'<!-- <a> --><?x <b> ?>\n<!DOCTYPE platform [<!ENTITY a "b">]><p/>',
        "bad.xml:2: the DOCTYPE has an internal subset",
    ),
    "UTF-16 of half a character": ("<platform".encode("utf-16") + b"x", "UTF-16"),
    "encoding that packs": (b"<?xml version='1.0' encoding='zlib_codec'?><p/>", "encoding"),
    "NUL": (HEADER.encode() + b"<zone id='a\0b' routing='Full'/></platform>", "not well-formed"),
    "two roots": (HEADER.encode() + b"</platform><platform/>", "not well-formed"),
    "a million levels": (
        nested(b"<zone id='z' routing='Full'>" * 10**6, b"</zone>" * 10**6),
        "is taken",
    ),
    "a million levels of names": (
        nested(
            b"".join(b"<zone id='z%d' routing='Full'>" % k for k in range(10**5)),
            b"</zone>" * 10**5,
        ),
        "nested more than",
    ),
    "a million props inside": (
        nested(
            b"<zone id='z' routing='Full'>" + b"<prop id='x' value='y'>" * 10**6,
            b"</prop>" * 10**6 + b"</zone>",
        ),
        "is not allowed here",
    ),
}


def refusal(content: bytes) -> str:
    with pytest.raises(PlatformError) as caught:
        parse_platform(content, Path("bad.xml"))
    return str(caught.value)


@pytest.mark.parametrize("name", BAD_CONTENT)
def test_bad_content_is_refused_in_one_line(name):
    content, part = BAD_CONTENT[name]
    message = refusal(f"{HEADER}{content}\n</platform>\n".encode())
    assert message.startswith("bad.xml:")
    assert part in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_one_line(name):
    content, part = BAD_FILES[name]
    message = refusal(content)
    assert message.startswith("bad.xml:")
    assert part in message
    assert "\n" not in message


def test_all_problems_are_told_at_once():
    content = """<zone id="z" routing="Ful">
    <host id="a" speed="1Gx" core="none"/>
    <host id="b" power="1Gf"/>
    <host id="c" speed="1Gf"/>
    <host speed="1Gf"/>
    <link id="l" bandwidth="1Gbit"/>
    <machine/>
    <route src="a" dst="d"><link_ctn id="l"/></route>
    <route src="a" dst="c"/>
    </zone>"""
    head, *told = refusal(f"{HEADER}{content}\n</platform>".encode()).split("\n  ")
    assert head == "bad.xml: 8 problems:"
    first = HEADER.count("\n") + 1
    assert [int(line.split()[1].rstrip(":")) - first for line in told] == [0, 1, 1, 2, 4, 5, 6, 8]
    # Nothing is said of what may follow from another: there may be a host 'd' among those refused.
    assert "unknown host" not in "".join(told)


def test_all_traces_that_cannot_be_connected_are_told():
    content = """<zone id="z" routing="Full"><host id="a" speed="1Gf"/></zone>
    <trace id="t" periodicity="1.0">0 1</trace>
    <trace_connect trace="t" kind="SPEED" element="b"/>
    <trace_connect trace="u" kind="SPEED" element="a"/>
    <trace_connect trace="t" kind="BANDWIDTH" element="l"/>"""
    head, *told = refusal(f"{HEADER}{content}\n</platform>".encode()).split("\n  ")
    assert head == "bad.xml: 3 problems:"
    for line, said in zip(told, ("unknown host 'b'", "unknown trace 'u'", "link 'l'"), strict=True):
        assert said in line


def test_the_line_is_that_of_the_element():
    content = f"\n\n{HEADER}{full(HOSTS + LINK + LINK)}</platform>"
    assert refusal(content.encode()).startswith("bad.xml:9: link 'l': ")


MANY = '<router id="r{}"\n  />\n'


@pytest.mark.parametrize(
    ("fault", "lines_on", "part"),
    [
        ('<host id="a"\n\n speed="x"\n/>', 0, "speed: 'x' does not start"),
        ("<host id='a' speed='1f'></zone>", 0, "not well-formed"),
        ("\n\nhello", 2, "the text 'hello'"),
        ("<!-- <host> \n --><?x <host>\n ?>\n&what;", 3, "unknown entity"),
    ],
)
def test_lines_are_exact_however_many_there_are(fault, lines_on, part):
    """Beyond 65,535 too, where libxml2 once stopped to count."""
    routers = "".join(MANY.format(k) for k in range(36_000))
    content = f'{HEADER}<zone id="w" routing="Full">\n{routers}{fault}\n</zone></platform>'
    line = (HEADER + routers).count("\n") + 2 + lines_on
    assert line > 70_000
    assert refusal(content.encode()).startswith(f"bad.xml:{line}: ")
    assert part in refusal(content.encode())


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_may_end_as_they_did_on_other_machines(end):
    content = f"{HEADER}{full(HOSTS + LINK + LINK)}</platform>".replace("\n", end)
    assert refusal(content.encode()).startswith("bad.xml:7: link 'l': ")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings(encoding):
    declared = {"latin-1": "iso-8859-1"}.get(encoding, encoding.removesuffix("-sig"))
    start = f"<?xml version='1.0' encoding='{declared}'?>\n{HEADER}"
    content = f'{start}<zone id="é" routing="Full">{HOSTS}</zone></platform>'.encode(encoding)
    assert parse_platform(content, Path("p.xml")).zones[0].name == "é"


def test_a_dtd_is_never_fetched(monkeypatch):
    def refuse(*_):
        raise AssertionError("something was opened")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    content = f"{HEADER}{full(HOSTS)}</platform>".encode()
    assert len(parse_platform(content, Path("p.xml")).hosts) == 2


def test_a_trace_of_many_megabytes_may_stand_in_the_file():
    text = "".join(f"{k} 0.5\n" for k in range(1_200_000))
    content = f'{HEADER}<trace id="t" periodicity="0">{text}</trace>{full(HOSTS)}'
    content += '<trace_connect kind="SPEED" trace="t" element="a"/></platform>'
    platform = parse_platform(content.encode(), Path("p.xml"))
    assert len(platform.host("a").speed_trace.values) == 1_200_000


def test_a_platform_may_be_packed_or_piped(tmp_path, monkeypatch):
    content = f"{HEADER}{full(HOSTS)}</platform>".encode()
    packed = tmp_path / "p.xml.gz"
    packed.write_bytes(gzip.compress(content))
    assert len(load_platform(packed).hosts) == 2
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert len(load_platform("-").hosts) == 2


@pytest.mark.parametrize("place", ["loop", "x" * 300, "closed/p.xml", ".", "nul"])
def test_a_file_that_cannot_be_opened_is_a_user_error(place, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "nul").write_bytes(b"0 1\n5 \0\n")
    message = ""
    with pytest.raises(PlatformError) as caught:
        load_platform(tmp_path / place)
    message = str(caught.value)
    assert "\n" not in message
    file = tmp_path / "p.xml"
    host = f'<host id="a" speed="1f" speed_file="{place}"/>'
    file.write_text(f"{HEADER}{full(host)}</platform>")
    with pytest.raises(PlatformError) as caught:
        load_platform(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:4: host 'a': ")
    assert "\n" not in message
    assert "\0" not in message


def test_a_missing_file_is_a_user_error(tmp_path):
    with pytest.raises(PlatformError, match=r"none\.xml: no such file"):
        load_platform(tmp_path / "none.xml")


@pytest.mark.parametrize(
    "start",
    [
        "\n\n<?xml version='1.0'?>\n" + DOCTYPE,
        "<?xml version='1.1' encoding='UTF-8'?>\n" + DOCTYPE,
        "<!-- a -- b -- -->\n" + DOCTYPE,
        "<?xml version='1.0'?>",
        "<!DOCTYPE platform SYSTEM 'http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd'>",
    ],
)
def test_what_simgrid_accepts_or_is_harmless_is_read(start):
    content = f'{start}<platform version="4">{full(HOSTS)}</platform>'
    assert len(parse_platform(content.encode(), Path("p.xml")).hosts) == 2


def test_a_link_without_latency_has_none():
    content = HEADER + full(HOSTS + '<link id="l" bandwidth="1Bps"/>') + "</platform>"
    assert parse_platform(content.encode(), Path("p.xml")).link("l").latency_s == 0.0


def test_old_names_are_read_with_a_warning(tmp_path):
    file = tmp_path / "old.xml"
    link = LINK.replace("/>", ' sharing_policy="FULLDUPLEX"/>')
    old = f'<AS id="w" routing="full">{HOSTS}{link}</AS>'
    file.write_text(f"{HEADER}{old}</platform>")
    with pytest.warns(PlatformWarning, match="AS is an old name of zone"):
        platform = load_platform(file)
    assert platform.link("l_UP").policy == "SHARED"


def test_many_equal_warnings_are_told_once(tmp_path):
    file = tmp_path / "units.xml"
    hosts = "".join(f'<host id="h{k}" speed="5"/>' for k in range(30))
    file.write_text(f"{HEADER}{full(hosts)}</platform>")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_platform(file)
    assert [str(w.message).endswith("(and 29 more such)") for w in caught] == [True]


TOKENS = [
    *("<", ">", '"', "'", "/", "=", "&", "<!--", "-->", "]]>", "<![CDATA[", "<?x?>", "\x00"),
    *("zone", "host", "link", "cluster", "prop", "route", "link_ctn", "<prop/>", "</zone>"),
    *("0-99999999999", "-1", "nan", "inf", "1e999", "0x10", "", "é", "\n", ";", ",", "%s"),
    *("FAT_TREE", "TORUS", "DRAGONFLY", "Floyd", "Vivaldi", "Wifi", "None", "SPLITDUPLEX"),
]


@st.composite
def mutated(draw):
    """An example platform with a few cuts, copies and insertions."""
    names = sorted(file.name for file in EXAMPLES.glob("*.xml"))
    text = (EXAMPLES / draw(st.sampled_from(names))).read_text()
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 40)))
        other = draw(st.integers(0, len(text)))
        insert = draw(
            st.one_of(
                st.sampled_from(TOKENS), st.just(text[other : other + 30]), st.text(max_size=5)
            )
        )
        text = text[:start] + insert + text[stop:]
    return text.encode(errors="surrogatepass")


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_a_mutated_platform_is_read_or_refused(content):
    with contextlib.suppress(PlatformError):
        platform = parse_platform(content, EXAMPLES / "mutated.xml")
        names = [host.name for host in platform.hosts[:3]]
        again = parse_platform(platform.to_xml().encode(), EXAMPLES / "again.xml")
        for source in names:
            for destination in names:
                found = platform.route(source, destination)
                assert again.route(source, destination) == found
