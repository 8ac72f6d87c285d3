"""Readers of workloads for Slurm: each makes requests of jobs from a file."""
