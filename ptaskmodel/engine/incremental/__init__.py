"""Rates from event to event: what each sharing rule keeps, and what it re-solves."""
