"""Who may import whom, as the architecture has it (imports inside functions count too)."""

from __future__ import annotations

import ast
import graphlib
import re
import runpy
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "ptaskmodel"

# The rooms from the ground up: each imports only from those before it.
ROOMS = (
    *("style", "kernels", "platform", "workload", "sharing", "engine", "mpi", "simulation"),
    *("packets", "recording", "energy", "apps", "calibration", "batch", "slurm", "connect"),
    *("results", "runs", "campaign", "cli"),
)
# The folders of a room, in the same sense.
FOLDERS = {
    "platform": ("topologies", "reader"),
    "workload": ("formats",),
    "sharing": ("bottleneck_max_fairness", "levels", "fair_bottleneck"),
    "engine": ("usage",),
    "mpi": ("collectives",),
    "batch": ("machine", "allocations", "jobs", "loop", "policies", "compiled"),
    "slurm": (*("conf", "jobs", "accounts", "select", "controller", "scheduling", "live"),),
    "results": ("schemas", "tables", "traces", "pictures", "pages"),
    "cli": ("commands",),
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


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_from_rooms_and_folders_before_its_own(path):
    room, *folders = (*path.relative_to(PACKAGE).parts[:-1], "")[:3]
    if not room and path.name in ("__init__.py", "__main__.py"):
        return  # the face and the entry point hand over to the rooms
    rooms = ROOMS[: ROOMS.index(room) + 1] if room else ("kernels",)
    order = FOLDERS.get(room, ())
    for name, _ in imported(path):
        parts = name.split(".")
        if parts[0] != "ptaskmodel" or len(parts) == 1:
            continue
        assert parts[1] in rooms or parts[1] not in ROOMS, name
        if parts[1] == room and folders[0] in order and parts[2:] and parts[2] in order:
            assert order.index(parts[2]) <= order.index(folders[0]), name


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_are_not_imported_at_the_top(path):
    at_top = {name.split(".")[0] for name, top in imported(path) if top}
    assert not at_top & HEAVY


def test_every_room_and_folder_has_its_place_in_the_order():
    def packages(folder: Path) -> set[str]:
        return {head.parent.name for head in folder.glob("*/__init__.py")}

    assert packages(PACKAGE) == set(ROOMS)
    assert {room: packages(PACKAGE / room) for room in ROOMS} == {
        room: set(FOLDERS.get(room, ())) for room in ROOMS
    }


def test_the_page_on_design_shows_every_room():
    docs = PACKAGE.parent / "docs"
    page = (docs / "background" / "design.md").read_text(encoding="utf-8")
    house = (docs / "pictures" / "house.svg").read_text(encoding="utf-8")
    for room in ROOMS:
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


def test_the_files_that_the_page_on_design_draws_go_on_with_what_it_says():
    docs = PACKAGE.parent / "docs"
    drawing = runpy.run_path(str(docs / "pictures" / "draw_house.py"))
    tables = drawing["tables_of_files"]()
    assert tables.keys() == drawing["TITLES"].keys()
    graph = graph_of_files()

    def module_of(file):
        assert (PACKAGE / file).exists()
        return f"ptaskmodel.{file.removesuffix('.py').replace('/', '.')}"

    for name, rows in tables.items():
        picture = (docs / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
        for row in rows:
            assert f">{row.file}</text>" in picture
            reached = [module_of(row.file)]
            for module in reached:
                reached += graph[module] - {*reached}
            assert {module_of(file) for file in row.then} <= {*reached}


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
