"""The power of a platform as tables for the meter."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ptaskmodel.core.store import records
from ptaskmodel.energy.integral.records import RESOURCE, STATE
from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import Platform
from ptaskmodel.platform.model import Host
from ptaskmodel.platform.power import HostPower, Watts, host_power, link_power, sleep_states

NOTHING = Watts(0.0, 0.0, 0.0)


def power_tables(
    platform: Platform, leave_out: Collection[int] = (), switching: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(resources, states) of a platform in which nothing runs, as the kernel takes them.

    leave_out: hosts (indices) that draw nothing. switching: the pstates by which hosts go to sleep
    and come back draw what one flop after the other on one core draws, as in Batsim.

    Raises PlatformError where power is not what it should be, or nobody says any.
    """
    n = len(platform.hosts)
    rows: list[tuple[float, float, float, float]] = []
    resources = records(n + len(platform.all_links), RESOURCE)
    known = 0
    for host in platform.hosts:
        found = None if host.index in leave_out else host_power(platform, host)
        known += found is not None
        r = resources[host.index]
        r["first_state"] = len(rows)
        r["state"] = len(rows) + host.pstate
        r["off_W"] = 0.0 if found is None else found.off_W
        rows += _states(platform, host, found, switching)
    for link in platform.all_links:
        wattage = link_power(platform, link)
        known += wattage is not None
        r = resources[n + link.index]
        r["first_state"] = r["state"] = len(rows)
        r["capacity"] = link.bandwidth_Bps
        idle, busy = wattage or (0.0, 0.0)
        rows.append((idle, idle, busy, np.nan))
    if not known:
        raise PlatformError(
            f"{platform.path}: no host and no link says what it draws; give hosts the property "
            "wattage_per_state (Idle:Epsilon:AllCores for each speed)"
        )
    states = records(len(rows), STATE)
    states[:] = np.array(rows, dtype=STATE)
    resources["on"] = True
    resources["host"][:n] = True
    resources["watts"] = resources["idle"] = states["idle"][resources["state"]]
    resources["capacity"][:n] = states["capacity"][resources["state"][:n]]
    return resources, states


def _states(
    platform: Platform, host: Host, power: HostPower | None, switching: bool
) -> list[tuple[float, float, float, float]]:
    """Rows of the states of a host."""
    watts = [NOTHING] * len(host.speeds_flops) if power is None else list(power.states)
    if switching:
        for sleep in sleep_states(platform, host).values():
            for pstate in sleep:
                virtual = watts[pstate]
                drawn = virtual.epsilon_W + (virtual.full_W - virtual.epsilon_W) / host.cores
                # All three alike, but what is at the least load stays what the platform says.
                watts[pstate] = Watts(drawn, virtual.epsilon_W, drawn)
    rows = []
    for state, speed in zip(watts, host.speeds_flops, strict=True):
        # A speed of 0 counts as a load of 1.
        idle = state.full_W if speed <= 0.0 else state.idle_W
        epsilon = state.full_W if speed <= 0.0 else state.epsilon_W
        rows.append((idle, epsilon, state.full_W, speed * host.cores))
    return rows


def without_power(platform: Platform, hosts: Collection[Host]) -> list[str]:
    """Names of hosts that do not say what they draw."""
    return [host.name for host in hosts if host_power(platform, host) is None]
