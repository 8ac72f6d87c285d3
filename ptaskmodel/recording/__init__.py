"""What happened between the events: exact intervals, uses, capacities, times alone."""
