"""The answer of a page: the sentences and the few numbers with which it begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.recording import HOST, LINK
from ptaskmodel.results.compared_metrics import number_of, outcomes
from ptaskmodel.results.directory import number as as_number
from ptaskmodel.results.directory import read_optional
from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.results.pages.interference import Limit, unknown_culprits
from ptaskmodel.results.pages.page import Section, Table
from ptaskmodel.results.pictures.topology import mean_use
from ptaskmodel.results.pictures.tracks import hosts_off
from ptaskmodel.results.sentences import jobs_answer
from ptaskmodel.results.states import ENDED, KILLED, NOT_SLOWED, OUTCOMES, count_text, outcome_of
from ptaskmodel.results.tables.costs import Cost, summed
from ptaskmodel.results.tables.energy import ENERGY
from ptaskmodel.results.tables.places import Place, level_of, resource_name
from ptaskmodel.style.text import count, duration, elided, number

# Of the time of all tasks: less than this lost on a resource is not worth a sentence.
WORTH_TELLING = 0.001
FULL = 0.995
MOST_LOOPS = 2  # told in the answer
MOST_NAMED = 3  # tasks that lost nothing
MOST_LETTERS = 40  # of a name
UNEVEN = 1.01  # of computing: the most of a rank over the mean
Card = list[str]


class Found(NamedTuple):
    """What answers are made of. costs: who cost whom, the most first, where it is known.

    loops: the closed loop of each request. users: of jobs. energies: of jobs or tasks, J.
    """

    results: Results
    limits: Sequence[Limit]
    costs: Sequence[Cost]
    places: Mapping[str, Place]
    loops: Mapping[str, str] = {}
    users: Mapping[str, str] = {}
    energies: Mapping[str, float] = {}

    def named(self, kind: str, resource: str) -> str:
        """A ``resource`` of a ``kind``, a link by its place."""
        return resource_name(kind, resource, self.places)


def answer_of(found: Found) -> str:
    """The sentences at the head of the page of what was ``found``, a line each."""
    return {"task": _of_tasks, "job": _of_jobs, "rank": _of_ranks}[found.results.what](found)


def numbers_of(found: Found) -> list[Card]:
    """[name, value, spread and what it is of] of at most four numbers of what was ``found``."""
    if not found.results.submitted:
        return []
    kind = {"task": _task_numbers, "job": _job_numbers, "rank": _rank_numbers}
    return kind[found.results.what](found)[:4]


def lost_s(task: ShownTask) -> float:
    """What a ``task`` lost to others, s; 0 where it is not known."""
    if task.slowdown is None or task.duration_s is None:
        return 0.0
    return task.duration_s * (1.0 - 1.0 / max(task.slowdown, 1.0))


def _of_tasks(found: Found) -> str:
    results = found.results
    if loops := results.summary.get("loops"):
        return _of_loops(found, loops)
    known = [task for task in results.tasks if task.slowdown is not None]
    several = results.submitted != 1
    takes = "take" if several else "takes"
    took = f"{count(results.submitted, 'task')} {takes} {duration(results.end_s)} in all"
    if not known and results.summary.get("network_level") == "packets":
        return f"{took}, as packets in queues."
    if not known:
        return f"{took}; what slowed them was not recorded."
    slowed = [task for task in known if (task.slowdown or 1.0) > NOT_SLOWED]
    if not slowed:
        slows = "No task slows another one: " * several
        return f"{slows}{took}, {'each ' * several}as long as alone."
    lost = sum(map(lost_s, known))
    of = count(len(known), "task")
    who = f"All {of}" if len(slowed) == len(known) > 1 else f"{count(len(slowed))} of {of}"
    first = f"{who} lose {duration(lost)} to each other"
    if found.costs:
        first = _worst_pair(found)
    elif (worst := _worst(found, (HOST, LINK))) is not None:
        total = sum(limit.seconds for limit in found.limits) or 1.0
        first += (
            f", most on {found.named(worst.kind, worst.resource)}: there "
            f"{number(worst.shared / total, 'share')} of all tasks' time is spent sharing"
        )
    free = [task.task_id for task in known if (task.slowdown or 1.0) <= NOT_SLOWED]
    lines = [f"{first}."]
    if len(free) > MOST_NAMED:
        lines.append(f"The other {count(len(free))} lose nothing.")
    elif free:
        lines.append(f"No other task slows {_names(free)}.")
    if asked := unknown_culprits(results):
        lines.append(asked)
    return "\n".join(lines)


def _of_loops(found: Found, loops: Mapping[str, Any]) -> str:
    """How long the requests of closed loops take, and which clients cost each other most."""
    told = [f"half of {short(name)}'s requests take up to {duration(of['p50_s'])}, 1 % more than "
            f"{duration(of['p99_s'])}" for name, of in loops.items() if "p50_s" in of]  # fmt: skip
    said = "; ".join(told[:MOST_LOOPS]) or "no request is served"
    if len(told) > MOST_LOOPS:
        said += f"; {count(len(told) - MOST_LOOPS)} loops more are below"
    said = f"{said[0].upper()}{said[1:]}."
    return f"{said}\n{_worst_pair(found)}." if found.costs else said


def _worst_pair(found: Found) -> str:
    """Which two tasks, or loops of requests, cost each other most, and where."""
    costs = [
        cost._replace(
            task_id=found.loops.get(cost.task_id, cost.task_id),
            slowed_by=found.loops.get(cost.slowed_by, cost.slowed_by),
        )
        for cost in found.costs
    ]
    pairs = [tuple(sorted((cost.task_id, cost.slowed_by))) for cost in costs]
    between = summed((pair, cost.seconds) for pair, cost in zip(pairs, costs, strict=True))
    a, b = worst = next(iter(between))
    mine = [cost for pair, cost in zip(pairs, costs, strict=True) if pair == worst]
    where = summed(((cost.limited_by, cost.resource), cost.seconds) for cost in mine)
    kind, resource = next(iter(where))
    each = summed((cost.task_id, cost.seconds) for cost in mine)
    mutual = len(each) == 2
    if not mutual:
        a, b = mine[0].slowed_by, mine[0].task_id
    verb = f"and {short(b)} cost each other" if mutual else f"costs {short(b)}"
    if a == b:
        verb = "costs itself"
    lost = dict.fromkeys(duration(each[name]) for name in (b, a) if each.get(name, 0.0) > 0.0)
    said = f"{short(a)} {verb} {' and '.join(lost)} on {found.named(kind, resource)}"
    spans = found.results.utilisation.get((resource, kind), [])
    full = sum(end - start for start, end, share in spans if share >= FULL)
    if full > 0.0:
        said += f" (full for {duration(full)} of {duration(found.results.end_s)})"
    return said


def _of_jobs(found: Found) -> str:
    lines = jobs_answer(outcomes(found.results), found.results.summary)
    if unfair := _unfair(found.results.summary):
        lines.append(f"{count(unfair, 'job')} started later because of jobs that came after.")
    lines += _culprit(found)
    if (links := _busiest_level(found)) is not None:
        lines.append(links)
    return "\n".join([lines[0], " ".join(lines[1:])]).strip()


def _culprit(found: Found) -> list[str]:
    """Which user cost others most host hours; which job, where no user cost another one any."""
    hosts = {task.task_id: len(task.hosts) for task in found.results.tasks}
    groups: tuple[tuple[str, Mapping[str, str]], ...] = ("user", found.users), ("job", {})
    for kind, of in groups:
        pairs = ((of.get(cost.task_id, cost.task_id), of.get(cost.slowed_by, cost.slowed_by), cost)
                 for cost in (found.costs if of or kind == "job" else ()))  # fmt: skip
        caused = summed((culprit, cost.seconds * hosts.get(cost.task_id, 0) / 3600)
                        for victim, culprit, cost in pairs if victim != culprit)  # fmt: skip
        if caused:
            worst, whole = next(iter(caused)), sum(caused.values())
            return [f"Of {number(whole)} host hours that {kind}s cost each other, {kind} "
                    f"{short(worst)} cost most, {number(caused[worst])}."]  # fmt: skip
    unknown = unknown_culprits(found.results)
    return [unknown] if unknown else []


def _unfair(summary: Mapping[str, Any]) -> int:
    """How many jobs later submissions delayed, by the first basis that was asked for."""
    found = summary.get("unfair_jobs") or {}
    return next((many for basis, many in found.items() if basis != "frozen"), 0)


def _busiest_level(found: Found) -> str | None:
    """The links of the level that is used most, from the least to the most used of them."""
    levels: dict[str, list[float]] = {}
    for name, use in mean_use(found.results, LINK).items():
        levels.setdefault(level_of(name, found.places).level, []).append(use / 100)
    if not levels:
        return None
    level = max(levels, key=lambda name: sum(levels[name]) / len(levels[name]))
    low, high = (number(value, "share") for value in (min(levels[level]), max(levels[level])))
    which = {"links": "The links", "spine-leaf": "The links between leaves and spine"}
    said = which.get(level, f"The {level} links")
    used = high if low == high else f"{low.removesuffix(' %')} to {high}"
    return f"{said} are {used} used on average."


def _of_ranks(found: Found) -> str:
    summary = found.results.summary
    said = []
    for of, first, seconds, sum_s in _spent(summary):
        told = first if seconds.get(first, 0.0) > WORTH_TELLING * sum_s else next(iter(seconds))
        said.append(f"{number(seconds[told] / sum_s, 'share')} of {of} is {told}")
    text = "; ".join(said) or f"The run takes {duration(found.results.end_s)}"
    more = []
    links = (summary.get("critical_path") or {}).get("links") or []
    # What a message lost counts for each of its links: the culprit is shared longest.
    shared_s = {limit.resource: limit.shared for limit in found.limits}
    worst = max(
        links,
        key=lambda link: (link["contention_s"], shared_s.get(link["link"], 0.0)),
        default=None,
    )
    if worst is not None and worst["contention_s"] > WORTH_TELLING * found.results.end_s:
        text += f", most on {found.named(LINK, worst['link'])}"
        spared, whole = duration(worst["contention_s"]), duration(found.results.end_s)
        more.append(f"Were it never shared, the run would end at most {spared} of {whole} sooner.")
        more += _senders(found, worst["link"])
    elif (shared := _worst(found, (LINK,))) is not None:
        text += f"; most is lost on {found.named(shared.kind, shared.resource)}"
        more += _senders(found, shared.resource)
    if (uneven := number_of(summary, "imbalance")) is not None and uneven > UNEVEN:
        rank = summary.get("worst_rank")
        more.append(f"Rank {rank} computes longest, {number(uneven)} times the mean.")
    if not links:
        more.append("What determines the end is not recorded: replay with --critical-path.")
    return f"{text}.\n{' '.join(more)}".rstrip()


def _senders(found: Found, link: str) -> list[str]:
    """Which ranks send most over a link, if that was recorded."""
    pairs, senders = found.results.link_users.get(link, (0, []))
    if not senders:
        return []
    source, _, target = senders[0].task_id.partition(">")
    most, *others = (number(one.bytes, "bytes") for one in senders)
    alike = ", as others do" if most in others else ""
    of = f"Of {count(pairs)} pairs of ranks that send over it, rank" if pairs > 1 else "Rank"
    return [f"{of} {source} to {target} sends most, {most}{alike}."]


def _spent(summary: Mapping[str, Any]) -> list[tuple[str, str, dict[str, float], float]]:
    """(of what, the kind to look for, s of each kind, the most first, their sum) of a replay."""
    path = summary.get("critical_path")
    both = (
        ("the ranks' time", "waiting", summary.get("mean_rank_s")),
        ("the critical path", "contention", (path or {}).get("seconds")),
    )
    return [(of, first, summed(seconds.items()), whole) for of, first, seconds in both
            if isinstance(seconds, dict) and (whole := sum(seconds.values()))]  # fmt: skip


def _worst(found: Found, kinds: tuple[str, ...]) -> Limit | None:
    """The resource of these kinds that was shared longest, if that is worth telling."""
    total = sum(limit.seconds for limit in found.limits)
    told = [limit for limit in found.limits if limit.kind in kinds and limit.shared > 0.0]
    worst = max(told, key=lambda limit: limit.shared, default=None)
    return worst if worst is not None and worst.shared >= WORTH_TELLING * total else None


def _names(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join([", ".join(map(short, names[:-1])), short(names[-1])]).removeprefix(" and ")


def short(name: str) -> str:
    """A ``name`` that fits into a sentence."""
    return elided(name, MOST_LETTERS)


def _slowdowns(found: Found) -> Card | None:
    """The contention slowdown of all whose slowdown is known, killed ones included."""
    tasks = found.results.tasks
    slow = [task.slowdown for task in tasks if task.slowdown is not None]
    if not slow:
        return None
    half, tail = np.quantile(slow, (0.5, 0.95))
    about = f"half at most {number(half)} · 95 %: {number(tail)} · most {number(max(slow))}"
    if max(slow) <= NOT_SLOWED:
        about = f"no {found.results.what} is slowed"
    if len(slow) < len(tasks):
        about += f" · of {count(len(slow))} of {count(len(tasks), found.results.what)}"
    return ["mean contention slowdown", number(float(np.mean(slow))), about]


def _end(results: Results) -> Card:
    if results.stopped is not None:
        return ["simulated until", duration(results.stopped.at_s), "stopped before its end"]
    return ["makespan", duration(results.end_s), "from the start to the last end"]


def _task_numbers(found: Found) -> list[Card]:
    results = found.results
    counts = outcomes(results)
    about = "all ended" if list(counts) == [ENDED] else count_text(counts)
    cards = [_end(results), [f"{results.what}s", count(results.submitted), about]]
    cards += [card] if (card := _slowdowns(found)) is not None else []
    lost, spent = sum(map(lost_s, results.tasks)), sum(t.duration_s or 0.0 for t in results.tasks)
    if any((task.slowdown or 1.0) > NOT_SLOWED for task in results.tasks):
        about = f"{number(lost / spent, 'share')} of the time of all tasks"
        cards.append(["lost to others", duration(lost), about])
    return [*_energy(found), *cards]


def _job_numbers(found: Found) -> list[Card]:
    results, summary = found.results, found.results.summary
    counts = dict(outcomes(results))
    ended = counts.pop(ENDED, 0)
    cards = [["jobs ended", f"{count(ended)} of {count(results.submitted)}", count_text(counts)]]
    if results.stopped is not None:
        cards = [_end(results)]
    half, tail, most = (number_of(summary, "waiting_s", key) for key in ("p50", "p95", "max"))
    if half is not None and results.submitted == 1:
        cards.append(["waiting", duration(half), "from submission to start"])
    elif half is not None:
        about = f"half wait less · 95 %: {duration(tail)} · longest {duration(most)}"
        cards.append(["waiting", duration(half), about])
    used, useful = (number_of(summary, key) for key in ("utilisation", "useful_utilisation"))
    if used is not None:
        hosts, cpus = (number_of(summary, key) for key in ("hosts", "cpus"))
        of = count(int(hosts), "host") if hosts else count(int(cpus or 0), "CPU")
        about = f"of {of}, over time"
        if useful is not None:
            about = f"useful: {number(useful, 'share')}, what jobs that ended need alone"
        cards.append(["utilisation", number(used, "share"), about])
    slow = _slowdowns(found)
    if slow is None and (mean := number_of(summary, "bounded_slowdown", "mean")) is not None:
        half, tail = (number_of(summary, "bounded_slowdown", key) for key in ("p50", "p95"))
        about = f"half at most {number(half)} · 95 %: {number(tail)}"
        slow = ["mean bounded slowdown", number(mean), about]
    cards += [] if slow is None else [slow]
    return [*_energy(found), *cards]


def _rank_numbers(found: Found) -> list[Card]:
    summary = found.results.summary
    messages = number_of(summary, "messages")
    about = "" if messages is None else f"{count(int(messages), 'message')}"
    cards = [_end(found.results), ["ranks", count(found.results.submitted), about]]
    for of, _, seconds, whole in _spent(summary):
        (kind, spent), *others = list(seconds.items())[:3]
        rest = [f"{name} {number(x / whole, 'share')}" for name, x in others if x > 0.0]
        cards.append([f"{kind}, of {of}", number(spent / whole, "share"), " · ".join(rest)])
    return cards


def _energy(found: Found) -> list[Card]:
    """The energy of the run and the most power that was drawn, if they were counted."""
    results = found.results
    total, peak = (number_of(results.summary, "energy", key) for key in ("total_J", "peak_W"))
    if total is None:
        return []
    about = f"at most {number(peak, 'power')}"
    if killed := _by_outcome(found).get(KILLED):
        about += f" · {number(killed / total, 'share')} in killed {results.what}s"
    return [["energy", number(total, "energy"), about]]


def energies_of(results: Results) -> dict[str, float]:
    """The energy of each job or task of `results`, J; none where it was not counted."""
    known = {task.task_id for task in results.tasks}
    columns: dict[str, Any] = {"kind": str, "name": str, "share_J": as_number}
    found = read_optional(results.directory / ENERGY, **columns)
    return {name: joules or 0.0 for kind, name, joules in found
            if kind == results.what and name in known}  # fmt: skip


def _by_outcome(found: Found) -> dict[str, float]:
    """The energy of what ended, was killed, did not run, J."""
    outcomes = {task.task_id: outcome_of(task.state) for task in found.results.tasks}
    return summed((outcomes[name], joules) for name, joules in found.energies.items())


def energy_section(found: Found) -> list[Section]:
    """Return for what the energy of a run was used, and by which users of jobs; or nothing.

    found: of the run. What is in nobody's part is of idle, sleeping and switching hosts; how long
    these are so is told apart.
    """
    total, what = number_of(found.results.summary, "energy", "total_J"), f"{found.results.what}s"
    if not total or found.results.what == "rank":
        return []
    by_outcome = _by_outcome(found)
    parts = {f"{what} that {'are ' * (of == KILLED)}{of}": by_outcome[of]
             for of in OUTCOMES if of in by_outcome}  # fmt: skip
    parts["idle, sleeping and switching hosts, links"] = total - sum(parts.values())
    columns = {"energy": "energy", "of all": "share"}
    lines = [(name, joules, joules / total) for name, joules in parts.items()]
    tables = [Table({"energy of": "text"} | columns, lines, "Energy")]
    if len(set(found.users.values())) > 1:
        by_user = summed((found.users.get(name, "(none)"), joules)
                         for name, joules in found.energies.items())  # fmt: skip
        lines = [(name, joules, joules / total) for name, joules in by_user.items()]
        tables.append(Table({"user": "text"} | columns, lines, "Energy by user"))
    return [Section("What used the energy", _hosts_off(found.results), tuple(tables))]


def _hosts_off(results: Results) -> str:
    """How long hosts slept and switched on and off, in host hours, if any did."""
    if not (off := np.array(hosts_off(results))).size:
        return ""
    lasted_s = np.diff(off[:, 0], append=results.end_s).clip(min=0.0)
    hours = zip(("sleeping", "switching on", "switching off"), lasted_s @ off[:, 1:], strict=True)
    told = (f"{name} {number(float(spent) / 3600)}" for name, spent in hours)
    return f"Host hours: {', '.join(told)}."
