"""What mkdocs does besides: the reference of commands and API, links to files of the repository."""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
from collections.abc import Iterator
from typing import Any

import click

import ptaskmodel

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
# What is documented besides the names of `ptaskmodel` itself.
_MORE = {
    "ptaskmodel.engine.simpy_bridge": ["SimPyBridge", "TaskNotCompletedError"],
    "ptaskmodel.sharing": [
        *("SharingProblem", "Allocation", "Certificate", "verify"),
        *("bmf", "fairbottleneck", "fairbottleneck_corrected", "maxmin"),
    ],
}


def on_page_markdown(markdown: str, /, *, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", "\n".join(commands()))
    if "<!-- api -->" in markdown:
        markdown = markdown.replace("<!-- api -->", "\n".join(api()))
    return named_links(markdown, posixpath.join("docs", posixpath.dirname(page.file.src_uri)))


def named_links(markdown: str, folder: str) -> str:
    """Links to files outside of docs/, which the site does not have, become their paths."""

    def named(match: re.Match[str]) -> str:
        target = match[3]
        path = posixpath.normpath(posixpath.join(folder, target))
        if "://" in target or path.startswith("docs/"):
            return match[0]
        return match[2] if match[2].strip("`") == path else f"{match[2]} (`{path}`)"

    return _LINK.sub(named, markdown)


def commands() -> Iterator[str]:
    """The help of every command, as Markdown."""
    from ptaskmodel.cli import commands as root

    yield from _command(root, "ptaskmodel", None)


def _command(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(
        command, info_name=path.split()[-1], parent=parent, max_content_width=100
    )
    if parent is not None:
        yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _command(child, f"{path} {name}", context)


def api() -> Iterator[str]:
    """Signatures and docstrings of all public names, as Markdown."""
    for name in ptaskmodel.__all__:
        if not name.startswith("_"):
            yield from _entry(name, getattr(ptaskmodel, name))
    for module, names in _MORE.items():
        yield f"## {module}\n"
        for name in names:
            yield from _entry(name, getattr(importlib.import_module(module), name), level=3)


def _entry(name: str, value: Any, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    yield _documented(name, value)
    if inspect.isclass(value) and not issubclass(value, Exception):
        members = [
            (member, found)
            for member, found in vars(value).items()
            if not member.startswith("_") and (callable(found) or isinstance(found, property))
        ]
        for member, found in members:
            target = found.fget if isinstance(found, property) else found
            if inspect.getdoc(target):
                label = f"property {member}" if isinstance(found, property) else member
                yield _documented(label, None if isinstance(found, property) else found, target)


def _documented(name: str, signed: Any, documented: Any = None) -> str:
    try:
        signature = "" if signed is None else str(inspect.signature(signed))
    except (TypeError, ValueError):
        signature = ""
    signature = re.sub(r"<factory>|<object object at 0x\w+>", "...", signature)
    text = inspect.cleandoc((documented or signed).__doc__ or "")
    body = "\n".join(f"    {line}".rstrip() for line in text.splitlines())
    return f"```text\n{name}{signature}\n\n{body}\n```\n"
