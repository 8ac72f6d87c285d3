"""What holds for the options of all commands: names that are nearly right, where output goes."""

from __future__ import annotations

import click
import pytest

from ptaskmodel.cli import commands, main
from ptaskmodel.cli.choices import Choice


def all_commands(command, path=()):
    """Every command without others below it, by its words."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    found = {}
    context = click.Context(command)
    for name in command.list_commands(context):
        found |= all_commands(command.get_command(context, name), (*path, name))
    return found


COMMANDS = all_commands(commands)


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
        for parameter in command.params:
            if parameter.name == "output":
                assert {"-o", "--output"} <= set(parameter.opts), name


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
