"""What mkdocs does besides: the reference of commands and API, links to files of the repository."""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import click

import ptaskmodel

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
# What is documented besides the names of `ptaskmodel` itself.
_MORE = {
    "ptaskmodel.bridges.simpy_bridge": ("SimPy", ["SimPyBridge", "TaskNotCompletedError"]),
    "ptaskmodel.platform.build": ("Building platforms", ["PlatformBuild"]),
    "ptaskmodel.sharing": (
        "Sharing",
        [
            *("SharingProblem", "Allocation", "Certificate", "verify"),
            *("bmf", "fairbottleneck", "fairbottleneck_corrected", "maxmin"),
        ],
    ),
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
    for module, (title, names) in _MORE.items():
        yield f"## {title}\n\nIn `{module}`:\n"
        for name in names:
            yield from _entry(name, getattr(importlib.import_module(module), name), level=3)


def _entry(name: str, value: Any, level: int = 2) -> Iterator[str]:
    yield f"{'#' * level} {name}\n"
    yield _documented(name, value, _signature(value))
    if inspect.isclass(value) and not issubclass(value, Exception):
        for member, found in vars(value).items():
            if not member.startswith("_"):
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
