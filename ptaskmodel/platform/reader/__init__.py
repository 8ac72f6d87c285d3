"""Platforms from SimGrid's XML: elements checked in their order, each declared to a builder."""
