"""The rule `fairbottleneck` of SimGrid."""
