"""Formats of files with tasks, jobs or traces, one module each; `table` lists them."""
