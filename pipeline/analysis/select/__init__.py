"""The `select` command: the best of N candidates by their scores, beside votes, chance and the bound."""
