"""Which nodes and cores a job gets: the select plugins and the tree of switches."""
