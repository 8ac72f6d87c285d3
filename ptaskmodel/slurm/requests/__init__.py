"""What is submitted to Slurm, from whatever file it comes."""
