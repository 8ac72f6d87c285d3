"""The files that `ptaskmodel demo` and `ptaskmodel init` begin with, as data of the package."""

from __future__ import annotations

from importlib import resources

DEMO, PROJECT = "demo", "project"


def starting_files(kind: str) -> dict[str, str]:
    """Names and texts of the files of DEMO or PROJECT, sorted by name."""
    places = resources.files(__name__).joinpath(kind).iterdir()
    return {
        place.name: place.read_text(encoding="utf-8")
        for place in sorted(places, key=lambda place: place.name)
        if place.is_file()
    }
