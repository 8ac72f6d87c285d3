"""Metrics of a schedule, of its queue and of classes of jobs."""
