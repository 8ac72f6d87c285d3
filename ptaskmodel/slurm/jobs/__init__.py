"""Jobs of Slurm: the readers of their requests, their records, needs and dependencies."""
