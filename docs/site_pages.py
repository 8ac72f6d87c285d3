"""What mkdocs does besides: links to files of the repository, which the site does not have."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, /, *, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""
    return named_links(markdown, posixpath.join("docs", posixpath.dirname(page.file.src_uri)))


def named_links(markdown: str, folder: str) -> str:
    """Links to files outside of docs/, which the site does not have, become their paths."""

    def named(match: re.Match[str]) -> str:
        target = match[3]
        path = posixpath.normpath(posixpath.join(folder, target))
        if "://" in target or path.startswith("docs/"):
            return match[0]
        return match[2] if match[2].strip("`") == path else f"{match[2]} (`{path}`)"

    return _LINK.sub(named, markdown)
