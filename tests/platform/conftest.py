"""Platforms from a few lines of XML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from platform_text import HEADER

from ptaskmodel.platform import Platform, load_platform


@pytest.fixture
def platform_of(tmp_path: Path) -> Callable[[str], Platform]:
    """Loads the platform with some content between <platform> and </platform>."""

    def load(content: str) -> Platform:
        file = tmp_path / "p.xml"
        file.write_text(f"{HEADER}{content}\n</platform>\n")
        return load_platform(file)

    return load
