"""Traces and platforms of Batsim and SimGrid: ranks end when a live SimGrid says."""

from __future__ import annotations

import warnings

import pytest
from smpi import ends_by_smpirun, is_installed, write_case

from ptaskmodel.mpi import hosts_of_ranks, read_trace, replay
from ptaskmodel.platform import PlatformWarning, load_platform

PLATFORMS = (
    *("batsim_cluster512", "batsim_cluster_locality_8x16", "cluster_backbone", "cluster_fat_tree"),
    *("cluster_torus", "cluster_dragonfly", "bypassZoneRoute", "crosstraffic", "small_platform"),
    *("multicore_machine", "three_multicore_hosts", "two_peers"),
)


@pytest.mark.jit
@pytest.mark.skipif(not is_installed(), reason="smpirun is not installed")
@pytest.mark.parametrize("name", ["collectives", "compute_only", "mixed_comm_comp"])
def test_ranks_of_given_traces_end_when_a_live_simgrid_says(shared_data, tmp_path, name):
    traces = shared_data / "workloads" / "smpi" / name
    # SimGrid loses a last line that has no end.
    texts = [(traces / f"actions{rank}.txt").read_text().rstrip() + "\n" for rank in range(2)]
    for platform in PLATFORMS:
        file = shared_data / "platforms" / f"{platform}.xml"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlatformWarning)
            made = load_platform(file)
        hosts = hosts_of_ranks(made, 2)
        result = replay(made, read_trace(traces / "traces.txt"), hosts)
        write_case(tmp_path / platform, hosts, texts)
        live = ends_by_smpirun(tmp_path / platform, file, hosts)
        assert result.end_s.tolist() == pytest.approx(live, rel=1e-9, abs=1e-12), platform
