"""Selection of nodes and cores: the select plugins and the tree of switches."""
