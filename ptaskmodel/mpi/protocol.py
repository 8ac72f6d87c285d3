"""The parameters of SMPI's model of MPI, from its defaults and a platform's <config>.

Source: SimGrid's documentation of SMPI and of its configuration; network factors from A. Degomme et
al., "Simulating MPI applications: the SMPI approach", IEEE TPDS 28(8), 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.usage.network_models import (
    SMPI,
    NetworkModel,
    config_number,
    network_model,
)
from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.kernels.records import records
from ptaskmodel.mpi.state import OVERHEAD, PROTOCOL, STEP

ENVELOPE_BYTES = 16.0
WEIGHT_S = 8775.0

LATENCY_FACTORS = (
    "65472:11.6436;15424:3.48845;9376:2.59299;5776:2.18796;3484:1.88101;1426:1.61075;732:1.9503;"
    "257:1.95341;0:2.01467"
)
BANDWIDTH_FACTORS = (
    "65472:0.940694;15424:0.697866;9376:0.58729;5776:1.08739;3484:0.77493;1426:0.608902;"
    "732:0.341987;257:0.338112;0:0.812084"
)
# What SimGrid 4 calls the factors. A plain number there is none of SMPI's, but of other models.
NEWER = {
    "smpi/lat-factor": "network/latency-factor",
    "smpi/bw-factor": "network/bandwidth-factor",
}
SIDES = ("smpi/os", "smpi/ois", "smpi/or")
MOST_FIGURES = 16  # of a step; SimGrid writes five, and uses three


class Protocol(NamedTuple):
    """How messages travel: a network model, factors by size, thresholds and overheads, as arrays
    of `state.STEP`, `state.PROTOCOL` and `state.OVERHEAD`.
    """

    model: NetworkModel
    latency_factors: np.ndarray
    bandwidth_factors: np.ndarray
    figures: np.ndarray
    overheads: np.ndarray


def protocol_of(name: str | None, config: Mapping[str, str]) -> Protocol:
    """Return the protocol of the network model `name`.

    None means SMPI's, or L07's if the platform's `config` asks for L07; other values of its
    ``network/model`` have no effect, as with ``smpirun``. Raises SimulationError for an unknown
    model or a malformed value of the <config>.
    """
    if name is None:
        name = "L07" if config.get("host/model") == "ptask_L07" else SMPI
    latency, bandwidth = records(0, STEP), records(0, STEP)
    if name == SMPI:
        weight = config_number(config, "network/weight-S", WEIGHT_S)
        others = {key: value for key, value in config.items() if key not in NEWER.values()}
        model = network_model("CM02", others)._replace(name=SMPI, weight_s=weight)
        model = model._replace(latency_factor=1.0, bandwidth_factor=1.0)
        latency = _steps("smpi/lat-factor", config, LATENCY_FACTORS)
        bandwidth = _steps("smpi/bw-factor", config, BANDWIDTH_FACTORS)
    else:
        model = network_model(name, config)
    figures = records(1, PROTOCOL)
    figures["envelope"] = ENVELOPE_BYTES
    figures["detached"] = config_number(config, "smpi/send-is-detached-thresh", 65536.0)
    figures["early"] = config_number(config, "smpi/async-small-thresh", 0.0)
    figures["test"] = config_number(config, "smpi/test", 1e-4)
    figures["poll"] = config_number(config, "smpi/iprobe", 1e-4)
    figures["init"] = config_number(config, "smpi/init", 0.0)
    figures["miss"] = _is_on(config, "smpi/grow-injected-times", True)
    figures["poll_load"] = config_number(config, "smpi/iprobe-cpu-usage", 1.0)
    figures["computes"] = _is_on(config, "smpi/simulate-computation", True)
    figures["newest_first"] = not model.parallel
    if not model.parallel:  # shorter sleeps last as long as the precision of dates
        figures["least_sleep"] = config_number(config, "precision/timing", 1e-9)
    overheads = _overheads(config)
    figures["costs"] = (overheads[2]["a"] > 0.0).any() or (overheads[2]["b"] > 0.0).any()
    ends = "smpi/barrier-finalization"  # as SimGrid 4 has it
    ends = ends if ends in config else "smpi/finalization-barrier"
    figures["end_barrier"] = _is_on(config, ends, False)
    return Protocol(model, latency, bandwidth, figures, overheads)


def _is_on(config: Mapping[str, str], key: str, default: bool) -> bool:
    text = config.get(key)
    if text is None:
        return default
    if text.lower() in ("yes", "on", "true", "1"):
        return True
    if text.lower() in ("no", "off", "false", "0"):
        return False
    raise SimulationError(
        f"<config>: {key}: {shown(text)} is neither yes nor no; correct the platform"
    )


def _pairs(key: str, text: str, most: int) -> list[tuple[float, ...]]:
    """The entries "threshold:value;..." of a factor, or "threshold:a:b;..." of an overhead."""
    entries = []
    for part in filter(None, text.strip().strip('"').split(";")):
        try:
            numbers = tuple(map(float, part.split(":")))
        except ValueError:
            numbers = ()
        if not 1 < len(numbers) <= most or not all(0 <= x < np.inf for x in numbers):
            raise SimulationError(
                f"<config>: {key}: {shown(part)} is not 'size:value'; correct the platform"
            )
        entries.append(numbers)
    return sorted(entries)


def _steps(key: str, config: Mapping[str, str], default: str) -> np.ndarray:
    if key not in config and ":" in config.get(NEWER[key], ""):
        key = NEWER[key]
    text = config.get(key, default)
    if ":" not in text and ";" not in text:
        entries: list[tuple[float, ...]] = [(-1.0, config_number(config, key, 1.0))]
    else:
        entries = _pairs(key, text, 2)
    steps = records(len(entries), STEP)
    for k, (above, value) in enumerate(entries):
        steps["above"][k], steps["value"][k] = above, value
    return steps


def _overheads(config: Mapping[str, str]) -> np.ndarray:
    found = []
    for key in SIDES:
        text = config.get(key, "")
        found.append([(*entry, 0.0)[:3] for entry in _pairs(key, text, MOST_FIGURES)])
    longest = max(1, *map(len, found))
    overheads = records(3 * longest, OVERHEAD).reshape(3, longest)
    overheads["above"] = np.inf
    for side, entries in enumerate(found):
        for k, (above, a, b) in enumerate(entries):
            overheads[side, k] = (above, a, b)
    return overheads
