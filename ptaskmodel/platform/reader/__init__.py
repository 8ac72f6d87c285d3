"""Read platforms from SimGrid's XML: check the order of elements, declare each to a builder."""
