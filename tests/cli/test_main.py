"""The entry point: help, exit codes, what each kind of failure looks like."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings

import click
import pytest

from ptaskmodel import __version__, cli
from ptaskmodel.errors import WorkloadError


@pytest.fixture
def fails_with(monkeypatch):
    """Make `ptaskmodel tasks` raise something."""

    def make(error):
        @click.command()
        def tasks():
            raise error

        monkeypatch.setattr(cli.LazyGroup, "get_command", lambda self, context, name: tasks)

    return make


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_is_there_with_the_help_that_is_announced(name):
    module, _, attribute = cli.COMMANDS[name].place.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.name == name


def test_help_lists_the_commands(capsys):
    assert cli.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in cli.COMMANDS)


def test_help_of_a_command(capsys):
    assert cli.main(["simulate", "--help"]) == 0
    assert "PLATFORM TASKS" in capsys.readouterr().out


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["simulate"], ["simulate", "a", "b", "--solver", "best"], ["-z"]]
)
def test_usage_errors_exit_with_2(arguments, capsys):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ptaskmodel: error: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("simulate p.xml", "simulate: TASKS is missing; give ptaskmodel simulate PLATFORM TASKS"),
        ("workload convert a", "--output is missing; give ptaskmodel workload convert SOURCE -o"),
        ("plot results", "PICTURE is missing, one of gantt, progress,"),
        ("simulate a b c", "unexpected extra argument (c) (`ptaskmodel simulate --help`"),
        ("simulate a b --util 3", "No such option '--util'"),
        ("simulate a b --until", "'--until' requires an argument"),
    ],
)
def test_what_is_missing_or_too_much_is_told_with_what_to_give(line, said, capsys):
    assert cli.main(line.split()) == 2
    assert said in capsys.readouterr().err


def test_a_mistake_of_the_user_is_one_line_and_exit_code_2(capsys, fails_with):
    fails_with(WorkloadError("a.json: /tasks/0:\nis \ud800 wrong; mend it"))
    assert cli.main(["tasks"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "ptaskmodel: error: a.json: /tasks/0: is \\ud800 wrong; mend it\n"


def test_our_bugs_keep_their_traceback(fails_with):
    fails_with(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main(["tasks"])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption(error, capsys, fails_with):
    fails_with(error)
    assert cli.main(["tasks"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_warning_is_one_line(capsys, monkeypatch):
    @click.command()
    def tasks():
        warnings.warn("old.xml:3: AS is now zone", UserWarning, stacklevel=1)

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda self, context, name: tasks)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert cli.main(["tasks"]) == 0
    assert capsys.readouterr().err == "ptaskmodel: warning: old.xml:3: AS is now zone\n"


def test_a_closed_pipe_is_quiet():
    command = f"'{sys.executable}' -m ptaskmodel schema tasks | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == '{\n  "$sche'
    assert done.stderr == ""


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "ptaskmodel", "tasks", "validate", "nothing.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "ptaskmodel: error: nothing.json: no such file\n"


@pytest.mark.parametrize(("arguments", "frozen"), [("", True), ("['--version']", False)])
def test_only_the_command_of_a_process_leaves_its_objects_unsearched(arguments, frozen):
    code = (
        "import gc, os, sys\nfrom ptaskmodel import cli\nsys.argv = ['ptaskmodel', '--version']\n"
        f"cli.main({arguments})\n"
        "print(gc.get_freeze_count() > 0, os.environ.get('OPENBLAS_THREAD_TIMEOUT') == '4')"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == f"{frozen} {frozen}"


@pytest.mark.parametrize("completed", [None, "ptaskmodel ", "ptaskmodel --he"])
def test_help_and_names_of_commands_import_little_more_than_click(completed):
    code = (
        "import sys, click.shell_completion\nknown = set(sys.modules)\nfrom ptaskmodel import cli\n"
        "try:\n    cli.main(['--help'])\nfinally:\n"
        "    print(*(set(sys.modules) - known), file=sys.stderr)"
    )
    asked = {"_PTASKMODEL_COMPLETE": "bash_complete", "COMP_WORDS": completed, "COMP_CWORD": "1"}
    environment = os.environ | (asked if completed else {})
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    loaded = set(done.stderr.split())
    others = {"logging", "pathlib", "json", "csv", "gzip", "hashlib", "dataclasses", "traceback"}
    assert not loaded & others
    ours = {name for name in loaded if name.startswith("ptaskmodel.")}
    base = {"lazy", "errors", "remarks", "memory", "interrupts", "cli", "cli.command"}
    assert ours == {f"ptaskmodel.{name}" for name in base}
    shown = {None: "replay      Replay traces", "ptaskmodel ": "plain,replay\n"}
    assert shown.get(completed, "plain,--help") in done.stdout


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom ptaskmodel import cli\ncli.main(['--help'])\n"
        "for name in cli.COMMANDS: cli.main([name, '--help'])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numba", "numpy", "pandas", "scipy", "networkx", "matplotlib", "lxml", "rich"}
    assert not heavy & set(done.stderr.split())


def test_a_batch_of_delays_loads_neither_the_engine_nor_the_open_loop(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(f"1 0 -1 5 1 -1 -1 1 9 -1 1 {'-1 ' * 7}\n")
    code = (
        "import sys\nfrom ptaskmodel import cli\n"
        f"cli.main(['batch', 'platforms/worked_example.xml', {str(log)!r}, '--loop', 'compiled', "
        f"'-o', {str(tmp_path / 'results')!r}])\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "ptaskmodel.batch.compiled.delays" in loaded
    others = ("engine.state", "simulation.life", "batch.loop.loop", "workload.batch_works")
    assert not loaded & {f"ptaskmodel.{name}" for name in others}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "a", "b", "--solver", "bmff"], "solver 'bmff' is unknown; use one of bmf"),
        (["batch", "a", "b", "--policy", "esay"], "did you mean 'easy'?"),
        (["batch", "a", "b", "--allocation", "contigous"], "did you mean 'contiguous'?"),
        (["plot", "a", "gant", "-o", "x.png"], "did you mean 'gantt'?"),
        (["simulate", "a", "b", "--trace", "tsv"], "did you mean 'csv'?"),
    ],
)
def test_a_wrong_name_is_told_in_one_line_with_the_nearest(arguments, message, capsys):
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_policy_may_be_a_class_in_a_file(capsys):
    assert cli.main(["batch", "a.xml", "b.json", "--policy", "mine.py:Mine"]) == 2
    assert "--policy" not in capsys.readouterr().err


@pytest.mark.parametrize("arguments", ["--version", "--help", "schema tasks"])
def test_a_full_disk_is_told_in_one_line(arguments):
    command = f"'{sys.executable}' -m ptaskmodel {arguments} > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "ptaskmodel: error: standard output: No space left on device\n"


@pytest.mark.parametrize("arguments", ["--version", "schema tasks"])
def test_a_closed_standard_output_is_no_error(arguments):
    command = f"'{sys.executable}' -m ptaskmodel {arguments} >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_looking_at_results_loads_no_engine():
    code = "import ptaskmodel.results.pages.report, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith("ptaskmodel.engine")]
