"""Call the kernels of batches with all kinds of arguments, so that they can be compiled ahead."""

from __future__ import annotations

from ptaskmodel.batch.compiled.delays import prepare_loop
from ptaskmodel.batch.compiled.parallel_tasks import prepare_tasks


def prepare() -> None:
    """All of them."""
    prepare_loop()
    prepare_tasks()
