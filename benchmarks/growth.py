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
MOST = 1_000_000
PICTURE = ROOT / "benchmarks" / "growth.png"
TEXT = """![Cost of an event by hosts, starts per minute and number of jobs](growth.png)

- **Platform**: the same 10,000 all-to-all jobs of 2-16 hosts on ever larger clusters. An event
  costs the same on all; creating the simulation takes time and memory for each host, once.
- **Contention**: 2,000 such jobs on 1,024 hosts, by starts per minute. More jobs share. An event
  changes the rates of most jobs that are connected with its own, so twice as many jobs at a time
  cost more than twice as much.
- **Jobs**: all-to-all jobs of 4-64 hosts of their own on a fat tree of 1,024, as a batch creates
  them. With a hundred times as many jobs, an event costs up to a third more; memory grows with the
  number of jobs."""


def figures(names: dict[int, str], repetitions: int) -> dict[str, dict[int, Cost]]:
    """The cost of each scenario under each solver."""
    found: dict[str, dict[int, Cost]] = {solver: {} for solver in SOLVERS}
    for size, name in names.items():
        for solver in SOLVERS:
            cost = found[solver][size] = Cost()
            for _ in range(repetitions):
                run_ours(name, solver, cost, "--again")
            print(name, solver, f"{us_per_event(cost):.1f} us an event", flush=True)
    return found


def us_per_event(cost: Cost) -> float:
    """What an event costs, the making of the simulation left out, us."""
    return cost.seconds / cost.events * 1e6


def grown(title: str, found: dict[str, dict[int, Cost]]) -> str:
    """The table of one kind of growth."""
    head = [title, "events", "set-up, s"]
    for solver in SOLVERS:
        head += [f"{solver}, s", "µs an event"]
    rows = []
    for size, cost in found[SOLVERS[0]].items():
        row = [f"{size:,}", f"{cost.events:,}", f"{cost.step('setup_s'):.3f}"]
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


def most(packages: dict[str, Path]) -> str:
    """A sentence on as many jobs as one simulates at a time, by each version of the package."""
    told = []
    for who, package in packages.items():
        cost = Cost()
        run_ours(f"batch-day-{MOST}", "bmf", cost, package=package)
        told.append(
            f"{who} {cost.seconds:.0f} s to add and run them, {cost.step('read_s'):.0f} s to make "
            f"the list of tasks, {max(cost.rss_MB):,.0f} MB"
        )
        print(told[-1], flush=True)
    return f"{MOST:,} such jobs, with `bmf`: {'; '.join(told)}."


def section(repetitions: int, place: Path, before: Path | None) -> str:
    """The three tables, their picture, and a sentence on many jobs.

    before: a checkout of an earlier version, to run many jobs beside this one.
    """
    parts = {
        "hosts of the platform": figures({n: f"platform-{n}" for n in PLATFORMS}, repetitions),
        "starts per minute": figures({n: f"load-{n}" for n in RATES}, repetitions),
        "jobs": figures({n: f"batch-day-{n}" for n in COUNTS}, 1),
    }
    draw(parts)
    packages = {"ours": ROOT} | ({} if before is None else {"before": before})
    tables = (grown(title, found) for title, found in parts.items())
    return "\n\n".join([TEXT, *tables, most(packages)])
