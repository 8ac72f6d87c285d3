"""What pages are like for everybody: widths, colours, units, words, print, odd inputs."""

from __future__ import annotations

import json
import re

import pytest
from browsing import console, opened, ready

from ptaskmodel.cli import main

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="1GBps" lat="1us"
           topology="FAT_TREE" topo_parameters="2;4,2;1,1;1,1"/>
</platform>
"""
SWF = "; MaxProcs: 8\n" + "".join(
    f"{k} {40 * k} 0 {100 + 37 * k % 200} {1 + k % 8} -1 -1 {1 + k % 8} {150 + 40 * k % 220} -1 1 "
    f"{k % 7 + 1} 1 1 1 1 -1 -1\n"
    for k in range(1, 81)
)
NAMES = ["/scratch/" + "a_very_long_name/" * 7, "測試 α-β", '<b>bold</b> & "quoted"', "x"]
TASKS = [
    {"id": name, "start": k, "hosts": [f"n{i}" for i in range(k, k + 4)], "cpu": 5e9,
     "flows": [[0, 3, 4e9]]}
    for k, name in enumerate(NAMES)
]  # fmt: skip
# Formats' words, such as COMPLETED_WALLTIME_REACHED; links have names of their own.
WORDS = re.compile(r"\b(?!link_)[A-Z]{4,}_[A-Z]")
UNITS = re.compile(r"\d (ns|µs|ms|s|min|h|d|kB|MB|GB|TB|kWh|MWh|%)$")
WIDTHS = (390, 768, 1400)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of a batch, one that was stopped, four tasks with odd names, and one task."""
    place = tmp_path_factory.mktemp("everybody")
    (place / "p.xml").write_text(PLATFORM)
    (place / "w.swf").write_text(SWF)
    (place / "four.json").write_text(json.dumps({"tasks": TASKS}))
    (place / "one.json").write_text(json.dumps({"tasks": TASKS[3:]}))
    platform, workload = str(place / "p.xml"), str(place / "w.swf")
    whole = ["--profiles", "ptask", "--attribution", "--neighbours"]
    runs = {
        "batch": ["batch", platform, workload, *whole],
        "stopped": ["batch", platform, workload, "--until", "1500"],
        "four": ["simulate", platform, str(place / "four.json"), "--attribution", "--neighbours"],
        "one": ["simulate", platform, str(place / "one.json"), "--attribution"],
    }
    for name, run in runs.items():
        assert main([*run, "-o", str(place / name), "-q"]) == 0
        assert main(["report", str(place / name), "-o", str(place / f"{name}.html")]) == 0
    return place


NAMED = ("batch", "stopped", "four", "one")


def sized(browser, width, dark=False):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


@pytest.fixture
def window(browser):
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("name", NAMED)
def test_nothing_is_wider_than_the_window_but_what_scrolls_and_shows_that_it_is_cut(
    pages, name, window
):
    script = (
        "const wide = [...document.querySelectorAll('main *')].filter((node) =>"
        " !node.closest('.scroll, svg, pre, [hidden]') && node.getBoundingClientRect().right >"
        " innerWidth + 1).map((node) => node.outerHTML.slice(0, 80));"
        "const cut = [...document.querySelectorAll('.scroll')].filter((node) => node.scrollWidth >"
        " node.clientWidth + 1 && !node.dataset.cut).map((node) => node.ariaLabel);"
        "return [document.documentElement.scrollWidth - innerWidth, wide, cut]"
    )
    for width in WIDTHS:
        sized(window, width)
        opened(window, pages / f"{name}.html")
        over, wide, cut = window.execute_script(script)
        assert (over <= 0, wide, cut) == (True, [], []), width
    assert console(window) == []


@pytest.mark.parametrize("name", NAMED)
def test_a_page_has_no_word_of_a_format_and_one_unit_a_column(pages, name, window):
    sized(window, 1400)
    opened(window, pages / f"{name}.html")
    text = window.execute_script("return document.body.innerText.replace(/link_\\w+/g, '')")
    assert WORDS.findall(text) == []
    script = (
        "return [...document.querySelectorAll('table')].flatMap((table) =>"
        " [...table.querySelectorAll('td.number')].map((cell) => cell.textContent))"
    )
    assert [cell for cell in window.execute_script(script) if UNITS.search(cell)] == []


@pytest.mark.parametrize("name", NAMED)
def test_each_picture_has_a_sentence_with_numbers_and_each_table_a_caption(pages, name, window):
    sized(window, 1400)
    opened(window, pages / f"{name}.html")
    script = (
        "return [...document.querySelectorAll('canvas, figure svg')].filter((node) =>"
        " !node.closest('[hidden]')).map((node) => node.getAttribute('aria-label') || node.id)"
    )
    for said in window.execute_script(script):
        assert len(re.findall(r"\d[\d.\u202f]*", said)) >= 2, said
    script = (
        "return [...document.querySelectorAll('table')].filter((table) =>"
        " !table.caption || [...table.tHead.querySelectorAll('th')].some((th) => !th.scope))"
        ".map((table) => table.outerHTML.slice(0, 200))"
    )
    assert window.execute_script(script) == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_read_on_its_ground_and_colours_are_those_of_roles(pages, dark, window):
    sized(window, 1400, dark)
    opened(window, pages / "batch.html")
    script = """
    const parts = (text) => text.match(/[\\d.]+/g).map(Number);
    const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, w, k) =>
      sum + w * linear(rgb[k] / 255), 0);
    const ground = (node) => { for (let at = node; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found; } return [255, 255, 255]; };
    const bad = new Set();
    for (const node of document.querySelectorAll('main *')) {
      if (![...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim())) continue;
      if (node.closest('[hidden], title')) continue;
      const ink = parts(getComputedStyle(node)[node.closest('svg') ? 'fill' : 'color']);
      const [a, b] = [light(ink), light(ground(node))].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) bad.add(node.outerHTML.slice(0, 120));
    }
    const roles = [...document.querySelectorAll('figure svg *')].flatMap((node) =>
      ['fill', 'stroke'].map((name) => node.getAttribute(name))).filter((value) => value
      && value !== 'none' && value !== 'transparent' && !value.startsWith('var(--'));
    return [[...bad], roles]
    """
    assert window.execute_script(script) == [[], []]
    paper = window.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")


def test_a_page_says_every_warning_of_its_run_under_the_answer(pages, window):
    sized(window, 1400)
    for name in NAMED:
        remarks = json.loads((pages / name / "summary.json").read_text())["remarks"]
        opened(window, pages / f"{name}.html")
        box = window.find_element("id", "warnings-part")
        for remark in remarks:
            if remark["level"] == "warning" or remark["effect"]:
                assert remark["text"] in box.text
        if not remarks:
            assert not box.is_displayed()


def test_print_has_no_controls_is_light_and_shows_fifty_rows_of_each_table(pages, window):
    sized(window, 1000, dark=True)
    opened(window, pages / "batch.html")
    window.execute_script("document.querySelector('#tasks .bar button').click()")
    window.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = (
        "return [...document.querySelectorAll(arguments[0])].filter((x) => x.offsetHeight).length"
    )
    assert window.execute_script(shown, "#tasks tbody tr") == 50
    assert window.execute_script(shown, ".bar button, .bar input, .controls, thead button") == 0
    head = (
        "const th = document.querySelector('#tasks thead th');"
        "return [getComputedStyle(th, '::before').content, th.textContent]"
    )
    said, text = window.execute_script(head)
    assert said == f'"{text}"'
    paper = window.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"


def test_a_click_on_who_slowed_whom_is_seen_everywhere(pages, window):
    sized(window, 1400)
    opened(window, pages / "batch.html")
    window.execute_script("document.querySelector('.matrix tbody button').click()")
    said = window.find_element("id", "filter").text
    assert said.startswith("Shown: ")
    number = re.search(r"\d+", said)[0]
    assert window.find_element("id", "tasks-count").text.startswith(f"{number} of 80, ")
    window.execute_script("document.querySelector('#filter button').click()")
    assert window.find_element("id", "tasks-count").text.startswith("80 in all")


def test_a_job_that_is_picked_is_held_on_the_platform(pages, window):
    sized(window, 1400)
    opened(window, pages / "batch.html")
    script = "return document.getElementById('topology').toDataURL()"
    before = window.execute_script(script)
    # Each eighth job is on one of the eight hosts: the others fade.
    window.execute_script(
        "[...document.querySelectorAll('#tasks tbody button')]"
        ".find((button) => button.textContent % 8 === 0).click()"
    )
    ready(window, lambda: window.execute_script(script) != before)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("batch", r"\d+ of 80 jobs end; \d+ killed at walltime"),
        ("stopped", r"\d+ of 80 jobs end; .*jobs were still to come"),
        ("four", r"cost each other [\d.]+ s on (link|host) "),
        ("one", r"^1 task takes [\d.]+ s in all, as long as alone\."),
    ],
)
def test_a_page_begins_with_its_answer(pages, name, said):
    page = (pages / f"{name}.html").read_text()
    answers = re.findall(r'<p class="answer">([^<]*)', page)
    assert re.search(said, " ".join(answers))
    data = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1])
    assert 1 <= len(data["cards"]) <= 4
