"""The controller of Slurm: life cycles of jobs, limits, failures of nodes."""
