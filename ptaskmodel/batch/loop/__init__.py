"""The open loop of a batch: its state, what policies see and decide, and the schedule."""
