"""Collective operations as messages between ranks, and the choice of their algorithms."""
