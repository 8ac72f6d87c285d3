"""Who used what and when, in the formats of other programs."""
