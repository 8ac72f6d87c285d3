"""PDGEMM under interference on two clusters: published, simulated, measured."""
