"""Rates from event to event by the levels of what limits anything: bmf and max-min fairness."""
