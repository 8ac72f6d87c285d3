"""The elements of a platform in order: check their nesting and declare each one.

An element is handled when it ends, so only the open elements and the declarations are in memory.

Platforms of DTD version 3 (SimGrid 3.5 to 3.12) are read as version 4.1 writes them: the reader
takes each element as `as_41` gives it; `upgraded` rewrites the text of a file for
`ptaskmodel platform upgrade`. Source: SimGrid's history of its DTD, in the manual of
simgrid_update_xml.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ptaskmodel.errors import PlatformError
from ptaskmodel.platform.builder import CLUSTER, ROUTINGS, ZONE_KINDS, Builder, Facts
from ptaskmodel.platform.facts import short
from ptaskmodel.platform.reader import elements
from ptaskmodel.platform.reader.clusters import make_cluster
from ptaskmodel.platform.reader.declarations import Declarations, declare_bypass, declare_route
from ptaskmodel.platform.reader.elements import OLD_TAGS, Element

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


MAX_DEPTH = 60
MAX_TEXT = 256 * 1024**2
MAX_NAME = 255
# What names are made of: of one cluster, those of all its hosts and links.
_NAMING = ("id", "prefix", "suffix")


class _Open:
    """An element being read; ``stage`` and ``stages`` order the content of platform and zones."""

    __slots__ = ("element", "stage", "stages")

    def __init__(self, element: Element) -> None:
        self.element = element
        self.stage = 0
        self.stages: tuple[frozenset[str], ...] | None = None


class Document:
    """A stack of open elements; each complete one is given to its declaration.

    ordered: whether what a zone holds must come in the order of files, its routes last.
    """

    def __init__(self, builder: Builder, ordered: bool = True) -> None:
        self._ordered = ordered
        self.builder = builder
        self.source = builder.source
        self._declarations = Declarations(builder)
        self._stack: list[_Open] = []
        self._text: list[str] = []
        self._text_size = 0
        self._line = 1
        declare = self._declarations
        self._handlers: dict[str, Callable[[Element], None]] = {
            tag: getattr(declare, tag) for tag in _DECLARED_TAGS
        }
        for tag in ("route", "zoneRoute"):
            self._handlers[tag] = lambda element: declare_route(builder, element)
        for tag in ("bypassRoute", "bypassZoneRoute"):
            self._handlers[tag] = lambda element: declare_bypass(builder, element)
        self._handlers["cluster"] = lambda element: make_cluster(builder, element)

    @property
    def takes_text(self) -> bool:
        """Whether the innermost open element may hold text."""
        return bool(self._stack) and self._stack[-1].element.tag == "trace"

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins. Raises PlatformError if it may not, or not there."""
        self._line = line
        if self.source.is_version3:
            name, attributes = as_41(name, attributes)
        tag = elements.OLD_TAGS.get(name, name)
        element = Element(tag, attributes, line)
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(f"elements are nested more than {MAX_DEPTH} deep; flatten the file")
        self._check_tag(element, name)
        self._check_attributes(element)
        self._check_place(element)
        if name != tag:
            self.source.note(element, "old", f"{name} is an old name of {tag}")
        self._stack.append(_Open(element))
        if tag == "platform":
            self._check_version(element)
            self._stack[-1].stages = elements.PLATFORM_STAGES
        elif tag == "zone":
            kind = ZONE_KINDS.get(element["routing"].lower())
            if kind is None:
                known = ", ".join(ROUTINGS)
                what = f"unknown routing {short(element['routing'])}; write one of {known}"
                raise self.source.error(element, what)
            if element["routing"] not in ROUTINGS:
                what = f"routing={short(element['routing'])} is read as {kind}, as SimGrid does"
                self.source.hint(element, "spelling", f"{what}; write {kind}")
            self.builder.open_zone(element, element["id"], kind)

    def check_first(self, name: str, line: int) -> None:
        """Raise PlatformError if the first element is not that of a platform."""
        if name != "platform":
            name = name.rpartition(":")[2]
            what = elements.NO_PLATFORMS.get(name, f"its first element is {short(name)}")
            raise self.source.error_at(line, f"is no SimGrid platform: {what}; give a platform")

    def pass_over(self, name: str, line: int) -> None:
        """Tell that an element, with all that it holds, has no effect."""
        what = "storage of old platforms is not used; write disks"
        self.source.note(Element(name, {}, line), "ignored", what)

    def characters(self, text: str, line: int) -> None:
        """Text inside the innermost open element. Raises PlatformError if it has no place there."""
        self._line = line
        if self.takes_text:
            self._text.append(text)
            self._text_size += len(text)
            if self._text_size > MAX_TEXT:
                raise self._error("trace: the text is too large; put it in a file")
        elif not text.isspace():
            parent = self._stack[-1].element.tag if self._stack else ""
            what = f"{parent}: the text {short(text.strip())} is not expected; remove it"
            raise self._error(what)

    def end(self) -> None:
        """The innermost open element ends, and is declared."""
        element = self._stack.pop().element
        if element.tag == "trace":
            element.text, self._text, self._text_size = "".join(self._text), [], 0
        if element.tag == "zone":
            try:
                if self.builder.current().kind == CLUSTER:
                    self._declarations.close_star()
            finally:
                self.builder.close_zone()
        elif self._stack:
            parent = self._stack[-1].element
            if parent.tag in ("platform", "zone"):
                self._handlers[element.tag](element)
            else:
                parent.children.append(element)

    def tried(self, do: Callable[..., None], *given: Any) -> PlatformError | None:
        """Do something with what is `given`; if refused, return the error; nothing stays open."""
        depth = len(self._stack)
        try:
            do(*given)
        except PlatformError as error:
            del self._stack[depth:]
            return error
        return None

    def finish(self) -> Facts:
        """All that was declared, once every element has ended. Raises PlatformError."""
        self._declarations.connect_traces()
        self.source.account.check()
        return self.builder.finish()

    def _error(self, what: str) -> PlatformError:
        return self.source.error_at(self._line, what)

    def _check_tag(self, element: Element, name: str) -> None:
        if name in elements.REFUSED_TAGS:
            raise self._error(f"{name}: not supported; {elements.REFUSED_TAGS[name]}")
        if element.tag not in elements.TAGS:
            known = [
                tag for tag in (*elements.TAGS, *elements.OLD_TAGS) if tag.lower() == name.lower()
            ]
            hint = f"write {known[0]}" if known else "remove it"
            raise self._error(f"unknown element {short(name)}; {hint}")

    def _check_attributes(self, element: Element) -> None:
        known, given = elements.TAGS[element.tag], element.attributes
        for name in sorted(given.keys() - known.attributes.keys()):
            hint = elements.REFUSED_ATTRIBUTES.get((element.tag, name))
            hint = hint or f"known ones: {', '.join(known.attributes) or 'none'}"
            self.source.refuse(element, f"unknown attribute {short(name)}; {hint}", None)
            given.setdefault(ATTRIBUTES.get((element.tag, name), name), given[name])
        for name in known.required:
            if not given.get(name) and (name not in given or name not in elements.MAY_BE_EMPTY):
                state = "empty" if name in given else "missing"
                raise self.source.error(element, f"the attribute {name} is {state}; give it")
        for name, choices in known.choices.items():
            if name in given and given[name] not in choices:
                what = f"{name}={short(given[name])}; write one of {', '.join(choices)}"
                given = given | {name: self.source.refuse(element, what, choices[0])}
        for name in _NAMING:
            if len(given.get(name, "")) > MAX_NAME:
                what = f"{name}={short(given[name])} has more than {MAX_NAME} characters"
                raise self.source.error(element, f"{what}; shorten it")
        element.attributes = known.defaults | given

    def _check_place(self, element: Element) -> None:
        tag = element.tag
        if not self._stack:
            return
        parent = self._stack[-1]
        allowed = tag in elements.CHILDREN.get(parent.element.tag, ())
        if parent.element.tag in ("platform", "zone"):
            allowed = self._advance(parent, tag)
        if not allowed:
            what = f"it is not allowed here, inside {parent.element}"
            raise self.source.error(element, f"{what}; {_place_hint(parent, tag)}")

    def _advance(self, parent: _Open, tag: str) -> bool:
        """Move the parent to the stage that holds a tag; False if it is too late or elsewhere."""
        stages = parent.stages
        if not self._ordered and parent.element.tag == "zone":
            return self._suits(parent, tag)
        if stages is None:
            if tag == "prop":
                return True
            if tag not in elements.ZONE_CHILDREN:
                return False
            internal = tag in elements.INTERNAL_FIRST
            stages = parent.stages = elements.INTERNAL_STAGES if internal else elements.LEAF_STAGES
            parent.stage = 1
        for stage in range(parent.stage, len(stages)):
            if tag in stages[stage]:
                parent.stage = stage
                return True
        return False

    def _suits(self, parent: _Open, tag: str) -> bool:
        """Whether a zone may hold a tag; the first that only one kind may hold decides."""
        kinds = (
            [parent.stages] if parent.stages else [elements.LEAF_STAGES, elements.INTERNAL_STAGES]
        )
        suiting = [stages for stages in kinds if any(tag in stage for stage in stages)]
        if len(suiting) == 1:
            parent.stages = suiting[0]
        return bool(suiting)

    def _check_version(self, element: Element) -> None:
        version = self.source.number(element, "version", 4.1)
        if is_version3(element["version"]):
            what = "DTD version 3, read as 4.1; `ptaskmodel platform upgrade` writes that"
            self.source.note(element, "old", what)
            self.source.is_version3 = True
        elif not 400 <= round(100 * version) <= 410:
            what = f"version {element['version']}; write version='4.1' and the names of that DTD"
            raise self.source.error(element, what)


_DECLARED_TAGS = (
    *("config", "random", "host", "link", "router", "peer", "backbone", "host_link", "cabinet"),
    *("prop", "trace", "trace_connect", "actor"),
)


def _place_hint(parent: _Open, tag: str) -> str:
    if parent.element.tag == "zone" and parent.stages is not None:
        if tag == "prop":
            return "put the props first"
        if any(tag in stage for stage in parent.stages):
            return "put it before the routes"
        if parent.stages is elements.LEAF_STAGES:
            return (
                "this zone holds hosts or routers, or begins with a link; move zones to the "
                "front, or elsewhere"
            )
        return "this zone holds zones; put hosts, routers and their routes in a zone of their own"
    if parent.element.tag == "platform":
        return "platform holds config, then one zone or cluster, then actors"
    return "move or remove it"
