"""Interpreted kernels give the bits that compiled ones give.

Run as a program, this prints the dates of some scenarios, every digit of them.
"""

from __future__ import annotations

import os
import subprocess
import sys

import engine_runner
import pytest
import scenarios

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.kernels.decorators import INTERPRETED

SEEDS = range(20_000, 20_010)


def dates():
    """A line for each scenario and model; which fail must be the same, too."""
    for seed in SEEDS:
        for make, options in (
            (scenarios.random_scenario, {"solver": "bmf"}),
            (scenarios.random_scenario, {"solver": "fairbottleneck"}),
            (scenarios.random_flow_scenario, {"solver": None, "network_model": "LV08"}),
        ):
            try:
                found = engine_runner.run(make(seed), **options)
            except PTaskModelError as fault:
                found = str(fault)
            yield f"{seed} {options} {found}\n"


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_interpreted_kernels_give_the_same_bits():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "".join(dates())


if __name__ == "__main__":
    sys.stdout.writelines(dates())
