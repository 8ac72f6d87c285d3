"""Record what happened between events: exact intervals, uses, capacities, isolated run times."""
