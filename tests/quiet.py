"""Loads platforms of which the warnings are not what is tested."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptaskmodel.platform import Platform, PlatformWarning, load_platform


@contextmanager
def no_platform_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlatformWarning)
        yield


def load(file: Path) -> Platform:
    with no_platform_warnings():
        return load_platform(file)
