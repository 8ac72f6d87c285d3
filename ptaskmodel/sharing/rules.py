"""The table of sharing rules: a new rule is a file with its kernel and an entry here.

Reading the table compiles nothing: it only names kernels, and `solvers` imports them.
"""

from __future__ import annotations

from dataclasses import dataclass

# What is left of a capacity below this is nothing: SimGrid's precision/work-amount, absolute.
NOTHING_LEFT = 1e-5


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of sharing; see docs/guides/extend.md for the interface of its kernel.

    summary: a few words for the command line.
    kernel: ``module.function`` in this package; the module also has its ``scratch_sizes``.
    variant: value of `Settings.variant`, for a kernel of two rules.
    condition: what `verify` checks besides feasible rates: each task has a reason not to be faster
    ("bmf", "maxmin", "flow-maxmin", "corrected"), the equal share ("equal-share"), nothing ("").
    fallback: ``module.function`` that solves a problem where the kernel's status is not 0.
    for_tasks: users may choose it by name; else only a network model does.
    skips_slack: a resource that its users cannot fill at their largest rates limits no task.
    counts_repeats: a task that names a resource twice counts as two users of it.
    keeps_rates: max-min fairness, of which a part can be re-solved (`engine.incremental.max_min`).
    by_rounds: rounds that few resources limit (`engine.incremental.fair_bottleneck`).
    """

    summary: str
    kernel: str
    variant: bool = False
    condition: str = ""
    fallback: str = ""
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
        fallback="bottleneck_max_fairness.fallbacks.solve_by_fallbacks",
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
