"""What each kind of run does with its inputs and its directory."""
