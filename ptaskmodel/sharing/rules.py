"""The table of sharing rules: a new rule is a file with its kernel and an entry here.

Reading the table compiles nothing: it only names kernels, and `solvers` imports them.
"""

from __future__ import annotations

from typing import NamedTuple

# What is left of a capacity below this is nothing: SimGrid's precision/work-amount, absolute.
NOTHING_LEFT = 1e-5

# The ways from event to event: everything anew; from the levels of what limits anything; the part
# that is affected (max-min fairness); rounds among the few resources that limit them; from the
# prices in force. What each earns is in benchmarks/README.md.
WAYS = ("", "levels", "parts", "rounds", "prices")


class Rule(NamedTuple):
    """A rule of sharing; see docs/guides/extend.md for the interface of its kernel.

    summary: a few words for the command line.
    kernel: ``module.function`` in this package; the module also has its ``scratch_sizes``.
    variant: value of `Settings.variant`, for a kernel of two rules.
    condition: what `verify` checks besides feasible rates: each task has a reason not to be faster
    ("bmf", "maxmin", "flow-maxmin", "corrected"), prices for rates ("proportional"), the
    equal share ("equal-share"), nothing ("").
    fallback: ``module.function`` that solves a problem where the kernel's status is not 0.
    for_tasks: users may choose it by name; else only a network model does.
    skips_slack: a resource that its users cannot fill at their largest rates limits no task.
    counts_repeats: a task that names a resource twice counts as two users of it.
    compares_rates: fairness compares rates of progress: every share coefficient counts as 1.
    aim: residual at which a simulation stops to improve rates.
    way: how rates are found from event to event, one of `WAYS`.
    """

    summary: str
    kernel: str
    variant: bool = False
    condition: str = ""
    fallback: str = ""
    for_tasks: bool = True
    skips_slack: bool = False
    counts_repeats: bool = False
    compares_rates: bool = False
    way: str = ""
    aim: float = 1e-11


RULES = {
    "bmf": Rule(
        "bottleneck max fairness",
        "bottleneck_max_fairness.solver.solve_bmf",
        condition="bmf",
        fallback="bottleneck_max_fairness.fallbacks.solve_by_fallbacks",
        skips_slack=True,
        way="levels",
    ),
    "fairbottleneck": Rule(
        "reproduces SimGrid's numbers, including its quirks",
        "fair_bottleneck.solver.solve_fairbottleneck",
        condition="equal-share",
        counts_repeats=True,
        way="rounds",
    ),
    "fairbottleneck-corrected": Rule(
        "like fairbottleneck, without its double charging",
        "fair_bottleneck.solver.solve_fairbottleneck",
        variant=True,
        condition="corrected",
        counts_repeats=True,
        way="rounds",
    ),
    "maxmin": Rule(
        "weighted max-min",
        "levels.water_filling.solve_maxmin",
        condition="maxmin",
        skips_slack=True,
        compares_rates=True,
        way="levels",
    ),
    "flow-maxmin": Rule(
        "weighted max-min as SimGrid's flow models have it",
        "levels.water_filling.solve_maxmin",
        variant=True,
        condition="flow-maxmin",
        for_tasks=False,
        compares_rates=True,
        way="parts",
    ),
    "proportional": Rule(
        "weighted proportional fairness: a flow pays at each full link",
        "prices.solve_proportional",
        condition="proportional",
        skips_slack=True,
        way="prices",
        aim=1e-5,
    ),
}
# What one may ask for by name, and what it gives.
SOLVERS = {name: rule.summary for name, rule in RULES.items() if rule.for_tasks}
