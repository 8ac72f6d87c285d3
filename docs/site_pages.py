"""What mkdocs does besides: links to files that the site does not have, and a real report."""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TASKS, SLURM = "experiments/tutorial", "experiments/slurm/example"
# The report of the tutorial's tasks, and what a change of slurm.conf does.
PAGES = """
simulate {tasks}/three_racks.xml {tasks}/jobs.json --attribution --neighbours -o {place}/run
report {place}/run -o {site}/example.html
slurm {slurm}/slurm.conf {slurm}/march.txt --accounts {slurm}/accounts.txt -o {place}/before
slurm {place}/after.conf {slurm}/march.txt --accounts {slurm}/accounts.txt -o {place}/after
report {place}/after --against {place}/before -o {site}/change.html
"""
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_post_build(*, config: Any, **_: Any) -> None:
    """Called by mkdocs at the end: writes the pages to open of `PAGES`."""
    root, site = Path(__file__).resolve().parent.parent, Path(config["site_dir"])
    with tempfile.TemporaryDirectory() as place:
        conf = (root / SLURM / "slurm.conf").read_text(encoding="utf-8")
        changed = re.sub("(?m)^(PartitionName=short.*)$", r"\1 PriorityTier=10", conf)
        (Path(place) / "after.conf").write_text(changed, encoding="utf-8")
        lines = PAGES.format(place=place, site=site, tasks=TASKS, slurm=SLURM)
        for line in lines.strip().splitlines():
            done = [sys.executable, "-m", "ptaskmodel", *line.split()]
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
