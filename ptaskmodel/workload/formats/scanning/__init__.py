"""Kernels that read numbers."""
