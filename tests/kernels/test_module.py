"""A module that is missing, of other sources or for another processor: one line, no harm."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptaskmodel.kernels import building, module

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")


@pytest.fixture
def package(monkeypatch, tmp_path) -> Path:
    """A package of one file, installed, without a module."""
    place = tmp_path / "ptaskmodel"
    place.mkdir()
    (place / "one.py").write_text("x = 1\n")
    monkeypatch.setattr(module, "PACKAGE", place)
    monkeypatch.setattr(module, "FILE", place / module.NAME)
    monkeypatch.setattr(module, "WAY", "")
    return place


def found(caplog) -> str:
    """What is said where no module can be used."""
    caplog.clear()
    module.loaded.cache_clear()
    try:
        assert module.addresses.__wrapped__() == {}
    finally:
        module.loaded.cache_clear()
    (record,) = caplog.records
    return record.getMessage()


def test_it_is_not_there(package, caplog, monkeypatch):
    assert "_kernels.abi3.so is not there; install the package anew where there is a C" in found(
        caplog
    )
    monkeypatch.setattr(module, "has_numba", lambda: False)
    assert found(caplog).startswith("kernels run interpreted, some hundred times slower: _kernels")


def test_stamps_of_an_installed_package_are_sizes_those_of_a_checkout_dates_too(package):
    sizes, dates = module.stamps()
    os.utime(package / "one.py", (1, 1))
    assert module.stamps()[0] == sizes
    assert module.stamps()[1] != dates
    (package / "one.py").write_text("x = 10\n")
    assert module.stamps()[0] != sizes


def test_it_is_of_other_sources(package, caplog):
    (package / module.NAME).write_bytes(b"stamp of others")
    assert "was built of other sources" in found(caplog)


def test_it_is_damaged(package, caplog):
    (package / module.NAME).write_bytes(module.stamps()[0].encode())
    assert "_kernels.abi3.so: " in found(caplog)


def built(package: Path) -> bytearray:
    """A file like a module for this processor, whose last bytes are its table of sections."""
    content = bytearray(Path(sys.executable).read_bytes()[: module.ELF_BYTES])
    content += module.stamps()[0].encode()
    content[40:48], content[58:62] = len(content).to_bytes(8, sys.byteorder), bytes(4)
    return content


needs_elf = pytest.mark.skipif(sys.platform != "linux", reason="other loaders say what is wrong")


@needs_elf
def test_it_is_for_processors_of_another_kind(package, caplog):
    content = built(package)
    own, other = (62, 183) if content[18] != 183 else (183, 62)
    assert content[18] == own
    content[18] = other
    (package / module.NAME).write_bytes(content)
    names = [module.PROCESSORS[number] for number in (other, own)]
    said = found(caplog)
    assert "_kernels.abi3.so is for {} processors, and this is {}; install".format(*names) in said
    assert "No such file" not in said


@needs_elf
@pytest.mark.parametrize("kept", [5, 63, -1])
def test_it_is_cut_off(package, caplog, kept):
    content = built(package)
    (package / module.NAME).write_bytes(content[:kept])
    assert "_kernels.abi3.so is cut off; install" in found(caplog)


def test_it_is_empty(package, caplog):
    (package / module.NAME).touch()
    assert "_kernels.abi3.so is empty; install" in found(caplog)


def test_it_cannot_be_read(package, caplog):
    (package / module.NAME).mkdir()
    assert "_kernels.abi3.so cannot be read (Is a directory); install" in found(caplog)


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("numba", "numba is not installed"),
        ("compiler", "there is no C compiler"),
        ("leave", "cannot be written"),
        ("interpreter", "this program is no interpreter"),
    ],
)
def test_a_checkout_that_cannot_build_says_why(package, caplog, monkeypatch, missing, says):
    (package.parent / "pyproject.toml").touch()
    monkeypatch.setattr(module, "has_numba", lambda: missing != "numba")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("builds"))
    monkeypatch.setenv("CC", "cc-that-is-not-there" if missing == "compiler" else sys.executable)
    if missing == "leave":
        really = os.access
        monkeypatch.setattr(os, "access", lambda path, *how: path != package and really(path, *how))
    if missing == "interpreter":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    said = found(caplog)
    assert says in said
    assert "make kernels" in said


def test_what_the_module_lacks_is_an_error_where_it_is_to_have_all(package, monkeypatch):
    monkeypatch.setattr(module, "WAY", module.MODULE)
    with pytest.raises(RuntimeError, match="is not there"):
        module.addresses.__wrapped__()


def test_a_way_that_is_unknown_is_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "ptaskmodel", "demo", "--output", str(tmp_path / "demo")],
        env=os.environ | {"PTASKMODEL_KERNELS": "fast"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("'fast' is unknown; use one of module, numba, interpreted\n")
    assert done.stderr.count("\n") == 1


@needs_compiler
def test_a_module_for_another_processor_does_not_load(tmp_path):
    (tmp_path / "table.h").write_text(
        "#define KERNELS(level)\n#define LEVELS Y(v9)\n"
        '#define COMPILER "none"\n#define STAMPS "none"\n'
    )
    target = tmp_path / module.NAME
    options = building.LINK_OPTIONS.get(sys.platform, ["-shared"])
    source = Path(building.__file__).parent / "kernels.c"
    command = ["cc", *options, "-fPIC", "-I", str(tmp_path), "-o", str(target), str(source)]
    subprocess.run(command, check=True)
    spec = importlib.util.spec_from_file_location("ptaskmodel._kernels", target)
    with pytest.raises(ImportError, match="made for another processor"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
