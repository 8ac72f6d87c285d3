"""How the route between two points of one zone is found, one module per family of zones."""
