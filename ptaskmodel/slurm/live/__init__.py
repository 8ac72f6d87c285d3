"""A real, unmodified Slurm schedules a simulated machine, under a virtual clock."""
