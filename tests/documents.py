"""Runs the examples of a Markdown page, as a reader would: files, commands and Python in order.

A page may hold these fenced blocks; all others are only shown:

* any block after a line that is only a file's name, in backquotes, and a colon: that file;
* ``console``: commands behind ``$``, each followed by what it prints (``...`` for any lines);
* ``sh``: commands;
* ``python``: a part of the page's one program;
* ``text`` after ``sh`` or ``python``: what it prints.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.cli import main

ROOT = Path(__file__).resolve().parent.parent

_BLOCK = re.compile(
    r"^(?:`(?P<file>[^`\n]+)`:\n\n?)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block of a page; ``file`` is the name of the file that it shows, or None."""

    file: str | None
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [Block(m["file"], m["language"], m["text"]) for m in _BLOCK.finditer(page)]


def copy_inputs(directory: Path) -> None:
    """Make a directory look like a clone, as far as examples need it."""
    for name in ("platforms", "experiments", "calibration"):
        ignored = shutil.ignore_patterns("__pycache__", "*.ipynb")
        shutil.copytree(ROOT / name, directory / name, ignore=ignored)


def run_page(page: str) -> None:
    """Run all blocks of a page in the current directory; AssertionError where one goes wrong."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    said = ""
    for block in blocks(page):
        if block.file is not None:
            path = Path(block.file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, expected in _commands(block.text):
                check_output(run_command(command), expected)
        elif block.language == "sh":
            said = "".join(run_command(line) for line in block.text.splitlines())
        elif block.language == "python":
            said = _run_python(block.text, namespace)
        elif block.language == "text" and said:
            check_output(said, block.text)
            said = ""


def run_command(command: str) -> str:
    """What a command prints; our own run in this process, where they start at once."""
    words = shlex.split(command, comments=True)
    if words and words[0] == "ptaskmodel" and not {"|", ">", "&&"} & set(words):
        printed, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            code = main(words[1:])
        assert code == 0, f"{command}\n{errors.getvalue()}"
        return printed.getvalue()
    # `python` in a page is the one that runs the tests.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


def check_output(printed: str, expected: str) -> None:
    """What was printed is what the page shows, but for times taken and lines left out (``...``)."""
    if not expected.strip():
        return
    printed, expected = _without_time(printed), _without_time(expected)
    pattern = ".*".join(re.escape(part) for part in expected.split("..."))
    assert re.fullmatch(pattern, printed, re.DOTALL), (
        f"the page shows:\n{expected}\nbut this is printed:\n{printed}"
    )


def _without_time(text: str) -> str:
    lines = (line.rstrip() for line in text.strip().splitlines())
    return re.sub(r"^(events +\d+ in ).*$", r"\1", "\n".join(lines), flags=re.MULTILINE)


def _commands(text: str) -> list[tuple[str, str]]:
    """(command, what it prints) of a console block."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, expected = found[-1]
            found[-1] = (command, f"{expected}{line}\n")
    return found


def _run_python(code: str, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "<page>", "exec"), namespace)
    return printed.getvalue()
