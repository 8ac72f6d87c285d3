"""The first things that a report says: numbers on cards, inputs and choices, warnings."""

from __future__ import annotations

from typing import Any

from ptaskmodel.recording.limits import HOST, LINK
from ptaskmodel.results.drawing import clock_text, lasting, prefix_of, short_name
from ptaskmodel.results.loading import Results
from ptaskmodel.results.readings import other_remarks
from ptaskmodel.results.replay.report import replay_cards
from ptaskmodel.results.standings_metrics import outcomes
from ptaskmodel.results.states import ENDED

# Of the time of all tasks: less than this held up by a resource is no bottleneck to name.
WORTH_TELLING = 0.001


def cards_of(results: Results, limits: list[list[Any]]) -> list[list[str]]:
    """[name, value, what it is about or \"\"]; limits: as `report.limits_of` gives them."""
    summary = results.summary
    makespan = summary.get("makespan", summary.get("makespan_s", results.end_s))
    cards = [["makespan", lasting(makespan)]]
    if results.stopped is not None:
        cards = [["simulated until", clock_text(results.stopped.at_s)]]
    counts = outcomes(results)
    all_ended = list(counts) == [ENDED]
    cards.append([f"{results.what}s", f"{results.submitted:,}", "all ended" * all_ended])
    if not all_ended:
        cards += [[word, f"{number:,}"] for word, number in counts.items()]
    if results.what == "rank":
        cards += replay_cards(summary)
    cards += _batch_cards(summary)
    cards += _energy_cards(summary)
    slow = [task.slowdown for task in results.tasks if task.slowdown is not None]
    if slow:
        cards.append(["mean contention slowdown", f"{sum(slow) / len(slow):.4g}"])
    if limits:
        cards.append(_bottleneck(results, limits, slow))
    return cards


def _bottleneck(results: Results, limits: list[list[Any]], slow: list[float]) -> list[str]:
    """The host or link that limited tasks longest while others used it, too, if any did."""
    total = sum(row[2] for row in limits)
    found = [row for row in limits if row[0] in (HOST, LINK) and row[3] >= WORTH_TELLING * total]
    if not found or not found[0][3] or max(slow, default=2.0) <= 1.0 + 1e-6:
        return ["worst bottleneck", "none", "nothing that several shared cost time"]
    kind, name, _, shared = found[0][:4]
    whose = "messages' and computations'" if results.what == "rank" else f"{results.what}s'"
    text = f"{kind} {short_name(name, 44)}"
    return [
        "worst bottleneck",
        text,
        f"{shared / total:.1%} of the {whose} time, in spells that others shared",
    ]


def _batch_cards(summary: dict[str, Any]) -> list[list[str]]:
    """What the summary of a batch says of waiting and of the use of the machine."""
    cards = []
    for name, key, text in (
        ("mean waiting", "waiting_s", lasting),
        ("mean bounded slowdown", "bounded_slowdown", "{:,.4g}".format),
    ):
        mean = summary[key].get("mean") if isinstance(summary.get(key), dict) else None
        if isinstance(mean, int | float):
            cards.append([name, text(mean)])
    used, useful = summary.get("utilisation"), summary.get("useful_utilisation")
    if isinstance(used, int | float):
        cards.append(["utilisation", f"{used:.1%}"])
    if isinstance(useful, int | float):
        about = "of the machine; what the jobs that ended need alone"
        cards.append(["useful utilisation", f"{useful:.1%}", about])
    killed = summary.get("killed_only_by_neighbours")
    if killed:
        cards.append(["killed by neighbours", f"{killed:,}", "alone they would have ended"])
    return cards


def _energy_cards(summary: dict[str, Any]) -> list[list[str]]:
    """The joules of the run and the most that was drawn, if they were counted."""
    found = summary.get("energy")
    if not isinstance(found, dict):
        return []
    cards = []
    for name, key, unit in (("energy", "total_J", "J"), ("peak power", "peak_W", "W")):
        value = found.get(key)
        if isinstance(value, int | float):
            scale, prefix = prefix_of(value)
            cards.append([name, f"{value / scale:.4g} {prefix}{unit}"])
    return cards


def facts_of(results: Results) -> list[list[str]]:
    """[name, value] of inputs, choices, versions, and remarks that change no reading."""
    summary = results.summary
    facts = [["input", f"{e['path']} (SHA-256 {e['sha256'][:12]}…)"]
             for e in summary.get("inputs") or [] if "path" in e and "sha256" in e]  # fmt: skip
    names = {
        "solver": "solver",
        "network_model": "network model",
        "count": "competitors counted by",
        "policy": "scheduling policy",
        "allocation": "allocation",
        "events": "events",
        "end_date": "simulated until (s)",
        "simulation_wall_time_s": "simulated in (s)",
    }
    for key, name in names.items():
        if key in summary:
            value = summary[key]
            facts.append([name, _fact(key, value)])
    facts += [[remark["level"], remark["text"]] for remark in other_remarks(results)]
    versions = summary.get("versions")
    if isinstance(versions, dict):
        facts.append(["versions", ", ".join(f"{name} {v}" for name, v in versions.items())])
    return facts


def _fact(key: str, value: Any) -> str:
    """A value of the summary for a reader, who needs dates to the millisecond."""
    if key.endswith("_time_s"):
        return f"{value:.4g}"
    return f"{round(value, 3):,}" if key == "end_date" else str(value)
