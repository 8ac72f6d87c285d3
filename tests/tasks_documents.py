"""Valid tasks documents, for the tests of the reader and of its schema."""

from __future__ import annotations

WORKED = {
    "description": "three tasks",
    "tasks": [
        {"id": "T1", "start": 0, "hosts": ["a", "b"], "cpu": 1000, "com": [0, 600, 0, 0]},
        {"id": "T2", "start": 1, "hosts": ["a", "b"], "flows": [[0, 1, 1000]]},
        {"id": "T3", "start": 6.0, "hosts": ["a", "b"], "cpu": [300, 1000]},
    ],
}

EVERYTHING = {
    "$schema": "tasks.schema.json",
    "profiles": {
        "old parallel": {"type": "parallel", "cpu": [1, 2], "com": [[0, 3], [4, 0]]},
        "parallel": {"type": "ParallelTaskProfile", "cpu": 5, "flows": [[0, 2, 7], [2, 0, 0]]},
        "matrix only": {"type": "parallel", "com": [0, 1, 2, 0]},
        "old homogeneous": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
        "homogeneous": {
            "type": "ParallelTaskHomogeneousProfile",
            "com": 1e6,
            "generation_strategy": "DefinedAmountsUsedForEachValue",
        },
        "spread": {
            "type": "ParallelTaskHomogeneousProfile",
            "cpu": 8,
            "com": 120,
            "generation_strategy": "DefinedAmountsSpreadUniformly",
        },
        "old total": {"type": "parallel_homogeneous_total", "cpu": 8, "com": 120},
        "old delay": {"type": "delay", "delay": 2.5},
        "delay": {"type": "DelayProfile", "delay": 0},
        "composed": {"type": "composed", "seq": ["old parallel", "delay"], "repeat": 4},
        "sequence": {
            "type": "SequentialCompositionProfile",
            "seq": ["composed", "old homogeneous", "composed"],
        },
        "two/waits~": {"type": "composed", "seq": ["delay", "old delay"], "repeat": 2.0},
    },
    "tasks": [
        {"id": "a", "hosts": ["n-0", "n-1"], "profile": "old parallel", "start": 3},
        {"id": "b", "hosts": ["n-[0-3]"], "profile": "parallel", "after": ["a"]},
        {"id": "c", "hosts": ["n-0", "n-0"], "profile": "matrix only", "weight": 2.5},
        {"id": 4, "hosts": ["n-[00-15]"], "profile": "old homogeneous", "walltime": 100},
        {
            "id": "e",
            "hosts": ["n-[0-3]"],
            "profile": "homogeneous",
            "rate_bound": 0.5,
            "competitors": 3,
        },
        {"id": "f", "hosts": ["n-[0-3]"], "profile": "spread", "after": ["a", 4]},
        {"id": "g", "hosts": ["n-[0-3]"], "profile": "old total"},
        {"id": "h", "profile": "old delay"},
        {"id": "i", "hosts": ["n-1"], "profile": "delay"},
        {"id": "j", "hosts": ["n-1", "n-2"], "profile": "sequence"},
        {"id": "k", "hosts": [], "profile": "two/waits~"},
        {"id": "l", "hosts": ["n-1"], "cpu": [0], "flows": []},
        {"id": "m", "delay": 4, "start": 1e-3},
    ],
}

LOOPS = {
    "loops": [
        {"id": "a", "hosts": ["a", "b"], "flows": [[0, 1, 9]], "count": 3},
        {"id": "b", "hosts": ["a"], "cpu": 5, "count": 4, "at_once": 2, "think": 0.5},
        {"id": "c", "delay": 1, "count": 2, "think": {"exponential": 3}, "seed": 7, "start": 2},
        {"id": "d", "delay": 1, "count": 2, "think": {"uniform": [1, 2]}},
    ],
}

DOCUMENTS = [WORKED, EVERYTHING, LOOPS]
