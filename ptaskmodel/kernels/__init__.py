"""Kernels: how Python functions become machine code, when the package is built, and are called."""
