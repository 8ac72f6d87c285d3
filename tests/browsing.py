"""What tests of pages do with a browser."""

from __future__ import annotations

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
