"""Names of what can be made here, for the choices of the command line."""

PROGRAMS = ("all-to-all", "stencil", "pipeline", "master-worker", "pdgemm")
PHASES = ("none", "collectives", "time")
