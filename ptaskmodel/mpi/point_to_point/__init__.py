"""Messages between two ranks: post, match, wait."""
