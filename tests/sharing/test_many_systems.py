"""Some thousand systems of all shapes, as in benchmarks/sharing_stress.py, are certified."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from sharing.systems import many

from ptaskmodel.sharing import bmf, fairbottleneck_corrected, maxmin

STRESS = Path(__file__).resolve().parents[2] / "benchmarks" / "sharing_stress.py"


@pytest.mark.parametrize(
    ("solver", "count"), [(bmf, 3000), (maxmin, 1000), (fairbottleneck_corrected, 1000)]
)
def test_every_system_is_certified(solver, count):
    random_system = runpy.run_path(str(STRESS))["random_system"]
    random = np.random.default_rng(41)
    for _ in range(many(count)):
        name, problem = random_system(random)
        certificate = solver(problem).certificate
        assert certificate.ok, f"{name}: {certificate}"
