"""What is kept of runs is there whatever dies while it is kept, packed or merged."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from ptaskmodel.campaign import store
from ptaskmodel.campaign.store import Store
from ptaskmodel.errors import CampaignError


def run_id(k):
    return f"{k:024x}"


def record(k, status="done", **more):
    return {"id": run_id(k), "status": status, "wall_s": 1.0, "metrics": {"y": k}, **more}


def found(directory):
    """Of each run, what counts."""
    index = Store(directory).index()
    return {
        json.loads(line.text)["metrics"]["y"]: line for line in map(index.line, index.in_order())
    }


def filled(directory, count=30, writers=3):
    for w in range(writers):
        one = Store(directory)
        for k in range(w, count, writers):
            one.write(run_id(k), record(k))
    return Store(directory)


def files(directory):
    return sorted(path.suffix for path in (directory / "runs").iterdir())


def test_parts_are_packed_and_packs_with_what_comes_after_them(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PACKED", 40)
    monkeypatch.setattr(store, "LINES", 7)
    kept = filled(tmp_path)
    assert files(tmp_path) == [".jsonl"] * 3
    kept.pack(finished=True)
    assert files(tmp_path) == [".zip"]
    for k in range(30, 50):
        kept.write(run_id(k), record(k))
    kept.pack(finished=True)
    assert files(tmp_path) == [".zip"] * 2
    assert sorted(found(tmp_path)) == list(range(50))
    assert kept.read(run_id(44))["metrics"] == {"y": 44}
    assert kept.read(run_id(50)) is None


def test_what_is_done_counts_more_than_what_failed_and_the_last_more_than_others(tmp_path):
    kept = Store(tmp_path)
    for k, status, error in (
        (1, "failed", "first"), (1, "failed", "last"), (2, "done", ""), (2, "failed", "late"),
    ):  # fmt: skip
        kept.write(run_id(k), record(k, status, error=error))
        kept.pack(finished=True)
    assert json.loads(found(tmp_path)[1].text)["error"] == "last"
    assert found(tmp_path)[2].done


def test_a_torn_line_is_no_record_and_takes_no_other_with_it(tmp_path):
    kept = filled(tmp_path, 5, 1)
    (part,) = (tmp_path / "runs").iterdir()
    with part.open("ab") as file:
        file.write(json.dumps(record(5)).encode()[:40])
    assert sorted(found(tmp_path)) == list(range(5))
    kept.pack(finished=True)
    assert sorted(found(tmp_path)) == list(range(5))


class Killed(BaseException):
    """As if by kill -9."""


def test_killed_anywhere_while_it_packs_it_loses_nothing(tmp_path, monkeypatch):
    """Every call that changes the directory in turn is the last one, not made."""
    names = [(Path, "rename"), (Path, "unlink"), (os, "replace")]
    left = [0]

    def counted(really):
        def call(*given, **more):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return really(*given, **more)

        return call

    for where, name in names:
        monkeypatch.setattr(where, name, counted(getattr(where, name)))
    for last in range(100):
        place = tmp_path / str(last)
        left[0] = 10**6
        filled(place, 10).pack(finished=True)
        kept = filled(place, 30)
        left[0] = last
        try:
            kept.pack(finished=True)
        except Killed:
            left[0] = 10**6
            assert sorted(found(place)) == list(range(30))
            kept.pack(finished=True)
            assert sorted(found(place)) == list(range(30))
            assert ".zip" in files(place)
        else:
            break
    assert last > 7
    assert files(place) == [".zip"]


def test_who_adds_while_others_pack_loses_nothing(tmp_path):
    writers = [Store(tmp_path) for _ in range(2)]
    (tmp_path / "runs").mkdir()

    def add(w):
        for k in range(w, 600, 2):
            writers[w].write(run_id(k), record(k))

    threads = [threading.Thread(target=add, args=(w,)) for w in range(2)]
    for thread in threads:
        thread.start()
    packing, seen = Store(tmp_path), 0
    while any(thread.is_alive() for thread in threads):
        packing.pack(finished=True)
        now = len(packing.index().ids)
        assert now >= seen
        seen = now
    packing.pack(finished=True)
    assert sorted(found(tmp_path)) == list(range(600))


def test_what_others_may_still_add_to_is_not_packed_yet(tmp_path):
    kept = filled(tmp_path)
    kept.pack(finished=False)
    assert files(tmp_path) == [".closed"] * 3
    assert sorted(found(tmp_path)) == list(range(30))
    kept.write(run_id(30), record(30))
    assert sorted(found(tmp_path)) == list(range(31))


def test_runs_of_older_versions_are_read_and_packed(tmp_path):
    for k in range(5):
        path = tmp_path / "runs" / f"{k:02}" / f"{run_id(k)}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record(k)) + "\n")
    assert sorted(found(tmp_path)) == list(range(5))
    Store(tmp_path).pack(finished=True)
    assert files(tmp_path) == [".zip"]
    assert sorted(found(tmp_path)) == list(range(5))


def test_what_is_merged_is_what_is_not_done_here(tmp_path):
    here, there = Store(tmp_path / "here"), filled(tmp_path / "there")
    (tmp_path / "here").mkdir()
    here.write(run_id(0), record(0, note="mine"))
    here.write(run_id(1), record(1, "failed"))
    there.pack(finished=False)
    assert here.take_in([tmp_path / "there"]) == 29
    assert here.take_in([tmp_path / "there"]) == 0
    merged = found(tmp_path / "here")
    assert all(line.done for line in merged.values())
    assert b"mine" in merged[0].text


def test_a_damaged_pack_is_said(tmp_path):
    filled(tmp_path).pack(finished=True)
    (pack,) = (tmp_path / "runs").iterdir()
    pack.write_bytes(pack.read_bytes()[:-30])
    with pytest.raises(CampaignError, match=r"00000001.zip: is damaged .*; delete it"):
        Store(tmp_path).index()
