"""HTML pages of results."""
