"""Works routed into patterns: what they ask of each resource."""
