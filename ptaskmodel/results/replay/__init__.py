"""What a replay of MPI traces leaves behind."""
