"""The compiled batch loop: its state in arrays, and kernels for policies, queue and ends."""
