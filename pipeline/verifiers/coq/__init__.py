"""Has Coq read a chain as one proof script, and says which steps it accepts."""
