"""The controller of Slurm: lives of jobs, limits, failures of nodes."""
