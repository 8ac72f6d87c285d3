"""Models that make workloads, one file each."""
