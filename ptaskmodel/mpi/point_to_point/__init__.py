"""Messages between two ranks: posted, matched, waited for."""
