"""The faces of packages: every name of a table is there, loaded on first use, and typed."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types

import pytest
from stubs import PACKAGES, path_of, stub

import ptaskmodel


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_all_is_there_and_no_other_is_announced(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert dir(module) == sorted(set(module.__all__))
    assert {name for names in module.NAMES.values() for name in names} <= set(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_names_come_from_where_they_are_made(package):
    for home, names in importlib.import_module(package).NAMES.items():
        for name in names:
            found = getattr(importlib.import_module(home), name)
            if not isinstance(found, types.UnionType):
                assert getattr(found, "__module__", home) == home


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_table(package):
    assert path_of(package).read_text(encoding="utf-8") == stub(package)


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(ptaskmodel, "simulate_everything")


def test_import_is_light():
    code = "import ptaskmodel, sys; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numba", "numpy", "pandas", "scipy", "networkx", "matplotlib", "lxml", "rich", "click"}
    assert not heavy & set(modules)
