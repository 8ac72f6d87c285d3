"""Connections of a simulation to other programs."""
