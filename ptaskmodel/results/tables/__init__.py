"""Tables of results: how each is written, and how it is read again."""
