"""The queue of Slurm: priorities, preemption, gangs."""
