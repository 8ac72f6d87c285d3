"""How large a page of 74,566 jobs is, and how soon Chromium opens and zooms it.

    python benchmarks/pages.py [DIRECTORY]

DIRECTORY: results of any run; without it a batch of 74,566 jobs on 1,024 hosts is made first. The
times are medians of five: from the request of the page to its last line of script, and from a
click on zoom to the next frame after it is drawn. They need selenium, Chromium and its driver.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

from ptaskmodel.cli import main
from ptaskmodel.results.pages.report import write_report

JOBS, HOSTS, USERS, TIMES = 74_566, 1024, 190, 5
PLATFORM = f"""<?xml version="1.0"?>
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{HOSTS - 1}" speed="1Gf" bw="1.25GBps" lat="10us"
           topology="FAT_TREE" topo_parameters="2;32,32;1,8;1,1"/>
</platform>
"""
# Ready is what the page's last line says; then a frame is drawn.
OPENED = """const done = arguments[arguments.length - 1];
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));"""
ZOOMED = """const done = arguments[arguments.length - 1], begin = performance.now();
document.getElementById(arguments[0]).click();
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));"""


def made(place: Path) -> Path:
    """The results of a batch of JOBS, by a generator of its own: the same everywhere."""
    state, lines, submit = 7, [f"; MaxProcs: {HOSTS}"], 0

    def drawn(most: int) -> int:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2147483648
        return (state >> 16) % most

    for k in range(1, JOBS + 1):
        submit += drawn(180)
        size, run = 1 << drawn(7), 60 + drawn(3600) * (1 + drawn(4))
        user = 1 + drawn(USERS) * drawn(USERS) // USERS
        asked = f"{size} {2 * run} -1 1 {user} 1 1 1 1 -1 -1"
        lines.append(f"{k} {submit} 0 {run} {size} -1 -1 {asked}")
    (place / "p.xml").write_text(PLATFORM)
    (place / "w.swf").write_text("\n".join(lines) + "\n")
    out = place / "out"
    assert main(["batch", str(place / "p.xml"), str(place / "w.swf"), "-o", str(out), "-q"]) == 0
    return out


def measured(page: Path) -> None:
    """Print the size of a page, and the medians of how soon it opens and zooms."""
    options = webdriver.ChromeOptions()
    for name in ("headless=new", "no-sandbox", "disable-gpu", "disable-background-networking"):
        options.add_argument(f"--{name}")
    options.binary_location = "/usr/bin/chromium"
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    print(f"page {page.stat().st_size / 1e6:.2f} MB")
    with webdriver.Chrome(options=options, service=service) as browser:
        browser.set_window_size(1400, 1000)
        opened, zoomed = [], []
        for _ in range(TIMES):
            browser.get(page.as_uri())
            opened.append(browser.execute_async_script(OPENED))
            zoomed += [browser.execute_async_script(ZOOMED, "zoom-in") for _ in range(6)]
        for name, values in (("opens", opened), ("zooms", zoomed)):
            low, high = min(values), max(values)
            print(f"{name} in {statistics.median(values):.0f} ms ({low:.0f} to {high:.0f})")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        results = Path(sys.argv[1]) if len(sys.argv) > 1 else made(place)
        write_report(results, place / "page.html")
        measured(place / "page.html")
