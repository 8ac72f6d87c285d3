"""Readers of workloads for Slurm: each turns a file into requests of jobs."""
