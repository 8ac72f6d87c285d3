"""Formats of files that say what runs, one file each; `table` names them."""
