"""Read SimGrid XML files (DTD 3 to 4.1) with lxml, without network, entities or a tree in memory.

lxml reports no lines of elements (for a tag over several lines only where it ends). So a scan of
the text, in step with lxml, finds where each tag begins. Before lxml acts on them, the scan also
refuses what a platform never needs: declarations inside the file, entities, CDATA.
"""

from __future__ import annotations

import codecs
import logging
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lxml import etree

from ptaskmodel.errors import PlatformError
from ptaskmodel.files import AnyPath, read_bytes, shown_path
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform.builder import Builder
from ptaskmodel.platform.facts import PlatformWarning, short
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.reader.document import Document, is_version3, upgraded
from ptaskmodel.platform.reader.elements import PASSED_OVER_TAGS, Source, UnknownName
from ptaskmodel.remarks import Account, reader

_PIECE = 2**16
_DECLARATION = re.compile(
    r"""\s*<\?xml\s+version\s*=\s*(?:"1\.\d+"|'1\.\d+')"""
    r"""(?:\s+encoding\s*=\s*(?:"([^"]*)"|'([^']*)'))?"""
    r"""(?:\s+standalone\s*=\s*(?:"(?:yes|no)"|'(?:yes|no)'))?\s*\?>"""
)
_FURTHER = re.compile(r"<\?xml\s[^>]*\?>")
_ENCODINGS = re.compile(r"utf-?8|utf-?16|us-ascii|ascii|latin-?1|iso-8859-\d+|windows-125\d", re.I)
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
# Comments and instructions; CDATA and declarations; entities; names of tags that begin.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|(?P<other><!(?:\[CDATA\[)?)"
    r"|&(?!(?:amp|lt|gt|apos|quot|#[0-9]+|#x[0-9a-fA-F]+);)(?P<entity>[^\s;<&]{0,99})"
    r"|<(?P<tag>[^\s/>!?<&\"'=]+)",
    re.DOTALL,
)
_DOCTYPE = re.compile(r"<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*')*\[")
_DOCTYPES = frozenset(
    {"https://simgrid.org/simgrid.dtd", "http://simgrid.gforge.inria.fr/simgrid/simgrid.dtd"}
)

_log = logging.getLogger(__name__)


def read_xml(content: bytes, document: Document) -> None:
    """Tell a document its elements. Raises PlatformError with the line."""
    source = document.source
    text = _without_declaration(_decoded(content, source))
    if not text or text.isspace():
        raise source.error_at(1, "is empty; give a platform (XML)")
    if not text.lstrip("\ufeff \t\n").startswith("<"):
        raise source.error_at(1, f"is {_seems(text)}; give the platform (XML) first")
    # SimGrid takes "--" in a comment, and a second declaration; XML does not.
    text = _COMMENT.sub(_without_double_dash, text)
    if "<?xml" in text:
        source.account.taken("XML declarations after the first are passed over")
        text = _FURTHER.sub(lambda found: "\n" * found[0].count("\n"), text)
    target = _Target(document, text)
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        resolve_entities="internal",  # of which there are none: else &amp; stays as it is
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
    )
    try:
        for start in range(0, len(text), _PIECE):
            parser.feed(text[start : start + _PIECE].encode())
        parser.close()
    except etree.XMLSyntaxError as error:
        raise _not_well_formed(source, error.msg, *error.position) from None
    target.tags.check_rest()
    for fault in parser.feed_error_log if not source.account.has_problems else ():
        raise _not_well_formed(source, fault.message, fault.line, fault.column)


def _seems(text: str) -> str:
    """What a text is that is no XML."""
    first = next(line for line in text.split("\n") if line.strip())
    if first.lstrip().startswith(("{", "[")):
        return "JSON, the format of tasks and workloads"
    if first.startswith(("---", "%YAML")) or re.match(r"[\w\"'-]+:(\s|$)", first):
        return "YAML, not a SimGrid platform"
    if re.search(r"^\s*(NodeName|PartitionName|ClusterName)\s*=", text, re.M | re.I):
        return "a slurm.conf, not a SimGrid platform"
    return "not XML, so no SimGrid platform"


def _not_well_formed(source: Source, reason: str | None, line: int, column: int) -> PlatformError:
    reason = re.sub(r", line \d+, column \d+$", "", str(reason)).strip()
    if len(reason) > 120:
        reason = f"{reason[:117]}..."
    reason = " ".join(reason.split())
    what = f"not well-formed XML: {reason} at column {column}; correct the file"
    return source.error_at(max(line, 1), what)


def _decoded(content: bytes, source: Source) -> str:
    """The text of a file, lines ended by \\n."""
    encoding = "utf-8"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        content = content.removeprefix(codecs.BOM_UTF8)
        declared = _DECLARATION.match(content[:1000].decode("latin-1"))
        encoding = (declared and (declared[1] or declared[2])) or encoding
        if not _ENCODINGS.fullmatch(encoding):
            what = f"unknown encoding: {short(encoding)}; save as UTF-8"
            raise source.error_at(1, what)
    try:
        text = content.decode(encoding)
    except LookupError:
        what = f"unknown encoding: {short(encoding)}; save as UTF-8"
        raise source.error_at(1, what) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"not well-formed XML: the text is not {encoding.upper()}; save it as UTF-8"
        raise source.error_at(line, what) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _without_declaration(text: str) -> str:
    """The text with blank lines for its XML declaration, which may come after blanks."""
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    return "\n" * declaration[0].count("\n") + text[declaration.end() :]


def _without_double_dash(match: re.Match[str]) -> str:
    inside = match[1]
    if "--" not in inside:
        return match[0]
    blank = re.sub(r"[^\n]", " ", inside)
    return f"<!-- {blank} -->"


class _Tags:
    """Where tags begin, one after the other. Raises PlatformError on what is refused."""

    def __init__(self, text: str, source: Source) -> None:
        self._text = text
        self._source = source
        self._tokens = _TOKEN.finditer(text)
        self._counted = 0
        self.line = 1

    def check_doctype(self) -> None:
        """To be called first: nothing is declared in the file."""
        found = next((t for t in _TOKEN.finditer(self._text) if t["other"] or t["tag"]), None)
        if found is None or found["tag"]:
            return
        if _DOCTYPE.match(self._text, found.start()):
            self._move(found.start())
            what = "the DOCTYPE has an internal subset; remove the part in brackets"
            raise self.error(what)

    def next(self) -> str:
        """Go to the next tag that begins: its name."""
        for token in self._tokens:
            if token["tag"]:
                self._move(token.start())
                return token["tag"]
            self._refuse(token)
        return ""

    def check_rest(self) -> None:
        """To be called last: what comes after the last tag that begins."""
        self.next()

    def find(self, text: str) -> None:
        """Go on to a text that has no place there, if it is written so."""
        place = self._text.find(text, self._counted)
        if place >= 0:
            section = "<![CDATA[" in self._text[self._counted : place]
            self._move(place)
            if section:
                raise self._no_section()

    def error(self, what: str) -> PlatformError:
        return self._source.error_at(self.line, what)

    def _refuse(self, token: re.Match[str]) -> None:
        if token["entity"] is not None:
            self._move(token.start())
            raise self.error(f"unknown entity {short(token['entity'])}; write the character itself")
        if token["other"] and token["other"] != "<!":
            self._move(token.start())
            raise self._no_section()

    def _no_section(self) -> PlatformError:
        return self.error("a CDATA section; write the text as it is")

    def _move(self, place: int) -> None:
        self.line += self._text.count("\n", self._counted, place)
        self._counted = place


class _Target:
    """What lxml calls."""

    def __init__(self, document: Document, text: str) -> None:
        self._document = document
        self.tags = _Tags(text, document.source)
        self.tags.check_doctype()
        # Old versions have others; which version it is, the first element says.
        self._odd_doctype: PlatformError | None = None
        # How many elements are open from one on that was refused; whether any was, so that names
        # may be missing.
        self._refused_depth = 0
        self._has_begun = self._has_refused = False

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        if name != "platform":
            what = f"DOCTYPE {short(name)}: not a SimGrid platform; write 'platform'"
            raise self.tags.error(what)
        if public is not None or system not in _DOCTYPES:
            known = "https://simgrid.org/simgrid.dtd"
            what = f'DOCTYPE SYSTEM {short(str(system))}; write SYSTEM "{known}"'
            self._odd_doctype = self.tags.error(what)
            if public is not None:
                raise self._odd_doctype

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = self.tags.next()
        if self._odd_doctype is not None and not is_version3(attributes.get("version", "")):
            raise self._odd_doctype
        self._odd_doctype = None
        if not self._has_begun:
            self._document.check_first(name, self.tags.line)
            self._has_begun = True
        if tag.startswith("{"):
            raise self.tags.error(f"{short(name)}: xmlns is not supported; remove it")
        # lxml tells a tag before it finds that a wrong character follows.
        if name.rpartition(":")[2] != tag:
            what = f"not well-formed XML: the tag {short(name)}; correct the file"
            raise self.tags.error(what)
        if self._refused_depth:
            self._refused_depth += 1
            return
        if name in PASSED_OVER_TAGS:
            self._document.pass_over(name, self.tags.line)
            self._refused_depth = 1
            return
        if self._reads(self._document.start, name, dict(attributes), self.tags.line):
            return
        self._refused_depth = 1
        if name in ("zone", "AS") and "id" in attributes:  # what it holds is looked at too
            as_full = {"id": attributes["id"], "routing": "Full"}
            if self._document.tried(self._document.start, name, as_full, self.tags.line) is None:
                self._refused_depth = 0

    def end(self, _: str) -> None:
        if self._refused_depth:
            self._refused_depth -= 1
            return
        self._reads(self._document.end)

    def data(self, text: str) -> None:
        if self._refused_depth:
            return
        if not self._document.takes_text and not text.isspace():
            self.tags.find(text.split()[0])
        self._document.characters(text, self.tags.line)

    def _reads(self, do: Callable[..., None], *given: Any) -> bool:
        """Whether an element is read; else it is a problem, unless it may follow from another."""
        error = self._document.tried(do, *given)
        if error is None:
            return True
        if not (self._has_refused and isinstance(error, UnknownName)):
            self._document.source.account.refused(error, self.tags.line)
        self._has_refused = True
        return False

    def close(self) -> None:
        """lxml wants it."""


@reader(PlatformError, PlatformWarning)
def load_platform(path: AnyPath, account: Account) -> Platform:
    """Read the platform of a SimGrid XML file.

    path: the file, gzipped or not; ``-`` is standard input. account: of the file. Each kind of odd
    but usable content gives one PlatformWarning; ``Platform.notes`` lists all of them. Raises
    PlatformError (file, and of each problem line, element, remedy) if the file cannot be used.
    """
    return parse_platform(read_bytes(path, error=PlatformError), Path(path), account)


def upgrade_platform(path: AnyPath) -> str:
    """The text of the platform file at a `path` as DTD 4.1 writes it. Raises PlatformError.

    A file that could not be read when it is upgraded is refused.
    """
    content = read_bytes(path, error=PlatformError)
    text = upgraded(_decoded(content, Source(Path(path))))
    parse_platform(text.encode(), Path(path))
    return text


def parse_platform(content: bytes, path: Path, account: Account | None = None) -> Platform:
    """The platform in the bytes of a file; ``path`` serves messages and finds traces.

    content: these bytes. account: of the file; None: a new one.
    """
    began = time.perf_counter()
    with collector_at_rest():
        document = Document(Builder(Source(path, account)))
        account = document.source.account
        with account.problems():
            read_xml(content, document)
        account.check()
        platform = Platform(document.finish())
    _log.info(
        "read %s: %d hosts, %d links, in %.2g s",
        shown_path(path),
        len(platform.hosts),
        len(platform.links),
        time.perf_counter() - began,
    )
    return platform
