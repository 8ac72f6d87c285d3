"""Write the critical path of a replay as tables: its parts by kind, and the links that it crosses.

`tables.mpi` has the names of these files.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.mpi.critical_path import (
    CONTENTION,
    KINDS,
    LATENCY,
    TRANSFER,
    Part,
    Told,
    critical_path,
)
from ptaskmodel.mpi.run import Replay
from ptaskmodel.platform import Platform
from ptaskmodel.results.tables.mpi import CRITICAL_LINKS, CRITICAL_PATH
from ptaskmodel.workload.works import ParallelWork

UNIT_BYTE = ParallelWork.of_flow(1.0)


PATH_COLUMNS = (
    *("start_s", "end_s", "duration_s", "kind", "rank", "host", "to_rank", "to_host", "action"),
    *("message", "bytes", "links"),
)


LINK_COLUMNS = ("link", "messages", "bytes", "latency_s", "transfer_s", "contention_s")


SHOWN_LINKS = 5


SPLIT = (LATENCY, TRANSFER, CONTENTION)


class LinkShare(NamedTuple):
    """What a link has to do with the path: messages across it, their bytes, and seconds.

    latency_s: its own part of their latencies. transfer_s, contention_s: of all messages across it;
    a message that crosses several links counts for each.
    """

    link: str
    messages: int
    bytes: float
    latency_s: float
    transfer_s: float
    contention_s: float


class ReplayPath:
    """The critical path of a replay that has run: its parts, and the shares of links in it."""

    def __init__(self, made: Replay, hosts: Sequence[str], told: Told) -> None:
        self._hosts = hosts
        self._platform = made.core.platform
        self._flow_routes = made.core.router.flow_routes
        self._alone = TimesAlone(made)
        self._routes: dict[tuple[str, str], tuple[str, ...]] = {}
        self.parts = list(self._split(critical_path(made.trace, told.spans(), told.flights())))

    def _split(self, parts: list[Part]) -> Iterator[Part]:
        """The same, transfers cut where they would have ended alone."""
        for part in parts:
            if part.kind != TRANSFER:
                yield part
                continue
            source, target = self._hosts[part.rank], self._hosts[part.to_rank]
            alone = part.start_s + self._alone.transfer_s(source, target, part.bytes)
            lasted = part.end_s - part.start_s
            if part.end_s - alone <= 1e-9 * lasted:
                yield part
                continue
            if alone > part.start_s:
                yield part._replace(end_s=alone)
            yield part._replace(start_s=max(alone, part.start_s), kind=CONTENTION)

    def links(self, part: Part) -> tuple[str, ...]:
        """The links that the message of a part crosses, in order; none if there is no message."""
        if part.message < 0:
            return ()
        ends = self._hosts[part.rank], self._hosts[part.to_rank]
        if ends not in self._routes:
            source, target = (self._platform.host(name).index for name in ends)
            name = self._flow_routes.connection(source, target)
            if name is None:
                self._routes[ends] = self._platform.route(*ends).links
            else:
                there = self._flow_routes.way(*name, source, target).there
                self._routes[ends] = tuple(self._platform.all_links[k].name for k in there)
        return self._routes[ends]

    def seconds(self) -> dict[str, float]:
        """Seconds of each kind of part, in the order of KINDS; kinds that do not occur are left
        out."""
        sums: defaultdict[str, float] = defaultdict(float)
        for part in self.parts:
            sums[part.kind] += part.end_s - part.start_s
        return {kind: sums[kind] for kind in KINDS if kind in sums}

    def link_shares(self) -> list[LinkShare]:
        """Of each link that is crossed, the most time first."""
        messages: dict[str, set[int]] = {}
        size: defaultdict[str, float] = defaultdict(float)
        spent = {kind: defaultdict[str, float](float) for kind in SPLIT}
        for part in self.parts:
            lasted = part.end_s - part.start_s
            links = self.links(part)
            latencies = [self._platform.link(link).latency_s for link in links]
            whole = sum(latencies)
            for link, latency in zip(links, latencies, strict=True):
                if part.message not in messages.setdefault(link, set()):
                    messages[link].add(part.message)
                    size[link] += part.bytes
                own = lasted * latency / whole if part.kind == LATENCY and whole > 0 else lasted
                spent[part.kind][link] += own
        shares = [
            LinkShare(link, len(who), size[link], *(spent[kind][link] for kind in SPLIT))
            for link, who in messages.items()
        ]
        return sorted(shares, key=lambda share: (-sum(share[3:]), share.link))

    def summary(self) -> dict[str, Any]:
        """What summary.json says of it."""
        by_action: defaultdict[str, float] = defaultdict(float)
        for part in self.parts:
            by_action[part.action] += part.end_s - part.start_s
        return {
            "parts": len(self.parts),
            "messages": len({part.message for part in self.parts if part.message >= 0}),
            "ranks": len({rank for part in self.parts for rank in (part.rank, part.to_rank)}),
            "seconds": self.seconds(),
            "seconds_in": dict(sorted(by_action.items(), key=lambda item: -item[1])),
            "links": [share._asdict() for share in self.link_shares()[:SHOWN_LINKS]],
        }

    def write(self, place: Path) -> tuple[str, ...]:
        """Write both tables; the names of the files."""
        with (place / CRITICAL_PATH).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(PATH_COLUMNS)
            writer.writerows(self._rows())
        with (place / CRITICAL_LINKS).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(LINK_COLUMNS)
            writer.writerows(self.link_shares())
        return CRITICAL_PATH, CRITICAL_LINKS

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for part in self.parts:
            by_message = part.message >= 0
            yield (
                part.start_s,
                part.end_s,
                part.end_s - part.start_s,
                part.kind,
                part.rank,
                self._hosts[part.rank],
                part.to_rank if by_message else "",
                self._hosts[part.to_rank] if by_message else "",
                part.action,
                part.message if by_message else "",
                part.bytes if by_message else "",
                ";".join(self.links(part)),
            )


class TimesAlone:
    """What transfers would take if nothing else used their links."""

    def __init__(self, made: Replay) -> None:
        self._core: Core = made.core
        self._platform: Platform = made.core.platform
        self._protocol = made.protocol
        self._rates: dict[tuple[str, str], float] = {}

    def transfer_s(self, source: str, target: str, size: float) -> float:
        """Seconds from the end of the latency to that of the last byte of a message, alone."""
        size += float(self._protocol.figures["envelope"][0])
        factor = 1.0
        for step in self._protocol.bandwidth_factors:
            if size > step["above"]:
                factor = float(step["value"])
        return size / (self._rate(source, target) * factor)

    def _rate(self, source: str, target: str) -> float:
        """Bytes per s of a flow without factors."""
        if (source, target) not in self._rates:
            core = self._core
            ends = tuple(self._platform.host(name).index for name in (source, target))
            shape, unit = core.router.shape(UNIT_BYTE, ends, None)
            (pattern,) = core.find([shape])
            core.hold([pattern])
            core.route([pattern])
            _, resource, usage = core.uses(np.array([pattern]))
            used = usage > 0.0
            shares = core.capacities()[resource[used]] / usage[used]
            most = min(
                float(shares.min(initial=np.inf)), float(core.state.patterns["bound"][pattern])
            )
            self._rates[source, target] = most / (1.0 if np.isnan(unit) else float(unit))
        return self._rates[source, target]
