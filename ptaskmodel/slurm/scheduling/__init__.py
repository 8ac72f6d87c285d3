"""The two schedulers of Slurm: the main one and backfill.

`backfill` defines a backfill cycle in Python. `vectorised_backfill` makes the same cycle by the
kernel of `backfill_kernel` if all jobs take whole, equal nodes. `backfill_thread` chooses between
them.
"""
