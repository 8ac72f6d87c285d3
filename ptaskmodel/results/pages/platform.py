"""The platform and its flows on a page: use and bandwidth of hosts and links, and who used which.

Of flows: how sure their durations are, and which cables they share. `report` calls that for runs
with ``--draws``, with ``--routes`` and with packets in queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.results.directory import finite
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.page import Section, Table
from ptaskmodel.results.pictures.load import Sure, packet_spells, ranges_of
from ptaskmodel.results.pictures.topology import MEASURES, cable_of, halves, routes_of
from ptaskmodel.results.tables.places import Place, level_of, link_name
from ptaskmodel.results.tables.tasks import PAUSES, QUEUES, TASKS
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform
    from ptaskmodel.platform.sketch import Sketch


MAX_BOXES = 30_000
MAX_USERS = 20  # of a link
TICKS = 100_000  # of the dates of users, over the whole run
# Of the use at a time: intervals over the run, and a letter for each level, the first for none.
MOMENTS = 64
LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def topology_data(
    results: Results, platform: Platform, chosen: Sequence[str], places: Mapping[str, Place]
) -> dict[str, Any] | str:
    """What the page draws, as JSON (see topology.js), or why it cannot.

    results: with their utilisation. platform: theirs. chosen: the links whose users are shown.
    places: see `places.link_places`.
    """
    from ptaskmodel.platform.sketch import sketch

    if len(platform.hosts) > MAX_BOXES:
        return f"The topology is not drawn: {count(len(platform.hosts), 'host')} are too many."
    drawn = sketch(platform)
    uses = {kind: [MEASURES[name](results, kind) for name in MEASURES] for kind in ("host", "link")}
    names = sorted({name for its in uses["link"] for name in its})
    index = {name: k for k, name in enumerate(names)}
    used = _uses(uses["link"], names)
    bandwidth = {link.name: link.bandwidth_Bps for link in platform.all_links}
    narrowest = min((bandwidth[name] for name in names), default=1.0) or 1.0
    return {
        "says": _says(used, places),
        "measures": list(MEASURES),
        "boxes": [
            [box.name, box.kind, *_rounded(box.x, box.y, box.width, box.height)]
            for box in drawn.boxes
        ],
        "groups": [
            [group.name, len(group.hosts), *_rounded(group.x, group.y, group.width)]
            for group in drawn.groups
        ],
        "lines": [
            [
                [_rounded(*(value for point in path for value in point)) for path in line.paths],
                list(line.links),
                [index[half] for name in line.links for half in halves(name) if half in index],
            ]
            for line in drawn.lines
        ],
        "hosts": _uses(uses["host"], [host.name for host in platform.hosts]),
        "links": [
            [name, *use, round(bandwidth[name] / narrowest, 2)] for name, use in used.items()
        ],
        "moments": MOMENTS,
        "now": _now(results),
        "tick": (results.end_s or 1.0) / TICKS,
        "users": _users(results, chosen, drawn),
    }


def _now(results: Results) -> dict[str, str]:
    """The use of each host and link, by "kind name", in each of MOMENTS as a letter of LEVELS."""
    width = (results.end_s or 1.0) / MOMENTS
    found = {}
    for (name, kind), spans in results.utilisation.items():
        starts, ends, shares = np.array(spans).T
        spent = np.concatenate([[0.0], np.cumsum((ends - starts) * shares)])
        # Intervals without use may be missing.
        edges = np.column_stack([starts, ends]).ravel()
        reached = np.column_stack([spent[:-1], spent[1:]]).ravel()
        means = np.diff(np.interp(np.arange(MOMENTS + 1) * width, edges, reached)) / width
        level = np.where(means > 0.0, 1.0 + np.minimum(means, 1.0) * (len(LEVELS) - 2), 0.0)
        found[f"{kind} {name}"] = "".join(LEVELS[k] for k in level.round().astype(int).tolist())
    return found


def _says(used: Mapping[str, Sequence[float]], places: Mapping[str, Place]) -> str:
    """The sentence of the picture: the most used link, and the highest mean of each level."""
    if not used:
        return "0 links were used."
    most = max(used, key=lambda name: used[name][0])
    mean, peak = used[most][:2]
    said = (
        f"Of {count(len(used), 'link')} in use, {link_name(most, places)} is used most: "
        f"{number(mean / 100, 'share')} of its bandwidth on average, "
        f"{number(peak / 100, 'share')} at most."
    )
    levels: dict[str, list[float]] = {}
    for link, use in used.items():
        level = level_of(link, places)
        levels.setdefault(f"{level.level} {level.way}".strip(), []).append(use[0])
    if len(levels) > 1:
        means = {level: sum(its) / len(its) / 100 for level, its in levels.items()}
        told = [f"{level}: {number(mean, 'share')}" for level, mean in sorted(means.items())]
        said += f" On average by level: {'; '.join(told)}."
    return said


def _uses(measures: Sequence[dict[str, float]], names: Sequence[str]) -> dict[str, list[float]]:
    """Of each that was used, in per cent: its mean and highest use, the time it limited."""
    return {
        name: [round(each.get(name, 0.0), 2) for each in measures]
        for name in names
        if any(name in each for each in measures)
    }


def _users(results: Results, chosen: Sequence[str], drawn: Sketch) -> dict[str, list[Any]]:
    """Of the chosen links: [cable, how many tasks, [[task, start, end, bytes], ...]].

    A task is its number if it is one of those on the page, else its name.
    """
    known = {name for line in drawn.lines for name in line.links}
    known |= {box.name for box in drawn.boxes if box.kind == "link"}
    index: dict[str, int] = {task.task_id: k for k, task in enumerate(results.tasks)}
    scale = (results.end_s or 1.0) / TICKS
    found = {}
    for name in chosen:
        if name not in results.link_users:
            continue
        count, users = results.link_users[name]
        rows = [
            [
                index.get(user.task_id, user.task_id),
                round(user.start_s / scale),
                round(user.end_s / scale),
                float(f"{user.bytes:.5g}"),
            ]
            for user in users[:MAX_USERS]
        ]
        found[name] = [cable_of(name, known), count, rows]
    return found


def _rounded(*values: float) -> list[float]:
    return [round(value, 2) for value in values]


# A range whose upper end is so many times its lower one says little of a single task.
WIDE = 1.5
NARROW = 0.001  # less, of its lower end, is no range


class Cable(NamedTuple):
    """A link: the flows that cross it, its longest queue (B), how long pauses stopped it (s).

    waits_for: the link whose queue caused most of that; "" if none did.
    """

    name: str
    flows: int
    queue_B: float
    paused_s: float
    waits_for: str


def cables_of(results: Results, routes: Iterable[tuple[str, Iterable[str]]]) -> list[Cable]:
    """The links of `results`, by longest queue, then by the flows that cross them.

    routes: the task and the links of each flow.
    """
    flows = Counter(link for _, links in routes for link in dict.fromkeys(links))
    queue: dict[str, float] = {}
    if (results.directory / QUEUES).exists():
        for name, _, _, queue_B in packet_spells(results, QUEUES, largest_queue_B=finite):
            queue[name] = max(queue.get(name, 0.0), queue_B)
    paused: dict[str, dict[str, float]] = {}
    if (results.directory / PAUSES).exists():
        for name, begin_s, end_s, toward in packet_spells(results, PAUSES, toward=str):
            ahead = paused.setdefault(name, {})
            ahead[toward] = ahead.get(toward, 0.0) + (end_s - begin_s)
    found = []
    for name in dict.fromkeys((*flows, *queue)):
        ahead = paused.get(name, {})
        most = max(ahead, key=lambda link: ahead[link], default="")
        found.append(Cable(name, flows[name], queue.get(name, 0.0), sum(ahead.values()), most))
    return sorted(found, key=lambda one: (-one.queue_B, -one.flows))


class Flows(NamedTuple):
    """The ranges of tasks, the cables, and of each task the links that its flows cross."""

    ranges: list[Sure]
    cables: list[Cable]
    ways: Mapping[str, set[str]]


def flows_of(results: Results) -> Flows:
    """Return what is known of the flows of `results`, of a simulation."""
    routes = routes_of(results)
    ways: dict[str, set[str]] = {}
    for task, links in routes:
        ways.setdefault(task, set()).update(links)
    return Flows(ranges_of(results), cables_of(results, routes), ways)


def answer_of_flows(flows: Flows, places: Mapping[str, Place]) -> list[str]:
    """Sentences of the answer: which task is latest, how sure that is, which cable is crowded.

    flows: of a simulation. places: of links, by their names.
    """
    said = []
    ranges, cables, _ = flows
    if ranges:
        low, high = duration(ranges[0].low_s), duration(ranges[0].high_s)
        half = float(np.median([one.width for one in ranges])) - 1.0
        text = f"{ranges[0].task_id} may take longest: {low} to {high} in 80 % of cases"
        if max(one.width for one in ranges) - 1.0 < NARROW:
            text = "Routes and starts change no duration: each is the same in 80 % of cases"
        elif half >= NARROW:
            text += (
                f"; half of the ranges end {number(half, 'share')} or more above their beginning"
            )
        said.append(f"{text}.")
    if cables and cables[0].queue_B > 0.0:
        longest = cables[0]
        text = f"The longest queue, {number(longest.queue_B, 'bytes')}, is on link "
        text += link_name(longest.name, places)
        paused = [one for one in cables if one.paused_s > 0.0]
        if paused:
            most = max(paused, key=lambda one: one.paused_s)
            text += f"; full switches pause {count(len(paused), 'link')}, longest "
            text += f"{link_name(most.name, places)}, {duration(most.paused_s)} in all"
        said.append(f"{text}.")
    elif cables:
        name = link_name(cables[0].name, places)
        text = f"Most flows share link {name}: {cables[0].flows}."
        said.append(text if cables[0].flows > 1 else "No two flows share a link.")
    return said


def flow_sections(results: Results, flows: Flows, places: Mapping[str, Place]) -> list[Section]:
    """The sections on ranges and cables; none for a run that has neither.

    results: of a simulation, and its ``flows``. places: of links, by their names.
    """
    ranges, cables, ways = flows
    rank = {cable.name: k for k, cable in enumerate(cables)}
    crowded = {
        task: link_name(min(links, key=lambda name: rank[name]), places)
        for task, links in ways.items() if links
    }  # fmt: skip
    return [*_sure(results, ranges, crowded), *_cables(cables, ways, places)]


def _sure(results: Results, ranges: list[Sure], crowded: Mapping[str, str]) -> list[Section]:
    if not ranges:
        return []
    draws = results.summary["draws"]
    note = (
        f"{draws['n']} draws: routes {draws['routes']}, starts up to "
        f"{duration(draws['jitter_s'])} later. 80 % of durations lie between the two ends."
    )
    points = []
    if not draws["residuals"]:
        points.append(
            "What this model gets wrong with the true routes is not known, so the ranges are too "
            "narrow; it is known of DCTCP, ROCE and RDMA."
        )
    wide = sum(one.width >= WIDE for one in ranges)
    if wide:
        points.append(
            f"{count(wide)} of {count(len(ranges), 'range')} end at {WIDE} times their beginning "
            "or more: the duration of a single one of these tasks means little. Use the range, or "
            "a mean over tasks."
        )
    took = {task.task_id: task.duration_s for task in results.tasks}
    lines = [
        [
            one.task_id, took.get(one.task_id), one.low_s, one.high_s, one.width,
            crowded.get(one.task_id, ""),
        ]
        for one in ranges
    ]  # fmt: skip
    columns = {"task": "text", "this run": "time", "from": "time", "to": "time",
               "to / from": "number", "most crowded cable": "text"}  # fmt: skip
    if not crowded:
        points.append("Which cable is crowded was not recorded: run again with --routes.")
    table = Table(
        columns, lines, caption="Ranges of durations", order=(3, True), key=(2, 3),
        same=(1, 2, 3), file=TASKS,
    )  # fmt: skip
    return [Section("How sure it is", note, (table,), tuple(points))]


def _cables(
    cables: list[Cable], ways: Mapping[str, set[str]], places: Mapping[str, Place]
) -> list[Section]:
    if not cables:
        return []
    are_queued, are_paused = any(c.queue_B for c in cables), any(c.paused_s for c in cables)
    rows = [
        (link_name(one.name, places), one.flows if ways else None,
         one.queue_B if are_queued else None, one.paused_s if are_paused else None,
         link_name(one.waits_for, places) if one.waits_for else "")
        for one in cables
    ]  # fmt: skip
    columns = {"link": "text", "flows": "count", "longest queue": "bytes", "paused": "time",
               "mostly by packets for": "text"}  # fmt: skip
    table = Table(columns, rows, caption="Cables")
    note = "A flow counts on each link of its route. " if ways else ""
    if are_queued or are_paused or not ways:
        note += "A queue is the longest at any time. A link is paused by the switch at its end, "
        note += "where packets wait for another link."
    return [Section("Which cables flows share", note.strip(), (table,))]
