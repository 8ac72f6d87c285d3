"""The two schedulers of Slurm: the main one and backfill.

`backfill` defines a backfill cycle in Python. `vectorised_backfill` makes the same cycle by the
kernel of `backfill_kernel` if all jobs take whole, equal nodes, `shared_cycles` by that of
`shared_kernel` if they share nodes; `slot_kernel` is their map, `victim_kernel` leaves out the
victims of preemption. `threads` chooses between them.
"""
