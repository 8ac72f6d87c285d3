"""What nobody means to give: each command answers with one line of a bounded length, exit 2."""

from __future__ import annotations

import contextlib
import gzip
import zlib

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ptaskmodel import files
from ptaskmodel.campaign.plan import plan_of
from ptaskmodel.cli import main, program
from ptaskmodel.errors import LONGEST, CampaignError, PTaskModelError, cut
from ptaskmodel.platform.reader.xml import parse_platform
from ptaskmodel.workload.formats.host_names import expand

LONG = "x" * 4000
PREFIX = len("ptaskmodel: error: ")
# They would begin something that lasts.
LASTING = {"demo", "warmup", "slurm-live", "serve", "init"}
HEAD = "<?xml version='1.0'?><platform version='4.1'>"


def leaves(command: click.Command, path: tuple[str, ...] = ()):
    """Every command that does something, with the words that lead to it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        if name not in LASTING:
            yield from leaves(command.get_command(context, name), (*path, name))


LEAVES = list(leaves(program))


def answer(words, capsys) -> str:
    """The one line of an error, which no word makes long."""
    assert main(list(words)) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert len(said[0]) <= LONGEST + PREFIX
    return said[0]


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=lambda one: "-".join(one)
                         if isinstance(one, tuple) else "")  # fmt: skip
def test_no_line_is_as_long_as_what_is_echoed(path, command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [LONG for one in command.params if isinstance(one, click.Argument)]
    answer([*path, f"--{LONG}"], capsys)
    if arguments:
        answer([*path, *arguments], capsys)
    for option in command.params:
        if isinstance(option, click.Option) and not option.is_flag and not option.count:
            for value in (LONG, f"a={LONG}", f"{LONG} {LONG}", "1" * 4000):
                answer([*path, *(arguments or [LONG]), option.opts[-1], value], capsys)


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=lambda one: "-".join(one)
                         if isinstance(one, tuple) else "")  # fmt: skip
@pytest.mark.parametrize("place", [".", "/", ""])
def test_a_directory_where_a_file_is_due_is_one_line(path, command, place, capsys, tmp_path,
                                                     monkeypatch):  # fmt: skip
    monkeypatch.chdir(tmp_path)
    arguments = [one for one in command.params if isinstance(one, click.Argument)]
    if any(isinstance(one.type, click.Path) for one in arguments):
        answer([*path, *(place for _ in arguments)], capsys)


def test_unknown_commands_are_cut_too(capsys):
    for words in ([LONG], [LONG + " " + LONG], ["campaign", LONG], ["plot", LONG]):
        answer(words, capsys)


def test_what_is_cut_keeps_its_ends():
    text = cut(f"a/{'b' * 500}/c: is wrong; give {'d ' * 800}instead")
    assert len(text) <= LONGEST
    assert text.startswith("a/bbb")
    assert "b/c: is wrong" in text
    assert text.endswith("d instead")
    assert cut("short") == "short"


TOML = {
    "a = " + "[" * 5000 + "]" * 5000: "nested more than 100 deep",
    "a = " + "{a=" * 5000: "nested more than 100 deep",
    "a" + ".a" * 5000 + " = 1": "nested more than 100 deep",
    "[a" + ".a" * 5000 + "]": "nested more than 100 deep",
    "a = " + "1" * 5000: "more than 64 bits",
    "[parameters]\na = [1, -" + "1" * 5000 + "]": "more than 64 bits",
    "repetitions = 0x" + "f" * 5000: "more than 64 bits",
    "first_seed = 9223372036854775808": "more than 64 bits",
    "a = 1979-13-45": "is not TOML",
}


@pytest.mark.parametrize("text", TOML, ids=lambda text: text[:12])
def test_what_no_plan_holds_is_refused(text, tmp_path):
    with pytest.raises(CampaignError, match=TOML[text]):
        plan_of(text, tmp_path, "plan")


VALUES = st.recursive(
    st.integers() | st.floats() | st.booleans() | st.text(max_size=3).map(repr),
    lambda some: st.lists(some, max_size=3).map(lambda them: f"[{', '.join(map(str, them))}]"),
)
KEYS = st.sampled_from(["run", "files", "parameters", "factors", "sample", "metrics", "seed",
                        "repetitions", "timeout_s", "parameters.platform", "factors.set",
                        "factors.seed", "constraints", "compare_with"])  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, VALUES, max_size=4), st.booleans())
def test_any_plan_is_read_or_refused(tmp_path, entries, with_run):
    lines = [f"{key} = {value}" for key, value in entries.items() if key != "run" or not with_run]
    run = ['run = "simulate"'] if with_run else []
    with contextlib.suppress(CampaignError):
        plan_of("\n".join([*run, *lines]), tmp_path, "plan")


@pytest.mark.parametrize("key", ["platform", "tasks"])
def test_a_device_without_end_is_refused(key, tmp_path, capsys):
    places = dict.fromkeys(("platform", "tasks"), "plan.toml") | {key: "/dev/zero"}
    lines = [f'{name} = "{place}"' for name, place in places.items()]
    plan = "\n".join(['run = "simulate"', "[parameters]", *lines])
    (tmp_path / "plan.toml").write_text(plan)
    said = answer(["campaign", "check", str(tmp_path / "plan.toml")], capsys)
    assert "/dev/zero: is not a regular file; give one" in said


def test_a_file_beyond_memory_is_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError

    (tmp_path / "f").write_bytes(gzip.compress(b"0" * 1000))
    monkeypatch.setattr(zlib, "decompressobj", full)
    with pytest.raises(PTaskModelError, match=r"f: does not fit in memory: it has \d+ bytes"):
        files.read_bytes(tmp_path / "f")


def test_memory_that_does_not_suffice_later_is_one_line(monkeypatch, capsys):
    class Full(click.Command):
        def invoke(self, context):
            raise MemoryError

    monkeypatch.setattr(type(program), "get_command", lambda *_: Full("simulate"))
    assert "the memory does not suffice" in answer(["simulate"], capsys)


@pytest.mark.parametrize("element", [
    "<cluster id='c' prefix='{}' suffix='' radical='0-9' speed='1Gf' bw='1GBps' lat='1us'/>",
    "<cluster id='c' prefix='n' suffix='{}' radical='0-9' speed='1Gf' bw='1GBps' lat='1us'/>",
    "<cluster id='{}' prefix='n' suffix='' radical='0-9' speed='1Gf' bw='1GBps' lat='1us'/>",
    "<zone id='z' routing='Full'><host id='{}' speed='1Gf'/></zone>",
    "<zone id='z' routing='Cluster'><cabinet id='c' prefix='{}' suffix='' radical='0-9'"
    " speed='1Gf' bw='1GBps' lat='1us'/></zone>",
])  # fmt: skip
def test_the_length_of_names_is_bounded(element, tmp_path):
    text = HEAD + element.format("n" * 256) + "</platform>"
    with pytest.raises(PTaskModelError, match="has more than 255 characters; shorten it"):
        parse_platform(text.encode(), tmp_path / "p.xml")
    parse_platform((HEAD + element.format("n" * 255) + "</platform>").encode(), tmp_path / "p.xml")


def test_names_that_a_few_letters_stand_for_are_bounded():
    with pytest.raises(ValueError, match="names of more than 255 characters"):
        expand("n" * 10**6 + "[0-99999]")
    assert expand("n" * 254 + "[0-1]")[1] == "n" * 254 + "1"


@pytest.mark.parametrize("value", [float("inf"), float("nan"), {"a": [1.0, float("-inf")]}])
def test_what_json_cannot_hold_is_one_line(value, tmp_path):
    for write in (files.json_text, lambda it: files.write_json(tmp_path / "f", it)):
        with pytest.raises(PTaskModelError, match="a result is no finite number"):
            write(value)
    assert not (tmp_path / "f").exists()


def test_deviations_beyond_what_numbers_hold_are_refused(tmp_path, capsys):
    rows = "mean_runtime_s,interference_on_s,interference_off_s,stddev_s\n"
    rows += "600,0,0,1e-300\n1800,inf,0,1e-300\n660,10,50,1e-300\n"
    (tmp_path / "m.csv").write_text(rows)
    command = ["calibrate", str(tmp_path / "m.csv"), "-o", str(tmp_path / "o.json")]
    assert "give a larger stddev_s" in answer(command, capsys)
