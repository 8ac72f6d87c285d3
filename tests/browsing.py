"""What tests of pages do with a browser."""

from __future__ import annotations

import re
import time


def opened(browser, page):
    browser.get(page.as_uri())
    ready(browser, lambda: browser.execute_script("return document.body.dataset.ready") == "yes")


def ready(browser, condition, seconds=100.0):
    """Wait until something holds, however busy the machine is."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, console(browser)
        time.sleep(0.05)


def console(browser):
    """What a page complained of."""
    return [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"]


WIDTHS = (390, 768, 1400)
SIDEWAYS = "return document.documentElement.scrollWidth - window.innerWidth"
PICTURES = (
    "return [...document.querySelectorAll('figure svg[role=img]')].map((one) => one.ariaLabel)"
)
CUT = """return [...document.querySelectorAll('.scroll')].filter((one) => one.clientWidth
  && one.scrollWidth > one.clientWidth + 1 && !one.dataset.cut).map((one) => one.ariaLabel)"""


def well_made(browser, page):
    """What holds for every page: it fits three widths, tells its pictures, and speaks plainly."""
    try:
        for width in WIDTHS:
            browser.set_window_size(width, 1000)
            opened(browser, page)
            assert browser.execute_script(SIDEWAYS) <= 0, width
            time.sleep(0.1)
            assert browser.execute_script(CUT) == [], width
            for said in browser.execute_script(PICTURES):
                assert len(re.findall(r"\d+", said or "")) >= 2, said
        text = browser.execute_script("return document.querySelector('main').innerText")
        assert not re.search("[A-Z]{4,}_[A-Z]", text)
        assert console(browser) == []
    finally:
        browser.set_window_size(1200, 1000)
    return text
