"""What mkdocs does besides: links to files that the site does not have, and a real report."""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_post_build(*, config: Any, **_: Any) -> None:
    """Called by mkdocs at the end: writes example.html, the report of the tutorial's tasks."""
    root = Path(__file__).resolve().parent.parent
    example = root / "experiments" / "tutorial"
    inputs = [str(example / name) for name in ("three_racks.xml", "jobs.json")]
    with tempfile.TemporaryDirectory() as place:
        for words in (
            ["simulate", *inputs, "--attribution", "-o", f"{place}/run"],
            ["report", f"{place}/run", "-o", str(Path(config["site_dir"]) / "example.html")],
        ):
            done = [sys.executable, "-m", "ptaskmodel", *words]
            subprocess.run(done, cwd=root, check=True, stdout=subprocess.DEVNULL)


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
