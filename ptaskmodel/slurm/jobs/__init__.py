"""What a job of Slurm is, asks for and waits for."""
