"""Write what packets in queues leave besides tasks.csv: queues over time, and pauses of links."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptaskmodel.packets.tasks import PacketSimulation

QUEUES, PAUSES = "queues.csv", "pauses.csv"
QUEUE_COLUMNS = ("link", "begin_s", "end_s", "largest_queue_B", "joined_B")
PAUSE_COLUMNS = ("link", "toward", "begin_s", "end_s")


def write_packet_tables(place: Path, simulation: PacketSimulation) -> tuple[str, ...]:
    """Write queues.csv and, if links may be paused, pauses.csv; returns their names.

    place: an existing directory. simulation: what has run, recorded.
    """
    _write(place / QUEUES, QUEUE_COLUMNS, simulation.queues())
    if simulation.network.protocol.by_windows:
        return (QUEUES,)
    _write(place / PAUSES, PAUSE_COLUMNS, simulation.pauses())
    return QUEUES, PAUSES


def _write(path: Path, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
