"""Fit a wire to measured transfers: bytes of headers a packet, a fixed cost, think times.

A transfer of S bytes that has a link of C bytes/s to itself lasts

    (S + H ceil(S / P)) / C + o

with packets of P bytes, H bytes of headers with each, and a fixed cost o of its client (the RDMA
wire model of `engine.usage.network_models`). Transfers that others disturb last longer. Those that
overlap others are left out where the table has dates. Of the rest, a fit by least absolute
deviations (Koenker and Bassett 1978) tells which stand apart, and least squares over the others
give values and their intervals.

In a closed loop a client thinks between two transfers, T + S / r on average. Where a table of
loops has no dates, the loop of n clients is taken to keep the link busy: a transfer and its think
time then last n (S + H ceil(S / P)) / C together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.calibration.measurements import CONFIDENCE, MeasurementError, Parameter
from ptaskmodel.calibration.run import parameter_json
from ptaskmodel.engine.usage.network_models import WIRES
from ptaskmodel.errors import shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.remarks import Account, Remark, reader
from ptaskmodel.style.figures import COLUMN, LIGHT, MARKERS, category, finished, new_figure, picture
from ptaskmodel.style.text import count, duration
from ptaskmodel.workload.amounts import LARGEST, FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE, DURATION, CLIENT, START = "size_B", "duration_s", "client", "start_s"
# A transfer whose residual is more than so many standard deviations stands apart; a deviation is
# MAD_SCALE times the median of absolute residuals (of a normal distribution), at least ROUNDING of
# the duration.
APART, MAD_SCALE, ROUNDING = 5.0, 1.4826, 1e-9
MOST_ROWS = 1_000_000


class Transfer(NamedTuple):
    """A row of a table of transfers. client: "" if the table has none; start_s: None then."""

    size_B: float
    duration_s: float
    client: str
    start_s: float | None


@dataclass(frozen=True, slots=True)
class WireFit:
    """A fitted wire.

    model: a key of `WIRES`. mss_B: bytes of data a packet. bandwidth_Bps: of the narrowest link,
    bytes/s. header_B: bytes of headers a packet. fixed_s: fixed cost by client, s. think_s,
    think_Bps: think time at size 0, and bytes of the next transfer that a client thinks of a
    second (None: not fitted). used: transfers of the fit. residuals_s: measured - fitted, shape
    (used,). remarks: what was told of the tables.
    """

    model: str
    mss_B: float
    bandwidth_Bps: float
    header_B: Parameter
    fixed_s: Mapping[str, Parameter]
    think_s: Parameter | None
    think_Bps: Parameter | None
    used: tuple[Transfer, ...]
    residuals_s: FloatArray
    remarks: tuple[Remark, ...]

    def parameters(self) -> dict[str, Any]:
        """The file that ``--network-parameters`` reads."""
        costs = [each.value for each in self.fixed_s.values()]
        cost = costs[0] if len(costs) == 1 else [min(costs), max(costs)]
        return {
            "network_model": self.model,
            "mss_B": self.mss_B,
            "header_B": self.header_B.value,
            "read_overhead_s": cost,
        }

    def document(self) -> dict[str, Any]:
        """All that was fitted, with units and intervals, for JSON."""
        named = {"header_B": self.header_B}
        named |= {f"fixed_s {client}".strip(): each for client, each in self.fixed_s.items()}
        named |= {
            name: each
            for name, each in (("think_s", self.think_s), ("think_Bps", self.think_Bps))
            if each is not None
        }
        residuals = np.abs(self.residuals_s)
        return {
            "model": "wire",
            **self.parameters(),
            "bandwidth_Bps": self.bandwidth_Bps,
            "parameters": {name: parameter_json(each) for name, each in named.items()},
            "transfers": len(self.used),
            "residual_s": {
                "median": float(np.median(residuals)),
                "largest": float(residuals.max()),
            },
        }


class Transfers(NamedTuple):
    """The transfers of a file, and what is told of it."""

    rows: list[Transfer]
    remarks: tuple[Remark, ...] = ()


@reader(MeasurementError)
def read_transfers(path: AnyPath, account: Account) -> Transfers:
    """The transfers of the CSV file at `path`, and what is told of it.

    Columns: size_B (bytes of data) and duration_s, optionally client and start_s. Others are not
    used. A bad row is left out; raises MeasurementError if most are, or a column is missing.
    account: of the file.
    """
    columns, rows = account.table(read_text(path, error=MeasurementError))
    missing = [name for name in (SIZE, DURATION) if name not in columns]
    if missing:
        account.problem(
            f"has no column {' and no column '.join(missing)}, only "
            f"{shown(', '.join(columns))}; name the columns in the first line", 1,
        )  # fmt: skip
        account.check()
    others = [name for name in columns if name not in (SIZE, DURATION, CLIENT, START)]
    if others:
        account.unused(f"columns: {', '.join(others)}")
    found: list[Transfer] = []
    for line, row in rows:
        if len(found) == MOST_ROWS:
            raise MeasurementError(f"{account.file}: more than {MOST_ROWS:,} rows; give fewer")
        with account.row(line):
            found.append(_transfer(dict(zip(columns, map(str.strip, row), strict=True))))
    account.check_rows()
    if not found:
        raise MeasurementError(f"{account.file}: has no transfers below the header; add rows")
    return Transfers(found)


def _transfer(row: Mapping[str, str]) -> Transfer:
    size, duration = _number(row, SIZE), _number(row, DURATION)
    start = _number(row, START, least=-LARGEST) if row.get(START) not in (None, "") else None
    return Transfer(size, duration, row.get(CLIENT) or "", start)


def _number(row: Mapping[str, str], column: str, least: float = 0.0) -> float:
    text = row.get(column)
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not (least < value <= LARGEST):
        wanted = f"a number above {least:g}, at most {LARGEST:g}"
        raise MeasurementError(f"{column} is {shown(text)}; give {wanted}")
    return value


def fit_wire(
    transfers: str | Path,
    bandwidth_Bps: float,
    model: str = "RDMA",
    mss_B: float | None = None,
    loops: str | Path | None = None,
    clients: int | None = None,
) -> WireFit:
    """Fit a wire to a table of transfers, and think times to a table of closed loops.

    transfers, loops: CSV files (see `read_transfers`). bandwidth_Bps: of the narrowest link,
    bytes/s. model: a wire model without slow start. mss_B: bytes of data a packet, if not the
    model's. clients: of loops without dates, which keep the link busy.

    Raises MeasurementError for a wrong file, or if the sizes do not tell headers from the cost.
    """
    wire = WIRES[model]
    if wire.initial_window:
        raise MeasurementError(
            f"--network-model {model}: its slow start is not fitted; give one of "
            f"{', '.join(name for name, each in WIRES.items() if not each.initial_window)}"
        )
    packet = mss_B or wire.mss_B
    rows, told = read_transfers(transfers)
    alone = _alone(rows)
    remarks = list(told)
    if len(alone) < len(rows):
        remarks.append(
            Remark(f"{len(rows) - len(alone)} of {len(rows)} transfers overlap others: left out")
        )
    if not alone:
        raise MeasurementError(f"{transfers}: every transfer overlaps another; measure some alone")
    used, found, residuals = _fitted(str(transfers), alone, packet, bandwidth_Bps)
    if len(used) < len(alone):
        remarks.append(
            Remark(
                f"{len(alone) - len(used)} of {len(alone)} transfers stand apart from the others "
                "of their size: left out"
            )
        )
    names = sorted({each.client for each in used})
    fit = WireFit(
        model, packet, bandwidth_Bps, found[0], dict(zip(names, found[1:], strict=True)),
        None, None, used, residuals, tuple(remarks),
    )  # fmt: skip
    return fit if loops is None else _with_think_times(fit, loops, clients)


def _alone(rows: Sequence[Transfer]) -> list[Transfer]:
    """The transfers that no other overlaps; all where there are no dates."""
    dated = [(k, each.start_s) for k, each in enumerate(rows) if each.start_s is not None]
    if len(dated) < len(rows):
        return list(rows)
    order = [k for k, _ in sorted(dated, key=lambda pair: pair[1])]
    crossed = [False] * len(rows)
    open_until, last = -math.inf, -1
    for k in order:
        start, end = rows[k].start_s or 0.0, (rows[k].start_s or 0.0) + rows[k].duration_s
        if start < open_until:
            crossed[k] = crossed[last] = True
        if end > open_until:
            open_until, last = end, k
    return [each for each, is_crossed in zip(rows, crossed, strict=True) if not is_crossed]


def _fitted(
    where: str, rows: Sequence[Transfer], packet_B: float, bandwidth_Bps: float
) -> tuple[tuple[Transfer, ...], list[Parameter], FloatArray]:
    """The transfers of the fit, what is fitted (header, costs), and residuals in s."""
    names = sorted({each.client for each in rows})
    sizes = np.array([each.size_B for each in rows])
    durations = np.array([each.duration_s for each in rows])
    packets = np.ceil(sizes / packet_B)
    design = np.zeros((len(rows), 1 + len(names)))
    design[:, 0] = packets / bandwidth_Bps
    place = {name: k for k, name in enumerate(names, 1)}
    design[np.arange(len(rows)), [place[each.client] for each in rows]] = 1.0
    beyond = durations - sizes / bandwidth_Bps
    if np.linalg.matrix_rank(design / np.abs(design).max(axis=0)) < design.shape[1]:
        raise MeasurementError(
            f"{where}: all transfers of a client have as many packets; give two sizes or more"
        )
    apart = np.abs(beyond - design @ _least_deviations(design, beyond))
    scale = np.maximum(MAD_SCALE * np.median(apart), ROUNDING * durations)
    kept = apart <= APART * scale
    found, residuals = _least_squares(design[kept], beyond[kept], ["B", *("s" for _ in names)])
    if min(each.value for each in found) < 0.0:
        lasting = float(np.min(durations - sizes / bandwidth_Bps))
        raise MeasurementError(
            f"{where}: transfers are faster than the link (by up to {-min(lasting, 0.0):.3g} s), "
            "or do not last longer with more packets; check --bandwidth and the units"
        )
    used = tuple(each for each, is_kept in zip(rows, kept.tolist(), strict=True) if is_kept)
    return used, found, residuals


def _least_deviations(design: FloatArray, measured: FloatArray) -> FloatArray:
    """The coefficients that minimise the sum of absolute residuals, by a linear program."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, hstack, identity

    unit = float(np.abs(measured).max()) or 1.0
    scales = np.abs(design).max(axis=0)
    count, width = design.shape
    slack = identity(count, format="csr")
    found = linprog(
        np.concatenate([np.zeros(width), np.ones(2 * count)]),
        A_eq=hstack([csr_matrix(design / scales), slack, -slack]),
        b_eq=measured / unit,
        bounds=[(None, None)] * width + [(0.0, None)] * (2 * count),
    )
    return np.asarray(found.x[:width]) * unit / scales


def _least_squares(
    design: FloatArray, measured: FloatArray, units: Sequence[str]
) -> tuple[list[Parameter], FloatArray]:
    """A parameter in its unit for each column of `design`, and what of `measured` they leave."""
    from scipy.stats import t

    scales = np.abs(design).max(axis=0)
    scaled = design / scales
    solution, *_ = np.linalg.lstsq(scaled, measured, rcond=None)
    residuals = measured - scaled @ solution
    freedom = max(len(measured) - len(solution), 1)
    variances = float(residuals @ residuals) / freedom * np.diag(np.linalg.pinv(scaled.T @ scaled))
    errors = np.sqrt(np.maximum(variances, 0.0)) / scales
    quantile = float(t.ppf(0.5 + CONFIDENCE / 2.0, freedom))
    found = [
        Parameter(value, unit, error, (value - quantile * error, value + quantile * error))
        for value, error, unit in zip(
            (solution / scales).tolist(), errors.tolist(), units, strict=True
        )
    ]
    return found, residuals


def _with_think_times(fit: WireFit, loops: str | Path, clients: int | None) -> WireFit:
    """The fit with the think times of a table of loops."""
    rows, told = read_transfers(loops)
    dated = all(each.start_s is not None for each in rows)
    if not dated and clients is None:
        raise MeasurementError(
            f"{loops}: has no {START} for each transfer; give the number of --clients of the loop"
        )
    thoughts = _gaps(rows) if dated else _spare_times(fit, rows, clients or 0)
    if len(thoughts) < 2:
        raise MeasurementError(f"{loops}: too few transfers to tell the time between them")
    sizes, times = (np.array(column) for column in zip(*thoughts, strict=True))
    design = np.stack([np.ones_like(sizes), sizes], axis=1)
    if len(set(sizes.tolist())) == 1:
        design = design[:, :1]
    found, _ = _least_squares(design, times, ["s", "s/B"][: design.shape[1]])
    slope = found[1] if len(found) > 1 else None
    return replace(
        fit,
        think_s=found[0],
        think_Bps=None if slope is None or slope.value <= 0.0 else _inverse(slope),
        remarks=(*fit.remarks, *told),
    )


def _gaps(rows: Sequence[Transfer]) -> list[tuple[float, float]]:
    """By each transfer that follows another of its client: its size, and the time between, s."""
    found = []
    last: dict[str, float] = {}
    for each in sorted(rows, key=lambda row: row.start_s or 0.0):
        start = each.start_s or 0.0
        before = last.get(each.client)
        if before is not None and start >= before:
            found.append((each.size_B, start - before))
        last[each.client] = max(start + each.duration_s, before or -math.inf)
    return found


def _spare_times(fit: WireFit, rows: Sequence[Transfer], clients: int) -> list[tuple[float, float]]:
    """By each transfer of a loop that keeps the link busy: its size, and what is left, s."""
    return [
        (
            each.size_B,
            clients
            * (each.size_B + fit.header_B.value * math.ceil(each.size_B / fit.mss_B))
            / fit.bandwidth_Bps
            - each.duration_s,
        )
        for each in rows
    ]


def _inverse(slope: Parameter) -> Parameter:
    """1 / a slope, with the ends of its interval exchanged; an end beyond 0 is infinite."""
    low, high = slope.interval95 or (slope.value, slope.value)
    ends = 1.0 / high, 1.0 / low if low > 0.0 else math.inf
    return Parameter(1.0 / slope.value, "B/s", (slope.stderr or 0.0) / slope.value**2, ends)


def wire_report(fit: WireFit) -> str:
    """The `fit` as text: parameters with intervals, and how far transfers are from it."""
    lines = [
        f"Wire model {fit.model}, {fit.mss_B:g} B of data a packet, link of "
        f"{fit.bandwidth_Bps * 8e-9:.6g} Gbit/s, {len(fit.used)} transfers"
    ]
    rows = [("headers a packet", fit.header_B, 1.0, "B")]
    rows += [
        (f"fixed cost {client}".strip(), each, 1e6, "µs") for client, each in fit.fixed_s.items()
    ]
    if fit.think_s is not None:
        rows.append(("think time", fit.think_s, 1e6, "µs"))
    if fit.think_Bps is not None:
        rows.append(("  and size by", fit.think_Bps, 1e-9, "GB/s"))
    for name, each, scale, unit in rows:
        low, high = each.interval95 or (each.value, each.value)
        lines.append(
            f"  {name:<22} {each.value * scale:<10.5g} {unit:<5} "
            f"95 %: {low * scale:.5g} .. {high * scale:.5g}"
        )
    residuals = np.abs(fit.residuals_s) * 1e6
    lines.append(
        f"Measured less fitted: median {np.median(residuals):.3g} µs, largest "
        f"{residuals.max():.3g} µs"
    )
    return "\n".join(lines) + "\n"


@picture
def draw_residuals(fit: WireFit) -> Figure:
    """Measured less fitted durations of a `fit` by size, a colour a client."""
    from matplotlib.ticker import EngFormatter

    figure = new_figure(COLUMN, 3.6)
    axes = figure.add_subplot()
    by_client: dict[str, list[int]] = {}
    for k, each in enumerate(fit.used):
        by_client.setdefault(each.client, []).append(k)
    largest = sorted(by_client, key=lambda name: -len(by_client[name]))
    for k, name in enumerate(largest):
        rows = by_client[name]
        axes.plot(
            [fit.used[row].size_B for row in rows], fit.residuals_s[rows] * 1e6,
            MARKERS[min(k, len(MARKERS) - 1)], color=category(k), markersize=4,
            label=f"client {name}" if name else None,
        )  # fmt: skip
    axes.axhline(0.0, color=LIGHT.soft, linewidth=1)
    axes.set_xscale("log")
    for axis in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        axis(EngFormatter("B"))
    axes.margins(0.06)
    axes.set_xlabel("size (log)")
    axes.set_ylabel("measured less fitted (µs)")
    if by_client.keys() - {""}:
        figure.legend(loc="outside right upper")
    title = f"{count(len(fit.used), 'transfer')}: {fit.header_B.value:.3g} B of headers a packet"
    apart = np.abs(fit.residuals_s)
    half, most = (duration(float(level)) for level in (np.median(apart), apart.max()))
    said = f"{title}; half are within {half} of the fit, all within {most}."
    return finished(figure, title, "measured less fitted", said)
