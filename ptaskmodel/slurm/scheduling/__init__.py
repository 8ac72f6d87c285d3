"""The two schedulers of Slurm: the main one and backfill."""
