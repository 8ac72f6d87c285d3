"""Kinds of runs, one module each: read the inputs, run, and write a directory of results."""
