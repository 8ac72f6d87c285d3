"""Slurm, simulated: what a slurm.conf does to a workload. Reference version: Slurm 22.05."""
