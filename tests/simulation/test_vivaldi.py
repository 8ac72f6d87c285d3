"""Bytes between hosts whose coordinates coincide: as SimGrid 3.32 lets them pass."""

from __future__ import annotations

import engine_runner
import pytest
import simgrid_driver

HEADER = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    '<platform version="4.1"><zone id="w" routing="Vivaldi">'
)
PEER = '<peer id="{}" speed="100f" bw_in="100Bps" bw_out="200Bps" coordinates="{} 2 0"/>'
HOST = '<host id="{}" speed="100f" coordinates="{} 2 0"/>'
PLATFORMS = {"peers": PEER, "hosts without links": HOST}

# (element, ends): the end of a parallel task that sends 100 B, by SimGrid 3.32 (L07).
RECORDED = {
    ("peers", "pq"): 1.0,
    ("peers", "pr"): 1.008,
    ("peers", "pp"): 1.0,
    ("hosts without links", "pq"): 0.0,
    ("hosts without links", "pp"): 0.0,
}


def scenario(kind, ends):
    points = "".join(PLATFORMS[kind].format(name, x) for name, x in zip("pqr", "119", strict=True))
    task = {"id": "t", "start": 0.0, "hosts": list(ends), "flows": [[0, 1, 100.0]]}
    text = f"{HEADER}{points}</zone></platform>"
    return {"seed": 0, "observer": "p", "platform_xml": text, "events": [], "tasks": [task]}


@pytest.mark.parametrize(("kind", "ends"), RECORDED)
def test_as_recorded(kind, ends):
    found = engine_runner.run(scenario(kind, ends))
    assert found["t"][1] == pytest.approx(RECORDED[kind, ends], abs=1e-12)


@pytest.mark.simgrid
@pytest.mark.skipif(not simgrid_driver.available(), reason="SimGrid is not installed")
@pytest.mark.parametrize(("kind", "ends"), RECORDED)
def test_as_an_installed_simgrid(kind, ends):
    expected = simgrid_driver.run(scenario(kind, ends))
    assert expected["t"][1] == pytest.approx(RECORDED[kind, ends], abs=1e-9)
