"""A simulator of Slurm: how a slurm.conf schedules a workload. Reference version: Slurm 22.05."""
