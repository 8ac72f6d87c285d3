"""Levels of what limits anything, from event to event: bmf and max-min fairness."""
