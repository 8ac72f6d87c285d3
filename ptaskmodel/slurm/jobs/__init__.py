"""Jobs of Slurm: their requests, records, needs and dependencies."""
