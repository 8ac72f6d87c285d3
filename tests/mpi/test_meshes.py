"""The meshes in which collectives lay their ranks."""

from __future__ import annotations

from ptaskmodel.mpi.collectives.alltoall import columns_of, edge_of


def test_the_edge_of_a_mesh_is_the_least_from_the_cube_root_on():
    for n in range(1, 1001):
        root = max(k for k in range(1, 11) if k**3 <= n)
        edges = (edge for edge in range(root, n // 3 + 1) if n % edge**2 == 0)
        assert edge_of(n) == next(edges, 0)
    assert edge_of(99**3) == 99


def test_the_rows_of_a_mesh_are_the_most_up_to_the_square_root():
    for n in range(4, 500):
        rows = max(k for k in range(1, n) if k * k <= n and n % k == 0)
        assert columns_of(n) == (n // rows if rows > 1 else 0)
