"""Files from outside are read with care and bounded; what is written is whole or not there."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from ptaskmodel import files
from ptaskmodel.directories import check_directory_to_write, whole_directory
from ptaskmodel.errors import PTaskModelError, WorkloadError
from ptaskmodel.files import (
    check_file_to_write,
    digest,
    read_bytes,
    read_text,
    whole_file,
    whole_path,
    write_bytes,
    write_json,
)

MARK = "ours.txt"
FULL = "/dev/full"


def owned(directory):
    """Files of ours are those that the file MARK lists."""
    try:
        return {MARK, *(directory / MARK).read_text().split()}
    except OSError:
        return set()


def write_directory(path, content):
    with whole_directory(path, owned) as place:
        (place / "a.txt").write_text(content)
        (place / MARK).write_text("a.txt")


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def refused(match):
    return pytest.raises(PTaskModelError, match=match)


# Reading


def test_plain_and_packed_files_read_alike(tmp_path):
    content = b"abc\n" * 1000
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    (tmp_path / "packed").write_bytes(gzip.compress(content[:2000]) + gzip.compress(content[2000:]))
    for name in ("a", "a.gz", "packed"):
        assert read_bytes(tmp_path / name) == content
        assert read_bytes(str(tmp_path / name), most=len(content)) == content
        with refused(f"{name}: holds more than 3,999 bytes"):
            read_bytes(tmp_path / name, most=len(content) - 1)


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(10**7)))
    assert path.stat().st_size < 20_000
    with refused(r"bomb\.gz: holds more than 1,000,000 bytes \(unpacked\); give a smaller file"):
        read_bytes(path, most=10**6)


@pytest.mark.parametrize(
    "content", [b"plain", gzip.compress(b"x" * 999, mtime=0)[:25], b"\x1f\x8b\x08"]
)
def test_a_file_that_is_not_whole_gzip_is_refused(tmp_path, content):
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    with pytest.raises(WorkloadError, match="not a whole gzip file"):
        read_bytes(path, error=WorkloadError)


def odd_paths(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("")
    return {
        tmp_path / "none": "no such file",
        tmp_path: "is a directory",
        "": "no such file",
        tmp_path / "loop": "symbolic links",
        tmp_path / "file" / "x": "Not a directory",
        tmp_path / ("a" * 300): "too long",
        "a\0b": "null",
    }


def test_what_cannot_be_read_is_told_in_one_line(tmp_path):
    for path, reason in odd_paths(tmp_path).items():
        with refused(reason) as caught:
            read_bytes(path)
        assert "\n" not in str(caught.value)


def test_standard_input_is_read_once_and_kept(monkeypatch):
    stream = io.BytesIO(gzip.compress(b"text"))
    raw = stream.getvalue()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    assert read_bytes("-") == b"text"
    assert read_text("-") == "text"
    assert digest("-") == hashlib.sha256(raw).hexdigest()
    monkeypatch.setattr(sys, "stdin", None)
    with refused("standard input: cannot be read: it is closed"):
        read_bytes("-")


def test_a_pipe_is_read_once_and_kept(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"text",))
    writer.start()
    assert read_bytes(path) == b"text"
    writer.join()
    assert read_bytes(path) == b"text"
    assert digest(path) == hashlib.sha256(b"text").hexdigest()


def test_text_is_utf8_and_the_line_that_is_not_is_told(tmp_path):
    path = tmp_path / "x"
    for content, reason in (
        (b"a\nb\n\xe9", ":3: is not UTF-8; save"),
        ("ab".encode("utf-16"), ":1: is not UTF-8 but UTF-16; save"),
    ):
        path.write_bytes(content)
        with refused(reason):
            read_text(path)


def test_a_byte_order_mark_is_no_part_of_a_text(tmp_path):
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa")
    assert read_text(tmp_path / "x") == "a"


# Writing a file


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"x": 0.1})
    assert json.loads(path.read_text()) == {"x": 0.1}
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("writer", [whole_file, whole_path])
def test_a_file_half_written_is_not_there_and_the_earlier_one_stays(tmp_path, writer):
    path = tmp_path / "a.txt"
    path.write_text("earlier")

    def write():
        with writer(path) as place:
            place.write("half") if writer is whole_file else place.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert path.read_text() == "earlier"
    assert names(tmp_path) == ["a.txt"]


def test_names_in_gz_are_packed_the_same_each_time(tmp_path):
    with whole_file(tmp_path / "a.gz") as stream:
        stream.write("text")
    write_bytes(tmp_path / "b.gz", b"text")
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text"
    assert read_bytes(tmp_path / "b.gz") == b"text"
    first = (tmp_path / "b.gz").read_bytes()
    write_bytes(tmp_path / "b.gz", b"text")
    assert (tmp_path / "b.gz").read_bytes() == first


def test_modes_and_links_are_those_of_any_new_file(tmp_path):
    (tmp_path / "link").symlink_to("real")
    write_bytes(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"
    (tmp_path / "other").touch()
    mode = stat.S_IMODE((tmp_path / "other").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == mode


def test_what_cannot_be_written_is_told_in_one_line(tmp_path):
    paths = odd_paths(tmp_path)
    del paths[tmp_path / "none"]
    for path in [*paths, tmp_path / "none" / "x"]:
        for write in (check_file_to_write, lambda p: write_bytes(p, b"x")):
            with refused(".") as caught:
                write(path)
            assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["file", "loop"]


def test_a_name_as_long_as_names_may_be(tmp_path):
    path = tmp_path / ("é" * 127)
    write_bytes(path, b"x")
    assert names(tmp_path) == [path.name]


def test_a_device_is_written_and_not_replaced(tmp_path):
    with whole_file("/dev/null") as stream:
        stream.write("x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with refused("not a regular file"):
        write_bytes("/dev/null", b"")


@pytest.mark.skipif(not os.path.exists(FULL), reason="no full device here")
def test_a_full_disk_is_one_line():
    with refused("cannot be written: No space left"), whole_file(FULL) as stream:
        stream.write("x")


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("earlier")

    def full():
        raise OSError(28, "No space left on device")

    with refused("a.txt: cannot be written: No space left"), whole_file(path):
        full()
    assert path.read_text() == "earlier"
    assert names(tmp_path) == ["a.txt"]


KILLED = """
import os, signal
from ptaskmodel import directories, files
def here():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(code):
    done = subprocess.run([sys.executable, "-c", KILLED + code], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_the_next_write_removes_what_a_killed_run_left(tmp_path):
    killed(f"with files.whole_file({str(tmp_path / 'a.txt')!r}) as s: s.write('half'); here()")
    killed(f"with directories.whole_directory({str(tmp_path / 'd')!r}, lambda d: ()) as s: here()")
    assert [name[:3] for name in names(tmp_path)] == [".d."]  # which removed that of a.txt
    write_bytes(tmp_path / "b.txt", b"x")
    assert names(tmp_path) == ["b.txt"]


def test_a_run_killed_while_it_replaced_a_directory_is_mended(tmp_path):
    write_directory(tmp_path / "d", "earlier")
    code = f"""
files.Path.rename_ = files.Path.rename
files.Path.rename = lambda a, b: here() if a.name == "new" else files.Path.rename_(a, b)
with directories.whole_directory({str(tmp_path / "d")!r}, lambda d: {{"a.txt", "{MARK}"}}) as place:
    (place / "a.txt").write_text("new")
"""
    killed(code)
    assert not (tmp_path / "d").exists()
    files.clear_leftovers.cache_clear()
    write_bytes(tmp_path / "b.txt", b"x")
    assert names(tmp_path) == ["b.txt", "d"]
    assert (tmp_path / "d" / "a.txt").read_text() == "earlier"


def test_what_another_run_is_writing_stays(tmp_path):
    with whole_file(tmp_path / "a.txt") as stream:
        stream.write("mine")
        code = f"from ptaskmodel import files; files.write_bytes({str(tmp_path / 'b.txt')!r}, b'x')"
        subprocess.run([sys.executable, "-c", code], check=True)
    assert names(tmp_path) == ["a.txt", "b.txt"]
    assert (tmp_path / "a.txt").read_text() == "mine"


# Writing a directory


def test_a_directory_appears_whole(tmp_path):
    write_directory(tmp_path / "x" / "out", "1")
    assert names(tmp_path / "x" / "out") == ["a.txt", MARK]
    assert names(tmp_path / "x") == ["out"]


def test_an_earlier_directory_is_replaced_whole(tmp_path):
    write_directory(tmp_path / "out", "1")
    write_directory(tmp_path / "out", "2")
    assert (tmp_path / "out" / "a.txt").read_text() == "2"
    assert names(tmp_path) == ["out"]


def test_a_link_to_a_directory_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    write_directory(tmp_path / "out", "1")
    assert (tmp_path / "out").is_symlink()
    assert names(tmp_path / "real") == ["a.txt", MARK]


def test_an_error_leaves_the_earlier_directory(tmp_path):
    write_directory(tmp_path / "out", "1")

    def write():
        with whole_directory(tmp_path / "out", owned) as place:
            (place / "a.txt").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert (tmp_path / "out" / "a.txt").read_text() == "1"
    assert names(tmp_path) == ["out"]


def test_nothing_of_others_is_ever_deleted(tmp_path):
    write_directory(tmp_path / "out", "1")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with refused(r"holds 'notes\.txt', which is not"):
        check_directory_to_write(tmp_path / "out", owned)
    (tmp_path / "out" / "notes.txt").unlink()
    (tmp_path / "out" / "a.txt").unlink()
    (tmp_path / "out" / "a.txt").mkdir()
    with refused(r"holds 'a\.txt', which is not"):
        write_directory(tmp_path / "out", "2")


def test_what_others_put_there_meanwhile_stays(tmp_path):
    write_directory(tmp_path / "out", "1")
    with whole_directory(tmp_path / "out", owned) as place:
        (place / "a.txt").write_text("2")
        (tmp_path / "out" / "notes.txt").write_text("mine")
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "out" / "a.txt").read_text() == "2"


def test_directories_that_cannot_be_written_are_told(tmp_path, monkeypatch):
    paths = odd_paths(tmp_path)
    del paths[tmp_path / "none"], paths[tmp_path]
    for path in [*paths, tmp_path / "file"]:
        for write in (
            lambda p: check_directory_to_write(p, owned),
            lambda p: write_directory(p, ""),
        ):
            with refused(".") as caught:
                write(path)
            assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["file", "loop"]
    monkeypatch.chdir(tmp_path)
    with refused("is the current directory"):
        check_directory_to_write(".", owned)
