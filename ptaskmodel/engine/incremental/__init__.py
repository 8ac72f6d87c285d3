"""Rates from event to event: for each sharing rule, what it keeps and what it re-solves."""
