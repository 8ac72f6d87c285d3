"""Numbers and units on pages, on the cases that Python's are tested on, too."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

CASES = Path(__file__).parents[1] / "numbers.json"
SCRIPT = "results/pages/templates/numbers.js"
# What takes several arguments.
SEVERAL = ("count", "column", "date", "ticks")


def test_numbers_of_pages(browser):
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    script = files("ptaskmodel").joinpath(SCRIPT).read_text(encoding="utf-8")
    apply = (
        "arguments[0].map(([name, many, given]) =>"
        " many ? numbers[name](...given) : numbers[name](given))"
    )
    asked = [[name, name in SEVERAL, given] for name, its in cases.items() for given, _ in its]
    browser.get("about:blank")
    found = browser.execute_script(f"{script}; return {apply}", asked)
    wanted = [text for its in cases.values() for _, text in its]
    for (name, _, given), text, right in zip(asked, found, wanted, strict=True):
        assert (text[:2] if name == "ticks" else text) == right, (name, given)
