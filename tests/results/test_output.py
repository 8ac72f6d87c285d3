"""Directories of results are whole or not there, and nothing of others is replaced."""

from __future__ import annotations

import pytest

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import write_json
from ptaskmodel.results.directory import FORMAT, NAMES, check_output_directory, whole_directory


def write_results(path, content):
    with whole_directory(path) as place:
        (place / "tasks.csv").write_text(content)
        write_json(
            place / "summary.json", {"format": FORMAT, "files": ["tasks.csv", "summary.json"]}
        )


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def test_a_directory_appears_whole(tmp_path):
    write_results(tmp_path / "x" / "out", "1")
    assert names(tmp_path / "x" / "out") == ["summary.json", "tasks.csv"]
    assert names(tmp_path / "x") == ["out"]


def test_earlier_results_are_replaced_whole(tmp_path):
    write_results(tmp_path / "out", "1")
    write_results(tmp_path / "out", "2")
    assert (tmp_path / "out" / "tasks.csv").read_text() == "2"
    assert names(tmp_path) == ["out"]


def test_an_empty_directory_is_used(tmp_path):
    (tmp_path / "out").mkdir()
    write_results(tmp_path / "out", "1")
    assert names(tmp_path / "out") == ["summary.json", "tasks.csv"]


@pytest.mark.parametrize(
    "summary", ["", "[]", "{}", '{"format": "other", "files": ["a.txt"]}', "[" * 100_000]
)
def test_a_directory_of_others_is_refused(tmp_path, summary):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "summary.json").write_text(summary)
    with pytest.raises(PTaskModelError, match=r"holds '(a.txt|summary.json)', which is not"):
        check_output_directory(tmp_path)


def test_results_with_something_else_beside_them_are_refused(tmp_path):
    write_results(tmp_path / "out", "1")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(PTaskModelError, match=r"holds 'notes\.txt', which is not"):
        check_output_directory(tmp_path / "out")


def test_names_that_we_never_write_are_not_ours_whatever_the_summary_says(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    listed = ["summary.json", "thesis.tex"]
    write_json(tmp_path / "summary.json", {"format": FORMAT, "files": listed})
    with pytest.raises(PTaskModelError, match=r"holds 'thesis\.tex', which is not"):
        check_output_directory(tmp_path)


def test_every_file_of_results_is_known():
    from ptaskmodel.results import loading
    from ptaskmodel.results import traces as trace_files
    from ptaskmodel.results.tables import tasks
    from ptaskmodel.results.traces import attribution

    traces = {name for name, _ in trace_files.FILES.values()}
    tables = {tasks.TASKS, loading.JOBS, loading.MACHINES, attribution.UTILISATION}
    limits = {attribution.BOTTLENECKS, attribution.ATTRIBUTION}
    assert traces | tables | limits <= NAMES


def test_a_file_and_the_current_directory_are_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(PTaskModelError, match="is a file; give a directory"):
        check_output_directory(tmp_path / "file")
    with pytest.raises(PTaskModelError, match="is not a directory that can be written in"):
        check_output_directory(tmp_path / "file" / "out")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PTaskModelError, match="is the current directory"):
        check_output_directory(".")
