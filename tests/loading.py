"""Which modules a command loads."""

from __future__ import annotations

import subprocess
import sys

# Kernels that are stale are built before, which loads more.
CODE = """
import sys
import click, lxml.etree, numpy
from ptaskmodel.kernels import module
module.addresses()
known = set(sys.modules)
from ptaskmodel.cli import main
assert main(sys.argv[1:]) == 0
print(*(set(sys.modules) - known), file=sys.stderr)
"""


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a command loads in a process of its own, besides those of its libraries."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())
