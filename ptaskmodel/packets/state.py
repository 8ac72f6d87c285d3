"""The state of packets in queues: links, flows, packets in flight, and what is recorded of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.records import INT, REAL, SMALL_INT, numbers

FLAG = "?"

# Why the loop returns.
DONE, REACHED, ENDED, PAUSED, GROW_PACKETS, GROW_PAUSES, OVERFULL = numbers(7)

# What a packet is, besides data: opens a connection. Whether it was marked on its way.
DATA, OPENING = numbers(2)

NOTHING = numbers(-1, 0)[0]

LINK = np.dtype(
    [
        ("B_per_s", REAL),
        ("s_per_B", REAL),
        ("latency", REAL),  # s
        ("free", REAL),  # date at which its transmitter is free
        ("mark_B", REAL),  # packets that find so much in the queue are marked
        ("room_B", REAL),  # of its queue
        ("carried_B", REAL),  # so far
        ("queue_B", REAL),  # that waits for a transmitter that may be paused
        ("owed_B", REAL),  # acknowledgements that it sends before its next packet
        ("waits_B", REAL),  # came in over it, and waits in the switch at its far end
        ("pause", INT),  # row of the present pause
        ("first", SMALL_INT),  # packets under way to the far end, in order; -1: none
        ("last", SMALL_INT),
        ("first_waiting", SMALL_INT),  # packets that wait for the transmitter
        ("last_waiting", SMALL_INT),
        ("scheduled", FLAG),  # the transmitter has an event at `free`
        ("paused", FLAG),
    ],
    align=True,
)

FLOW = np.dtype(
    [
        ("first", INT),  # of its links in `routes`: those there, then those of acknowledgements
        ("hops", INT),
        ("hops_back", INT),
        ("bytes", REAL),  # to send, headers included
        ("sent", REAL),  # B
        ("acknowledged", REAL),  # B
        ("received", REAL),  # B
        ("window", REAL),  # B
        ("alpha", REAL),  # moving average of the marked part
        ("window_end", REAL),  # the present window is over when so many bytes are acknowledged
        ("window_seen", REAL),  # of the present window, acknowledged, B
        ("window_marked", REAL),  # and of these, marked, B
        ("end", REAL),  # date, nan: not yet
        ("slow_start", FLAG),
        ("cut", FLAG),  # the window was cut, and is not over
        ("watched", FLAG),  # the loop returns when it ends
    ],
    align=True,
)

PACKET = np.dtype(
    [
        ("date", REAL),  # arrival at the far end of its link
        ("order", INT),  # among equal dates
        ("bytes", REAL),
        ("flow", SMALL_INT),
        ("hop", SMALL_INT),
        ("next", SMALL_INT),  # in its queue, or among the free
        ("kind", np.int16),
        ("marked", FLAG),
    ],
    align=True,
)

# Of a slot: of a link, its packets under way (2 link), its transmitter (2 link + 1). next: in its
# bucket.
EVENT = np.dtype([("date", REAL), ("order", INT), ("next", INT)], align=True)
BUCKET = np.dtype([("first", SMALL_INT), ("last", SMALL_INT)], align=True)

START = np.dtype([("date", REAL), ("flow", INT)], align=True)

# A pause of a link, because a packet that came over it joined the queue of `toward`.
PAUSE = np.dtype([("link", INT), ("toward", INT), ("since", REAL), ("until", REAL)], align=True)

CLOCK = np.dtype(
    [
        ("now", REAL),
        ("order", INT),  # of the last event
        ("n_events", INT),  # in the calendar
        ("bucket", INT),  # of the first event, or before it
        ("buckets_per_s", REAL),
        ("n_seen", INT),  # events since the width of buckets was looked at
        ("looked", REAL),  # date of that
        ("started", INT),  # of `starts`, which are in order
        ("free_packet", SMALL_INT),
        ("n_free", INT),
        ("n_pauses", INT),
        ("hops", INT),  # packets that crossed a link, so far
        ("n_ended", INT),
        ("subject", INT),  # flow that ended, link that is overfull
        # The parameters:
        ("packet_B", REAL),
        ("ack_B", REAL),  # an acknowledgement, or what opens a connection
        ("initial_B", REAL),  # window
        ("gain", REAL),
        ("pause_B", REAL),
        ("resume_B", REAL),
        ("by_windows", FLAG),  # else senders send as fast as they can, and queues pause links
        ("opens", FLAG),  # a connection is opened first
        ("until_acknowledged", FLAG),  # flows end at their senders
        # Recording:
        ("origin", REAL),  # date of the first interval
        ("interval", REAL),  # s; 0: queues are not recorded
    ],
    align=True,
)


class State(NamedTuple):
    """Every array that the kernels read and write.

    largest_B: largest queue of each link in each interval; joined_B: what joined it.
    """

    clock: np.ndarray
    links: np.ndarray
    flows: np.ndarray
    routes: np.ndarray
    packets: np.ndarray
    events: np.ndarray
    buckets: np.ndarray
    starts: np.ndarray
    pauses: np.ndarray
    largest_B: np.ndarray
    joined_B: np.ndarray
