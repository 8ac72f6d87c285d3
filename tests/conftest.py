"""Fixtures shared by all tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ptaskmodel.kernels import module
from ptaskmodel.kernels.decorators import INTERPRETED

# The same examples at each run; a busy machine is no fault of theirs.
settings.register_profile(
    "ours", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ours")

if not INTERPRETED:
    module.addresses()  # built now if need be, not within a test

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Inputs by others that stand beside the checkout; tests that need them skip without."""
    place = ROOT.parent / "shared" / "data"
    if not place.is_dir():
        pytest.skip("the data by others are not beside this checkout")
    return place


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the JIT, leave out what would take minutes interpreted."""
    if INTERPRETED:
        skip = pytest.mark.skip(reason="takes long without the JIT")
        for item in items:
            if item.get_closest_marker("jit"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium that keeps its console."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("chromium and chromedriver are not installed")
    selenium = pytest.importorskip("selenium.webdriver")
    options = selenium.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.binary_location = shutil.which("chromium")
    service = selenium.ChromeService(shutil.which("chromedriver"))
    driver = selenium.Chrome(options=options, service=service)
    yield driver
    driver.quit()
