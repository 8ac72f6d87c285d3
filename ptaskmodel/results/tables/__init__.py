"""Tables of results, and how they are read again."""
