"""The one table of sharing rules: a new one is a file with its kernel and an entry here.

Nothing is compiled to read it: kernels are named, and imported by those who solve.
"""

from __future__ import annotations

from dataclasses import dataclass

# What is left of a capacity below this is nothing: SimGrid's precision/work-amount, absolute.
NOTHING_LEFT = 1e-5


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of sharing; see docs/guides/extend.md for what its kernel is given and returns.

    summary: what it gives, in a few words for the command line.
    kernel: ``module.function`` in this package; the module also has its ``scratch_sizes``.
    variant: what `Settings.variant` is to be, for a kernel that knows two rules.
    condition: what `verify` asks for besides feasible rates: that each task has a reason not to be
    faster ("bmf", "maxmin", "flow-maxmin", "corrected"), the equal share ("equal-share"), nothing
    ("").
    rescue: ``module.function`` that solves a problem where the kernel's status is not 0.
    for_tasks: whether one may ask for it by name; else a network model chooses it.
    skips_slack: a resource that its users cannot fill, each at its largest rate, limits nobody.
    counts_repeats: a task that names a resource twice counts as two users of it.
    keeps_rates: it is max-min fairness, of which a part can be solved anew (`core.affected`).
    by_rounds: rounds in which few resources limit anybody (`core.heavy`).
    """

    summary: str
    kernel: str
    variant: bool = False
    condition: str = ""
    rescue: str = ""
    for_tasks: bool = True
    skips_slack: bool = False
    counts_repeats: bool = False
    keeps_rates: bool = False
    by_rounds: bool = False


RULES = {
    "bmf": Rule(
        "bottleneck max fairness",
        "bottleneck_max_fairness.solver.solve_bmf",
        condition="bmf",
        rescue="bottleneck_max_fairness.fallbacks.bmf_hard",
        skips_slack=True,
    ),
    "fairbottleneck": Rule(
        "SimGrid's numbers, quirks included",
        "fair_bottleneck.solver.solve_fairbottleneck",
        condition="equal-share",
        counts_repeats=True,
        by_rounds=True,
    ),
    "fairbottleneck-corrected": Rule(
        "the same without its double charging",
        "fair_bottleneck.solver.solve_fairbottleneck",
        variant=True,
        condition="corrected",
        counts_repeats=True,
        by_rounds=True,
    ),
    "maxmin": Rule(
        "weighted max-min",
        "max_min.water_filling.solve_maxmin",
        condition="maxmin",
        skips_slack=True,
        keeps_rates=True,
    ),
    "flow-maxmin": Rule(
        "weighted max-min as SimGrid's flow models have it",
        "max_min.water_filling.solve_maxmin",
        variant=True,
        condition="flow-maxmin",
        for_tasks=False,
        keeps_rates=True,
    ),
}
# What one may ask for by name, and what it gives.
SOLVERS = {name: rule.summary for name, rule in RULES.items() if rule.for_tasks}
