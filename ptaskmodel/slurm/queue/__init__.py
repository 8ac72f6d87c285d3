"""The queue of Slurm: priorities, preemption and gang scheduling."""
