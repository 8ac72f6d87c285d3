"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Inputs by others that stand beside the checkout; tests that need them skip without."""
    place = ROOT.parent / "shared" / "data"
    if not place.is_dir():
        pytest.skip("the data by others are not beside this checkout")
    return place
