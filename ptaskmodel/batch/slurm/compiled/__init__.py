"""Backfill cycles of whole nodes, compiled."""
