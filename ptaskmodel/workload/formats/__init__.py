"""Formats of files that say what runs, one file each; `table` lists them."""
