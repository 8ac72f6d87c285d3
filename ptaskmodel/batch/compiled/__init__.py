"""The batch loop of delays, compiled: states in arrays, one kernel (see `loop`)."""
