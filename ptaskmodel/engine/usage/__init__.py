"""Route works to usage vectors: how much of each resource they use."""
