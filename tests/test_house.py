"""The rules of the house, each with a list in debts/ of who does not keep it yet.

The lists only shrink: who is on a list and keeps the rule is taken off. After a move of files,
`python tests/test_house.py` writes them anew; look at what it changed.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ptaskmodel"
DEBTS = Path(__file__).parent / "debts"
MOST_LINES = 500
MOST_FILES = 16
MOST_CHARACTERS = 100
# Begins the files of kernels, which numba types.
UNTYPED = "# mypy: allow-untyped-defs"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def texts() -> dict[str, str]:
    """The text of each file of the package, by its path."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in paths
    }


def long_files() -> set[str]:
    return {path for path, text in texts().items() if len(text.splitlines()) > MOST_LINES}


def crowded_folders() -> set[str]:
    paths = [Path(path) for path in texts()]
    counts = Counter(str(path.parent) for path in paths if path.name != "__init__.py")
    return {folder for folder, count in counts.items() if count > MOST_FILES}


def wide_lines() -> set[str]:
    """Lines that are too wide, by file and text, as their numbers change."""
    return {
        f"{path}: {line.strip()}"
        for path, text in texts().items()
        for line in text.splitlines()
        if len(line) > MOST_CHARACTERS
    }


def compilers() -> set[str]:
    """Files outside kernels/ that import numba or what is below it."""
    return {
        path
        for path, text in texts().items()
        if not path.startswith("kernels/") and imports_numba(ast.parse(text))
    }


def imports_numba(tree: ast.AST) -> bool:
    """Whether there is an import of numba or llvmlite in a tree, by name or by a call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = ast.unparse(node.func).rpartition(".")[2]
            names = [str(node.args[0].value)] if called in ("import_module", "__import__") else []
        else:
            continue
        if any(name.partition(".")[0] in ("numba", "llvmlite") for name in names):
            return True
    return False


def foreign_fields() -> set[str]:
    """Assignments in slurm/ to fields of objects whose class another module defines."""
    return {
        f"{path}: {field}"
        for path, text in texts().items()
        if path.startswith("slurm/")
        for field in foreign_in(ast.parse(text))
    }


def foreign_in(tree: ast.AST) -> set[str]:
    """The fields that a file assigns and that none of its own classes has.

    A field is known by its name alone: two classes may have one of the same name.
    """
    own = {
        name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for name in fields(node)
    }
    return {
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store | ast.Del)
        and not is_of_self(node)
        and node.attr not in own
    }


def fields(of: ast.ClassDef) -> Iterator[str]:
    """The fields that a class declares, or assigns to its own objects; a protocol has none."""
    if any(ast.unparse(base) == "Protocol" for base in of.bases):
        return
    for node in ast.walk(of):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield from [node.attr] if is_of_self(node) else []


def is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def unnamed_in_the_face() -> set[str]:
    """Parameters of the public face (see `ptaskmodel.NAMES`) that no docstring names."""
    return {f"{path} {name}: {parameter}" for path, name, parameter, public in found() if public}


def unnamed_elsewhere() -> set[str]:
    """How many parameters of other public functions that have a docstring it does not name."""
    counts = Counter(path for path, _, _, public in found() if not public)
    return {f"{path}: {count}" for path, count in counts.items()}


@functools.cache
def found() -> list[tuple[str, str, str, bool]]:
    """Files, functions, parameters that are not named, and whether they are of the public face."""
    return [
        (path, name, parameter, name.partition(".")[0] in face().get(path, ()))
        for path, text in texts().items()
        if not any(part.startswith("_") for part in path.split("/"))
        for name, parameter in unnamed_in(ast.parse(text), face().get(path, frozenset()))
        if not (text.startswith(UNTYPED) and parameter in letters(path.partition("/")[0]))
    ]


@functools.cache
def letters(room: str) -> frozenset[str]:
    """The short names that docs/background/kernels.md defines for the kernels of a room."""
    page = (ROOT / "docs" / "background" / "kernels.md").read_text(encoding="utf-8")
    about = page.partition("## Letters")[2].partition("\n## ")[0]
    shared, _, replays = about.partition("In kernels of `mpi/`")
    tables = [shared, replays] if room == "mpi" else [shared] if f"`{room}/`" in shared else []
    rows = re.findall(r"^\| (`[^|]*) \|", "\n".join(tables), re.M)
    return frozenset(re.findall(r"`(\w+)`", " ".join(rows)))


@functools.cache
def face() -> dict[str, frozenset[str]]:
    """The names of the public face, by the file in which they are."""
    import ptaskmodel

    return {
        home.partition(".")[2].replace(".", "/") + ".py": frozenset(names)
        for home, names in ptaskmodel.NAMES.items()
    }


def unnamed_in(tree: ast.Module, faces: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The functions of a file, each with a parameter that its docstring does not name.

    faces: the names of functions and classes that need a docstring. Those of a command are left
    out: its docstring is its help, and each option has one of its own. What a constructor is given
    may be named by the docstring of its class. A method that overrides one with a docstring, of a
    class of the file, inherits it, as `inspect.getdoc` has it.
    """
    inherited = documented(tree)
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("_") and not is_command(node):
            for name in unnamed(node, ast.get_docstring(node), node.name in faces):
                yield node.name, name
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            about = ast.get_docstring(node)
            for method in node.body:
                if not isinstance(method, Function):
                    continue
                said = ast.get_docstring(method)
                if method.name == "__init__":
                    said = None if about is None and said is None else f"{about} {said}"
                elif method.name.startswith("_"):
                    continue
                bases = {ast.unparse(base) for base in node.bases}
                needed = node.name in faces and bases.isdisjoint(inherited.get(method.name, ()))
                for name in unnamed(method, said, needed):
                    yield f"{node.name}.{method.name}", name


def is_command(node: Function) -> bool:
    """Whether a function is a command of the command line: `click.command()` or a group's."""
    calls = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr == "command" for each in calls)


def documented(tree: ast.Module) -> dict[str, set[str]]:
    """The classes of a file that have a docstring for a method, by its name."""
    found: dict[str, set[str]] = {}
    for node in tree.body:
        for method in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(method, Function) and ast.get_docstring(method) is not None:
                found.setdefault(method.name, set()).add(node.name)
    return found


def unnamed(node: Function, said: str | None, needed: bool) -> list[str]:
    """The parameters of a function that what is said of it does not name.

    needed: whether something must be said of it.
    """
    if said is None and not needed:
        return []
    given = node.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    parameters += [one for one in (given.vararg, given.kwarg) if one is not None]
    words = set(re.findall(r"\w+", said or ""))
    return [
        one.arg
        for one in parameters
        if one.arg not in ("self", "cls") and not one.arg.startswith("_") and one.arg not in words
    ]


RULES = {
    "long_files": long_files,
    "crowded_folders": crowded_folders,
    "wide_lines": wide_lines,
    "compilers": compilers,
    "foreign_fields": foreign_fields,
    "unnamed_in_the_face": unnamed_in_the_face,
    "unnamed_elsewhere": unnamed_elsewhere,
}


def listed(rule: str) -> list[str]:
    return (DEBTS / f"{rule}.txt").read_text(encoding="utf-8").splitlines()


def lines(entries: Iterable[str]) -> str:
    return "".join(f"{entry}\n" for entry in sorted(entries))


@pytest.mark.parametrize("rule", RULES)
def test_nobody_new_breaks_a_rule(rule):
    assert lines(RULES[rule]() - set(listed(rule))) == ""


@pytest.mark.parametrize("rule", RULES)
def test_who_keeps_a_rule_is_taken_off_its_list(rule):
    assert lines(set(listed(rule)) - RULES[rule]()) == ""
    assert listed(rule) == sorted(set(listed(rule)))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import numba", True),
        ("from numba.core import types", True),
        ("def f():\n    import llvmlite.binding", True),
        ("importlib.import_module('numba')", True),
        ("from ptaskmodel.kernels import numba_there", False),
        ("import numbers", False),
    ],
)
def test_what_an_import_of_numba_is(line, found):
    assert imports_numba(ast.parse(line)) is found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("other.theirs = 1", {"other.theirs"}),
        ("other.theirs += 1", {"other.theirs"}),
        ("del other.theirs", {"other.theirs"}),
        ("a, other.part.theirs = 1, 2", {"other.part.theirs"}),
        ("self.mine = other.theirs", set()),
        ("self.mine = 0; other.mine = 1", set()),
        ("other.declared = 1", set()),
        ("other.theirs[0] = 1", set()),
    ],
)
def test_what_a_foreign_field_is(body, found):
    text = f"class C:\n    declared: int\n    def f(self, other):\n        {body}"
    assert foreign_in(ast.parse(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('def f(a, *b, c=1, **d):\n    """Of a and d."""', ["f c", "f b"]),
        ("def f(a): ...", []),
        ("def asked(a): ...", ["asked a"]),
        ('@click.command()\ndef f(a):\n    """None."""', []),
        ('@group.command()\n@option("-a")\ndef f(a):\n    """None."""', []),
        ('@option("-a")\ndef f(a):\n    """None."""', ["f a"]),
        ('def _f(a):\n    """None."""', []),
        ('class C:\n    """Of a."""\n    def __init__(self, a, b): ...', ["C.__init__ b"]),
        ('class C:\n    def m(self, a):\n        """None."""', ["C.m a"]),
        ("class C:\n    def __init__(self, a): ...", []),
        ("class asked:\n    def m(self, a): ...", ["asked.m a"]),
        (
            'class C:\n    def m(self, a):\n        """Of a."""\n'
            "class asked(C):\n    def m(self, a): ...",
            [],
        ),
    ],
)
def test_what_an_unnamed_parameter_is(text, found):
    unnamed = unnamed_in(ast.parse(text), frozenset({"asked"}))
    assert [" ".join(one) for one in unnamed] == found


def given(node: ast.stmt) -> list[str]:
    """The names that a statement of a module gives; none for one of several signatures."""
    if isinstance(node, Function | ast.ClassDef):
        is_signature = any(ast.unparse(each) == "overload" for each in node.decorator_list)
        return [] if is_signature else [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_a_file_gives_each_name_once():
    """Where two files become one, the later of two of a name would serve both."""
    twice = []
    for path, text in texts().items():
        names = Counter(name for node in ast.parse(text).body for name in given(node))
        twice += [f"{path}: {name}" for name, times in names.items() if times > 1]
    assert twice == []


if __name__ == "__main__":
    for rule, broken in RULES.items():
        (DEBTS / f"{rule}.txt").write_text(lines(broken()), encoding="utf-8")
