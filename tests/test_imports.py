"""Who may import whom, as the architecture has it (imports inside functions count too)."""

from __future__ import annotations

import ast
import graphlib
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "ptaskmodel"

# The rooms from the ground up: each imports only from lower rows, and from those named beside it.
ROOMS: tuple[dict[str, set[str]], ...] = (
    {"kernels": set()},
    {"platform": set(), "workload": set(), "sharing": set()},
    {"core": set()},
    {
        "replay": set(),
        "simulation": {"replay"},
        "recording": {"simulation"},
        "energy": {"simulation", "recording"},
    },
    {"apps": set(), "batch": set()},
    {"bridges": set(), "calibration": set()},
    {"results": set()},
    {"campaign": set()},
    {"cli": set()},
)
ALLOWED: dict[str, set[str]] = {
    room: beside.union(*ROOMS[:row])
    for row, rooms in enumerate(ROOMS)
    for room, beside in rooms.items()
}

# Slow to import: only inside the functions that need them.
HEAVY = {
    "pandas",
    "networkx",
    "scipy",
    "matplotlib",
    "lmfit",
    "rich",
    "pyarrow",
    "plotly",
    "simpy",
    "distributed",
}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[tuple[str, bool]]:
    """Dotted names imported by a module, and whether at its top level (outside TYPE_CHECKING)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(alias.name, id(node) in top) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add((node.module or "", id(node) in top))
            if node.module == "ptaskmodel":
                names |= {(f"ptaskmodel.{alias.name}", id(node) in top) for alias in node.names}
    return names


def package_of(dotted: str) -> str | None:
    parts = dotted.split(".")
    return parts[1] if parts[0] == "ptaskmodel" and len(parts) > 1 else None


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_what_the_architecture_allows(path):
    folders = path.relative_to(PACKAGE).parts[:-1]
    if not folders:
        # The face and the entry point hand over to the packages; the others stand below all.
        allowed = set(ALLOWED) if path.name in ("__init__.py", "__main__.py") else {"kernels"}
    else:
        allowed = ALLOWED[folders[0]] | {folders[0]}
    used = {package_of(name) for name, _ in imported(path)} & set(ALLOWED)
    assert used <= allowed


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_are_not_imported_at_the_top(path):
    at_top = {name.split(".")[0] for name, top in imported(path) if top}
    assert not at_top & HEAVY


def test_every_package_is_named_in_the_architecture():
    packages = {p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert packages <= set(ALLOWED)


def test_the_page_on_design_shows_every_room():
    docs = PACKAGE.parent / "docs"
    page = (docs / "background" / "design.md").read_text(encoding="utf-8")
    house = (docs / "pictures" / "house.svg").read_text(encoding="utf-8")
    for room in ALLOWED:
        (row,) = re.findall(rf"^\| `{room}` \|.*\|(.*)\|$", page, re.MULTILINE)
        assert all((PACKAGE / room / name).exists() for name in re.findall(r"`(.+?)`", row))
        assert f">{room}</text>" in house


def needed(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of ours that a module names: in functions and annotations too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= modules if modules <= known.keys() else {node.module or "", *modules}
    return names & known.keys()


def graph_of_files() -> dict[str, set[str]]:
    known = {}
    for path in modules():
        parts = ("ptaskmodel", *path.relative_to(PACKAGE).with_suffix("").parts)
        known[".".join(parts).removesuffix(".__init__")] = path
    return {name: needed(path, known) for name, path in known.items()}


def test_no_files_import_each_other_in_a_circle():
    graphlib.TopologicalSorter(graph_of_files()).prepare()  # CycleError names the circle


def test_no_folders_import_each_other_in_a_circle():
    """Folders above or below each other aside; packages' own faces, too."""
    folders: dict[str, set[str]] = {}
    files = graph_of_files()
    packages = {name.rpartition(".")[0] for name in files}
    for name, others in files.items():
        here = name.rpartition(".")[0]
        used = {other.rpartition(".")[0] for other in others - packages}
        if name not in packages:
            folders.setdefault(here, set()).update(
                there
                for there in used
                if not f"{there}.".startswith(f"{here}.") and not f"{here}.".startswith(f"{there}.")
            )
    graphlib.TopologicalSorter(folders).prepare()
