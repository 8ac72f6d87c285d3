"""PDGEMM's works: totals, balance, phases and placements against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptaskmodel.apps import Pdgemm, bytes_between, place
from ptaskmodel.errors import WorkloadError

HOSTS = [f"node-{k}" for k in range(16)]
FULL = Pdgemm(80_000, 256)


def stages(work):
    return getattr(work, "stages", (work,))


def test_totals_of_the_measured_run():
    work = FULL.bundle()
    assert FULL.message_bytes == 200e6
    assert FULL.total_bytes == 1536e9
    assert work.flow_bytes.sum() == pytest.approx(1536e9)
    assert work.flops == pytest.approx(np.full(256, 4e12))


def test_every_rank_receives_and_sends_as_many_blocks():
    work = FULL.bundle()
    blocks = 2 * 15 * 200e6
    assert np.bincount(work.flow_to, work.flow_bytes) == pytest.approx(np.full(256, blocks))
    assert np.bincount(work.flow_from, work.flow_bytes) == pytest.approx(np.full(256, blocks))


@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["flat", "binary", "binomial", "chain"]),
    st.data(),
)
def test_phases_keep_flops_and_the_matrix(grid, sub_blocks, blocking, tree, data):
    app = Pdgemm(100, grid * grid, sub_blocks, blocking, tree)
    phases = data.draw(st.integers(1, app.iterations))
    bundle = app.work()
    parts = stages(app.work(phases))
    assert sum(part.flops for part in parts) == pytest.approx(bundle.flops)
    total = np.zeros((app.processes, app.processes))
    for part in parts:
        total[part.flow_from, part.flow_to] += part.flow_bytes
    expected = np.zeros_like(total)
    expected[bundle.flow_from, bundle.flow_to] = bundle.flow_bytes
    assert total == pytest.approx(expected)


def test_blocking_alternates_and_non_blocking_overlaps():
    alternating = stages(Pdgemm(100, 16, 2, blocking=True).work(8))
    assert len(alternating) == 16
    assert all(not part.flops.any() for part in alternating[::2])
    assert all(not len(part.flow_bytes) for part in alternating[1::2])
    overlapped = stages(Pdgemm(100, 16, 2).work(8))
    assert len(overlapped) == 9
    assert not overlapped[0].flops.any()
    assert all(part.flops.any() and len(part.flow_bytes) for part in overlapped[1:-1])
    assert not len(overlapped[-1].flow_bytes)


def test_sub_blocks_change_sizes_but_not_totals():
    fine = Pdgemm(80_000, 256, sub_blocks=50)
    assert fine.iterations == 800
    assert fine.total_bytes == pytest.approx(FULL.total_bytes)
    assert fine.bundle().flow_bytes == pytest.approx(FULL.bundle().flow_bytes)


@pytest.mark.parametrize("seed", range(3))
def test_what_crosses_is_the_same_both_ways(seed):
    """Each rank plays each part of the tree once, so the bytes form a circulation."""
    hosts = place(HOSTS, 256, "random", seed)
    group = [HOSTS.index(host) // 8 for host in hosts]
    crossing = bytes_between(FULL.bundle(), group)
    assert crossing[0, 1] == pytest.approx(crossing[1, 0])
    assert crossing.sum() == pytest.approx(FULL.total_bytes)


def test_mean_undisturbed_time_over_placements_is_the_published_one():
    """308.9 s, standard deviation 5.2 s: bytes each way through 1.25 GB/s."""
    work = FULL.bundle()
    times = []
    for seed in range(100):
        hosts = place(HOSTS, 256, "random", seed)
        group = [HOSTS.index(host) // 8 for host in hosts]
        times.append(bytes_between(work, group)[0, 1] / 1.25e9)
    assert np.mean(times) == pytest.approx(308.9, abs=1.5)
    assert np.std(times) == pytest.approx(5.2, abs=0.6)


def test_placements():
    linear = place(HOSTS, 256)
    assert linear[:17] == ("node-0",) * 16 + ("node-1",)
    random = place(HOSTS, 256, "random", seed=4)
    assert sorted(random) == sorted(linear)
    assert random == place(HOSTS, 256, "random", seed=4) != place(HOSTS, 256, "random", seed=5)
    assert place(HOSTS, 2, ["node-3", "node-3"]) == ("node-3", "node-3")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Pdgemm(100, 15), "15 processes do not make a square grid; use e.g. 9"),
        (lambda: Pdgemm(0, 16), "must be at least 1"),
        (lambda: Pdgemm(100, 16).work(5), "5 phases for 4 iterations"),
        (lambda: Pdgemm(100, 16).panel(4), "panel 4 is not in 0 .. 3"),
        (lambda: Pdgemm(100, 16, tree="ring").work(), "unknown broadcast tree"),
        (lambda: place(HOSTS, 10), "do not spread evenly"),
        (lambda: place(HOSTS, 16, "random"), "give a seed"),
        (lambda: place(HOSTS, 16, "cyclic"), "unknown placement 'cyclic'"),
        (lambda: place(HOSTS, 2, ["node-0"]), "1 hosts named for 2 ranks"),
        (lambda: place(HOSTS, 1, ["node-x"]), "'node-x' is not one of the hosts"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(WorkloadError, match=message):
        call()
