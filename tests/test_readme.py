"""The README's examples do what it says, and its links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory like a clone, where `ptaskmodel` is this checkout's."""
    directory = tmp_path_factory.mktemp("clone")
    for name in ("platforms", "experiments"):
        shutil.copytree(ROOT / name, directory / name)
    command = directory / "bin" / "ptaskmodel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ptaskmodel "$@"\n')
    command.chmod(0o755)
    return directory


def run(place, command):
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, shell=True, cwd=place, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_time(text):
    """The output but for how long the simulation took."""
    return re.sub(r"^(events +\d+ in ).*$", r"\1", text, flags=re.MULTILINE).strip()


def test_the_shell_examples_run_and_show_what_the_readme_shows(place):
    shell = [k for k, (language, _) in enumerate(BLOCKS) if language == "sh"]
    assert shell
    for k in shell:
        said = "".join(run(place, line) for line in BLOCKS[k][1].splitlines())
        if k + 1 < len(BLOCKS) and BLOCKS[k + 1][0] == "text":
            assert without_time(said) == without_time(BLOCKS[k + 1][1])


def test_the_python_examples_run(place):
    code = "\n".join(text for language, text in BLOCKS if language == "python")
    assert code
    (place / "example.py").write_text(code)
    run(place, f'"{sys.executable}" -W error example.py')


def test_the_first_example_is_the_file_that_it_names():
    (shown,) = (json.loads(text) for language, text in BLOCKS if language == "json")
    file = ROOT / "experiments" / "first_steps" / "worked_example.json"
    assert shown == json.loads(file.read_text())


def test_the_commands_at_the_top_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", BLOCKS[0][1], re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_the_links_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link
