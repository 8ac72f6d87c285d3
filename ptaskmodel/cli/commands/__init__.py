"""The commands: one module for each, or one for several small commands."""
