"""Names of the values of batch options, for callers that need nothing else of a batch."""

from __future__ import annotations

# On what fair starts may be based: see `fairness`.
FAIRNESS = ("runtimes", "estimates", "both")
PROFILES = ("as-given", "delay", "ptask", "smpi")
WALLTIMES = ("kill", "ignore", "extend")
ON_FAILURE = ("fail", "requeue")
CHECKPOINT = ("interval", "write", "read", "mtbf")
FAILURE_LAW = ("mtbf", "repair", "shape", "repair_law", "link_mtbf", "link_repair", "seed")
# Which loop simulates: the compiled one where it can and is worth it, the open one always, the
# compiled one wherever it can.
LOOPS = ("auto", "open", "compiled")
# What is checked at every date.
VERIFIED = ("none", "head", "all")
# What hosts draw while a delay runs on them.
DELAY_POWERS = ("idle", "busy")
# Of the hosts of a machine: as in the platform file; by name (Batsim 3 and 4); by name with numbers
# as numbers (its other versions).
HOST_ORDERS = ("platform", "alphabetical", "natural")
