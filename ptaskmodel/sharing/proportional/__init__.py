"""Weighted proportional fairness, by prices of resources."""
