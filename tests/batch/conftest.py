"""What several tests of batches need."""

from __future__ import annotations

import pytest

from ptaskmodel.platform import Platform


@pytest.fixture(scope="module")
def cluster():
    """Four hosts of 100 flop/s with links of 10 B/s, and a backbone of 12 B/s."""
    build = Platform.build("world")
    build.cluster("c", 4, prefix="n", speed=100.0, bandwidth=10.0, latency=0.0, backbone=12.0)
    return build.finish()
