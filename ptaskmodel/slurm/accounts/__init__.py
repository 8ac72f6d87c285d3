"""Accounting of Slurm: associations, QOSs, limits, usage and fair share."""
