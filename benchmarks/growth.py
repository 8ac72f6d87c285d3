"""How costs grow: with the size of the platform, with how busy it is, with the number of jobs."""

from __future__ import annotations

from pathlib import Path

from against_simgrid import run_ours
from costs import ROOT, Cost, table

HEADING = "How costs grow"
SOLVERS = ("fairbottleneck", "bmf")
PLATFORMS = (1000, 10_000, 100_000)
RATES = (15, 30, 60, 120)
COUNTS = (1000, 10_000, 100_000)
PICTURE = ROOT / "benchmarks" / "growth.png"
TEXT = """![Cost of an event by hosts, starts per minute and number of jobs](growth.png)

- **Platform**: the same 10,000 all-to-all jobs of 2-16 hosts on clusters of ever more hosts. An
  event costs the same on all; making the simulation takes time and memory for each host, once.
- **Contention**: 2,000 such jobs on 1,024 hosts, by starts per minute. What grows is the number of
  jobs that share: an event changes the rates of most of those that are connected, so twice the jobs
  at a time cost more than twice.
- **Jobs**: all-to-all jobs of 4-64 hosts of their own on a fat tree of 1,024, as a batch gives
  them: with a hundred times as many, an event costs up to a third more; memory holds what is known
  of each."""


def figures(names: dict[int, str], place: Path, repetitions: int) -> dict[str, dict[int, Cost]]:
    """The cost of each scenario under each solver."""
    found: dict[str, dict[int, Cost]] = {solver: {} for solver in SOLVERS}
    for size, name in names.items():
        for solver in SOLVERS:
            cost = found[solver][size] = Cost()
            for _ in range(repetitions):
                run_ours(name, solver, cost, place)
            print(name, solver, f"{us_per_event(cost):.1f} us an event", flush=True)
    return found


def us_per_event(cost: Cost) -> float:
    """What an event costs, the making of the simulation left out, us."""
    setup_s = sorted(cost.setup_s)[len(cost.setup_s) // 2]
    return (cost.seconds - setup_s) / cost.events * 1e6


def grown(title: str, found: dict[str, dict[int, Cost]]) -> str:
    """The table of one kind of growth."""
    head = [title, "events", "set-up, s"]
    for solver in SOLVERS:
        head += [f"{solver}, s", "µs an event"]
    rows = []
    for size, cost in found[SOLVERS[0]].items():
        row = [f"{size:,}", f"{cost.events:,}", f"{min(cost.setup_s):.3f}"]
        for solver in SOLVERS:
            row += [
                f"{found[solver][size].seconds:.2f}",
                f"{us_per_event(found[solver][size]):.0f}",
            ]
        memory = max(max(found[solver][size].rss_MB) for solver in SOLVERS)
        rows.append([*row, f"{memory:.0f}"])
    return table([*head, "MB"], rows, words=0)


def draw(parts: dict[str, dict[str, dict[int, Cost]]]) -> None:
    """One panel a kind of growth."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    drawing, panels = pyplot.subplots(1, len(parts), figsize=(11, 3.4), layout="constrained")
    for panel, (title, found) in zip(panels, parts.items(), strict=True):
        for solver, mark in zip(SOLVERS, ("o-", "s--"), strict=True):
            sizes = list(found[solver])
            panel.plot(sizes, [us_per_event(found[solver][n]) for n in sizes], mark, label=solver)
        panel.set(xscale="log", xlabel=title, ylabel="µs an event")
        panel.set_ylim(bottom=0.0)
        panel.set_xticks(sizes, [f"{n:,}" for n in sizes])
        panel.minorticks_off()
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False)
    drawing.savefig(PICTURE, dpi=110)
    pyplot.close(drawing)


def section(repetitions: int, place: Path) -> str:
    """The three tables and their picture."""
    parts = {
        "hosts of the platform": figures(
            {n: f"platform-{n}" for n in PLATFORMS}, place, repetitions
        ),
        "starts per minute": figures({n: f"load-{n}" for n in RATES}, place, repetitions),
        "jobs": figures({n: f"batch-day-{n}" for n in COUNTS}, place, 1),
    }
    draw(parts)
    return "\n\n".join([TEXT, *(grown(title, found) for title, found in parts.items())])
