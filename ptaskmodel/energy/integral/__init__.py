"""The compiled part of the meter: power is integrated over a stream of changes."""
