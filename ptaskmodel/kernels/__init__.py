"""Kernels: compile Python functions to machine code at build time, and call them."""
