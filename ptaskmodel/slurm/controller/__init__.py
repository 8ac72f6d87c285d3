"""The controller of Slurm: queue, priorities, preemption, life cycles of jobs, limits, failures."""
