"""Compare what models of networks predict for flows with what packet simulators or testbeds say.

    python experiments/wires/judge.py [CASES ...] [-o results/wires] [--ablation]

CASES are folders of cases, or cases themselves (experiments/wires/cases without). A case has
platform.xml, tasks.json (a task a flow), wire.json (parameters of `--network-parameters`),
measured.csv (task,duration_s) and, if known, routes.csv (task,flow,path), repeats.csv
(task,run1_s,...: the same with starts moved a little) and meta.json (family, simulator_cpu_s).
Writes flows.csv, runs.csv, errors.csv, sizes.csv and pictures.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.runs.simulate import simulate_into, simulation_inputs

HERE = Path(__file__).resolve().parent
NEEDED = ("platform.xml", "tasks.json", "wire.json", "measured.csv")
# Of the times of a run the least of so many counts.
REPEATS = 3
SIZES_B = (0.0, 5e4, 2e5, 1e6, np.inf)


@dataclass(frozen=True)
class Model:
    """A way to predict: the parameters of `simulate` that differ, and changes of wire.json."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)


FLUID = Model("wire, fluid", {"network_level": "fluid"})
PACKETS = Model("wire, packets", {"network_level": "packets"})
MODELS = (
    Model("L07", {"network_model": "L07"}),
    Model("CM02", {"network_model": "CM02"}),
    Model("LV08", {"network_model": "LV08"}),
    FLUID,
    PACKETS,
)
# Ingredients of wire models, each switched off alone; the last is off by default.
CHANGES = {
    "all": {},
    "without headers": {"header_B": 0},
    "without acknowledgements": {"ack_B": 0, "acknowledgements": False},
    "without hops": {"hops": False},
    "without handshake": {"measured_from": "first byte"},
    "without slow start": {"initial_window": 0},
    "without weights 1/RTT": {"rtt_weights": False},
    "without queues": {"queue_part": 0},
    "without latency": {"latency": False},
    "without clock to the acknowledgement": {"measured_to": "last byte"},
    "without pauses": {"pfc_packets": [1e12, 1e12], "queue_packets": 1e12},
    "with shares by input port": {"input_ports": True},
}
PAUSES, PORTS = "without pauses", "with shares by input port"
# What packets know; fluid models know all but pauses.
OF_PACKETS = (
    *("all", "without headers", "without acknowledgements", "without handshake"),
    *("without latency", "without clock to the acknowledgement", PAUSES),
)


@dataclass(frozen=True)
class Case:
    """A case, read."""

    place: Path
    wire: dict[str, Any]
    meta: dict[str, Any]
    measured_s: dict[str, float]
    repeats_s: np.ndarray | None
    size_B: dict[str, float]

    @property
    def kind(self) -> str:
        return str(self.wire["network_model"])

    @property
    def simulator_s(self) -> float:
        return float(self.meta.get("simulator_cpu_s") or 0.0)


def read_case(place: Path) -> Case:
    """Read a case; only flows that are judged are kept."""
    with (place / "measured.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row.get("judged", "1") != "0"]
    tasks = json.loads((place / "tasks.json").read_text(encoding="utf-8"))["tasks"]
    meta = place / "meta.json"
    repeats = place / "repeats.csv"
    measured_s = {row["task"]: float(row["duration_s"]) for row in rows}
    found = None
    if repeats.exists():
        with repeats.open(encoding="utf-8", newline="") as stream:
            again = {row.pop("task"): list(row.values()) for row in csv.DictReader(stream)}
        found = np.array([again[task] for task in measured_s], dtype=np.float64)
    return Case(
        place,
        json.loads((place / "wire.json").read_text(encoding="utf-8")),
        json.loads(meta.read_text(encoding="utf-8")) if meta.exists() else {},
        measured_s,
        found,
        {str(task["id"]): sum(f[2] for f in task.get("flows", ())) for task in tasks},
    )


def cases_in(places: Iterable[Path]) -> Iterator[Case]:
    """The cases at or below some folders, in order of their names."""
    for place in places:
        found = sorted(path.parent for path in place.rglob("measured.csv"))
        for folder in found:
            if all((folder / name).exists() for name in NEEDED):
                yield read_case(folder)


def predict(
    case: Case, model: Model, scratch: Path, repeats: int = REPEATS, **more: Any
) -> tuple[dict[str, float], float]:
    """The duration of each flow by a model, s, and the least processor time of several runs, s.

    Raises PTaskModelError where the model does not know such a case.
    """
    parameters: dict[str, Any] = {
        "platform": case.place / "platform.xml",
        "tasks": case.place / "tasks.json",
        **model.parameters,
    }
    if "network_model" not in model.parameters:
        wire = scratch / "wire.json"
        wire.write_text(json.dumps(case.wire | model.changes), encoding="utf-8")
        parameters["network_parameters"] = wire
    routes = case.place / "routes.csv"
    if routes.exists():
        parameters["routing"] = f"file:{routes}"
    inputs = simulation_inputs(parameters | more)
    took = []
    for _ in range(repeats):
        run = simulate_into(None, **inputs._asdict())
        took.append(run.summary["simulation_processor_time_s"])
    return {r.task_id: r.execution_s for r in run.records if r.execution_s is not None}, min(took)


def errors(predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """|predicted / measured - 1| of each flow."""
    return np.abs(predicted / measured - 1.0)


@dataclass
class Judged:
    """What a model says of a case."""

    case: Case
    model: str
    predicted_s: np.ndarray
    measured_s: np.ndarray
    size_B: np.ndarray
    processor_s: float

    @property
    def errors(self) -> np.ndarray:
        return errors(self.predicted_s, self.measured_s)


def judge(
    cases: Iterable[Case], models: Iterable[Model], scratch: Path, **more: Any
) -> list[Judged]:
    """Run each model on each case; cases that a model does not know are left out, and said."""
    found = []
    models = list(models)
    for case in cases:
        for model in models:
            try:
                durations, took = predict(case, model, scratch, **more)
            except PTaskModelError as error:
                print(f"{case.place.name}, {model.name}: left out: {error}")
                continue
            tasks = list(case.measured_s)
            found.append(
                Judged(
                    case,
                    model.name,
                    np.array([durations[task] for task in tasks]),
                    np.array([case.measured_s[task] for task in tasks]),
                    np.array([case.size_B[task] for task in tasks]),
                    took,
                )
            )
        if case.repeats_s is not None:
            found.append(
                Judged(
                    case,
                    "the simulator itself",
                    case.repeats_s[:, 0],
                    np.array(list(case.measured_s.values())),
                    np.array([case.size_B[task] for task in case.measured_s]),
                    case.simulator_s,
                )
            )
    return found


def error_rows(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """A row for each protocol and model: errors over all flows, and what it costs."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for each in judged:
        groups.setdefault((each.case.kind, each.model), []).append(each)
    rows = []
    for (kind, model), own in groups.items():
        together = np.concatenate([each.errors for each in own])
        sums = [abs(each.predicted_s.sum() / each.measured_s.sum() - 1.0) for each in own]
        took_s = sum(each.processor_s for each in own)
        simulator_s = sum(each.case.simulator_s for each in own)
        rows.append({
            "protocol": kind,
            "model": model,
            "cases": len(own),
            "flows": len(together),
            "median": np.median(together),
            "p90": np.quantile(together, 0.9),
            "mean_of_case_medians": np.mean([np.median(each.errors) for each in own]),
            "sum_of_durations": np.median(sums),
            "processor_s": took_s,
            "simulator_over_it": simulator_s / took_s if took_s else np.nan,
        })  # fmt: skip
    return rows


def size_rows(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """A row for each protocol, model and range of sizes: predicted over measured."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for each in judged:
        groups.setdefault((each.case.kind, each.model), []).append(each)
    rows = []
    for (kind, model), own in groups.items():
        ratio = np.concatenate([each.predicted_s / each.measured_s for each in own])
        size = np.concatenate([each.size_B for each in own])
        for low, high in itertools.pairwise(SIZES_B):
            chosen = ratio[(size >= low) & (size < high)]
            if len(chosen):
                p10, p50, p90 = np.quantile(chosen, [0.1, 0.5, 0.9])
                rows.append({
                    "protocol": kind, "model": model, "from_B": low, "below_B": high,
                    "flows": len(chosen), "p10": p10, "median": p50, "p90": p90,
                })  # fmt: skip
    return rows


def ablation_rows(
    cases: list[Case], scratch: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Errors with each ingredient changed alone, of each level: over all flows, and by case."""
    rows, by_case = [], []
    for level in (FLUID, PACKETS):
        for name, changes in CHANGES.items():
            if name == PAUSES if level is FLUID else name not in OF_PACKETS:
                continue
            pauses = name in (PAUSES, PORTS)
            some = [case for case in cases if case.kind == "ROCE" or not pauses]
            judged = judge(some, [Model(level.name, level.parameters, changes)], scratch)
            own = [each for each in judged if each.model == level.name]
            rows += [{"ingredients": name, **row} for row in error_rows(own)]
            by_case += [
                {
                    "ingredients": name, "case": each.case.place.name, "model": level.name,
                    "median": np.median(each.errors), "p90": np.quantile(each.errors, 0.9),
                }
                for each in own
            ]  # fmt: skip
    return rows, by_case


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV, numbers to five digits."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            short = {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow(short)


def flow_rows(judged: Iterable[Judged]) -> Iterator[dict[str, Any]]:
    """A row for each flow and model."""
    for each in judged:
        columns = each.case.measured_s, each.size_B, each.measured_s, each.predicted_s
        for task, size, measured, predicted in zip(*columns, strict=True):
            yield {
                "case": each.case.place.name, "protocol": each.case.kind, "model": each.model,
                "task": task, "size_B": float(size), "measured_s": float(measured),
                "predicted_s": float(predicted),
            }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", type=Path, default=[HERE / "cases"])
    parser.add_argument("-o", "--output", type=Path, default=Path("results/wires"))
    parser.add_argument("--ablation", action="store_true", help="also change each ingredient")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    cases = [case for case in cases_in(given.cases) if case.kind in ("DCTCP", "CUBIC", "ROCE")]
    if not cases:
        parser.error("no case found: a case has " + ", ".join(NEEDED))
    judged = judge(cases, MODELS, given.output)
    rows = error_rows(judged)
    write(given.output / "errors.csv", rows)
    write(given.output / "sizes.csv", size_rows(judged))
    write(given.output / "flows.csv", list(flow_rows(judged)))
    if given.ablation:
        by_kind, by_case = ablation_rows(cases, given.output)
        write(given.output / "ablation.csv", by_kind)
        write(given.output / "ablation_cases.csv", by_case)
    from figures import draw

    for row in rows:
        print(
            f"{row['protocol']:6} {row['model']:22} {row['median']:.3f} / {row['p90']:.3f} "
            f"[{row['mean_of_case_medians']:.3f}]  {row['simulator_over_it']:,.0f} times faster"
        )
    for path in draw(given.output, judged, rows):
        print(path)


if __name__ == "__main__":
    main()
