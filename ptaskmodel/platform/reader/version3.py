"""Platforms of DTD version 3 (SimGrid 3.5 to 3.12) as version 4.1 writes them.

The reader takes each element as `as_41` gives it; `upgraded` rewrites the text of a file for
`ptaskmodel platform upgrade`. Source: SimGrid's history of its DTD, in the manual of
simgrid_update_xml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ptaskmodel.platform.reader.elements import OLD_TAGS

DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
VERSION = "4.1"
ATTRIBUTES = {
    **{(tag, "power"): "speed" for tag in ("host", "cluster", "cabinet", "peer")},
    **{(tag, "availability_file"): "speed_file" for tag in ("host", "peer")},
}
VALUES = {
    ("trace_connect", "kind", "POWER"): "SPEED",
    ("link", "sharing_policy", "FULLDUPLEX"): "SPLITDUPLEX",
    ("cluster", "sharing_policy", "FULLDUPLEX"): "SPLITDUPLEX",
}
# Attributes that are gone, and the value that needs no other.
GONE = {
    ("host", "availability"): "1",
    ("host", "state"): "ON",
    ("link", "state"): "ON",
    ("cluster", "availability_file"): "",
    ("cluster", "state_file"): "",
}
# Units of numbers that stand without one, which version 4 does not take.
UNITS = {
    **dict.fromkeys(("speed",), "f"),
    **dict.fromkeys(("bandwidth", "bw", "bb_bw", "bw_in", "bw_out"), "Bps"),
    **dict.fromkeys(("loopback_bw", "limiter_link"), "Bps"),
    **dict.fromkeys(("latency", "lat", "bb_lat", "loopback_lat"), "s"),
}
_PARTS = re.compile(
    r"(?P<kept><!--.*?-->|<\?.*?\?>)|(?P<doctype><!DOCTYPE[^>]*>)"
    r"|<(?P<slash>/?)(?P<tag>[A-Za-z][\w:.-]*)(?P<rest>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(\s*)([\w:.-]+)(\s*=\s*)(\"[^\"]*\"|'[^']*')", re.DOTALL)
_BARE = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


def is_version3(version: str) -> bool:
    """Whether the `version` of a platform is 3, or 3.0."""
    return re.fullmatch(r"\s*3(\.0*)?\s*", version) is not None


def as_41(tag: str, attributes: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The tag and the attributes of an element of version 3 as version 4.1 has them."""
    tag = OLD_TAGS.get(tag, tag)
    return tag, dict(_renamed(tag, attributes))


def _renamed(tag: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in attributes.items():
        if _is_gone(tag, name, value):
            continue
        new = ATTRIBUTES.get((tag, name), name)
        yield new, VALUES.get((tag, name, value), value)


def _is_gone(tag: str, name: str, value: str) -> bool:
    harmless = GONE.get((tag, name))
    if harmless is None:
        return False
    return value == harmless or re.fullmatch(rf"{harmless}\.0*", value) is not None


def upgraded(text: str) -> str:
    """The text of a platform file with the names, units and DOCTYPE of version 4.1.

    Comments and the layout stay; it is to be saved as UTF-8.
    """
    has_doctype = "<!DOCTYPE" in _PARTS.sub(lambda part: part["doctype"] or "", text)

    def rewritten(part: re.Match[str]) -> str:
        if part["kept"]:
            return '<?xml version="1.0"?>' if part[0].startswith("<?xml ") else part[0]
        if part["doctype"]:
            return DOCTYPE
        tag = OLD_TAGS.get(part["tag"], part["tag"])
        if part["slash"]:
            return f"</{tag}{part['rest']}>"
        rest = _ATTRIBUTE.sub(lambda found: _attribute(tag, found), part["rest"])
        head = "" if has_doctype or tag != "platform" else f"{DOCTYPE}\n"
        return f"{head}<{tag}{rest}>"

    return _PARTS.sub(rewritten, text)


def _attribute(tag: str, found: re.Match[str]) -> str:
    blanks, name, equals, quoted = found.groups()
    mark, value = quoted[0], quoted[1:-1]
    if _is_gone(tag, name, value):
        return ""
    name = ATTRIBUTES.get((tag, name), name)
    value = VALUES.get((tag, found[2], value), value)
    if tag == "platform" and name == "version":
        value = VERSION
    if name in UNITS:
        items = re.split(r"([,;])", value)
        value = "".join(f"{one.strip()}{UNITS[name]}" if _BARE.fullmatch(one) else one
                        for one in items)  # fmt: skip
    return f"{blanks}{name}{equals}{mark}{value}{mark}"
