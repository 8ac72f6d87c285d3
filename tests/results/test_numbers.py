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


def test_a_narrow_axis_of_dates_has_the_day_once(browser):
    script = files("ptaskmodel").joinpath(SCRIPT).read_text(encoding="utf-8")
    browser.get("about:blank")
    asked = "return numbers.dates(0, 130000, arguments[0], 130000, 1709512152)"
    narrow, wide = (
        [said for _, said in browser.execute_script(f"{script}; {asked}", room)]
        for room in (275, 1000)
    )
    assert narrow == ["Mon 4 Mar 12:00", "Tue 5 Mar", "12:00"]
    assert wide[:2] == ["Mon 4 Mar 06:00", "Mon 4 Mar 12:00"]
