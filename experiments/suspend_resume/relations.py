"""What the study says of its tables' rows, asked of these runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import causes
import numpy as np
from causes import values
from study import mean_use

from ptaskmodel.campaign import Finding, ordered, stated

Row = Mapping[str, Any]
Around = Mapping[tuple[str, int], Mapping[str, Any]]
Claim = tuple[str, bool, str]

NAMES = ("bf", "bf rand", "sr rand", "bf size", "sr size")
BY_WAITING = ("bf", "bf rand", "sr rand", "bf size", "sr size")
ORDERS = {
    "waiting_s": BY_WAITING,
    "response_s": BY_WAITING,
    "slowdown": ("bf rand", "bf", "sr rand", "bf size", "sr size"),
    "weighted_slowdown": ("bf size", "sr size", "bf", "sr rand", "bf rand"),
}
# Published means, the smallest first: of 1,000 jobs on 3,000 CPUs, and of 30,000 on 57,600, where
# jobs above 3,800 have priority.
PUBLISHED: dict[str, dict[str, dict[str, float | None]]] = {
    "shuffled": {
        "waiting_s": dict(zip(BY_WAITING, (1415.5, 1450.3, 1699.0, 1975.8, 2470.9), strict=True)),
        "response_s": dict(zip(BY_WAITING, (1543.6, 1578.4, 1910.3, 2103.8, 2649.0), strict=True)),
        "slowdown": dict(zip(ORDERS["slowdown"], (71.5, 73.4, 80.0, 83.1, 109.0), strict=True)),
        "weighted_slowdown": dict(
            zip(ORDERS["weighted_slowdown"], (102.4, 111.1, 113.2, 128.8, 143.9), strict=True)
        ),
    },
    "headline": {
        "waiting_s": {"sr size": 567.0, "bf size": 718.2},
        "slowdown": {"sr size": 227.2, "bf size": 291.7},
        "weighted_slowdown": {"sr size": 105.1, "bf size": 135.2},
        "utilisation": {"bf size": 97.7, "sr size": 99.3},
    },
}
TITLES = {
    "waiting_s": "waiting (s)",
    "response_s": "response (s)",
    "slowdown": "slowdown",
    "weighted_slowdown": "weighted slowdown",
    "utilisation": "utilisation (%)",
}


def spread(found: np.ndarray) -> float:
    """Deviation (of the population) over mean, %."""
    return float(100 * found.std() / found.mean())


def report(rows: Sequence[Row], around: Around) -> tuple[str, list[Claim]]:
    """Tables of one log as Markdown, the orders found, and which relations hold."""
    made = {row["part"] for row in rows}
    parts, claims = [], []
    if "shuffled" in made:
        parts += [_policies(rows, "shuffled"), _transforms(rows)]
        claims += [*orders(rows, "shuffled"), *constancy(rows, "shuffled"), *drop(around)]
        claims += invariants(rows)
    if "queue" in made:
        parts.append(_policies(rows, "queue"))
        claims += orders(rows, "queue")
    if "contention" in made:
        parts.append(_policies(rows, "contention"))
        claims += [*orders(rows, "contention"), *constancy(rows, "contention")]
    if "headline" in made:
        parts.append(_policies(rows, "headline", ("bf", "bf size", "sr size")))
    said = [
        f"  {part}: {measure}: {' < '.join(_found_order(rows, part, measure))}"
        for part in ("shuffled", "queue", "contention")
        for measure in ORDERS
        if part in made
    ]
    said += [f"  {'holds' if holds else 'FAILS'}: {what} ({how})" for what, holds, how in claims]
    return "\n".join([f"\n{rows[0]['log']}", *parts, "", *said]), claims


def findings(rows: Sequence[Row], claims: Sequence[Claim], alone: Around) -> list[Finding]:
    """Published figures beside those of one log: orders of policies, the headline, and claims.

    alone: as around the huge job, where no other job has priority.
    """
    log, found = rows[0]["log"], []
    parts = [part for part in ("shuffled", "headline") if any(row["part"] == part for row in rows)]
    for part in parts:
        for measure, theirs in PUBLISHED[part].items():
            here = {name: float(values(rows, part, name, measure).mean()) for name in theirs}
            unit = "s" if measure.endswith("_s") else "%" if measure == "utilisation" else ""
            what = f"{log}: {part}: {TITLES[measure].split(' (')[0]}"
            cause = f"unknown: the mean wait is {causes.queue_of(rows, part):.2g} run times"
            if part == "shuffled":
                cause = causes.of_order(rows, measure, tuple(theirs))
            found.append(ordered(what, theirs, here, unit=unit, cause=cause))
    orders_said = {what for what, *_ in orders(rows, "shuffled")} if "shuffled" in parts else set()
    # With contention nothing was published; the longer queue is a test of a cause.
    other = ("contention", "queue")
    said = (c for c in claims if c[0] not in orders_said and not c[0].startswith(other))
    return found + [
        stated(f"{log}: {what}", how, holds, cause=_cause_of(what, rows, alone))
        for what, holds, how in said
    ]


def _cause_of(what: str, rows: Sequence[Row], alone: Around) -> str:
    """Why a claim fails here, by the test of the cause that its words point to."""
    if "drops before the huge job" in what:
        _, drops, how = next(drop(alone))
        return causes.of_drop((drops, how))
    if "starts the huge job at once" in what:
        return causes.of_start(rows)
    if "over shuffles" in what:
        return causes.of_samples(rows)
    if "of the whole" in what:
        return causes.of_use(rows, what.partition(":")[0])
    return "unknown"


def _found_order(rows: Sequence[Row], part: str, measure: str) -> list[str]:
    return sorted(NAMES, key=lambda name: float(values(rows, part, name, measure).mean()))


def _policies(rows: Sequence[Row], part: str, names: Sequence[str] = NAMES) -> str:
    first = next(row for row in rows if row["part"] == part)
    high = {row["policy"]: row["high"] for row in rows if row["part"] == part}
    lines = [
        f"\n{part}: {first['jobs']} jobs, of high priority "
        + ", ".join(
            f"{high[f'bf {who}']} by {who}" for who in ("size", "rand") if f"bf {who}" in high
        )
        + "; mean (deviation)\n",
        "| policy | " + " | ".join(TITLES.values()) + " | suspended (s) | contention |",
        "|---" * (len(TITLES) + 3) + "|",
    ]
    for policy in names:
        cells = []
        for measure in TITLES:
            found = values(rows, part, policy, measure)
            cells.append(f"{found.mean():.1f} ({found.std():.1f})")
        cells.append(f"{values(rows, part, policy, 'suspended_s').mean():.1f}")
        cells.append(f"{values(rows, part, policy, 'contention').mean():.3f}")
        lines.append(f"| {policy} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _transforms(rows: Sequence[Row]) -> str:
    lines = [
        "\nbf, mean (deviation as a share of it, %)\n",
        "| jobs | " + " | ".join(TITLES.values()) + " | work kept (%) | sizes off (points) |",
        "|---" * (len(TITLES) + 3) + "|",
    ]
    for part in ("whole", "systematic", "work", "shuffled"):
        found = [values(rows, part, "bf", measure) for measure in TITLES]
        cells = " | ".join(f"{each.mean():.1f} ({spread(each):.1f})" for each in found)
        kept, off = (values(rows, part, "bf", name) for name in ("work_kept", "sizes_off"))
        lines.append(
            f"| {part} | {cells} | {kept.min():.1f} to {kept.max():.1f} | {off.max():.2f} |"
        )
    return "\n".join(lines)


def orders(rows: Sequence[Row], part: str) -> Iterator[Claim]:
    """The published orders of the means, neighbour by neighbour."""
    for measure, order in ORDERS.items():
        for low, high in pairwise(order):
            a, b = (values(rows, part, name, measure) for name in (low, high))
            how = f"{a.mean():.4g}, {b.mean():.4g}; in {int((a < b).sum())} of {len(a)} orders"
            yield f"{part}: {measure} of {low} < {high}", bool(a.mean() < b.mean()), how


def constancy(rows: Sequence[Row], part: str) -> Iterator[Claim]:
    """Response less waiting: the run time where nobody is suspended, more where somebody is."""
    rest = {
        name: values(rows, part, name, "response_s") - values(rows, part, name, "waiting_s")
        for name in NAMES
    }
    still = np.stack([rest["bf"], rest["bf rand"], rest["bf size"]])
    off = float((np.ptp(still, axis=0) / still[0]).max())
    means = ", ".join(f"{name} {found.mean():.1f}" for name, found in rest.items())
    yield (
        f"{part}: response - waiting is the same without suspension",
        off < 1e-9,
        f"relative difference {off:.2g}; {means} s",
    )
    for name in ("sr rand", "sr size"):
        larger = rest[name] > rest["bf"]
        how = f"by {(rest[name] - rest['bf']).mean():.1f} s, in {larger.sum()} of {larger.size}"
        yield f"{part}: response - waiting is larger with {name}", bool(larger.all()), how


def drop(around: Around) -> Iterator[Claim]:
    """The use of the machine from the submission of the huge job to its start."""
    seeds = sorted({seed for _, seed in around})
    waits = [around["bf size", s]["start_s"] - around["bf size", s]["submit_s"] for s in seeds]
    before, meanwhile, instead = [], [], []
    for seed, wait in zip(seeds, waits, strict=True):
        backfill, resume = around["bf size", seed], around["sr size", seed]
        since = backfill["submit_s"]
        if wait > 0:
            before.append(mean_use(backfill, since - wait, since))
            meanwhile.append(mean_use(backfill, since, since + wait))
            instead.append(mean_use(resume, since, since + wait))
    how = "it never waited"
    if before:
        how = (
            f"{100 * np.mean(before):.1f} % before, {100 * np.mean(meanwhile):.1f} % while it "
            f"waits {np.mean(waits) / 3600:.1f} h; lower in "
            f"{int((np.array(meanwhile) < before).sum())} of {len(before)}"
        )
    yield (
        "utilisation drops before the huge job starts (bf size)",
        bool(before) and bool(np.mean(meanwhile) < np.mean(before)),
        how,
    )
    delays = [around["sr size", s]["start_s"] - around["sr size", s]["submit_s"] for s in seeds]
    yield (
        "suspend/resume starts the huge job at once",
        max(delays) == 0,
        f"waits {', '.join(f'{d / 3600:.2g}' for d in delays)} h",
    )
    if before:
        yield (
            "and has no such drop",
            bool(np.mean(instead) > np.mean(meanwhile)),
            f"{100 * np.mean(instead):.1f} % in the same hours",
        )
    told = [around["sr size", s] for s, d in zip(seeds, delays, strict=True) if d == 0]
    needed, pushed = (sum(f[key] for f in told) for key in ("needed_hosts", "pushed_hosts"))
    if needed > 0:
        yield (
            "it pushes aside little more than it needs (less than half more)",
            pushed < 1.5 * needed,
            f"{pushed / needed:.2f} times the hosts needed",
        )


def invariants(rows: Sequence[Row]) -> Iterator[Claim]:
    """What shuffling, sampling and shrinking keep."""
    spreads = {
        part: {measure: spread(values(rows, part, "bf", measure)) for measure in TITLES}
        for part in ("shuffled", "systematic", "work")
    }
    for part in ("shuffled", "systematic"):
        own = dict(spreads[part])
        stable = own.pop("utilisation")
        yield (
            f"{part}: utilisation varies less than any other measure",
            stable < min(own.values()),
            f"{stable:.1f} %; others {min(own.values()):.1f} to {max(own.values()):.1f} %",
        )
    for measure in TITLES:
        work, order = spreads["work"][measure], spreads["shuffled"][measure]
        if measure != "weighted_slowdown":
            yield (
                f"{measure} varies less over samples by work than over shuffles",
                work < order,
                f"{work:.1f} against {order:.1f} %",
            )
    off = np.abs(values(rows, "work", "bf", "work_kept") - 100).max()
    yield "work: asks for the same host seconds a job (5 %)", bool(off < 5), f"{off:.2g} % off"
    off = values(rows, "systematic", "bf", "sizes_off").max()
    yield "systematic: keeps the shares of the sizes (1 point)", bool(off < 1), f"{off:.2g} off"
    for part in ("shuffled", "systematic", "work"):
        use = values(rows, part, "bf", "utilisation").mean()
        target = values(rows, "whole", "bf", "utilisation")[0]
        yield (
            f"{part}: utilisation is that of the whole within 5 points",
            abs(use - target) < 5,
            f"{use:.1f} and {target:.1f} %",
        )
    for policy in ("bf", "sr size"):
        bits = {"proportional": ("waiting_s", "response_s"), "kept": tuple(TITLES)[2:]}
        for word, measures in bits.items():
            off = max(_off(rows, policy, measure, word == "proportional") for measure in measures)
            yield (
                f"shrunk: {', '.join(measures)} of {policy} are {word}",
                off < 1e-6,
                f"relative difference at most {off:.2g}",
            )


def _off(rows: Sequence[Row], policy: str, measure: str, proportional: bool) -> float:
    """How far the measure of shrunk orders is from what it should be; relative."""
    first = values(rows, "shuffled", policy, measure)[0]
    chosen = [row for row in rows if row["part"] == "shrunk" and row["policy"] == policy]
    factors = np.array([row["factor"] for row in chosen]) if proportional else 1.0
    return float(np.abs(values(rows, "shrunk", policy, measure) / (first * factors) - 1).max())
