"""The compiled batch loop: state in arrays, kernels for policies, queue and ends (see `loop`)."""
