"""Call the kernels of packets with all kinds of arguments, so that they can be compiled ahead."""

from __future__ import annotations

from ptaskmodel.packets.loop import run
from ptaskmodel.packets.network import PacketNetwork, Protocol


def prepare_kernels() -> None:
    """All of them."""
    network = PacketNetwork(Protocol(1448.0, 54.0, 54.0, by_windows=True), [1e9], 1e-6)
    run.prepare(network.state, 1.0, 1)
