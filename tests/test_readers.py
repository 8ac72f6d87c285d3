"""Every reader keeps an account of its file, and no spoiled file ends in anything but a message."""

import json
import random

import mutations
import pytest

from ptaskmodel.calibration.measurements import read_measurements
from ptaskmodel.cli import main
from ptaskmodel.remarks import Account
from ptaskmodel.workload.formats.table import FORMATS
from ptaskmodel.workload.formats.tasks_json import load_tasks

SEEDS = 6


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory with a good file of each kind, which commands run in."""
    mutations.write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(words):
    result = "cal.json" if words[0] == "calibrate" else "out"
    return main([*words, "-o", result])


@pytest.mark.parametrize("kind", mutations.KINDS)
def test_every_reader_keeps_an_account(folder, monkeypatch, kind):
    name, _, words = mutations.KINDS[kind]
    files = set()
    made = Account.__init__

    def listen(account, path, error):
        made(account, path, error)
        files.add(account.file)

    monkeypatch.setattr(Account, "__init__", listen)
    assert command(words) == 0
    assert name in files


def test_all_formats_are_among_the_kinds():
    suffixes = {suffix for each in FORMATS.values() for suffix in each.suffixes}
    assert suffixes == {".json", ".swf", ".gwf"}  # a new one needs a file in mutations.KINDS


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", mutations.KINDS | mutations.WHOLE)
def test_spoiled_files_are_refused_in_one_message_or_read_and_told(folder, capsys, kind):
    name, text, words = (mutations.KINDS | mutations.WHOLE)[kind]
    for seed in range(SEEDS):
        changed, _ = mutations.mutated(text, random.Random(f"{kind} {seed}"))
        (folder / name).write_text(changed, encoding="utf-8")
        status = command(words)
        said = capsys.readouterr()
        assert mutations.verdict(status, said.out, said.err, name) is None, (seed, said.err)


@pytest.mark.filterwarnings("default")
def test_unix_dates_of_tasks_are_counted_from_the_first_and_told(folder):
    tasks = [
        {"id": "a", "delay": 5, "start": 1_700_000_000},
        {"id": "b", "delay": 5, "start": 1_700_000_060.5},
        {"id": "c", "delay": 5, "after": ["a"]},
    ]
    (folder / "t.json").write_text(json.dumps({"tasks": tasks}))
    with pytest.warns(UserWarning, match="dates are Unix seconds: time 0 .* is the first, 17000"):
        assert [task.start_s for task in load_tasks("t.json")] == [0, 60.5, 0]
    assert main(["simulate", "p.xml", "t.json", "-o", "out"]) == 0
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert [remark["field"] for remark in summary["remarks"]] == ["start"]
    assert summary["makespan"] == 65.5


def test_a_bad_row_of_measurements_is_left_out_and_told(folder):
    rows = mutations.MEASURED.splitlines()
    (folder / "m.csv").write_text("\n".join([*rows[:2], "x,soon,0,0,3,1", *rows[2:]]))
    with pytest.warns(UserWarning, match=r"m.csv:3: left out: mean_runtime_s is 'soon'"):
        (group,) = read_measurements("m.csv")
    assert len(group.measurements) == 3
