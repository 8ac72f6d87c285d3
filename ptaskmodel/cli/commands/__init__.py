"""The commands, one module each or one for several small ones."""
