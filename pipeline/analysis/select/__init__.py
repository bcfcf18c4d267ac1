"""The `select` command: chooses the best of N candidates by score, and compares that with votes, chance and the upper bound."""
