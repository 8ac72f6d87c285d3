"""Rates from event to event: what each rule keeps, and solves anew."""
