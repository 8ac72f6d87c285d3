"""Runs the commands of gallery.md and keeps their pictures beside this file: make gallery."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main() -> None:
    page = (HERE.parent / "gallery.md").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "ptaskmodel"]
    with tempfile.TemporaryDirectory() as place:
        for name in ("platforms", "experiments"):
            os.symlink(ROOT / name, Path(place) / name)
        (Path(place) / "gallery").mkdir()
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL):
            # `mkdir`, the only other command, is done.
            for line in filter(lambda line: line.startswith("ptaskmodel "), block.splitlines()):
                subprocess.run(command + shlex.split(line)[1:], cwd=place, check=True)
        shown = re.findall(r"\(pictures/(gallery/[\w.]+)\)", page)
        shutil.rmtree(HERE / "gallery", ignore_errors=True)
        (HERE / "gallery").mkdir()
        for picture in shown:
            shutil.copy(Path(place) / picture, HERE / picture)


main()
