"""How results look, everywhere: numbers and their units, colours by role, tables of text.

The terminal, pictures, pages and comparisons of runs write numbers and choose colours here alone.
"""
