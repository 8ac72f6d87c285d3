"""Read platforms from SimGrid's XML: check the order of elements, and declare each to a builder."""
