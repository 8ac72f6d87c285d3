"""Sharing of resources: problems, solvers and certificates, without platforms or time.

**Problem.** Variables i (tasks) have rates x_i >= 0, bounds b_i (inf: none) and weights p_i > 0.
Constraints r (resources) have capacities C_r >= 0. Elements (r, i) have a usage a_ri >= 0 and a
share coefficient m_ri, by default a_ri. Rates are feasible if x_i <= b_i, if the sum over i of
a_ri x_i is at most C_r on each SHARED r, and if each a_ri x_i is at most C_r on each FATPIPE r.

**Rules** (`rules`), each from nothing and, where that pays, from event to event:

* ``bmf``, bottleneck max fairness. Each i is at its bound, fills a FATPIPE, or has a bottleneck: a
  full SHARED r on which m_ri x_i / p_i is the largest of all. Equivalently there are levels l_r
  with x_i = min(b_i, min over r of l_r p_i / m_ri) and r full where l_r is this minimum. Rates
  exist; where variables limit each other in a cycle they need not be unique. From nothing:
  `bottleneck_max_fairness`; from event to event: `levels`.
* ``maxmin``, max-min fairness of x_i / p_i: the same with every m_ri = 1. Rates are unique. From
  nothing: `levels.water_filling`; from event to event: `levels`.
* ``flow-maxmin``, the same for flows, as SimGrid has it: a FATPIPE stops all its users at one
  level, and a capacity of 0 stops those alone that use nothing else. Rates are unique. From
  nothing: `levels.water_filling`; from event to event: `levels.affected`.
* ``fairbottleneck``, SimGrid's rounds, and ``fairbottleneck-corrected``: defined by their
  algorithm, so unique, up to the order of sums. From nothing: `fair_bottleneck.solver`; from event
  to event, to the same bits: `fair_bottleneck.heavy`.
* ``proportional``: the rates that maximise the sum over i of p_i log x_i. They are unique. Each way
  is `prices`, which begins with the last prices.

`Graph` (`state`) holds variables, constraints and elements between events. `graph` enters and
removes variables, `components` finds what a change can reach, `rates` solves that by a rule. What
each way earns is in benchmarks/README.md; `engine.resharing` chooses among them.
"""

from ptaskmodel.lazy import face

NAMES = {
    "ptaskmodel.sharing.arrays": (
        "bmf",
        "fairbottleneck",
        "fairbottleneck_corrected",
        "flow_maxmin",
        "LIMIT_BOUND",
        "LIMIT_NOTHING",
        "maxmin",
        "proportional",
        "solve",
    ),
    "ptaskmodel.sharing.problem": (
        "Allocation",
        "Certificate",
        "SharingProblem",
        "verify",
    ),
    "ptaskmodel.sharing.rules": ("RULES",),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
