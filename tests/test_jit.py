"""How kernels are compiled: parts, entries, no counting of references."""

from __future__ import annotations

import errno
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from ptaskmodel import jit as jit_module
from ptaskmodel import kernel_cache
from ptaskmodel.jit import entry, jit, views

compiled = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@jit
def largest(values):
    best = values[0]
    for x in values:
        best = max(best, x)
    return best


@views
def halves(values):
    middle = values.size // 2
    return values[:middle], values[middle:]


@entry
def largest_of_halves(values):
    first, second = halves(values)
    return largest(first), largest(second)


VALUES = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])


def test_an_entry_has_its_parts():
    assert largest_of_halves(VALUES) == (4.0, 9.0)


def test_parts_can_be_called_from_python():
    assert largest(VALUES) == 9.0
    assert [half.tolist() for half in halves(VALUES)] == [[3.0, 1.0, 4.0], [1.0, 5.0, 9.0]]


def test_division_by_zero_is_no_exception():
    @entry
    def quotient(a, b):
        return a / b

    with np.errstate(divide="ignore"):
        assert quotient(np.float64(1.0), np.float64(0.0)) == np.inf


@compiled
def test_references_are_not_counted(monkeypatch):
    # Numba shows no code that comes from its cache.
    monkeypatch.setattr("ptaskmodel.kernel_cache.cache_directory", lambda: None)
    fresh = entry(largest_of_halves.py_func)
    fresh(VALUES)
    (code,) = fresh.inspect_asm().values()
    body = code.split("NRT_incref:")[0]
    assert "NRT_incref" not in body.split("cpython")[0]


@compiled
def test_callers_keep_their_arrays():
    before = sys.getrefcount(VALUES)
    for _ in range(100):
        largest_of_halves(VALUES)
    assert sys.getrefcount(VALUES) == before


def test_fields_of_records_can_be_read_without_the_jit():
    """An attribute that every numpy record has hides the field of that name."""
    from ptaskmodel.core import state

    records = [kind for kind in vars(state).values() if isinstance(kind, np.dtype)]
    names = {name for kind in records for name in kind.names or ()}
    assert names
    assert not {name for name in names if hasattr(np.void, name)}


# What is kept of compiled kernels.


def twice(x):
    return 2.0 * x


def compiled_files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.suffix in (".nbi", ".nbc"))


@pytest.fixture
def kept(monkeypatch, tmp_path) -> Path:
    """Kernels are kept in a directory of the test."""
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda: tmp_path)
    return tmp_path


@compiled
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("length", [0, 40, -1])
def test_a_damaged_file_is_compiled_anew(kept, suffix, length):
    entry(twice)(1.5)
    assert [path.suffix for path in compiled_files(kept)] == [".nbc", ".nbi"]
    for path in compiled_files(kept):
        content = path.read_bytes()
        # Cut, or with another byte in the middle.
        half = len(content) // 2
        changed = content[:half] + bytes([content[half] ^ 64]) + content[half + 1 :]
        if path.suffix == suffix:
            path.write_bytes(changed if length < 0 else content[:length])
    assert entry(twice)(1.5) == 3.0
    again = entry(twice)
    assert again(1.5) == 3.0
    assert sum(again.stats.cache_hits.values()) == 1


@compiled
def test_a_full_disk_is_told_once_and_stops_nobody(kept, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(kept))

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    kernel_cache._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="cannot be kept.*No space left.*PTASKMODEL_CACHE_DIR"):
        assert entry(twice)(1.5) == 3.0
    assert entry(twice)(2.5) == 5.0


def place_found(monkeypatch, **variables: Path) -> Path | None:
    """The cache directory, the package's own being out of reach and these variables set."""
    nowhere = Path(__file__)  # a file has no directories
    monkeypatch.setattr(kernel_cache, "PACKAGE", nowhere)
    known = {"PTASKMODEL_CACHE_DIR": "", "NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(nowhere)}
    for name, value in {**known, **variables}.items():
        monkeypatch.setenv(name, str(value))
    return kernel_cache.cache_directory.__wrapped__()


def test_the_cache_directory_is_the_first_that_can_be_written(monkeypatch, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    chosen, numba_s, user = (tmp_path / name for name in ("chosen", "numba", "user"))
    given = {"PTASKMODEL_CACHE_DIR": chosen, "NUMBA_CACHE_DIR": numba_s, "XDG_CACHE_HOME": user}
    assert place_found(monkeypatch, **given) == chosen
    given["PTASKMODEL_CACHE_DIR"] = Path(__file__)
    assert place_found(monkeypatch, **given) == numba_s / "ptaskmodel"
    given["NUMBA_CACHE_DIR"] = Path(__file__)
    assert place_found(monkeypatch, **given) == user / "ptaskmodel"
    ours = temporary / f"ptaskmodel-{os.getuid()}"
    assert place_found(monkeypatch) == ours
    assert ours.stat().st_mode & 0o777 == 0o700


def test_code_that_others_could_have_written_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = tmp_path / f"ptaskmodel-{os.getuid()}"
    ours.mkdir()
    ours.chmod(0o777)
    assert place_found(monkeypatch) is None
    ours.rmdir()
    ours.symlink_to(tmp_path)
    assert place_found(monkeypatch) is None


def test_a_file_beside_kernels_belongs_to_their_identity(monkeypatch, tmp_path):
    for name in ("jit.py", "kernel_cache.py", "kernel_parts.py"):
        (tmp_path / name).write_text("")
    for folder in ("kernels", "others"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kernels" / "one.py").write_text("\nfrom ptaskmodel.jit import entry")
    monkeypatch.setattr(kernel_cache, "PACKAGE", tmp_path)
    digests = []
    for path in ("kernels/constants.py", "others/text.py", "kernels/deeper.py"):
        digests.append(kernel_cache.kernel_digest.__wrapped__())
        (tmp_path / path).write_text("A = 1")
    digests.append(kernel_cache.kernel_digest.__wrapped__())
    assert [a != b for a, b in itertools.pairwise(digests)] == [True, False, True]


def test_every_file_with_a_kernel_belongs_to_their_identity():
    marked = re.compile(rb"^@(partial\()?(entry|jit|kernel|views)\b", re.MULTILINE)
    root = kernel_cache.PACKAGE
    holding = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if marked.search(path.read_bytes())
    }
    assert len(holding) > 20
    assert holding <= set(kernel_cache.kernel_sources())


def test_old_sets_of_kernels_are_forgotten(monkeypatch, tmp_path):
    for number in range(6):
        monkeypatch.setattr(
            kernel_cache, "kernel_directory", lambda number=number: tmp_path / f"kernels-{number}"
        )
        kernel_cache.mark_cached()
        os.utime(tmp_path / f"kernels-{number}", (number, number))
        assert kernel_cache.cached()
    kernel_cache.mark_cached()
    assert len(list(tmp_path.iterdir())) == kernel_cache.KEPT


# With what is public in numba alone.


@pytest.fixture
def undecided(monkeypatch, tmp_path):
    """Whether parts work is asked anew."""
    monkeypatch.setattr(jit_module, "cache_directory", lambda: tmp_path)
    jit_module._parts.cache_clear()
    yield
    jit_module._parts.cache_clear()


@compiled
@pytest.mark.parametrize("answer", [False, AttributeError("no such name in this numba")])
def test_kernels_are_plain_where_parts_do_not_work(undecided, monkeypatch, answer):
    def works():
        if answer:
            raise answer
        return False

    monkeypatch.setattr("ptaskmodel.kernel_parts.works", works)
    assert jit_module._parts() is None
    part = jit(largest.py_func)
    assert part(VALUES) == 9.0
    # That is remembered, for this version of numba.
    jit_module._parts.cache_clear()
    monkeypatch.setattr("ptaskmodel.kernel_parts.works", lambda: True)
    assert jit_module._parts() is None


@compiled
def test_plain_numba_gives_the_same(tmp_path):
    """In a process without a name that parts need, and in one that asks for plain numba."""
    code = """
import sys
if "without" in sys.argv:
    from numba.core import typed_passes
    del typed_passes.NativeLowering
from ptaskmodel import jit
from ptaskmodel.sharing import SharingProblem, flow_maxmin, maxmin
assert jit._parts() is None
problem = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(0, 1.0)], [(1, 1.0)]], [10.0, 4.0])
print(maxmin(problem).rates.tolist(), flow_maxmin(problem).limits.tolist())
"""
    plain = {"PTASKMODEL_CACHE_DIR": str(tmp_path), "PTASKMODEL_PLAIN_NUMBA": "1"}
    for arguments, variables in ((["without"], {}), ([], plain)):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, **plain, "PTASKMODEL_PLAIN_NUMBA": "0", **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "[2.0, 8.0, 2.0] [1, 0, 1]\n", done.stderr[-2000:]


@compiled
def test_the_worked_examples_pass_without_the_jit():
    tests = Path(__file__).parent / "simulation" / "test_spec_examples.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not jit", "-p", "no:cacheprovider", tests],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
