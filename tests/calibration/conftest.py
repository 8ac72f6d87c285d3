"""The measured tables that the project carries."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repository_measurements() -> Path:
    return Path(__file__).resolve().parents[2] / "calibration" / "measurements"
