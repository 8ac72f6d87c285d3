"""What switches of hosts and their energy leave in files, as Batsim writes them (version 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.attempt import Attempt
from ptaskmodel.batch.hostset import text
from ptaskmodel.batch.measures import Load, unavailable_hosts
from ptaskmodel.batch.pstates import AT_ONCE, TO_SLEEP, Pstates, Switch, done, hosts_of
from ptaskmodel.batch.schedule import Schedule

if TYPE_CHECKING:
    from ptaskmodel.batch.metering import BatchEnergy

FloatArray = NDArray[np.float64]

STATE_COLUMNS = (
    "time",
    "nb_sleeping",
    "nb_switching_on",
    "nb_switching_off",
    "nb_idle",
    "nb_computing",
    "nb_unavailable",
)
PSTATE_COLUMNS = ("time", "machine_id", "new_pstate")
ENERGY_COLUMNS = ("time", "energy", "event_type", "wattmin", "epower")
# Instead of a pstate while hosts switch.
SWITCHING_OFF, SWITCHING_ON = -2, -1


class States(NamedTuple):
    """How many hosts are in which state over time: values hold from ``date_s[k]`` on."""

    date_s: FloatArray
    sleeping: NDArray[Any]
    switching_on: NDArray[Any]
    switching_off: NDArray[Any]
    idle: NDArray[Any]
    computing: NDArray[Any]
    unavailable: NDArray[Any]


def machine_states(schedule: Schedule, over_time: Load) -> States:
    """The states of the hosts; over_time: the load of the same schedule."""
    changes: list[tuple[float, int, int, int]] = []  # date, asleep, coming back, falling asleep
    for switch in schedule.switches:
        n, is_done = len(switch.hosts), switch.done_s <= schedule.now_s
        if switch.kind == TO_SLEEP:
            changes.append((switch.asked_s, 0, 0, n))
            changes += [(switch.done_s, n, 0, -n)] if is_done else []
        elif switch.kind != AT_ONCE:
            changes.append((switch.asked_s, -n, n, 0))
            changes += [(switch.done_s, 0, -n, 0)] if is_done else []
    gone = unavailable_hosts(schedule)
    others = [*(change[0] for change in changes), *(date for date, _ in gone)]
    dates = np.unique(np.concatenate([over_time.date_s, others]))
    counts = np.zeros((3, len(dates)), dtype=np.int64)
    for date, *rest in changes:
        counts[:, np.searchsorted(dates, date)] += rest
    asleep, on, off = np.cumsum(counts, axis=1)
    place = np.searchsorted(over_time.date_s, dates, side="right") - 1
    used = np.append(over_time.used_hosts, 0)[place]
    since = np.searchsorted([date for date, _ in gone], dates, side="right") - 1
    unavailable = np.append([count for _, count in gone], 0)[since].astype(np.int64)
    idle = schedule.num_hosts - asleep - on - off - used - unavailable
    return States(dates, asleep, on, off, idle, used, unavailable)


def host_seconds(states: States, until_s: float) -> dict[str, float]:
    """Host seconds in each state up to a date, by Batsim's names."""
    if not len(states.date_s):
        return dict.fromkeys(("sleeping", "switching_on", "switching_off"), 0.0)
    lasts = np.diff(np.minimum(np.append(states.date_s, until_s), until_s))
    return {
        name: float((getattr(states, name) * lasts).sum())
        for name in ("sleeping", "switching_on", "switching_off")
    }


def pstate_rows(schedule: Schedule, pstates: Pstates) -> Iterator[tuple[Any, ...]]:
    """The lines of pstate_changes.csv: at 0, then what is asked for and what is done, by date."""
    first: dict[int, list[int]] = {}
    for host, fact in enumerate(pstates.facts):
        first.setdefault(fact.pstate, []).append(host)
    rows: list[tuple[float, int, str, int]] = []
    for pstate, hosts in first.items():
        rows.append((0.0, 0, text(sum(1 << host for host in hosts)), pstate))
    for requests in _by_request(schedule.switches):
        to_sleep = requests[0].kind == TO_SLEEP
        asked = SWITCHING_OFF if to_sleep else SWITCHING_ON
        rows.append((requests[0].asked_s, 1, text(hosts_of(requests)), asked))
    for date, parts in done(schedule.switches, schedule.now_s):
        rows.append((date, 1, text(hosts_of(parts)), parts[0].pstate))
    rows.sort(key=lambda row: row[:2])
    return ((f"{date:g}", hosts, pstate) for date, _, hosts, pstate in rows)


def _by_request(switches: Sequence[Switch]) -> list[list[Switch]]:
    found: dict[int, list[Switch]] = {}
    for switch in switches:
        found.setdefault(switch.request, []).append(switch)
    return list(found.values())


def switch_counts(schedule: Schedule) -> dict[str, int]:
    """How many changes of pstates were asked for, and of how many hosts in all."""
    return {
        "nb_grouped_switches": len({switch.request for switch in schedule.switches}),
        "nb_machine_switches": sum(len(switch.hosts) for switch in schedule.switches),
    }


def energy_rows(energy: BatchEnergy) -> Iterator[tuple[str, ...]]:
    """The lines of consumed_energy.csv; epower: the mean power since the line before."""
    last_s, last_J = 0.0, 0.0
    for date, joules, event, epsilon_W in energy.rows:
        power = f"{(joules - last_J) / (date - last_s):g}" if date > last_s else "NA"
        yield f"{date:g}", f"{joules:g}", event, f"{epsilon_W:g}", power
        last_s, last_J = date, joules


def by_job(attempts: Sequence[Attempt], joules: FloatArray) -> dict[str, float]:
    """Sums over all attempts of each job, by its id, J."""
    found: dict[str, float] = {}
    for attempt in attempts:
        found[attempt.job.id] = found.get(attempt.job.id, 0.0) + float(joules[attempt.number])
    return found
