"""The open loop of a batch: its state, the view and decisions of policies, and the schedule."""
