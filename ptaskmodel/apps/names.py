"""Names of programs and of ways to cut a trace into phases, for options of the command line."""

PROGRAMS = ("all-to-all", "stencil", "pipeline", "master-worker", "pdgemm")
PHASES = ("none", "collectives", "time")
