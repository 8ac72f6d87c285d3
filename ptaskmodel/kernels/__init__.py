"""Kernels: how Python functions become machine code at build time, and how they are called."""
