"""Options of each kind of run: one row per option."""
