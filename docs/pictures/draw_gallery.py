"""Runs the commands of gallery.md and keeps their pictures beside this file: make gallery."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = {"sh": ("sh", "-e", "-c"), "python": (sys.executable, "-c")}
# A file and its content, or a program.
BLOCK = re.compile(r"^(?:`([^`\n]+)`:\n\n)?```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def main() -> None:
    page = (HERE.parent / "gallery.md").read_text(encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for folder in ("platforms", "experiments"):
            os.symlink(ROOT / folder, place / folder)
        for file, language, text in BLOCK.findall(page):
            if file:
                (place / file).write_text(text, encoding="utf-8")
            elif language in PROGRAMS:
                command = [*PROGRAMS[language], text]
                subprocess.run(command, cwd=place, check=True, env=environment)
        shown = dict.fromkeys(re.findall(r"\(pictures/(gallery/[\w.]+)\)", page))
        shutil.rmtree(HERE / "gallery", ignore_errors=True)
        (HERE / "gallery").mkdir()
        for picture in shown:
            shutil.copy(place / picture, HERE / picture)


main()
