"""Max-min fairness."""
