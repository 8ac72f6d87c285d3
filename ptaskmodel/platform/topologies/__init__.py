"""Families of clusters: one file owns all that is known of one; ``families.py`` lists them."""
