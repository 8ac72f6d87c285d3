"""What holds for all commands: names that are nearly right, -o, .gz files, standard input."""

from __future__ import annotations

import gzip
import io
import sys

import click
import pytest
from small_files import FILES

from ptaskmodel.cli import main, program
from ptaskmodel.cli.command import Choice

# They write nothing, or what they make is their argument.
WITHOUT_OUTPUT = {
    "init", "warmup", "schema", "platform info", "platform paths", "platform validate",
    "tasks validate", "workload info", "trace info", "campaign status", "campaign resume",
}  # fmt: skip
READ = (
    "simulate {p.xml} {t.json}", "batch {p.xml} {small.json}", "slurm {slurm.conf} {jobs.csv}",
    "replay {p.xml} {r.txt}", "calibrate {m.csv}", "platform info {p.xml}",
    "platform routes {p.xml}", "platform validate {p.xml}", "tasks validate {t.json}",
    "workload info {small.json}", "trace info {r.txt}",
)  # fmt: skip
SMALL = FILES["w.json"].replace('"res": 4', '"res": 1')


def all_commands(command, path=()):
    """Every command without others below it, by its words."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    found = {}
    context = click.Context(command)
    for name in command.list_commands(context):
        found |= all_commands(command.get_command(context, name), (*path, name))
    return found


COMMANDS = all_commands(program)


def test_every_choice_answers_with_the_nearest():
    checked = 0
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if not isinstance(parameter.type, click.Choice):
                continue
            assert isinstance(parameter.type, Choice), (name, parameter.name)
            longest = max(parameter.type.choices, key=len)
            if len(longest) < 4:
                continue
            with pytest.raises(click.BadParameter, match="did you mean") as caught:
                parameter.type.convert(f"{longest[:-1]}_", parameter, None)
            assert "\n" not in caught.value.format_message()
            checked += 1
    assert checked > 60


def test_an_output_is_always_an_option_called_o():
    for name, command in COMMANDS.items():
        found = [parameter for parameter in command.params if parameter.name == "output"]
        assert len(found) == (name not in WITHOUT_OUTPUT), name
        for parameter in found:
            assert set(parameter.opts) == {"-o", "--output"}, name


def test_no_file_is_called_by_a_dash(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "make", "stencil", "--ranks", "4", "-o", "-"]) == 2
    assert "'-' can only be read from; name a file" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [["--log-level", "inf"], ["simulate", "--log-level", "inf"]])
def test_a_level_that_is_nearly_right(arguments, capsys):
    assert main([*arguments, "a", "b"]) == 2
    assert "did you mean 'info'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("batch a b --policy mine", "redirection, FILE.py:CLASS"),
        ("batch a b --estimates exct", "exact, walltime, factor:F; did you mean 'exact'?"),
        ("simulate a b --until 1h", "'1h' is not a number; give one without a unit"),
    ],
)
def test_what_may_be_given_is_said(arguments, message, capsys):
    assert main(arguments.split()) == 2
    assert message in capsys.readouterr().err


def files_of(command):
    return [word[1:-1] for word in command.split() if word.startswith("{")]


@pytest.mark.jit
@pytest.mark.parametrize(
    ("command", "file"), [(command, file) for command in READ for file in files_of(command)]
)
def test_text_is_read_from_gzip_and_from_standard_input(
    tmp_path, monkeypatch, capsys, command, file
):
    monkeypatch.chdir(tmp_path)
    for name in files_of(command):
        content = SMALL if name == "small.json" else FILES[name]
        (tmp_path / name).write_text(content)
    packed = gzip.compress((tmp_path / file).read_bytes())
    (tmp_path / f"{file}.gz").write_bytes(packed)
    for given in (f"{file}.gz", "-"):
        stdin = io.TextIOWrapper(io.BytesIO((tmp_path / file).read_bytes()))
        monkeypatch.setattr(sys, "stdin", stdin)
        words = [given if word == f"{{{file}}}" else word.strip("{}") for word in command.split()]
        assert main([*words, "-q"]) == 0, given
    capsys.readouterr()
