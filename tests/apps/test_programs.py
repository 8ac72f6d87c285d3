"""Traces made without MPI are those of the same programs under SMPI, and say what they should."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from smpi import WHOLE, is_installed

from ptaskmodel.apps.names import PROGRAMS
from ptaskmodel.apps.programs import Size, grid, program
from ptaskmodel.errors import WorkloadError
from ptaskmodel.mpi import read_trace, replay, trace_of_actions, write_text_trace
from ptaskmodel.mpi.traffic import bundle
from ptaskmodel.platform import Platform
from ptaskmodel.workload.actions import ACTIONS

SOURCE = Path(__file__).parent / "programs.c"
RANKS = 9


def platform():
    build = Platform.build("p")
    build.cluster(
        "c", RANKS, prefix="n", speed=1e9, bandwidth=125e6, latency=50e-6, backbone=1.25e9,
        backbone_latency=10e-6,
    )  # fmt: skip
    return build.finish()


def actions(trace):
    """What each rank does, as names and fields, without what is not simulated."""
    found = []
    for rank in range(trace.ranks):
        own = []
        for k in range(trace.first[rank], trace.first[rank + 1]):
            fields = trace.values[trace.start[k] : trace.start[k + 1]].tolist()
            own.append((ACTIONS[trace.actions[k]], *fields))
        found.append(own)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_what_they_are_asked_for(name):
    small, large = (program(name, Size(RANKS, 4, 1e9, size)) for size in (10, 1000))
    assert small.counts() == large.counts()
    work, same = bundle(small), bundle(large)
    computing = RANKS - (name == "master-worker")
    assert (work.flops == 4e9).sum() == computing
    assert work.flops.sum() == computing * 4e9
    checks = work.flow_bytes.sum() if name != "all-to-all" else 4 * (RANKS * (RANKS - 1)) * 10
    assert same.flow_bytes.sum() == pytest.approx(100 * checks, rel=0.01)
    replay(platform(), small)  # it comes to its end


@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, (1, 1)), (12, (3, 4)), (16, (4, 4)), (7, (1, 7))]
)
def test_grids_are_nearly_square(ranks, expected):
    assert grid(ranks) == expected


def test_imbalance_is_drawn_by_the_seed():
    first, same, other = (
        bundle(program("stencil", Size(4, 50, 1e9, 8, imbalance=0.5, seed=seed))).flops
        for seed in (1, 1, 2)
    )
    assert (first == same).all()
    assert (first != other).any()
    assert first.mean() == pytest.approx(50e9, rel=0.1)


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("bucket-sort", {"ranks": 2}, "unknown program 'bucket-sort'; use one of all-to-all,"),
        ("pdgemm", {"ranks": 5}, "5 ranks do not make a square grid; use e.g. 4"),
        ("master-worker", {"ranks": 1}, "needs at least 2 ranks"),
        ("stencil", {"ranks": 0}, "ranks 0; give at least 1"),
        ("stencil", {"ranks": 4, "bytes": -1}, "give finite numbers"),
        ("stencil", {"ranks": 4, "imbalance": 1.5}, "imbalance 1.5; give a number from 0 to 1"),
        ("stencil", {"ranks": 10**6, "iterations": 10**3}, "more than 50,000,000 actions"),
    ],
)
def test_sizes_are_checked(name, size, message):
    with pytest.raises(WorkloadError, match=message):
        program(name, Size(**size))


def test_a_trace_written_as_text_comes_back(tmp_path):
    made = trace_of_actions(
        [
            [("init", 0), ("compute", 1.5), ("isend", 1, 3, 2**40), ("waitall",), ("finalize",)],
            [("init", 0), ("irecv", 0, 3, -1), ("waitall",), ("compute", 1e300), ("finalize",)],
        ]
    )
    for name in ("t.txt", "t.txt.gz"):
        write_text_trace(made, tmp_path / name)
        back = read_trace(tmp_path / name)
        assert actions(back) == actions(made)
        assert back.type_bytes == 8.0
    assert (tmp_path / "t.txt").read_text().splitlines()[2] == "0 isend 1 3 1099511627776"


def test_actions_are_checked():
    with pytest.raises(WorkloadError, match="trace: 'jump' is not an action; use one of init"):
        trace_of_actions([[("jump",)]])
    with pytest.raises(WorkloadError, match="trace:2: send: field 1 is 7; give a rank, 0 to 0"):
        trace_of_actions([[("init",), ("send", 7, 0, 1)]])


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if not (is_installed() and shutil.which("smpicc")):
        pytest.skip("smpirun is not installed")
    place = tmp_path_factory.mktemp("programs")
    command = ["smpicc", "-O1", str(SOURCE), "-o", str(place / "programs"), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    (place / "p.xml").write_text(platform().to_xml())
    (place / "hosts").write_text("".join(f"n{k}\n" for k in range(RANKS)))
    return place


@pytest.mark.jit
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", [1000, 100_000])
def test_they_are_the_programs_that_smpi_runs(compiled, name, size):
    done = subprocess.run(
        [
            *("smpirun", "-np", str(RANKS), "-hostfile", "hosts", "-platform", "p.xml", WHOLE),
            *("--cfg=smpi/simulate-computation:no", "--log=root.thres:critical"),
            *("-trace-ti", "-trace-file", f"{name}.trace"),
            *("./programs", name, "3", "1e7", str(size)),
        ],
        cwd=compiled,
        capture_output=True,
        text=True,
        check=True,
    )
    ends = {int(rank): float(end) for rank, end in map(str.split, done.stdout.splitlines())}
    ours = program(name, Size(RANKS, 3, 1e7, size))
    theirs = read_trace(compiled / f"{name}.trace")
    assert [
        [(what, *rest[: len(own[1:])]) for (what, *rest), own in zip(*both, strict=True)]
        for both in zip(actions(theirs), actions(ours), strict=True)
    ] == actions(ours)
    hosts = [f"n{k}" for k in range(RANKS)]
    replayed = replay(platform(), ours, hosts).end_s
    assert replayed.tolist() == pytest.approx([ends[k] for k in range(RANKS)], rel=1e-6)
