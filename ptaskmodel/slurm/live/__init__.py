"""A real, unmodified Slurm that decides over a simulated machine, under a clock that jumps."""
