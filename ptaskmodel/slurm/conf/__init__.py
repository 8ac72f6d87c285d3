"""slurm.conf, topology.conf and advance reservations, read into plain records."""
