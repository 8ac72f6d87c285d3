"""Network models, as data: how L07 (parallel tasks), CM02 and LV08 (flows) use links.

The wire models of flows stand beside them in `WIRE_MODELS`: flows as a transport protocol and its
wires carry them.

Source: SimGrid's models of these names, and the factors of CM02 and LV08 in its documentation
(LV08: P. Velho and A. Legrand, "Accuracy study and improvement of network simulation in the SimGrid
framework", 2009).

A `Wire` holds all that two levels of simulation know of a protocol: the fluid one (`assembly`,
`engine.wires`) and packets in queues. Each ingredient has a field, and a value that switches
it off; `INGREDIENTS` tells units and sources. ``--network-parameters`` reads a JSON file of them,
and the <config> of a platform may hold some.

The fluid level, with S bytes of a flow, P bytes a packet, H bytes of headers, c = P + H:

    bytes to move       B = S + H ceil(S / P)
    path                D = sum of latencies, X = sum of 1 / capacity, C = least capacity
    round trip          R = D + D_back + X c + X_back A          (A: an acknowledgement)
    before the first    D + D_back + (X + X_back) H, and the queues both ways     (a handshake)
    largest rate        W c / R, doubled each round trip, dropped once it is C    (slow start)
    weight              1 / R
    after the last      D + (X - 1 / C) min(c, B), and the queues on the way; then, if the clock
                        stops at the acknowledgement, D_back + X_back A
    a queue             on a link that is 98 % full and has two flows or more: a part of the
                        threshold at which packets are marked
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from ptaskmodel.errors import SimulationError, WorkloadError, shown
from ptaskmodel.files import AnyPath
from ptaskmodel.platform.facts import PlatformWarning
from ptaskmodel.remarks import Account, reader

CONNECT, FIRST_BYTE = "connect", "first byte"
LAST_BYTE, ACKNOWLEDGEMENT = "last byte", "acknowledgement"
# What files may call the same.
CLOCK_NAMES = {"start of the read": FIRST_BYTE, "its completion at the client": LAST_BYTE}
LARGEST = 1e12


class Wire(NamedTuple):
    """A transport protocol and its wires; `INGREDIENTS` has units, sources and what is off.

    name: of the model. mss_B: bytes of a flow in a packet. header_B: bytes of headers with each;
    ack_B: of an acknowledgement. latency, hops: whether the last byte crosses the path, and its
    packet each link of it. measured_from, measured_to: when the clock of a flow starts (``connect``
    or ``first byte``) and stops (``last byte`` or ``acknowledgement``). initial_window: packets
    (0: no slow start). rtt_weights: weights are 1 / round-trip time, else equal. acknowledgements:
    they use the way back. mark_packets, mark_s: threshold at which a queue marks packets, the
    larger of so many packets and so many seconds of its link. queue_part: part of it that a full
    link holds (0: no queues). input_ports: a full link divides itself among the input links of its
    switch, and their parts among their flows (see `engine.wires`).
    read_overhead_s: fixed time of a flow, outside the network. queue_packets: room of a queue.
    pfc_packets: resume and pause (None: no pauses). The last two are of packets alone.
    """

    name: str
    mss_B: float = 1448.0
    header_B: float = 54.0
    ack_B: float = 54.0
    latency: bool = True
    hops: bool = True
    measured_from: str = CONNECT
    measured_to: str = LAST_BYTE
    initial_window: float = 10.0
    rtt_weights: bool = True
    acknowledgements: bool = False
    mark_packets: float = 0.0
    mark_s: float = 0.0
    queue_part: float = 0.0
    input_ports: bool = False
    read_overhead_s: float = 0.0
    queue_packets: float = 5000.0
    pfc_packets: tuple[float, float] | None = None

    @property
    def packet_B(self) -> float:
        """A full packet on the wire, bytes."""
        return self.mss_B + self.header_B

    def wire_bytes(self, size: float) -> float:
        """The bytes on the wire of a flow of ``size`` bytes: with the headers of its packets."""
        return size + self.header_B * -(-size // self.mss_B)


WIRES: Mapping[str, Wire] = {
    "DCTCP": Wire(
        "DCTCP", acknowledgements=True, mark_packets=20.0, mark_s=20e-6, queue_part=0.25
    ),
    "CUBIC": Wire("CUBIC", queue_packets=1000.0),
    "ROCE": Wire(
        "ROCE", mss_B=4096.0, header_B=64.0, ack_B=64.0, measured_from=FIRST_BYTE,
        measured_to=ACKNOWLEDGEMENT, initial_window=0.0, rtt_weights=False, queue_packets=4000.0,
        pfc_packets=(150.0, 200.0),
    ),
    "RDMA": Wire(
        "RDMA", mss_B=1024.0, header_B=82.0, ack_B=0.0, latency=False, hops=False,
        measured_from=FIRST_BYTE, initial_window=0.0, rtt_weights=False,
    ),
}  # fmt: skip


class LoopFacts(TypedDict):
    """What the loop reads of a wire model, as fields of `state.Options`."""

    packet: float
    first_window: float
    queue_bytes: float
    queue_s: float
    by_ports: bool


def loop_facts(wire: Wire | None) -> LoopFacts:
    """What the loop reads of a wire model. wire: None if flows have none."""
    if wire is None:
        return {
            "packet": 0.0, "first_window": math.inf, "queue_bytes": 0.0, "queue_s": 0.0,
            "by_ports": False,
        }  # fmt: skip
    return {
        "packet": float(wire.packet_B),
        "first_window": float(wire.packet_B * wire.initial_window) or math.inf,
        "queue_bytes": float(wire.packet_B * wire.mark_packets * wire.queue_part),
        "queue_s": float(wire.mark_s * wire.queue_part),
        "by_ports": wire.input_ports,
    }


class Ingredient(NamedTuple):
    """A row about one field: its unit, the value that switches it off, what it is based on."""

    unit: str | None
    off: object
    source: str


FRAMES = "IEEE 802.3, RFC 791, RFC 9293, RFC 7323; RoCEv2: InfiniBand Architecture 1.4, annex A17"
INGREDIENTS: Mapping[str, Ingredient] = {
    "mss_B": Ingredient("B", None, "RFC 9293: maximum segment size; RoCEv2: path MTU"),
    "header_B": Ingredient("B", 0, FRAMES),
    "ack_B": Ingredient("B", 0, FRAMES),
    "latency": Ingredient(None, False, "propagation of the last byte"),
    "hops": Ingredient(None, False, "store and forward: a packet crosses each link in turn"),
    "measured_from": Ingredient(None, FIRST_BYTE, "RFC 9293: SYN and SYN-ACK precede data"),
    "measured_to": Ingredient(None, LAST_BYTE, "what the measurement says"),
    "initial_window": Ingredient("packets", 0, "RFC 6928: 10 segments; RFC 5681: slow start"),
    "rtt_weights": Ingredient(None, False, "Mathis et al. 1997: rates go with 1 / RTT"),
    "acknowledgements": Ingredient(None, False, "RFC 9293: one for each packet, on the way back"),
    "mark_packets": Ingredient("packets", 0, "Alizadeh et al. 2010: threshold K of DCTCP"),
    "mark_s": Ingredient("s", 0, "Alizadeh et al. 2010: K grows with capacity times RTT"),
    "queue_part": Ingredient("1", 0, "mean queue in steady state, a quarter of K in ns-3 runs"),
    "input_ports": Ingredient(None, False, "IEEE 802.1Qbb: paused inputs are served in turn"),
    "read_overhead_s": Ingredient("s", 0, "measured on an RDMA testbed: 9 to 14 us a read"),
    "queue_packets": Ingredient("packets", None, "packets alone: room of a queue"),
    "pfc_packets": Ingredient("packets", None, "packets alone: IEEE 802.1Qbb, resume and pause"),
}
# What files may call a field besides its name.
OTHER_NAMES = {"mtu_B": "mss_B"}
# In the <config> of a platform, before the name of a field.
CONFIG = "wire/"
# The least values that are not 0.
LEAST = {"mss_B": 1.0, "queue_packets": 1.0}


@reader(SimulationError)
def read_wire(path: AnyPath, account: Account, name: str | None = None) -> Wire:
    """The wire model in the JSON file at a path: what it gives, the rest by its defaults.

    name: of the model, if it is chosen elsewhere. account: of the file. Raises SimulationError
    naming all that is wrong.
    """
    from ptaskmodel.workload.formats.json import read_json

    where = account.file
    try:
        document = read_json(Path(path))
    except WorkloadError as error:
        raise SimulationError(str(error)) from None
    if type(document) is not dict:
        raise SimulationError(f"{where}: is {shown(document)}; give an object of parameters")
    given = dict(document)
    own = given.pop("network_model", name)
    if type(own) is not str or own not in WIRES:
        raise SimulationError(
            f"{where}: /network_model: is {shown(own)}; give one of {', '.join(WIRES)}"
        )
    if name is not None and name != own:
        raise SimulationError(
            f"{where}: /network_model: is {shown(own)}, but --network-model is {name}; drop one"
        )
    problems: list[str] = []
    values = _values(given, problems)
    if problems:
        raise SimulationError(f"{where}: {'; '.join(problems)}")
    return WIRES[own]._replace(**values)


def _values(given: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The fields that are given; what is wrong with them is added to the problems."""
    return {OTHER_NAMES.get(key, key): _value(key, each, problems) for key, each in given.items()}


def _of_config(name: str, config: Mapping[str, str]) -> Wire:
    """The wire model with what the <config> of a platform gives: ``wire/FIELD``, as in the file."""
    given: dict[str, Any] = {}
    for key, text in config.items():
        if key.startswith(CONFIG):
            try:
                given[key.removeprefix(CONFIG)] = json.loads(text)
            except ValueError:
                given[key.removeprefix(CONFIG)] = text
    problems: list[str] = []
    values = _values(given, problems)
    if problems:
        raise SimulationError(f"<config>: wire{'; wire'.join(problems)}; correct the platform")
    return WIRES[name]._replace(**values)


def _value(key: str, value: Any, problems: list[str]) -> Any:
    """The value of a field; what is wrong with it is added to the problems."""
    name = OTHER_NAMES.get(key, key)
    if name not in INGREDIENTS:
        from ptaskmodel.workload.formats.json import close_match

        close = close_match(key, INGREDIENTS)
        hint = f"do you mean {close}" if close else f"it may be {', '.join(INGREDIENTS)}"
        problems.append(f"/{key[:60]}: is not a parameter; {hint}")
    elif name in ("measured_from", "measured_to"):
        allowed = (CONNECT, FIRST_BYTE) if name == "measured_from" else (LAST_BYTE, ACKNOWLEDGEMENT)
        value = CLOCK_NAMES.get(value, value) if type(value) is str else value
        if value not in allowed:
            problems.append(
                f"/{key}: is {shown(value)}; give {shown(allowed[0])} or {allowed[1]!r}"
            )
    elif type(getattr(WIRES["CUBIC"], name)) is bool:
        if type(value) is not bool:
            problems.append(f"/{key}: is {shown(value)}; give true or false")
    elif name == "pfc_packets":
        if not (value is None or _is_range(value)):
            problems.append(f"/{key}: is {shown(value)}; give [resume, pause] in packets, or null")
        return tuple(map(float, value)) if _is_range(value) else None
    elif name == "read_overhead_s" and _is_range(value):
        return (value[0] + value[1]) / 2.0
    elif not _is_amount(value) or value < LEAST.get(name, 0.0):
        least = LEAST.get(name, 0.0)
        problems.append(f"/{key}: is {shown(value)}; give a number from {least:g} to {LARGEST:g}")
    elif name == "queue_part" and value > 1:
        problems.append(f"/{key}: is {shown(value)}; give a fraction from 0 to 1")
    else:
        return float(value)
    return value


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= LARGEST


def _is_range(value: Any) -> bool:
    is_pair = type(value) is list and len(value) == 2 and all(map(_is_amount, value))
    return is_pair and value[0] <= value[1]


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
# Of a replay; `mpi.protocol` has the parameters of the first.
SMPI = "SMPI"
REPLAY_MODELS = (SMPI, *NETWORK_MODELS)

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
    if name not in FLUID_MODELS:
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
        return NetworkModel.of_wire(_of_config(name, config))
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
