"""Families of clusters: one file has everything about one family; ``families.py`` lists them."""
