"""The module is built of what has changed, whole or not at all, whatever comes in between."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptaskmodel.kernels import module
from ptaskmodel.kernels.decorators import INTERPRETED

pytest.importorskip("numba")
pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler"),
    pytest.mark.skipif(INTERPRETED, reason="nothing is compiled"),
]

# Builds two kernels of all.
SMALL = """
from ptaskmodel.kernels import building
names = "ptaskmodel.energy.integral.used_so_far", "ptaskmodel.engine.usage.assembly.clear"
whole = building.listed
building.listed = lambda: [job for job in whole() if job.kernel.name in names]
"""


def start(place: Path, before: str = "", **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", f"{SMALL}{before}\nbuilding.main()", "--all-levels",
         "--to", str(place / module.NAME)],
        env=os.environ | {"PTASKMODEL_KERNEL_OBJECTS": str(place), **environment},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def said(process: subprocess.Popen) -> list[str]:
    """The lines of a build, after its end."""
    return process.communicate(timeout=300)[1].splitlines()


def loaded(place: Path):
    spec = importlib.util.spec_from_file_location("ptaskmodel._kernels", place / module.NAME)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A place where two builds have begun at once."""
    place = tmp_path_factory.mktemp("built")
    both = [start(place) for _ in range(2)]
    lines = [said(process) for process in both]
    assert [process.returncode for process in both] == [0, 0], lines
    compiled = [line for one in lines for line in one if "to compile" in line]
    assert compiled == ["kernels: 2 of 2 to compile (all take a minute or two)"]
    return place


def test_what_is_built_can_be_loaded(place):
    found = loaded(place)
    assert len(found.addresses) == 2
    assert all(name.startswith(module.SYMBOL) for name in found.addresses)
    assert found.level in ("v2", "v3", "v0")
    assert found.compiler.startswith("numba ")
    assert module.stamps()[0].encode() in (place / module.NAME).read_bytes()


def test_what_is_there_is_not_compiled_again(place):
    next(place.glob("pk_*-v*.o")).unlink()
    again, then = said(start(place)), said(start(place))
    assert "kernels: 1 of 2 to compile (all take a minute or two)" in again
    assert [line.split(" in ")[0] for line in then] == ["kernels: 2"]


def test_who_waits_for_another_build_is_told(tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = start(tmp_path)
        line = waiting.stderr.readline()
        waiting.kill()
    said(waiting)
    assert line.endswith("waiting for it; to build apart, set PTASKMODEL_KERNEL_OBJECTS\n")


SLOW_LINK = """
really = building.subprocess.run
def run(command, **how):
    building.Path(command[command.index("-o") + 1]).touch()
    return really(["sleep", "3"])
building.subprocess.run = run
"""


@pytest.mark.parametrize("moment", ["as it compiles", "as it links"])
def test_a_build_that_is_killed_leaves_nothing_behind_and_nobody_waiting(place, moment):
    content = (place / module.NAME).read_bytes()
    if moment == "as it compiles":
        next(place.glob("pk_*-v*.o")).unlink()
        killed = start(place)
        assert "to compile" in killed.stderr.readline()
    else:  # the C compiler goes on
        killed = start(place, SLOW_LINK)
        while not list(place.glob(f".{module.NAME}-*")):
            assert killed.poll() is None
            time.sleep(0.05)
    (place / "part-1").touch()
    killed.kill()
    said(killed)
    assert (place / module.NAME).read_bytes() == content
    lines = said(again := start(place))
    assert again.returncode == 0, lines
    assert len(loaded(place).addresses) == 2
    assert not list(place.glob("part-*"))
    assert not list(place.glob(f".{module.NAME}-*"))


def test_a_full_disk_is_one_line_and_leaves_the_module_as_it_was(place, tmp_path):
    mounted = ["unshare", "--map-root-user", "--mount"]
    if subprocess.run([*mounted, "true"], capture_output=True).returncode:
        pytest.skip("no file system may be mounted")
    objects, target = tmp_path / "objects", place / module.NAME
    objects.mkdir()
    content = target.read_bytes()
    script = 'mount -t tmpfs -o size=4k none "$1"; exec "$2" -c "$3" --to "$4"'
    build = f"{SMALL}building.main()"
    failed = subprocess.run(
        [*mounted, "sh", "-c", script, "sh", objects, sys.executable, build, target],
        env=os.environ | {"PTASKMODEL_KERNEL_OBJECTS": str(objects)},
        capture_output=True,
        text=True,
    )
    assert failed.returncode == 1
    last = failed.stderr.splitlines()[-1]
    assert last.startswith(f"kernels: {objects}")
    assert "No space left on device; mend that, or set PTASKMODEL_KERNEL_OBJECTS to" in last
    assert target.read_bytes() == content


READ_ONLY = """
really, building.os.access = building.os.access, lambda path, how: how != 2 and really(path, how)
"""


def test_a_read_only_installation_is_one_line(place, tmp_path):
    content = (place / module.NAME).read_bytes()
    failed = start(place, READ_ONLY)
    assert said(failed) == [
        f"kernels: {place} cannot be written; build as its owner does, or name another FILE by --to"
    ]
    assert failed.returncode == 1
    assert (place / module.NAME).read_bytes() == content


ZIG = """
import os, sys
assert sys.argv[1:3] == ["cc", "-mcpu=baseline"]
unused = ["-fdata-sections", "-Wl,--gc-sections"] if sys.platform == "linux" else []
os.execv({compiler!r}, ["cc", *unused, *sys.argv[3:]])
"""


def test_ziglang_serves_where_there_is_no_c_compiler(place, tmp_path):
    """A stand-in here; the real one is tried by .ci/package."""
    compiler = shutil.which("cc")
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__main__.py").write_text(
        f"import os\nos.environ['PATH'] = {os.environ['PATH']!r}" + ZIG.format(compiler=compiler)
    )
    (place / module.NAME).unlink()
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    process = start(place, PATH="/nowhere", PYTHONPATH=paths, CC="")
    lines = said(process)
    assert process.returncode == 0, lines
    assert len(loaded(place).addresses) == 2
    assert module.stamps()[0].encode() in (place / module.NAME).read_bytes()


KILLED = """
import os
def killed(*_):
    os.kill(os.getpid(), 9)
building._compile = killed
"""


@pytest.mark.parametrize(
    ("before", "environment", "says"),
    [
        ("", {"CC": "cc-that-is-not-there"}, "there is no C compiler; install one"),
        ("", {"CC": "false"}, "false cannot link the module"),
        (KILLED, {}, "killed"),
    ],
)
def test_a_build_that_fails_leaves_the_module_as_it_was(place, before, environment, says):
    content = (place / module.NAME).read_bytes()
    if before:
        for file in place.glob("pk_*.o"):
            file.unlink()
    failed = start(place, before, **environment)
    last = said(failed)[-1]
    assert failed.returncode == 1
    assert last.startswith("kernels: ")
    assert says in last
    assert (place / module.NAME).read_bytes() == content
    assert not list(place.glob(f".{module.NAME}*"))


@pytest.mark.parametrize(("free_bytes", "processes"), [(0, 1), (5 * 10**9, 2), (10**12, 4)])
def test_no_more_processes_compile_than_memory_serves(monkeypatch, free_bytes, processes):
    from ptaskmodel.kernels import building

    monkeypatch.setattr(building, "_cores", lambda: 4)
    assert building.processes_for(free_bytes) == processes


def test_the_kernels_are_found_with_numpy_and_numba_alone():
    # A wheel is built where nothing else is installed.
    others = ("click", "lxml", "msgspec", "networkx", "pandas", "scipy")
    blocked = f"import sys; sys.modules.update(dict.fromkeys({others}))"
    code = f"{blocked}\nfrom ptaskmodel.kernels.building import listed\nassert listed()"
    subprocess.run([sys.executable, "-c", code], check=True)
