"""Bottleneck max fairness."""
