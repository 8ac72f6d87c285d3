"""Options of each kind of run, a row each."""
