"""Check what the models of wires promise, on cases and testbeds in the format of `judge`.

    python experiments/wires/checks.py [PLACES ...] [-o results/wires/checks.md] [--only CHECK ...]

PLACES are folders of cases; traces and loops of an RDMA testbed may be among them. Each check has a
bound and a verdict; one that has no case says so. Writes a table.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from judge import FLUID, HERE, PACKETS, Case, cases_in, predict
from residuals import DRAWS, SIZES_B, SLOWDOWNS, Seen, log_quantiles, seen

from ptaskmodel import Flow, Simulation, load_platform
from ptaskmodel.calibration.wire import fit_wire
from ptaskmodel.engine.usage.network_models import NetworkModel, read_wire
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.runs.draws import ranges, residuals_of
from ptaskmodel.workload.tasks import closed_loop
from ptaskmodel.workload.works import ParallelWork

CHECKS = ("withheld", "reads", "loops", "draws", "sizes", "fits")
PROTOCOLS = ("DCTCP", "ROCE")
SEEDS = range(1, 21)
# Think time of a testbed that has none: this, and so many bytes of the read in a second; fitted on
# the closed loops of `closed_1000_1`, `closed_500_1` and `closed_100_4`.
THINK_S, THINK_BPS = 130e-6, 4e9
CLIENTS, READS, LINE_BPS = 11, 100, 1.25e9


class Verdict(NamedTuple):
    """A line of the table; holds: None where there is no case."""

    what: str
    found: str
    bound: str
    holds: bool | None


def withheld(cases: list[Case], scratch: Path) -> list[Verdict]:
    """Without the true routes, by equal-cost multi-path routing: the median over seeds."""
    own = [case for case in cases if case.kind in (*PROTOCOLS, "CUBIC")]
    medians = []
    for seed in SEEDS if own else ():
        off = []
        for case in own:
            durations, _ = predict(case, FLUID, scratch, repeats=1, routing=f"ecmp:{seed}")
            off += [abs(durations[task] / true - 1.0) for task, true in case.measured_s.items()]
        medians.append(float(np.median(off)))
    found = float(np.median(medians)) if medians else math.nan
    return [
        Verdict(
            f"fluid, routes withheld: median error of a flow, median of seeds {SEEDS[0]} to "
            f"{SEEDS[-1]}",
            f"{found:.3f}", "at most 0.21", found <= 0.21 if medians else None,
        )
    ]  # fmt: skip


def reads(cases: list[Case], scratch: Path) -> list[Verdict]:
    """Traces of a testbed: the mean read of each, its think times given."""
    verdicts = []
    for case in cases:
        if case.kind == "RDMA":
            durations, _ = predict(case, FLUID, scratch, repeats=1)
            true = np.array(list(case.measured_s.values()))
            ratio = np.mean([durations[task] for task in case.measured_s]) / true.mean() - 1.0
            name = f"mean read of {case.place.name}"
            verdicts.append(Verdict(name, f"{ratio:+.1%}", "within 5 %", abs(ratio) <= 0.05))
    return verdicts or [Verdict("mean reads of traces", "no case", "within 5 %", None)]


def loops(places: list[Path]) -> list[Verdict]:
    """Sweeps of a testbed: the mean read of its first client, from headers and think times."""
    verdicts = []
    for path in sorted(path for place in places for path in place.rglob("closed_*.csv")):
        case = next((p for p in path.parent.iterdir() if (p / "platform.xml").exists()), None)
        if case is None:
            print(f"{path.name}: left out: no case beside it has a platform")
            continue
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        true_s = float(np.mean([float(row["measured_s"]) for row in rows]))
        size_B = float(rows[0]["size_B"])
        # One after the other, else all at once: the choice counts, as clients that begin together
        # think together for ever.
        spread, together = (
            _mean_read_s(case, size_B, apart_s) / true_s - 1.0
            for apart_s in (size_B / LINE_BPS, 0.0)
        )
        verdicts.append(
            Verdict(
                f"mean read of {path.stem}, {true_s * 1e3:.3f} ms; clients that begin together",
                f"{spread:+.1%}; {together:+.1%}", "first within 5 %", abs(spread) <= 0.05,
            )
        )  # fmt: skip
    return verdicts or [Verdict("mean reads of sweeps", "no case", "within 5 %", None)]


def _mean_read_s(case: Path, size_B: float, apart_s: float) -> float:
    """The mean read of the first of several clients, each of which begins `apart_s` later.

    The first and last quarter of its reads do not count.
    """
    model = NetworkModel.of_wire(read_wire(case / "wire.json"))
    simulation = Simulation(load_platform(case / "platform.xml"), network_model=model)
    work = ParallelWork.of_flow(size_B)
    think_s = [THINK_S + size_B / THINK_BPS]
    for k in range(CLIENTS):
        ends = ("server", f"client-{k}")
        simulation.add_all(closed_loop(f"c{k}", ends, work, READS, think_s, start_s=k * apart_s))
    simulation.run()
    took_s = [r.execution_s for r in simulation.records() if r.profile == "c0"]
    return float(np.mean(took_s[READS // 4 : -READS // 4]))


def in_ranges(own: list[Seen], kind: str, by_packets: bool) -> Iterator[tuple[bool, bool, float]]:
    """Of each flow, whether its range and the draws alone hold what is true; log of the width.

    A case that the residuals of the model are from gets those of the other cases given.
    """
    known = residuals_of(kind, by_packets)
    for one in own:
        residuals = known
        if known is not None and one.name in known.cases:
            others = [other for other in own if other is not one]
            if not others:
                print(f"{one.name}: left out: residuals of other cases are not here")
                continue
            residuals = known._replace(
                sizes_B=SIZES_B, slowdowns=SLOWDOWNS, quantiles=log_quantiles(others)
            )
        found = ranges(one.draws_s, one.alone_s, one.size_B, residuals)
        for r, true_s in zip(found, one.true_s, strict=True):
            yield (
                bool(r.low_s <= true_s <= r.high_s),
                bool(r.drawn_low_s <= true_s <= r.drawn_high_s),
                math.log(r.high_s / r.low_s),
            )


def draws(cases: list[Case]) -> list[Verdict]:
    """Whether ranges of 80 % hold as many: of flows with several paths, routes withheld."""
    verdicts = []
    widths = []
    for level, by_packets in ((FLUID, False), (PACKETS, True)):
        flows: list[tuple[bool, bool, float]] = []
        for kind in PROTOCOLS:
            own = []
            for case in cases:
                if case.kind == kind and (case.place / "routes.csv").exists():
                    try:
                        own.append(seen(case, by_packets))
                    except PTaskModelError as error:
                        print(f"{case.place.name}, {level.name}: left out: {error}")
            flows += in_ranges([one for one in own if one is not None], kind, by_packets)
        held, bare, logs = zip(*flows, strict=True) if flows else ((), (), ())
        share, alone = (float(np.mean(one)) if one else math.nan for one in (held, bare))
        widths.append(math.exp(np.median(logs)) if logs else math.nan)
        verdicts.append(
            Verdict(
                f"{level.name}: part of {len(held)} flows that ranges of {DRAWS} draws hold; the "
                "draws alone",
                f"{share:.3f}; {alone:.3f}", "first 0.75 to 0.85",
                0.75 <= share <= 0.85 if held else None,
            )
        )  # fmt: skip
    fluid, packets = widths
    verdicts.append(
        Verdict(
            "median of the upper over the lower end of a range, packets and fluid",
            f"{packets:.2f}, {fluid:.2f}", "narrower with packets",
            packets < fluid if flows else None,
        )
    )  # fmt: skip
    return verdicts


def sizes() -> list[Verdict]:
    """What a flow costs does not depend on its size: events of the engine."""
    platform = load_platform(HERE / "cases" / "dctcp_alone" / "platform.xml")
    hosts = [host.name for host in platform.hosts]
    events = []
    for size_B in (1e6, 1e12):
        simulation = Simulation(platform, network_model="DCTCP")
        simulation.add(Flow(hosts[0], hosts[-1], size_B))
        simulation.run()
        events.append(int(simulation.core.state.clock[0]["events"]))
    found = f"{events[0]} and {events[1]} events"
    return [Verdict("a flow of 1 MB and one of 1 TB", found, "the same", events[0] == events[1])]


def fits(scratch: Path) -> list[Verdict]:
    """Headers and a fixed cost that `calibrate --model wire` finds in reads made by hand."""
    header_B, fixed_s = 82.0, 9.4e-6
    rng = np.random.default_rng(0)
    table = scratch / "transfers.csv"
    with table.open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("size_B", "duration_s"))
        for size in (102_408, 256_008, 512_008):
            alone_s = (size + header_B * math.ceil(size / 1024)) / LINE_BPS + fixed_s
            for k in range(20):
                late_s = rng.exponential(2e-5) if k % 5 == 0 else 0.0
                rows.writerow((size, alone_s + rng.normal(0.0, 3e-7) + late_s))
    fit = fit_wire(table, LINE_BPS)
    header, fixed = fit.header_B.value, fit.fixed_s[""].value
    return [
        Verdict(
            "the fit to 60 reads made by hand, a fifth of them late",
            f"{header:.1f} B a packet, {fixed * 1e6:.2f} us", "82 B within 2, 9.4 us within 0.5",
            abs(header - header_B) <= 2.0 and abs(fixed - fixed_s) <= 0.5e-6,
        )
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("places", nargs="*", type=Path, default=[HERE / "cases"])
    parser.add_argument("-o", "--output", type=Path, default=Path("results/wires/checks.md"))
    parser.add_argument(
        "--only", nargs="+", metavar="CHECK", choices=CHECKS, help=", ".join(CHECKS)
    )
    given = parser.parse_args()
    cases = list(cases_in(given.places))
    with tempfile.TemporaryDirectory() as there:
        scratch = Path(there)
        checks: dict[str, Callable[[], list[Verdict]]] = {
            "withheld": lambda: withheld(cases, scratch),
            "reads": lambda: reads(cases, scratch),
            "loops": lambda: loops(given.places),
            "draws": lambda: draws(cases),
            "sizes": sizes,
            "fits": lambda: fits(scratch),
        }
        lines = ["| check | found | bound | holds |", "|---|---|---|---|"]
        for name in given.only or checks:
            for one in checks[name]():
                found = "" if one.holds is None else one.found
                holds = {True: "yes", False: "no", None: "no case"}[one.holds]
                lines.append(f"| {one.what} | {found} | {one.bound} | {holds} |")
                print(lines[-1], flush=True)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
