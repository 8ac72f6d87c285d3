"""Pictures of platforms."""
