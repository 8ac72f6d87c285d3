"""How kernels are compiled: parts, entries, no counting of references; how they are called."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ptaskmodel import jit as jit_module
from ptaskmodel import kernel_cache, kernel_code
from ptaskmodel.jit import INTERPRETED, entry, jit, late, views, want

compiled = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")


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


class Several(NamedTuple):
    reals: np.ndarray
    rows: np.ndarray
    limit: float
    count: int
    flag: bool
    fixed: np.ndarray


def several(count: int = 3, flag: bool = True) -> Several:
    fixed = np.arange(3)
    fixed.flags.writeable = False
    rows = np.arange(24.0).reshape(2, 3, 4)
    return Several(np.zeros(5), rows, 2.5, count, flag, fixed)


@jit
def fill(s, value):
    for k in range(s.count):
        s.reals[k] = value if s.flag else s.limit
    return s.rows[1, 2, 3] + s.rows[-1, 0].sum() + s.fixed[-1]


@entry
def fill_twice(s, value):
    return fill(s, value) + fill(s, value + 1.0), s.rows.size, s.rows.shape[1], s.rows.strides[0]


@pytest.mark.parametrize("flag", [True, False])
def test_tuples_of_many_arrays_are_handed_on(flag):
    s = several(3, flag)
    assert fill_twice(s, 6.0) == (2 * (23.0 + 54.0 + 2), 24, 3, 96)
    assert s.reals.tolist() == [7.0 if flag else 2.5] * 3 + [0.0] * 2
    others = several(2, flag)
    fill_twice(others, 0.0)
    assert np.count_nonzero(others.reals) == 2
    assert fill_twice(s._replace(rows=s.rows * 2), 6.0)[0] == 2 * (46.0 + 108.0 + 2)


@compiled
def test_tuples_of_arrays_that_do_not_lie_in_order_are_taken_too():
    s = several()
    assert fill_twice(s._replace(reals=np.zeros(10)[::2]), 6.0)[1] == 24
    assert fill_twice(s._replace(rows=s.rows.T.copy().T), 6.0)[0] == 2 * (23.0 + 54.0 + 2)


def test_division_by_zero_is_no_exception():
    @entry
    def quotient(a, b):
        return a / b

    with np.errstate(divide="ignore"):
        assert quotient(np.float64(1.0), np.float64(0.0)) == np.inf


@compiled
def test_what_hears_of_all_that_python_does_changes_nothing():
    code = (
        "import sys; sys.addaudithook(lambda *_: None)\n"
        "from ptaskmodel.kernel_code import layout_is_known; print(layout_is_known())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{kernel_code.layout_is_known()}\n"


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


# Kernels that others call by their addresses.


def late_arguments():
    return Pair(VALUES, 2.0), 1


@late(f"{__name__}:late_arguments")
def scaled_size(pair, more):
    return int(pair.values.size * pair.factor) + more


@late(f"{__name__}:late_arguments")
def in_vain(pair, more):
    return 0


@entry
def one_caller(pair):
    return scaled_size(pair, 1)


@entry
def another_caller(pair):
    return scaled_size(pair, 2) + scaled_size(pair, 3)


@entry
def caller_in_vain(pair):
    return in_vain(pair, 1)


def test_late_kernels_are_there_for_all_who_call_them_once_they_are_wanted():
    pair = Pair(VALUES, 2.0)
    if not INTERPRETED and jit_module._parts() is not None:
        assert one_caller(pair) == kernel_code.NOT_THERE
    want(scaled_size)
    assert one_caller(pair) == 13
    assert another_caller(pair) == 29
    assert scaled_size(pair, 1) == 13


@compiled
def test_late_kernels_that_nobody_wants_are_not_compiled():
    if jit_module._parts() is not None:
        assert caller_in_vain(Pair(VALUES, 2.0)) == kernel_code.NOT_THERE
        assert in_vain._found is None


@compiled
def test_late_kernels_take_what_their_example_says():
    if jit_module._parts() is None:
        pytest.skip("late kernels are numba's")

    @entry
    def wrong(pair):
        return scaled_size(pair, 1.5)

    with pytest.raises(Exception, match="is for other arguments"):
        wrong(Pair(VALUES, 2.0))


# How Python's objects become arguments of machine code, and back.


class Pair(NamedTuple):
    values: np.ndarray
    factor: float


POINT = np.dtype([("x", "f8"), ("n", "i8")], align=True)


@entry
def everything(pair, points, matrix, number, flag, nothing):
    total = pair.values[0] * pair.factor + points[0].x + points[0].n + matrix[1, 2]
    points[0].n += 1
    return total, number + matrix.shape[0], not flag, nothing is None


def given() -> tuple:
    points = np.zeros(2, POINT)
    points[0] = (0.5, 7)
    return Pair(VALUES, 2.0), points, np.arange(6.0).reshape(2, 3), 41, False, None


@compiled
def test_arguments_of_every_kind():
    arguments = given()
    assert everything(*arguments) == (18.5, 43, True, True)
    assert arguments[1]["n"].tolist() == [8, 0]


@compiled
@pytest.mark.parametrize(
    ("place", "other", "result"),
    [
        (0, Pair(VALUES[::2], 2.0), (18.5, 43, True, True)),
        (0, Pair(VALUES.astype("i8"), 2.0), (18.5, 43, True, True)),
        (2, np.asfortranarray(np.arange(6.0).reshape(2, 3)), (18.5, 43, True, True)),
        (3, np.int64(41), (18.5, 43, True, True)),
        (3, 41.5, (18.5, 43.5, True, True)),
        (4, np.True_, (18.5, 43, False, True)),
    ],
)
def test_arguments_of_another_kind_find_code_of_their_own(place, other, result):
    arguments = list(given())
    everything(*arguments)
    arguments = list(given())
    arguments[place] = other
    assert everything(*arguments) == result


@compiled
def test_a_type_of_records_that_only_equals_the_known_one_will_do():
    import pickle

    everything(*given())
    arguments = list(given())
    arguments[1] = arguments[1].astype(pickle.loads(pickle.dumps(POINT)))
    known = len(everything._addresses)
    assert everything(*arguments) == (18.5, 43, True, True)
    assert len(everything._addresses) == known


@compiled
def test_a_number_that_is_too_large_is_an_error():
    arguments = list(given())
    everything(*arguments)
    arguments[3] = 2**63
    with pytest.raises(OverflowError):
        everything(*arguments)


@compiled
def test_another_number_of_arguments_is_an_error():
    with pytest.raises(TypeError):
        largest_of_halves(VALUES, VALUES)


@compiled
def test_wrong_arguments_do_not_replace_machine_code():
    from numba.core.errors import TypingError

    largest_of_halves(VALUES)
    known = list(largest_of_halves._calls)
    for wrong in ("text", VALUES.astype(object), None):
        with pytest.raises((TypingError, AssertionError)):
            largest_of_halves(wrong)
    assert largest_of_halves._calls == known
    assert largest_of_halves(VALUES) == (4.0, 9.0)


@compiled
def test_references_are_balanced():
    def references() -> list[int]:
        return [sys.getrefcount(each) for each in (VALUES, VALUES.dtype, None, NotImplemented)]

    def use() -> None:
        for _ in range(100):
            largest_of_halves(VALUES)
            largest_of_halves(VALUES[::2])

    use()
    before = references()
    use()
    assert max(abs(a - b) for a, b in zip(references(), before, strict=True)) < 20


@compiled
def test_what_machine_code_cannot_return_comes_by_numba_itself():
    def doubled(values):
        return 2.0 * values

    doubled = entry(doubled, allocates=True)
    assert doubled(VALUES).tolist() == (2.0 * VALUES).tolist()


@compiled
def test_objects_lie_as_written():
    assert kernel_code.layout_is_known()


# What is kept of compiled kernels.


def twice(x):
    return 2.0 * x


@compiled
def test_what_a_kernel_is_called_by_outlives_it(monkeypatch):
    """As Python ends it frees the lists of modules, then the functions that are left."""

    def methods() -> int:
        gc.collect()
        return sum(type(each) is kernel_code._Method for each in gc.get_objects())

    before = methods()
    monkeypatch.setattr(kernel_code, "_ALIVE", [])
    kernel_code.bind("never called", 1, ())
    kernel_code._ALIVE.clear()
    assert methods() == before + 1


@pytest.fixture
def kept(monkeypatch, tmp_path) -> Path:
    """Kernels are kept in a directory of the test."""
    monkeypatch.setattr(kernel_cache, "kernel_directory", lambda: tmp_path)
    return tmp_path


@pytest.fixture
def compilations(monkeypatch) -> list[str]:
    """The names of the kernels compiled from now on."""
    from ptaskmodel import kernel_parts

    names = []
    before = kernel_parts.compiled

    def compiled_(function, *arguments):
        names.append(function.__name__)
        return before(function, *arguments)

    monkeypatch.setattr(kernel_parts, "compiled", compiled_)
    return names


@compiled
def test_a_damaged_file_is_compiled_anew(kept, compilations):
    entry(twice)(1.5)
    (path,) = kept.iterdir()
    content = path.read_bytes()
    half = len(content) // 2
    changed = content[:half] + bytes([content[half] ^ 64]) + content[half + 1 :]
    for damaged in (b"", content[:2], content[:40], content[:-1], changed):
        path.write_bytes(damaged)
        assert entry(twice)(1.5) == 3.0
        kernel_code.Code.unpacked(path.read_bytes())
    assert len(compilations) == 6
    assert entry(twice)(1.5) == 3.0
    assert len(compilations) == 6


@compiled
def test_code_for_another_processor_is_not_called(kept, compilations, monkeypatch):
    assert entry(twice)(1.5) == 3.0
    monkeypatch.setattr(kernel_code, "processor", lambda: "another")
    assert entry(twice)(1.5) == 3.0
    assert len(compilations) == len(list(kept.iterdir())) == 2


@compiled
def test_code_that_calls_what_nobody_has_is_compiled_anew(kept, compilations):
    entry(twice)(1.5)
    (path,) = kept.iterdir()
    code = kernel_code.Code.unpacked(path.read_bytes())
    path.write_bytes(code._replace(needs=("of_another_numba",)).packed())
    assert entry(twice)(1.5) == 3.0
    assert len(compilations) == 2


@compiled
def test_kept_kernels_need_no_numba(tmp_path):
    code = """
import sys
import threading
import numpy as np
from ptaskmodel.sharing import SharingProblem, bmf
problem = SharingProblem.build([[(0, 1.0), (1, 1.0)], [(0, 1.0)], [(1, 1.0)]], [10.0, 4.0])
print(bmf(problem).rates.tolist(), "numba" in sys.modules)
"""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
    assert done.stdout == "[2.0, 8.0, 2.0] False\n"


@compiled
def test_a_full_disk_is_told_once_and_stops_nobody(kept, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(kept))

    monkeypatch.setattr(kernel_cache, "write_whole", full)
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


@pytest.mark.parametrize("is_checkout", [False, True])
def test_nothing_is_kept_within_an_installed_package(monkeypatch, tmp_path, is_checkout):
    """Uninstalled, it would leave a folder that hides the next one: a package without content."""
    monkeypatch.setattr(kernel_cache, "PACKAGE", tmp_path / "ptaskmodel")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    for name in ("PTASKMODEL_CACHE_DIR", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    if is_checkout:
        (tmp_path / "pyproject.toml").touch()
    found = kernel_cache.cache_directory.__wrapped__()
    own = tmp_path / "ptaskmodel" / "__pycache__"
    assert found == (own if is_checkout else tmp_path / "user" / "ptaskmodel")
    assert (tmp_path / "ptaskmodel").exists() == is_checkout


def test_code_that_others_could_have_written_is_not_run(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = tmp_path / f"ptaskmodel-{os.getuid()}"
    ours.mkdir()
    ours.chmod(0o777)
    assert place_found(monkeypatch) is None
    ours.rmdir()
    ours.symlink_to(tmp_path)
    assert place_found(monkeypatch) is None


def test_only_the_last_files_of_a_kernel_stay(kept):
    for number in range(kernel_cache.KEPT + 4):
        name = kernel_cache.file_of("name", str(number))
        kernel_cache.keep(name, b"code")
        assert kernel_cache.kept(name) == b"code"
        os.utime(kept / name, (number, number))
    kernel_cache.keep(kernel_cache.file_of("another name", "0"), b"code")
    assert len(list(kept.glob("name-*"))) == kernel_cache.KEPT
    assert kernel_cache.kept(kernel_cache.file_of("name", "0")) is None


def test_what_is_kept_beside_an_installed_package_is_read_by_all(monkeypatch, tmp_path):
    place = tmp_path / "__pycache__" / kernel_cache.KERNELS
    place.mkdir(parents=True)
    kernel_cache.write_whole(place / "name", b"code")
    assert (place / "name").stat().st_mode & 0o777 == 0o644
    monkeypatch.setattr(kernel_cache, "PACKAGE", tmp_path)
    for own in (None, tmp_path / "own"):
        monkeypatch.setattr(kernel_cache, "kernel_directory", lambda own=own: own)
        assert kernel_cache.kept("name") == b"code"


@compiled
def test_a_write_that_fails_leaves_nothing(kept, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(kept))

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        kernel_cache.write_whole(kept / "name", b"code")
    assert not list(kept.iterdir())


# With what is public in numba alone.


@pytest.fixture
def undecided(monkeypatch, tmp_path):
    """Whether parts work is asked anew."""
    monkeypatch.setattr(kernel_cache, "cache_directory", lambda: tmp_path)
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
import threading
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


def test_a_wait_for_kernels_within_another_counts_once():
    watch = jit_module.Stopwatch()
    with jit_module._counted(), jit_module._counted():
        time.sleep(0.01)
    assert watch.kernels_s >= 0.01
    assert watch.rest_s >= 0.0


@compiled
def test_a_compilation_that_takes_long_is_told_of_once(monkeypatch, caplog):
    told = threading.Event()

    def tell():
        really()
        told.set()

    def compiled(kernel, parts, arguments):
        assert told.wait(120)
        return really_compiled(kernel, parts, arguments)

    really, really_compiled = jit_module._tell, jit_module.Kernel._compiled
    monkeypatch.setattr(jit_module, "_is_told", False)
    monkeypatch.setattr(jit_module, "SILENT_S", 0.01)
    monkeypatch.setattr(jit_module, "_tell", tell)
    monkeypatch.setattr(jit_module.Kernel, "_compiled", compiled)
    monkeypatch.setattr(kernel_cache, "kept", lambda _: None)
    for function in (lambda x: 2.0 * x, lambda x: 3.0 * x):
        assert entry(function)(1.5) == function(1.5)
    assert [record.getMessage() for record in caplog.records] == [
        "compiling kernels, once (up to 40 s); `ptaskmodel warmup` does it ahead"
    ]
