"""Every example of the documentation runs and prints what is shown; the site builds."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest
from documents import ROOT, blocks, copy_inputs, run_page

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RUN = {"console", "python", "sh"}


def with_examples():
    for path in PAGES:
        if any(block.language in RUN for block in blocks(path.read_text(encoding="utf-8"))):
            yield pytest.param(path, id=str(path.relative_to(DOCS)))


@pytest.mark.parametrize("path", list(with_examples()))
def test_the_examples_run_and_show_what_the_page_shows(path, tmp_path, monkeypatch):
    copy_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    run_page(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_the_links_lead_to_files_and_headings(path):
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if not link.startswith("https://"):
            target, _, heading = link.partition("#")
            file = (path.parent / target).resolve() if target else path
            assert file.exists(), link
            assert file.is_relative_to(ROOT), link
            assert not heading or heading in anchors(file.read_text(encoding="utf-8")), link


def anchors(text):
    """What headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    kept = (
        re.sub(r"[^\w\- ]", "", heading.replace("`", "")).strip().lower() for heading in headings
    )
    return {re.sub(r"[-\s]+", "-", heading) for heading in kept}


def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "tutorial" / "index.html").exists()


NEEDS = {
    "plot": r"ptaskmodel plot|platform plot|campaign plot|--plots|--picture|draw_results",
    "trace": r"parquet",
    "simpy": r"import simpy",
    "batsim": r"ptaskmodel serve|--redis",
    "dask": r"--on (tcp|tls)",
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_names_the_extras_that_its_examples_need(path):
    if path.name in ("api.md", "commands.md"):
        return
    text = path.read_text(encoding="utf-8")
    shown = "\n".join(block.text for block in blocks(text))
    shown += "\n".join(re.findall(r"^    .*$", text, re.MULTILINE))
    named = {name for group in re.findall(r"'\.\[([a-z,]+)\]'", text) for name in group.split(",")}
    for extra, needs in NEEDS.items():
        assert not re.search(needs, shown) or named & {extra, "all"}, extra


def test_the_pages_made_from_the_code_are_those_of_the_code():
    spec = importlib.util.spec_from_file_location("reference_pages", DOCS / "reference_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, text in module.pages().items():
        assert (DOCS / "reference" / name).read_text(encoding="utf-8") == text, "make reference"


def test_the_reference_names_every_element_and_attribute_of_platform_files():
    from ptaskmodel.platform.reader.elements import TAGS

    page = (DOCS / "reference" / "platform_file.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    for tag, facts in TAGS.items():
        assert f"`{tag}`" in rows
        if tag not in ("actor", "argument", "random", "config", "bypassRoute", "bypassZoneRoute"):
            (row,) = (line for line in rows.splitlines() if f"`{tag}`" in line.split("|")[1])
            assert not {name for name in facts.attributes if f"`{name}`" not in row}, tag


def test_the_glossary_is_in_alphabetical_order():
    page = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    words = [word.lower() for word in re.findall(r"^\*\*(.+?)\*\*", page, re.MULTILINE)]
    assert len(words) > 50
    assert words == sorted(set(words))
