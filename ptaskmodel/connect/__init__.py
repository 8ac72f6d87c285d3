"""Other programs on top of a simulation."""
