"""Make one workload from another: cut, shuffle, sample, scale, resample, turn into parallel tasks.

`PATTERNS` names the patterns of communication of the parallel tasks that replace delays (see
`ptask_rule`).
"""

from __future__ import annotations

from collections.abc import Mapping

PATTERNS: Mapping[str, str] = {
    "alltoall": "every host to every other, equal parts",
    "ring": "each host to the next",
    "stencil": "each host to its 4 neighbours on a torus as square as possible",
    "master": "the first host to each other and back",
}
