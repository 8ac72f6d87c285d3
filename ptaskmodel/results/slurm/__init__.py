"""What a run of Slurm, simulated or real, leaves behind."""
