"""Packets in queues against closed forms and a naive simulator; what is conserved and recorded."""

from __future__ import annotations

import numpy as np
import pytest
from naive_packets import Flow, Link, Naive

from ptaskmodel.packets.network import PacketNetwork, Protocol
from ptaskmodel.packets.state import DONE, ENDED, OVERFULL, PAUSED, REACHED

GBPS = 1.25e8
DCTCP = Protocol(1448.0, 54.0, 54.0, by_windows=True, opens=True)
ROCE = Protocol(
    4096.0, 64.0, 64.0, by_windows=False, pause_B=6 * 4160.0, resume_B=4 * 4160.0,
    until_acknowledged=True,
)  # fmt: skip


def line(protocol, bandwidths, latency_s, sizes, **options):
    """Links in a row, each with one back, and a flow over all of them for each size."""
    n = len(bandwidths)
    network = PacketNetwork(protocol, np.repeat(bandwidths, 2), latency_s, **options)
    there, back = list(range(0, 2 * n, 2)), list(range(2 * n - 1, 0, -2))
    network.add(np.zeros(len(sizes)), sizes, [there] * len(sizes), [back] * len(sizes))
    return network


def star(protocol, hosts, flows, rng=None, mark_B=np.inf, latency_s=1e-6, **options):
    """Hosts round one switch, and flows (start, size, source, target) between them."""
    bandwidth = np.full(2 * hosts, 10 * GBPS)
    if rng is not None:
        bandwidth = rng.choice([10 * GBPS, 25 * GBPS, 40 * GBPS], 2 * hosts)
    network = PacketNetwork(protocol, bandwidth, latency_s, mark_B, **options)
    start, size, source, target = (list(column) for column in zip(*flows, strict=True))
    there = [(2 * a, 2 * b + 1) for a, b in zip(source, target, strict=True)]
    back = [(2 * b, 2 * a + 1) for a, b in zip(source, target, strict=True)]
    network.add(start, size, there, back)
    return network, bandwidth, there, back


def random_flows(rng, hosts, n, largest):
    pairs = [rng.choice(hosts, 2, replace=False).tolist() for _ in range(n)]
    dates = rng.integers(0, 20, n) * 1e-6
    return [
        (date, float(rng.integers(1, largest)), *pair)
        for date, pair in zip(dates.tolist(), pairs, strict=True)
    ]


@pytest.mark.parametrize("packets", [1, 10, 100])
def test_a_roce_flow_alone_is_as_by_hand(packets):
    network = line(ROCE, [100 * GBPS] * 4, 1e-6, [packets * 4096.0])
    assert network.run() == DONE
    by_hand = (packets + 3) * 4160 / 12.5e9 + 8e-6 + 4 * 64 / 12.5e9
    assert network.end_s[0] == pytest.approx(by_hand, rel=1e-12)


def test_a_dctcp_flow_alone_is_as_by_hand():
    """Handshake, ten packets, twenty, then the line is full: nothing is marked."""
    size, rate, latency = 300 * 1448.0, 10 * GBPS, 15e-6
    network = line(DCTCP, [rate] * 3, latency / 3, [size])
    assert network.run() == DONE
    x = 3 / rate
    rtt = 2 * latency + x * (1502 + 54)
    handshake = 2 * latency + 2 * x * 54
    by_hand = handshake + 2 * rtt + (300 - 30) * 1502 / rate + latency + 2 * 1502 / rate
    assert network.end_s[0] == pytest.approx(by_hand, rel=1e-9)


def test_without_a_handshake_the_first_window_leaves_at_once():
    ends = []
    for opens in (False, True):
        protocol = Protocol(1448.0, 54.0, 54.0, by_windows=True, opens=opens)
        network = line(protocol, [10 * GBPS] * 2, 5e-6, [1e4])
        network.run()
        ends.append(network.end_s[0])
    assert ends[1] - ends[0] == pytest.approx(2 * 10e-6 + 4 * 54 / (10 * GBPS), rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("protocol", [DCTCP, ROCE], ids=["windows", "pauses"])
def test_random_flows_end_as_in_the_naive_simulator(protocol, seed):
    rng = np.random.default_rng(seed)
    mark_B = 20 * 1502.0 if protocol.by_windows else np.inf
    flows = random_flows(rng, 5, 25, 2e5)
    network, bandwidth, there, back = star(protocol, 5, flows, rng, mark_B)
    assert network.run() == DONE
    links = [Link(each, 1e-6, mark_B) for each in bandwidth.tolist()]
    others = [
        Flow(date, size + max(1, -(-size // protocol.payload_B)) * protocol.header_B,
             [links[k] for k in go], [links[k] for k in come])
        for (date, size, _, _), go, come in zip(flows, there, back, strict=True)
    ]  # fmt: skip
    naive = Naive(
        links, others, packet=protocol.payload_B + protocol.header_B, ack=protocol.ack_B,
        windows=protocol.by_windows, opens=protocol.opens, pause=protocol.pause_B,
        resume=protocol.resume_B, until_acknowledged=protocol.until_acknowledged,
    )  # fmt: skip
    assert network.end_s.tolist() == naive.run()
    assert network.carried_B.tolist() == [link.carried for link in links]
    assert len(list(network.pauses())) == naive.pauses
    if not protocol.by_windows:
        assert naive.pauses > 0


def test_every_byte_crosses_every_link_of_its_route_once():
    rng = np.random.default_rng(5)
    flows = random_flows(rng, 6, 40, 3e5)
    for protocol in (DCTCP, ROCE):
        network, _, there, back = star(protocol, 6, flows)
        network.run()
        expected = np.zeros(12)
        for (_, size, _, _), go, come in zip(flows, there, back, strict=True):
            packets = protocol.packets(size)
            expected[list(go)] += size + packets * protocol.header_B
            if protocol.by_windows:  # one for each packet, and the handshake there and back
                expected[list(go)] += protocol.ack_B
                expected[list(come)] += (packets + 1) * protocol.ack_B
            else:  # the last acknowledgement is a packet, the others lengthen others
                expected[list(come)] += protocol.ack_B
        np.testing.assert_allclose(network.carried_B, expected, rtol=1e-12)


def test_flows_of_a_host_share_its_link_by_pauses():
    network, *_ = star(ROCE, 3, [(0.0, 4e6, 0, 1), (0.0, 4e6, 0, 2)])
    network.run()
    one, two = network.end_s
    assert one == pytest.approx(two, rel=1e-2)
    assert one == pytest.approx(2 * 4e6 * 4160 / 4096 / (10 * GBPS), rel=1e-2)


def test_a_paused_link_holds_up_those_who_only_pass():
    """Incast on host 3; a flow from host 0 to host 4, which is idle, waits with the others."""
    alone, *_ = star(ROCE, 5, [(0.0, 1e6, 0, 4)])
    alone.run()
    flows = [(0.0, 1e6, k, 3) for k in range(3)] + [(0.0, 1e6, 0, 4)]
    network, *_ = star(ROCE, 5, flows)
    network.run()
    pauses = list(network.pauses())
    assert {pause.link for pause in pauses} == {0, 2, 4}
    toward = [pause.toward for pause in pauses]
    assert set(toward) <= {7, 9}
    assert toward.count(7) > len(toward) / 2
    assert all(pause.until_s > pause.since_s for pause in pauses)
    assert network.end_s[3] > 1.8 * alone.end_s[0]


def test_a_marked_queue_stays_near_its_threshold():
    flows = [(0.0, 4e6, k, 3) for k in range(3)]
    mark_B = 40 * 1502.0
    network, *_ = star(DCTCP, 4, flows, mark_B=mark_B, recorded=True)
    network.run()
    found = network.queues()
    late = found.largest_B[7, found.largest_B.shape[1] // 2 : -20]
    assert 0.5 * mark_B < np.median(late) < 1.5 * mark_B
    assert found.largest_B[0].max() > 0.0


def test_recorded_queues_cover_the_run_and_count_every_byte():
    network, *_ = star(DCTCP, 3, [(1e-3, 5e6, 0, 1), (2e-3, 5e6, 2, 1)], recorded=True)
    network.run()
    found = network.queues()
    n = found.joined_B.shape[1]
    assert found.begin_s == 1e-3
    assert 128 <= n <= 256
    assert found.begin_s + (n - 1) * found.length_s <= network.now
    assert found.begin_s + n * found.length_s > network.now
    np.testing.assert_allclose(found.joined_B.sum(axis=1), network.carried_B)


def test_a_queue_without_room_is_reported():
    network, *_ = star(DCTCP, 4, [(0.0, 4e6, k, 3) for k in range(3)], room_B=50 * 1502.0)
    assert network.run() == OVERFULL
    assert network.subject in (0, 2, 4, 7)


def test_it_goes_on_from_where_it_stopped_to_the_same_bits():
    flows = random_flows(np.random.default_rng(3), 4, 20, 4e5)
    whole, *_ = star(ROCE, 4, flows)
    whole.run()
    parts, *_ = star(ROCE, 4, flows)
    assert parts.run(1e-5) == REACHED
    assert parts.run(2e-5, 10) == PAUSED
    assert parts.run() == DONE
    assert parts.end_s.tolist() == whole.end_s.tolist()


def test_a_flow_that_waits_for_another_starts_where_it_is_told_to():
    network, *_ = star(DCTCP, 3, [(0.0, 1e5, 0, 1), (np.inf, 1e5, 0, 1)])
    network.watch([0])
    assert network.run() == ENDED
    assert network.subject == 0
    first = network.end_s[0]
    network.start([1], first)
    assert network.run() == DONE
    assert network.end_s[1] - first == pytest.approx(first, rel=1e-6)
