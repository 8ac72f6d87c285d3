"""Writes what the code says into the pages of reference/: make reference."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import ptaskmodel
from ptaskmodel.cli.command import OTHERS, grouped
from ptaskmodel.lazy import RENAMED

OLD_NAMES = frozenset((each.where, each.old) for each in RENAMED)
PAGES = Path(__file__).resolve().parent / "reference"
# What is documented besides the names of `ptaskmodel` itself.
_MORE = {
    "ptaskmodel.connect.simpy": ("SimPy", ["SimPyBridge", "TaskNotCompletedError"]),
    "ptaskmodel.platform.build": ("Building platforms", ["PlatformBuild"]),
    "ptaskmodel.sharing": (
        "Sharing",
        [
            *("SharingProblem", "Allocation", "Certificate", "verify"),
            *("bmf", "fairbottleneck", "fairbottleneck_corrected", "maxmin"),
        ],
    ),
}

MARK = "<!-- Made by docs/reference_pages.py from here on: make reference -->\n"
TABLE = "<!-- Made by docs/reference_pages.py from {}: make reference -->\n"
END = "<!-- so far -->\n"
# What every command takes is said at the top of the page.
EVERYWHERE = frozenset({"verbose", "quiet", "log_level"})


def pages() -> dict[str, str]:
    """The text of each page, by its name: what stands there, and below the mark what is made."""
    found = {}
    for name, make in (("commands.md", commands), ("api.md", api)):
        text = (PAGES / name).read_text(encoding="utf-8").partition(MARK)[0]
        found[name] = f"{text}{MARK}\n" + "\n".join(make())
    text = (PAGES / "results.md").read_text(encoding="utf-8")
    mark = TABLE.format("tables.toml")
    head, _, rest = text.partition(mark)
    found["results.md"] = f"{head}{mark}\n{tasks_columns()}\n{END}{rest.partition(END)[2]}"
    guide = "../guides/slurm.md"
    text = (PAGES / guide).read_text(encoding="utf-8")
    mark = TABLE.format("slurm/jobs")
    head, _, rest = text.partition(mark)
    found[guide] = f"{head}{mark}\n{jobs_columns()}\n{END}{rest.partition(END)[2]}"
    return found


def jobs_columns() -> str:
    """The columns of the jobs.csv that ``ptaskmodel slurm`` reads, as Markdown."""
    from ptaskmodel.slurm.jobs.job_table import COLUMNS
    from ptaskmodel.slurm.jobs.sbatch import NAMES, REFUSED, SILENT

    rows = ["| column | meaning |", "|---|---|"]
    rows += [f"| `{name}` | {column.help} |" for name, column in COLUMNS.items()]
    silent = {name.removeprefix("--").replace("-", "_") for name in SILENT}
    others = [name for name in NAMES if name not in COLUMNS and name not in silent]
    text = "\n".join(rows) + f"\n\nAs sbatch's options of these names: {_listed(others)}.\n\n"
    text += (
        "Scripts, `extra` and events have the same options. What becomes of the others of "
        "`sbatch --help`:\n\n| option | treatment |\n|---|---|\n"
    )
    told = [
        (_listed(sorted(SILENT)), "changes no schedule; one remark names those that a file has"),
        *((f"`{name}`", f"refused: {why}") for name, why in REFUSED.items()),
    ]
    return text + "".join(f"| {names} | {what} |\n" for names, what in told)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def tasks_columns() -> str:
    """The columns of tasks.csv that are there after every run, as a Markdown table."""
    from ptaskmodel.results.schemas import schema_of

    schema = schema_of("tasks.csv")
    rows = ["| column | meaning |", "|---|---|"]
    for name in schema["required"]:
        rows.append(f"| `{name}` | {schema['properties'][name]['description']} |")
    return "\n".join(rows) + "\n"


def commands() -> Iterator[str]:
    """Every command with its options, as Markdown."""
    from ptaskmodel.cli import SECTIONS
    from ptaskmodel.cli import program as root

    context = click.Context(root, info_name="ptaskmodel")
    for section, entries in SECTIONS.items():
        yield f"## {section}\n"
        for name in entries:
            command = root.get_command(context, name)
            assert command is not None
            yield from _command(command, f"ptaskmodel {name}", 3)


def _command(command: click.Command, path: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} {path}\n"
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    names = " ".join(_argument(argument) for argument in arguments)
    if not isinstance(command, click.Group):
        yield f"`{path}{' [OPTIONS]'}{' ' + names if names else ''}`\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    shown = [p for p in command.params if not getattr(p, "hidden", False)]
    shown = [option for option in shown if option.name not in EVERYWHERE]
    for group, options in grouped(shown).items():
        heading = "option" if group == OTHERS else group
        rows = (f"| {heading} | |", "|---|---|", *(_row(option) for option in options))
        yield "\n".join(rows) + "\n"
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _command(child, f"{path} {name}", level)


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    if argument.metavar is None and isinstance(argument.type, click.Choice):
        name = "|".join(argument.type.choices)
    name += "..." if argument.nargs == -1 and not name.endswith("...") else ""
    return name if argument.required else f"[{name}]"


def _row(option: click.Option) -> str:
    """A line of the table of options."""
    value = ""
    if not option.is_flag and not option.count:
        value = " " + (option.metavar or _value(option.type))
    names = ", ".join(f"`{name}{value}`" for name in option.opts)
    text = option.help or ""
    given = option.default
    if option.required:
        text += "  [required]"
    elif option.show_default and isinstance(given, str | int | float | Path):
        text += f"  [default: {given}]"
    cells = (cell.replace("|", "\\|") for cell in (names, text.strip()))
    return f"| {' | '.join(cells)} |"


def _value(kind: click.ParamType) -> str:
    if isinstance(kind, click.Choice):
        return "|".join(kind.choices)
    return {"integer range": "N", "integer": "N", "float range": "X", "float": "X"}.get(
        kind.name, kind.name.upper()
    )


def api() -> Iterator[str]:
    """Signatures and docstrings of all public names, as Markdown."""
    for name in ptaskmodel.__all__:
        if not name.startswith("_"):
            yield from _entry(name, getattr(ptaskmodel, name))
    for module, (title, names) in _MORE.items():
        yield f"## {title}\n\nIn `{module}`:\n"
        for name in names:
            yield from _entry(name, getattr(importlib.import_module(module), name), level=3)


def _entry(name: str, value: Any, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    yield _documented(name, value, _signature(value))
    if inspect.isclass(value) and not issubclass(value, Exception):
        for member, found in vars(value).items():
            if not member.startswith("_") and (value.__qualname__, member) not in OLD_NAMES:
                yield from _member(member, found)


def _member(name: str, found: Any) -> Iterator[str]:
    if isinstance(found, property):
        yield _documented(f"property {name}", found, "")
    elif isinstance(found, classmethod):
        yield _documented(f"classmethod {name}", found, _signature(found.__func__))
    elif callable(found):
        yield _documented(name, found, _signature(found))


def _signature(value: Any) -> str:
    """As a reader wants it: without self, quotes, and results that are None."""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    text = re.sub(r"\((self|cls)(, )?", "(", text.replace("'", ""))
    return re.sub(r" -> None$", "", text).replace("**common: Unpack[Common]", "**common")


def _documented(name: str, value: Any, signature: str) -> str:
    if not value.__doc__:
        return ""
    head = textwrap.fill(name + signature, 95, subsequent_indent=" " * 8)
    body = textwrap.indent(inspect.cleandoc(value.__doc__), "    ")
    return f"```text\n{head}\n\n{body}\n```\n"


if __name__ == "__main__":
    for page, text in pages().items():
        (PAGES / page).write_text(text, encoding="utf-8")
