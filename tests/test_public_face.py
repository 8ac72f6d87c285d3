"""The public face: every name of __all__ is there, loaded on first use."""

from __future__ import annotations

import subprocess
import sys

import ptaskmodel


def test_every_name_of_all_is_there_and_no_other_is_announced():
    for name in ptaskmodel.__all__:
        assert getattr(ptaskmodel, name) is not None
    assert dir(ptaskmodel) == sorted(set(ptaskmodel.__all__))
    assert set(ptaskmodel.__all__) == {*ptaskmodel._HOMES, "__version__"}


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(ptaskmodel, "simulate_everything")


def test_import_is_light():
    code = "import ptaskmodel, sys; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numba", "numpy", "pandas", "scipy", "networkx", "matplotlib", "lxml", "rich", "click"}
    assert not heavy & set(modules)
