"""SimGrid XML (DTD 4 and 4.1) to a Platform: reads, checks the nesting, reports with file:line.

Expat is used as is: it fetches nothing, and entity declarations are refused, so that a small file
cannot grow. Elements are handled as they end; only the open ones and the facts are in memory.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

from ptaskmodel.errors import PlatformError
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform import dtd
from ptaskmodel.platform.builder import Builder
from ptaskmodel.platform.clusters import make_cluster
from ptaskmodel.platform.declarations import Declarations
from ptaskmodel.platform.elements import Element, Source, read_bounded
from ptaskmodel.platform.model import PlatformWarning
from ptaskmodel.platform.notes import Note, short
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.route_declarations import declare_bypass, declare_route
from ptaskmodel.platform.zones import CLUSTER, ZONE_KINDS

MAX_BYTES = 1024**3
MAX_DEPTH = 60
MAX_TEXT = 256 * 1024**2
_COMMENT = re.compile(rb"<!--(.*?)-->", re.DOTALL)
_DOCTYPES = frozenset(
    {"https://simgrid.org/simgrid.dtd", "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd"}
)


def load_platform(path: str | Path) -> Platform:
    """The platform in a SimGrid XML file.

    Raises PlatformError (one line: file, line, element, remedy) if it cannot be used. What is odd
    but usable gives a PlatformWarning per kind; ``Platform.notes`` lists all of them.
    """
    platform = read_platform(Path(path))
    for note in _one_per_kind(platform.notes):
        warnings.warn(f"{path}:{note.line}: {note.text}", PlatformWarning, stacklevel=2)
    return platform


def read_platform(path: Path) -> Platform:
    """As ``load_platform``, without a Python warning."""
    try:
        content = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise PlatformError(f"{path}: cannot be read: {error.strerror}") from None
    if content is None:
        raise PlatformError(f"{path}: larger than {MAX_BYTES} bytes; use <cluster> elements")
    return parse_platform(content, path)


def parse_platform(content: bytes, path: Path) -> Platform:
    """The platform in the bytes of a file; ``path`` serves messages and finds traces."""
    with collector_at_rest():
        builder = Builder(Source(path))
        reader = _Reader(builder)
        reader.read(content)
        reader.declarations.connect_traces()
        builder.finish()
        return Platform(builder, path)


def _one_per_kind(notes: tuple[Note, ...]) -> list[Note]:
    first: dict[str, Note] = {}
    counts: dict[str, int] = {}
    for note in notes:
        first.setdefault(note.kind, note)
        counts[note.kind] = counts.get(note.kind, 0) + 1
    return [
        note._replace(text=f"{note.text} (and {counts[kind] - 1} more such)")
        if counts[kind] > 1
        else note
        for kind, note in first.items()
    ]


class _Open:
    """An element being read; ``stage`` and ``stages`` order the content of platform and zones."""

    __slots__ = ("element", "stage", "stages")

    def __init__(self, element: Element) -> None:
        self.element = element
        self.stage = 0
        self.stages: tuple[frozenset[str], ...] | None = None


class _Reader:
    """Expat handlers: a stack of open elements, each complete one given to its declaration."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.source = builder.source
        self.declarations = Declarations(builder)
        self.stack: list[_Open] = []
        self.text: list[str] = []
        self.text_size = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.entity
        self.parser.SkippedEntityHandler = self.skipped_entity
        self.parser.StartCdataSectionHandler = self.cdata
        declare = self.declarations
        self.handlers: dict[str, Callable[[Element], None]] = {
            tag: getattr(declare, tag) for tag in _DECLARED_TAGS
        }
        for tag in ("route", "zoneRoute"):
            self.handlers[tag] = lambda element: declare_route(builder, element)
        for tag in ("bypassRoute", "bypassZoneRoute"):
            self.handlers[tag] = lambda element: declare_bypass(builder, element)
        self.handlers["cluster"] = lambda element: make_cluster(builder, element)

    def read(self, content: bytes) -> None:
        """Parse a whole document. Blanks before it and "--" in comments are tolerated."""
        blanks = len(content) - len(content.lstrip(b" \t\r\n"))
        self.skipped_lines = content[:blanks].count(b"\n")
        content = _COMMENT.sub(_without_double_dash, content[blanks:])
        try:
            self.parser.Parse(content, True)
        except expat.ExpatError as error:
            reason = expat.errors.messages[error.code]
            what = f"not well-formed XML: {reason} at column {error.offset + 1}; mend the file"
            raise self.source.error_at(error.lineno + self.skipped_lines, what) from None
        except (LookupError, ValueError) as error:
            raise self.source.error_at(1, f"unknown encoding: {error}; save as UTF-8") from None

    def line(self) -> int:
        return int(self.parser.CurrentLineNumber) + self.skipped_lines

    def error(self, what: str) -> PlatformError:
        return self.source.error_at(self.line(), what)

    def doctype(self, name: str, system: str | None, public: str | None, subset: int) -> None:
        if name != "platform":
            raise self.error(f"DOCTYPE {short(name)}: not a SimGrid platform; write 'platform'")
        if subset:
            raise self.error("the DOCTYPE has an internal subset; remove the part in brackets")
        if public is not None or system not in _DOCTYPES:
            known = "https://simgrid.org/simgrid.dtd"
            raise self.error(f'DOCTYPE SYSTEM {short(str(system))}; write SYSTEM "{known}"')

    def entity(self, name: str, *_: object) -> None:
        raise self.error(f"entity {short(name)} is declared; write its text where it is used")

    def skipped_entity(self, name: str, *_: object) -> None:
        raise self.error(f"unknown entity {short(name)}; write the character itself")

    def cdata(self) -> None:
        raise self.error("a CDATA section; write the text as it is")

    def characters(self, text: str) -> None:
        parent = self.stack[-1].element.tag if self.stack else ""
        if parent == "trace":
            self.text.append(text)
            self.text_size += len(text)
            if self.text_size > MAX_TEXT:
                raise self.error("trace: the text is too large; put it in a file")
        elif not text.isspace():
            raise self.error(f"{parent}: the text {short(text.strip())} is not expected; remove it")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = dtd.OLD_TAGS.get(name, name)
        element = Element(tag, attributes, self.line())
        if len(self.stack) >= MAX_DEPTH:
            raise self.error(f"elements are nested more than {MAX_DEPTH} deep; flatten the file")
        self._check_tag(element, name)
        self._check_attributes(element)
        self._check_place(element)
        if name != tag:
            self.source.note(element, "old", f"{name} is an old name of {tag}")
        self.stack.append(_Open(element))
        if tag == "platform":
            self._check_version(element)
            self.stack[-1].stages = dtd.PLATFORM_STAGES
        elif tag == "zone":
            kind = ZONE_KINDS.get(element["routing"].lower())
            if kind is None:
                known = "Full, Floyd, Dijkstra, DijkstraCache, Cluster, Vivaldi, Wifi, None"
                what = f"unknown routing {short(element['routing'])}; write one of {known}"
                raise self.source.error(element, what)
            self.builder.open_zone(element, element["id"], kind)

    def end(self, _: str) -> None:
        element = self.stack.pop().element
        if element.tag == "trace":
            element.text, self.text, self.text_size = "".join(self.text), [], 0
        if element.tag == "zone":
            if self.builder.current().kind == CLUSTER:
                self.declarations.close_star()
            self.builder.close_zone()
        elif self.stack:
            parent = self.stack[-1].element
            if parent.tag in ("platform", "zone"):
                self.handlers[element.tag](element)
            else:
                parent.children.append(element)

    def _check_tag(self, element: Element, name: str) -> None:
        if name in dtd.REFUSED_TAGS:
            raise self.error(f"{name}: not supported; {dtd.REFUSED_TAGS[name]}")
        if element.tag not in dtd.TAGS:
            known = [tag for tag in (*dtd.TAGS, *dtd.OLD_TAGS) if tag.lower() == name.lower()]
            hint = f"write {known[0]}" if known else "remove it"
            raise self.error(f"unknown element {short(name)}; {hint}")

    def _check_attributes(self, element: Element) -> None:
        known, given = dtd.TAGS[element.tag], element.attributes
        for name in sorted(given.keys() - known.attributes.keys()):
            hint = dtd.REFUSED_ATTRIBUTES.get((element.tag, name))
            hint = hint or f"known ones: {', '.join(known.attributes) or 'none'}"
            raise self.source.error(element, f"unknown attribute {short(name)}; {hint}")
        for name in known.required:
            if not given.get(name) and (name not in given or name not in dtd.MAY_BE_EMPTY):
                state = "empty" if name in given else "missing"
                raise self.source.error(element, f"the attribute {name} is {state}; give it")
        for name, choices in known.choices.items():
            if name in given and given[name] not in choices:
                what = f"{name}={short(given[name])}; write one of {', '.join(choices)}"
                raise self.source.error(element, what)
        element.attributes = known.defaults | given

    def _check_place(self, element: Element) -> None:
        tag = element.tag
        if not self.stack:
            if tag != "platform":
                raise self.source.error(element, "the first element must be platform")
            return
        parent = self.stack[-1]
        allowed = tag in dtd.CHILDREN.get(parent.element.tag, ())
        if parent.element.tag in ("platform", "zone"):
            allowed = self._advance(parent, tag)
        if not allowed:
            what = f"it cannot stand here, inside {parent.element}"
            raise self.source.error(element, f"{what}; {_place_hint(parent, tag)}")

    def _advance(self, parent: _Open, tag: str) -> bool:
        """Move the parent to the stage that holds a tag; False if it is too late or elsewhere."""
        stages = parent.stages
        if stages is None:
            if tag == "prop":
                return True
            if tag not in dtd.ZONE_CHILDREN:
                return False
            internal = tag in dtd.INTERNAL_FIRST
            stages = parent.stages = dtd.INTERNAL_STAGES if internal else dtd.LEAF_STAGES
            parent.stage = 1
        for stage in range(parent.stage, len(stages)):
            if tag in stages[stage]:
                parent.stage = stage
                return True
        return False

    def _check_version(self, element: Element) -> None:
        version = self.source.number(element, "version")
        if not 400 <= round(100 * version) <= 410:
            what = f"version {element['version']}; write version='4.1' and the names of that DTD"
            raise self.source.error(element, what)


_DECLARED_TAGS = (
    *("config", "random", "host", "link", "router", "peer", "backbone", "host_link", "cabinet"),
    *("prop", "trace", "trace_connect", "actor"),
)


def _without_double_dash(match: re.Match[bytes]) -> bytes:
    """SimGrid takes "--" in a comment, XML does not."""
    return (
        match.group(0)
        if b"--" not in match.group(1)
        else b"<!-- " + re.sub(rb"[^\n]", b" ", match.group(1)) + b"-->"
    )


def _place_hint(parent: _Open, tag: str) -> str:
    if parent.element.tag == "zone" and parent.stages is not None:
        if tag == "prop":
            return "put the props first"
        if any(tag in stage for stage in parent.stages):
            return "put it before the routes"
        if parent.stages is dtd.LEAF_STAGES:
            return "this zone holds hosts, routers or begins with a link: put zones first or apart"
        return "this zone holds zones: put hosts, routers and their routes in a zone of their own"
    if parent.element.tag == "platform":
        return "platform holds config, then one zone or cluster, then actors"
    return "move or remove it"
