"""Network models, as data: how L07 (parallel tasks), CM02 and LV08 (flows) use links.

The wire models of flows stand beside them in `WIRE_MODELS`; `wires` has their parameters.

Source: SimGrid's models of these names, and the factors of CM02 and LV08 in its documentation
(LV08: P. Velho and A. Legrand, "Accuracy study and improvement of network simulation in the SimGrid
framework", 2009).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple

from ptaskmodel.engine.usage.wires import WIRES, Wire
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform.facts import PlatformWarning

CROSS_TRAFFIC = 0.05

# A packet takes 10 ns and more at 400 Gbit/s.
WIRE_PRECISION_S = 1e-12

# What counts as one competitor on a shared link.
COUNTS = ("task", "flow", "pair")


class NetworkModel(NamedTuple):
    """Parameters of a network model.

    parallel: flows of a task progress together with its computations, at one rate (L07); else a
    task is one flow or one execution. tcp_gamma: largest TCP window, bytes (0: none). A flow lasts
    ``latency_factor`` times its latency, then shares links with weight
    1 / (latency + sum of weight_s / bandwidth), at ``bandwidth_factor`` of what it gets;
    crosstraffic: acknowledgements use 5 % of the reverse route. wire: of a wire model, in place of
    all these. solver: what shares if nothing else is asked for.
    precision_s: dates closer than that are one, unless the platform says otherwise.
    """

    name: str
    parallel: bool = False
    latency_factor: float = 1.0
    bandwidth_factor: float = 1.0
    weight_s: float = 0.0
    tcp_gamma: float = 4194304.0
    crosstraffic: bool = True
    wire: Wire | None = None
    solver: str = "maxmin"
    precision_s: float = 1e-9

    def amount(self, size: float) -> float:
        """What a flow of ``size`` bytes has to move."""
        return size / self.bandwidth_factor if self.wire is None else self.wire.wire_bytes(size)

    @classmethod
    def of_wire(cls, wire: Wire) -> NetworkModel:
        """The wire model with these parameters.

        wire: its parameters; its name says which model it is.
        """
        solver = "proportional" if wire.name == "DCTCP" else "maxmin"
        return cls(
            wire.name,
            tcp_gamma=0.0,
            crosstraffic=False,
            wire=wire,
            solver=solver,
            precision_s=WIRE_PRECISION_S,
        )


NETWORK_MODELS: Mapping[str, NetworkModel] = {
    "L07": NetworkModel("L07", parallel=True, crosstraffic=False, solver="bmf"),
    "CM02": NetworkModel("CM02"),
    "LV08": NetworkModel("LV08", latency_factor=13.01, bandwidth_factor=0.97, weight_s=20537.0),
}

WIRE_MODELS: Mapping[str, NetworkModel] = {
    name: NetworkModel.of_wire(wire) for name, wire in WIRES.items()
}
FLUID_MODELS = (*NETWORK_MODELS, *WIRE_MODELS)

_NUMBERS = {
    "network/latency-factor": "latency_factor",
    "network/bandwidth-factor": "bandwidth_factor",
    "network/weight-S": "weight_s",
}
_BOOLEANS = {"yes": True, "on": True, "true": True, "1": True}
_BOOLEANS |= {"no": False, "off": False, "false": False, "0": False}


def config_number(config: Mapping[str, str], key: str, default: float) -> float:
    """Return the number >= 0 at `key` of a platform's <config>, else `default`.

    Raises SimulationError if it is not such a number.
    """
    text = config.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise SimulationError(
            f"<config>: {key}: {text!r} is not a number >= 0; correct the platform"
        )
    return value


def _configured(config: Mapping[str, str]) -> str:
    """The model that a platform asks for, L07 (with a warning) if there is none of that name."""
    name = config.get("network/model", "L07")
    if config.get("host/model") == "ptask_L07":
        return "L07"
    if name not in NETWORK_MODELS:
        warnings.warn(
            f"<config>: network/model: {name!r} is not available; use L07 for parallel tasks",
            PlatformWarning,
            stacklevel=4,
        )
        return "L07"
    return name


def network_model(name: str | None, config: Mapping[str, str]) -> NetworkModel:
    """The model asked for (None: what the platform's <config> says, else L07), with its <config>.

    Raises SimulationError on an unknown name or a malformed value.
    """
    if name is None:
        name = _configured(config)
    if name in WIRE_MODELS:
        return WIRE_MODELS[name]
    if name not in NETWORK_MODELS:
        known = ", ".join(FLUID_MODELS)
        raise SimulationError(f"network model {name!r} is unknown; choose one of {known}")
    model = NETWORK_MODELS[name]
    gamma = config_number(config, "network/TCP-gamma", model.tcp_gamma)
    if model.parallel:
        return model._replace(tcp_gamma=gamma)
    changes: dict[str, float | bool] = {
        field: config_number(config, key, getattr(model, field)) for key, field in _NUMBERS.items()
    }
    crosstraffic = config.get("network/crosstraffic")
    if crosstraffic is not None:
        if crosstraffic.lower() not in _BOOLEANS:
            raise SimulationError(
                f"<config>: network/crosstraffic: {crosstraffic!r} is neither yes nor no; "
                "write one of these"
            )
        changes["crosstraffic"] = _BOOLEANS[crosstraffic.lower()]
    return model._replace(tcp_gamma=gamma, **changes)  # type: ignore[arg-type]
