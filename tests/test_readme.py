"""The README's examples do what it says, and its links lead somewhere."""

from __future__ import annotations

import json
import re

from documents import ROOT, blocks, copy_inputs, run_page

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks(README)


def test_the_examples_run_and_show_what_the_readme_shows(tmp_path, monkeypatch):
    assert {"sh", "python", "text"} <= {block.language for block in BLOCKS}
    copy_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    run_page(README)


def test_the_first_example_is_the_file_that_it_names():
    (shown,) = (json.loads(block.text) for block in BLOCKS if block.language == "json")
    file = ROOT / "experiments" / "first_steps" / "worked_example.json"
    assert shown == json.loads(file.read_text())


def test_the_commands_at_the_top_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", BLOCKS[0].text, re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_the_links_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link
