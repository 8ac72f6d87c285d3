"""Other programs as front ends: SimPy, and schedulers that use Batsim's protocol."""
