"""Who may use how much, and who has: associations, QOSs, limits, fair shares."""
