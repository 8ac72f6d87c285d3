"""Find the route between two points of one zone: one module for each family of zones."""
